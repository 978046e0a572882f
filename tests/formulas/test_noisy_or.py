import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, label_matrices

from nearlabel.common.arrays import row_numbers
from nearlabel.common.validation import label_matrix
from nearlabel.formulas.noisy_or import HIGHEST_RATE, LOWEST_RATE, log_sums, slopes, weights
from nearlabel.graph import NeighborGraph

pytestmark = pytest.mark.engines

RATES = [LOWEST_RATE, 1e-6, 1e-3, 1.0, 7.0, 1e3, 1e6, HIGHEST_RATE]


@pytest.mark.parametrize("rate", RATES)
def test_every_rate_and_distance(rate):
    """From the smallest float to the largest, up to the rounding of z d: 700 times 2^-53."""
    far = [5e-324, 1e-310, 1e-300, 1e-200, 1e-20, 0.1, 1.0, np.log(2), 3.0, 1e3, 1e200, 1.7e308]
    far += list(np.array([1e-300, 0.01, 0.69, 0.7, 30, 600]) / rate)
    d = np.sort([v for v in far if 0 < v < np.inf])
    got = weights(d[:, None], rate, 1)[:, 0]
    ones = np.ones((len(d), 1), int)
    exact = oracles.log_sums(ones, np.arange(len(d))[:, None], d[:, None], rate)
    expected = [float(row[0][1]) for row in exact]
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-322)
    assert got.max() < 975


@pytest.mark.parametrize("rate", [0.01, 1.0, 40.0])
def test_slopes_are_those_of_the_weights(rate):
    d = np.array([[0.001, 0.3, 1.0, 2.0, 5.0]])
    h = 1e-6
    by_difference = weights(d, rate * np.exp(h), 5) - weights(d, rate * np.exp(-h), 5)
    np.testing.assert_allclose(slopes(d, rate), by_difference / (2 * h), rtol=1e-6, atol=1e-12)


def test_slopes_at_the_ends():
    d = np.array([[0.0, 5e-324, 1e-200, 1e200]])
    assert slopes(d, 1e-6).tolist() == [[0, -1, -1, 0]]


def test_float32_distances_are_widened():
    d = np.array([[0.5, 2.0]], np.float32)
    assert weights(d, 1.0, 2).dtype == np.float64
    np.testing.assert_array_equal(weights(d, 0.3, 2), weights(d.astype(np.float64), 0.3, 2))


@st.composite
def graphs(draw, distances):
    """A few rows of up to 7 neighbors, with their labels."""
    n_base = draw(st.integers(1, 7))
    found = [
        sorted((draw(distances), j) for j in range(n_base)) for _ in range(draw(st.integers(1, 4)))
    ]
    indices = np.array([[j for _, j in row] for row in found])
    far = np.array([[d for d, _ in row] for row in found])
    Y = draw(label_matrices(n_base))
    return NeighborGraph(indices, far, n_base), Y


@examples(300)
@given(
    problem=graphs(st.sampled_from([0.0, 1e-9, 0.3, 0.7, 1.0, 1 / 3, 5.0, 1e8, 1e-300])),
    rate=st.sampled_from(RATES),
)
def test_sums_equal_those_of_sixty_digits(problem, rate):
    graph, Y = problem
    got = log_sums(graph, label_matrix(Y, "Y"), rate, graph.k)
    expected = oracles.positive_scores(Y, graph.indices, graph.distances, rate, graph.k)
    row, label = row_numbers(got), got.indices
    np.testing.assert_allclose(got.data, expected[row, label], rtol=1e-10, atol=1e-317)
    assert (expected < 0).sum() + got.nnz == expected.size  # all others have no positive neighbor


@examples(300)
@given(
    problem=graphs(st.integers(1, 6).map(lambda step: step / 4)),
    rate=st.sampled_from([4000.0, 1e5, 1e6, 1e20]),
)
def test_at_large_rates_the_nearest_neighbor_decides(problem, rate):
    """exp(-z d) exceeds all further terms together, which are below its last digit."""
    graph, Y = problem
    got = log_sums(graph, label_matrix(Y, "Y"), rate, graph.k).toarray()
    far = graph.distances
    for row in range(len(graph)):
        nearest = [
            far[row][Y[graph.indices[row], a] == 1].min(initial=9) for a in range(Y.shape[1])
        ]
        for a in range(Y.shape[1]):
            for b in range(Y.shape[1]):
                assert nearest[a] >= nearest[b] or got[row, a] > got[row, b]


def test_tiny_sums_are_compared_as_sums_not_by_their_first_terms():
    # Two labels share a neighbor at 700. Then one has a neighbor at 701, the other has two at
    # 701.1: together these are nearer.
    graph = NeighborGraph([[0, 1, 2, 3]], [[700.0, 701.0, 701.1, 701.1]], 4)
    Y = label_matrix(np.array([[1, 1], [1, 0], [0, 1], [0, 1]]), "Y")
    got = log_sums(graph, Y, 1.0, 4)
    log_S = -700 + np.log1p([np.exp(-1), 2 * np.exp(-1.1)])
    np.testing.assert_allclose(got.data, 1e-300 * np.log(1e-300) / log_S, rtol=1e-12)
    assert got.data[1] > got.data[0]


def test_scores_continue_below_the_smallest_sums():
    """Through 1e-300 down to 0, without a step up."""
    d = np.linspace(680, 720, 4001)
    graph = NeighborGraph(np.zeros((4001, 1), int), d[:, None], 1)
    got = log_sums(graph, label_matrix(np.ones((1, 1)), "Y"), 1.0, 1).data
    assert (np.diff(got) < 0).all()
    assert got[-1] > 0
    assert (got < 1e-300).any()
    assert (got > 1e-300).any()


def test_certain_labels_are_ordered_by_their_number_then_by_the_others():
    far = [0.0, 0.0, 1e-300, 1.0]
    Y = np.array([[1, 1, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 1]])
    for rate in (LOWEST_RATE, 1e-6, 1.0, 20.0):
        graph = NeighborGraph([[0, 1, 2, 3]], [far], 4)
        got = log_sums(graph, label_matrix(Y, "Y"), rate, 4).toarray()[0]
        assert np.argsort(-got).tolist() == [1, 4, 0, 2, 3]
        assert got[2] < 4000 <= got[0]
