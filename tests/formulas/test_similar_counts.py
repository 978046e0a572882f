"""Admissible rows, compared with a scan of every row and every label."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import examples, label_matrices

import nearlabel as nl
from nearlabel.formulas import similar_counts as admissible
from nearlabel.formulas.similar_counts import AdmissibleRows
from nearlabel.labels.counts import neighbor_counts

pytestmark = [pytest.mark.kernels, pytest.mark.engines]


@st.composite
def counted_rows(draw):
    """C and Y of training rows, k, the tolerance, and counts of queries."""
    n = draw(st.integers(2, 14))
    Y = draw(label_matrices(n))
    k = draw(st.integers(1, n - 1))
    most = np.minimum(Y.sum(axis=0), k)
    m = draw(st.integers(1, 5))
    counts = draw(hnp.arrays(np.int32, (n + m, Y.shape[1]), elements=st.integers(0, k)))
    counts = np.minimum(counts, most)
    counts[draw(st.integers(0, n + m - 1))] = 0  # a row with unlabeled neighbors
    return counts[:n], Y, k, draw(st.integers(0, k + 1)), counts[n:]


def literal(C, Y, tolerance, c):
    """|A|, V and U of one query."""
    A = [
        i
        for i in range(len(C))
        if all(abs(a - b) <= tolerance for a, b in zip(C[i], c, strict=True))
    ]
    V = [sum(C[i, a] == c[a] and Y[i, a] == 1 for i in A) for a in range(len(c))]
    U = [sum(C[i, a] == c[a] and Y[i, a] == 0 for i in A) for a in range(len(c))]
    return len(A), V, U


def tally_of(rows, counts):
    """One tally of all queries."""
    parts = [tally for _, tally in rows.tallies(counts)]
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


@examples(400)
@given(problem=counted_rows(), at_once=st.sampled_from([1, 7, 2**19]))
def test_tallies_equal_a_scan_of_every_row_and_label(problem, at_once):
    C, Y, k, tolerance, queries = problem
    matrices = [label_or_count(matrix) for matrix in (C, Y, queries)]
    rows = AdmissibleRows.of(matrices[0], matrices[1], k, tolerance)
    with mock.patch.object(admissible, "_CELLS_AT_ONCE", at_once):
        sizes, V, U = tally_of(rows, matrices[2])
    for query, c in enumerate(queries):
        expected = literal(C, Y, tolerance, c)
        assert (sizes[query], V[query].tolist(), U[query].tolist()) == expected


def label_or_count(dense):
    from nearlabel.common.arrays import canonical_csr

    return canonical_csr(dense.astype(np.int32))


def test_a_tolerance_of_k_needs_no_lists():
    data = nl.datasets.make_local_labels(100, 4, 8)
    C = neighbor_counts(nl.neighbor_graph(data.X, 5), data.Y)
    assert AdmissibleRows.of(C, data.Y, 5, 4).postings.nnz > 0
    rows = AdmissibleRows.of(C, data.Y, 5, 10**30)
    assert (rows.postings.nnz, rows.is_light.sum(), rows.tolerance) == (0, 100, 5)


@pytest.mark.parametrize("limit", ["_CELLS_AT_ONCE", "_ENTRIES_A_CALL"])
def test_queries_come_in_runs_of_bounded_work(limit):
    data = nl.datasets.make_local_labels(60, 4, 8)
    C = neighbor_counts(nl.neighbor_graph(data.X, 5), data.Y)
    rows = AdmissibleRows.of(C, data.Y, 5, 1)
    (_, whole), *more = rows.tallies(C)
    assert not more
    unit = 8 if limit == "_CELLS_AT_ONCE" else rows.entries.nnz + 1
    with mock.patch.object(admissible, limit, 7 * unit):
        parts = list(rows.tallies(C))
    assert [place.stop - place.start for place, _ in parts] == [7] * 8 + [4]
    for place, tally in parts:
        for some, all_ in zip(tally, whole, strict=True):
            np.testing.assert_array_equal(some, all_[place])
    assert not list(rows.tallies(C[:0]))
