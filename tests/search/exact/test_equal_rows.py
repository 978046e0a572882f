"""Equal rows are searched once, and every copy gets the result of a search of all rows."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from twin_graphs import assert_same

import nearlabel as nl
from nearlabel.search.exact.equal_rows import EqualRowsIndex, equal_rows
from nearlabel.search.exact.index import ExactIndex

pytestmark = pytest.mark.engines

METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan", "chebyshev", "hamming"]


@pytest.mark.filterwarnings("ignore:metric=")
@given(data=st.data(), metric=st.sampled_from(METRICS), is_sparse=st.booleans())
def test_as_a_search_of_all_rows(data, metric, is_sparse):
    """Few distinct rows, rows of zeros among them, in any order and number."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, d = data.draw(st.integers(2, 40)), data.draw(st.integers(1, 4))
    distinct = rng.integers(-1, 2, (data.draw(st.integers(1, 9)), d)).astype(float)
    X = distinct[rng.integers(0, len(distinct), n)]
    queries = np.vstack([X[:3], rng.integers(-1, 2, (3, d)) + 0.5])
    k = data.draw(st.integers(1, n - 1))
    X, queries = (sparse.csr_array(rows) if is_sparse else rows for rows in (X, queries))
    everything = ExactIndex(X, metric, 2**26)
    assert_same(nl.neighbor_graph(X, k, metric=metric), everything.graph(k))
    assert_same(nl.neighbor_graph(X, k, queries, metric=metric), everything.graph(k, queries))


def test_copies_are_grouped_in_the_order_of_their_first_rows():
    X = np.array([[3.0], [1.0], [3.0], [-0.0], [1.0], [0.0], [3.0]])
    for form in (X, sparse.csr_array(X), X.astype(np.int64), np.asfortranarray(np.hstack([X, X]))):
        rows = equal_rows(form)
        assert rows.number.tolist() == [0, 1, 0, 2, 1, 2, 0]
        assert rows.copies.tolist() == [0, 2, 6, 1, 4, 3, 5]
        assert rows.starts.tolist() == [0, 3, 5, 7]


def test_few_copies_do_not_matter():
    X = np.arange(80.0).reshape(40, 2)
    assert equal_rows(X) is None
    X[:5] = 1
    assert equal_rows(X) is None
    X[:6] = 1
    assert len(equal_rows(X)) == 35


def test_an_index_of_equal_rows_is_pickled_and_tells_progress():
    X = np.repeat(np.random.default_rng(0).normal(size=(50, 9)), 4, axis=0)
    index = nl.ExactSearch().build(X)
    assert isinstance(index, EqualRowsIndex)
    told = []
    found = index.graph(7, n_jobs=2, progress=lambda done, n: told.append((done, n)))
    assert told == sorted(told)
    assert told[-1] == (200, 200)
    assert_same(pickle.loads(pickle.dumps(index)).graph(7), found)
    assert_same(found, ExactIndex(X, "euclidean", 2**26).graph(7))
