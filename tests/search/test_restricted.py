import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import vectors
from twin_graphs import assert_same

import nearlabel as nl
from nearlabel.search import build_index, neighbors_with_margin, restrict

pytestmark = pytest.mark.engines


@given(
    X=vectors(rows=st.integers(4, 24)),
    data=st.data(),
    metric=st.sampled_from(["euclidean", "cosine", "manhattan"]),
    is_sparse=st.booleans(),
)
def test_hiding_rows_is_searching_among_the_others(X, data, metric, is_sparse):
    n = len(X)
    keep = np.zeros(n, bool)
    keep[data.draw(st.permutations(range(n)))[: data.draw(st.integers(2, n - 1))]] = True
    k = data.draw(st.integers(1, keep.sum() + 1))
    searched = data.draw(st.integers(1, n - 1))  # often too few: then rows are searched again
    X = sparse.csr_array(X.astype(float)) if is_sparse else X
    graph = nl.neighbor_graph(X, searched, metric=metric)
    built = []

    def build(kept):
        built.append(kept.shape[0])
        return build_index(kept, metric, "exact")

    kept, hidden = restrict(graph, X, keep, k, build)
    base = X[np.flatnonzero(keep)]
    n_base = int(keep.sum())
    assert_same(kept, nl.neighbor_graph(base, min(k, n_base - 1), metric=metric))
    others = X[np.flatnonzero(~keep)]
    assert_same(hidden, nl.neighbor_graph(base, min(k, n_base), others, metric=metric))
    assert built in ([], [n_base])
    if searched == n - 1:
        assert built == []


def test_the_margin_spares_nearly_all_rows_a_second_search():
    rng = np.random.default_rng(0)
    X, n, k = rng.random((2000, 8)), 2000, 10
    searched = neighbors_with_margin(k, n, 200)
    graph = nl.neighbor_graph(X, searched)
    assert k < searched < 2 * k + 5
    short = 0
    for part in np.array_split(rng.permutation(n), 10):
        keep = np.ones(n, bool)
        keep[part] = False
        short += (keep[graph.indices].sum(axis=1) < k).sum()
    assert short <= 20  # of 20,000


@pytest.mark.parametrize(("k", "n", "hidden"), [(1, 2, 1), (5, 6, 5), (3, 10, 10), (100, 50, 5)])
def test_the_margin_stays_within_the_other_rows(k, n, hidden):
    assert 1 <= neighbors_with_margin(k, n, hidden) <= n - 1
