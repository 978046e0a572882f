"""The compiled tally of admissible rows: as its twin in NumPy, and safe whatever comes."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import labeled_graphs

from nearlabel.common import engine
from nearlabel.formulas.similar_counts import AdmissibleRows
from nearlabel.labels.counts import neighbor_counts

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


ENTRIES, POSTINGS = (f"{name} have an indptr that does not fit" for name in ("entries", "postings"))
COUNTS = "counts have an indptr that does not fit"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"query_indptr": []}, COUNTS),
        ({"query_indptr": [0, 1, 0]}, COUNTS),
        ({"query_indptr": [0, 1, 3]}, COUNTS),
        ({"query_indptr": [-1, 1, 2]}, COUNTS),
        ({"query_indptr": [0, 1]}, "the results must have a row a query and a column a label"),
        ({"query_labels": [0, 2]}, "counts hold an index that is no label"),
        ({"query_labels": [0, -1]}, "counts hold an index that is no label"),
        ({"query_labels": [0, 0, 0]}, "counts must have an index each"),
        ({"query_indptr": [0, 2, 2]}, "counts hold a label twice"),
        ({"query_counts": [1, 0]}, "counts must be from 1 up"),
        ({"query_counts": [1, -(2**31)]}, "counts must be from 1 up"),
        ({"query_counts": [1, 4]}, "a label is counted more often than it occurs"),
        ({"query_counts": [1, 2**31 - 1]}, "a label is counted more often than it occurs"),
        ({"query_labels": [1, 0]}, "a label is counted more often than it occurs"),
        ({"indptr": []}, ENTRIES),
        ({"indptr": [0, 1, 3, 2]}, ENTRIES),
        ({"indptr": [0, 1, 2, 5]}, ENTRIES),
        ({"indptr": [0, 1, -2, 4]}, ENTRIES),
        ({"indptr": [0, 1, 2]}, "is_light must say so of each row"),
        ({"indices": [0, 0, 0, 2]}, "entries hold an index that is no label"),
        ({"indices": [0, 0, 0, -1]}, "entries hold an index that is no label"),
        ({"indices": [0, 0, 0]}, "entries must have an index each"),
        ({"start": []}, "start must have one place more than there are labels"),
        ({"start": [0, 4, 6]}, "start must stay within the table"),
        ({"start": [0, 6, 5]}, "start must not go back"),
        ({"start": [0, 4, 4]}, "a label is counted more often than it occurs"),
        ({"light_with": [0, 1, 0, 0, 0, 0]}, "the light tables must be of one size"),
        ({"light_without": [0, 1, 0, 0]}, "the light tables must be of one size"),
        ({"is_light": [1, 1]}, "is_light must say so of each row"),
        ({"posting_indptr": [0, 0, 2, 3, 3]}, "postings must have a list for each cell"),
        ({"posting_indptr": [0, 0, 3, 2, 3, 3]}, POSTINGS),
        ({"posting_indptr": [0, 0, 2, 9, 9, 9]}, POSTINGS),
        ({"posting_indptr": [0, 0, -1, 3, 3, 3]}, POSTINGS),
        ({"posting_rows": [0, 1, 3]}, "postings hold an index that is no row"),
        ({"posting_rows": [0, 1, -1]}, "postings hold an index that is no row"),
        ({"tolerance": -1}, r"tolerance must be from 0 to 2\^31 - 1"),
        ({"tolerance": 2**31}, r"tolerance must be from 0 to 2\^31 - 1"),
        ({"admissible": [0]}, "the results must have a row a query"),
        ({"with_label": np.zeros((2, 3))}, "the results must have a row a query"),
        ({"without_label": np.zeros((1, 2))}, "the results must have a row a query"),
    ],
)
def test_what_cannot_be_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        CORE.tally_admissible(**arrays(**changed))


def test_numbers_that_run_over_do_no_harm():
    great = np.full(5, 2**31 - 1)
    CORE.tally_admissible(**arrays(light_with=great, light_without=great))
    entries = np.array([-(2**31), 2**31 - 1, -1, 2**31 - 1], np.int32)
    CORE.tally_admissible(**arrays(entries=entries, tolerance=2**31 - 1))


def test_arrays_of_other_types_are_refused():
    with pytest.raises(TypeError):
        CORE.tally_admissible(**{**arrays(), "entries": np.array([2.0, 3.0, 5.0, 2.0])})
