"""The compiled tally of admissible rows: equal to its NumPy twin, and safe for any input."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import labeled_graphs

from nearlabel.common import engine
from nearlabel.formulas.similar_counts import AdmissibleRows
from nearlabel.labels.counts import neighbor_counts

pytestmark = pytest.mark.kernels

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


def tallies(core, rows, counts):
    with mock.patch.object(engine, "core", return_value=core):
        parts = [tally for _, tally in rows.tallies(counts)]
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


@given(
    labeled_graphs(of_training_rows=True),
    st.integers(0, 7),
    st.integers(0, 2**32 - 1),
    st.sampled_from([np.int32, np.int64]),
)
def test_tallies(problem, tolerance, seed, kind):
    graph, Y = problem
    C = neighbor_counts(graph, Y)
    C.indices, C.indptr = C.indices.astype(kind), C.indptr.astype(kind)
    rows = AdmissibleRows.of(C, Y, graph.k, tolerance)
    queries = neighbor_counts(
        graph.take(np.random.default_rng(seed).integers(len(graph), size=9)), Y
    )
    for ours, twin in zip(*(tallies(core, rows, queries) for core in (CORE, None)), strict=True):
        assert ours.dtype == twin.dtype
        np.testing.assert_array_equal(ours, twin)


def arrays(**changed):
    """Arguments: three rows of two labels, k = 3, tolerance 1; the last row has a heavy count."""
    given = {
        "query_indptr": np.array([0, 1, 2]),
        "query_labels": np.array([0, 0]),
        "query_counts": np.array([1, 3], np.int32),
        "indptr": np.array([0, 1, 2, 4]),
        "indices": np.array([0, 0, 0, 1]),
        "entries": np.array([2, 3, 5, 2], np.int32),  # counts 1, 1 and 2 of label 0
        "start": np.array([0, 4, 5]),
        "light_with": np.array([0, 1, 0, 0, 0]),
        "light_without": np.array([0, 1, 0, 0, 2]),
        "is_light": np.array([1, 1, 0], np.uint8),
        "posting_indptr": np.array([0, 0, 2, 3, 3, 3]),
        "posting_rows": np.array([0, 1, 2]),
        "tolerance": 1,
        "admissible": np.empty(2, np.int64),
        "with_label": np.empty((2, 2), np.int32),
        "without_label": np.empty((2, 2), np.int32),
    }
    for name, value in changed.items():
        given[name] = value if isinstance(value, int) else np.asarray(value, given[name].dtype)
    return given


def test_a_tally_by_hand():
    given = arrays()
    CORE.tally_admissible(**given)
    # The first query admits all rows; the second, with a heavy count of 3, only the last.
    assert given["admissible"].tolist() == [3, 1]
    assert given["with_label"].tolist() == [[1, 0], [0, 0]]
    assert given["without_label"].tolist() == [[1, 2], [0, 0]]


def test_numbers_that_overflow_wrap_around():
    most = 2**31 - 1
    given = arrays(light_with=np.full(5, most), light_without=np.full(5, most))
    CORE.tally_admissible(**given)
    # The third row is added to the light ones, and subtracted where it has an entry.
    assert given["with_label"].tolist() == [[most, most], [0, 0]]
    assert given["without_label"].tolist() == [[most, most], [0, 0]]
    given = arrays(entries=[-(2**31), most, -1, most], tolerance=most)
    CORE.tally_admissible(**given)
    assert given["admissible"].tolist() == [2, 2]  # no count exceeds this tolerance
