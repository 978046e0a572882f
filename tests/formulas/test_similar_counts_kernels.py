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


ENTRIES, POSTINGS = "entries .*indptr", "postings .*indptr"
COUNTS = "query_indptr must fit query_labels"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"query_indptr": []}, COUNTS),
        ({"query_indptr": [0, 1, 0]}, COUNTS),
        ({"query_indptr": [0, 1, 3]}, COUNTS),
        ({"query_indptr": [-1, 1, 2]}, COUNTS),
        ({"query_indptr": [0, 1]}, "admissible.*row.*column"),
        ({"query_labels": [0, 2]}, "query_labels.*contain labels"),
        ({"query_labels": [0, -1]}, "query_labels.*contain labels"),
        ({"query_labels": [0, 0, 0]}, "query_labels and query_counts.*size"),
        ({"query_indptr": [0, 2, 2]}, "query_labels.*repeat a label"),
        ({"query_counts": [1, 0]}, "counts.*1"),
        ({"query_counts": [1, -(2**31)]}, "counts.*1"),
        ({"query_counts": [1, 4]}, "counts.*cells"),
        ({"query_counts": [1, 2**31 - 1]}, "counts.*cells"),
        ({"query_labels": [1, 0]}, "counts.*cells"),
        ({"indptr": []}, ENTRIES),
        ({"indptr": [0, 1, 3, 2]}, ENTRIES),
        ({"indptr": [0, 1, 2, 5]}, ENTRIES),
        ({"indptr": [0, 1, -2, 4]}, ENTRIES),
        ({"indptr": [0, 1, 2]}, "is_light.*row"),
        ({"indices": [0, 0, 0, 2]}, "indices.*contain labels"),
        ({"indices": [0, 0, 0, -1]}, "indices.*contain labels"),
        ({"indices": [0, 0, 0]}, "entries.*index each"),
        ({"start": []}, "start.*one entry more"),
        ({"start": [0, 4, 6]}, "start.*cells of the table"),
        ({"start": [0, 6, 5]}, "start.*decrease"),
        ({"start": [0, 4, 4]}, "start.*count 0"),
        ({"light_with": [0, 1, 0, 0, 0, 0]}, "light_with and light_without.*size"),
        ({"light_without": [0, 1, 0, 0]}, "light_with and light_without.*size"),
        ({"is_light": [1, 1]}, "is_light.*row"),
        ({"posting_indptr": [0, 0, 2, 3, 3]}, "postings.*cell"),
        ({"posting_indptr": [0, 0, 3, 2, 3, 3]}, POSTINGS),
        ({"posting_indptr": [0, 0, 2, 9, 9, 9]}, POSTINGS),
        ({"posting_indptr": [0, 0, -1, 3, 3, 3]}, POSTINGS),
        ({"posting_rows": [0, 1, 3]}, "posting_rows.*row numbers"),
        ({"posting_rows": [0, 1, -1]}, "posting_rows.*row numbers"),
        ({"tolerance": -1}, "tolerance.*0"),
        ({"tolerance": 2**31}, "tolerance.*0"),
        ({"admissible": [0]}, "admissible.*row"),
        ({"with_label": np.zeros((2, 3))}, "admissible.*row"),
        ({"without_label": np.zeros((1, 2))}, "admissible.*row"),
    ],
)
def test_impossible_input_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        CORE.tally_admissible(**arrays(**changed))


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


def test_arrays_of_other_types_are_refused():
    with pytest.raises(TypeError):
        CORE.tally_admissible(**{**arrays(), "entries": np.array([2.0, 3.0, 5.0, 2.0])})
