import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import vectors

import nearlabel as nl


def graph_of(indices, distances, n_base=4):
    return nl.NeighborGraph(indices, distances, n_base)


@given(X=vectors())
def test_csr_round_trip_and_heads(X):
    graph = nl.neighbor_graph(X, len(X) - 1)
    back = nl.NeighborGraph.from_csr(graph.to_csr())
    np.testing.assert_array_equal(back.indices, graph.indices)
    np.testing.assert_array_equal(back.distances, graph.distances)
    for k in range(1, graph.k + 1):
        np.testing.assert_array_equal(graph.head(k).indices, nl.neighbor_graph(X, k).indices)


def test_to_csr_is_what_scikit_learn_reads():
    from sklearn.neighbors import KNeighborsClassifier

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    queries = X[:20] + 0.01
    graph = nl.neighbor_graph(X, 5, queries)
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
    theirs = KNeighborsClassifier(metric="precomputed").fit(distances, y)
    np.testing.assert_array_equal(
        theirs.predict(sparse.csr_matrix(graph.to_csr())),
        KNeighborsClassifier().fit(X, y).predict(queries),
    )


def test_to_csr_is_a_copy():
    graph = nl.neighbor_graph(np.random.default_rng(0).normal(size=(20, 2)), 5)
    before = graph.distances.copy(), graph.indices.copy()
    graph.to_csr().sort_indices()
    np.testing.assert_array_equal(graph.distances, before[0])
    np.testing.assert_array_equal(graph.indices, before[1])


def test_from_csr_drops_the_diagonal_of_square_graphs_and_keeps_zeros():
    matrix = sparse.csr_array(
        ([0.0, 0.0, 1.0, 2.0, 0.0, 1.0, 0.0], [0, 1, 2, 0, 1, 2, 2], [0, 3, 6, 7]), shape=(3, 3)
    )
    with pytest.raises(ValueError, match="row 2 .*graph .*0 neighbors"):
        nl.NeighborGraph.from_csr(matrix)
    graph = nl.NeighborGraph.from_csr(matrix[:2])
    assert graph.indices.tolist() == [[0, 1, 2], [1, 2, 0]]
    graph = nl.NeighborGraph.from_csr(matrix[:2], k=1, drop_diagonal=True)
    assert (graph.indices.tolist(), graph.distances.tolist()) == ([[1], [2]], [[0.0], [1.0]])
    with pytest.raises(ValueError, match="row 0 .*graph .*2 .* 3 "):
        nl.NeighborGraph.from_csr(matrix[:2], k=3, drop_diagonal=True)
    with pytest.raises(TypeError, match="matrix .*sparse matrix.*list"):
        nl.NeighborGraph.from_csr([[1.0]])


def test_ties_of_a_given_graph_are_put_in_the_order_of_rows():
    graph = nl.NeighborGraph.from_csr(
        sparse.csr_array(([1.0, 1.0, 0.5], [3, 1, 2], [0, 3]), shape=(1, 4))
    )
    assert graph.indices.tolist() == [[2, 1, 3]]


@pytest.mark.parametrize(
    ("indices", "distances", "message"),
    [
        ([[0, 4]], [[1.0, 2.0]], "row 0 .*graph .*index.* 3"),
        ([[0, -1]], [[1.0, 2.0]], "row 0 .*graph .*index.* 3"),
        (
            [[0, 1], [2, 1]],
            [[1, 2], [3, 2]],
            "row 1 .*graph .*sort",
        ),
        ([[2, 1]], [[1.0, 1.0]], "row 0 .*graph .*sort"),
        ([[1, 1]], [[1.0, 2.0]], "row 0 .*graph .*neighbor twice"),
        ([[1, 2]], [[-1.0, 2.0]], "row 0 .*graph .*distance.*negative"),
        ([[1, 2]], [[1.0, np.nan]], "row 0 .*graph .*distance.*finite"),
        ([[1, 2]], [[1.0, np.inf]], "row 0 .*graph .*distance.*finite"),
        ([[1, 2]], [[1.0]], "indices and distances.*shape"),
        ([1, 2], [1.0, 2.0], "indices and distances.*2-d"),
        (np.empty((2, 0), int), np.empty((2, 0)), "indices and distances.*not empty"),
    ],
)
def test_arrays_that_break_the_contract_are_refused(indices, distances, message):
    with pytest.raises(ValueError, match=message):
        graph_of(indices, distances)


def test_types():
    graph = graph_of(np.array([[0, 1]], np.int64), np.array([[0, 1]]))
    assert graph.indices.dtype == np.int32
    assert graph.distances.dtype == np.float64
    assert graph_of([[0]], np.zeros((1, 1), np.float32)).distances.dtype == np.float32
    with pytest.raises(TypeError, match="indices .*integers.*float64"):
        graph_of([[0.0]], [[1.0]])
    with pytest.raises(TypeError, match="distances .*real.*complex128"):
        graph_of([[0]], [[1j]])
    with pytest.raises(ValueError, match=r"\bk\b.*2.*3"):
        graph.head(3)
    assert repr(graph) == "NeighborGraph(n=1, k=2, n_base=4)"


@pytest.mark.parametrize("n_base", [0, -1, 2**64, 2**63, 2**48 + 1])
def test_numbers_of_rows_that_no_index_can_count_are_refused(n_base):
    with pytest.raises(ValueError, match=f"n_base.*{n_base}"):
        graph_of([[0]], [[1.0]], n_base)


def test_the_largest_number_of_rows():
    assert graph_of([[2**48 - 1]], [[1.0]], 2**48).indices.tolist() == [[2**48 - 1]]


@given(vectors(rows=st.integers(3, 20)), st.data())
def test_without_the_rows_themselves_is_the_graph_among_the_others(X, data):
    n = len(X)
    k = data.draw(st.integers(1, n - 2))
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=8)))
    expected = nl.neighbor_graph(X, k).take(rows)
    # Of many equal rows, a row need not be among its own nearest: the last one goes then.
    got = nl.neighbor_graph(X, k + 1, X[rows]).without(rows)
    np.testing.assert_array_equal(got.indices, expected.indices)
    np.testing.assert_array_equal(got.distances, expected.distances)
