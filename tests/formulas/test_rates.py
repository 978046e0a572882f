import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems

import nearlabel as nl
from nearlabel.common.arrays import row_numbers, with_data
from nearlabel.common.validation import label_matrix
from nearlabel.formulas import rates
from nearlabel.formulas.noisy_or import log_sums, slopes
from nearlabel.formulas.rates import (
    RELATIVE_RATES,
    RateTrial,
    median_distance,
    pair_loss,
    rate_by_gradient,
    rate_by_grid,
)
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import neighbor_sums
from nearlabel.labels.scores import LabelScores

pytestmark = pytest.mark.engines


def trial_of(X, Y, k):
    Y = label_matrix(Y, "Y")
    graph = nl.neighbor_graph(X, k)
    return RateTrial(graph, Y, Y, k), graph, Y


def of_all_labels(matrix, others):
    """The matrix with every entry stored: `others` where it has none."""
    dense = np.full(matrix.shape, others)
    dense[row_numbers(matrix), matrix.indices] = matrix.data
    return with_data(label_matrix(np.ones(matrix.shape), "Y"), dense.ravel())


@pytest.fixture(scope="module")
def made():
    """300 rows and 12 local labels, most of which are missing among the neighbors."""
    data = nl.datasets.make_local_labels(300, 4, 12, labels_per_sample=2, random_state=3)
    return trial_of(data.X, data.Y, 12)


class TestSurrogate:
    def test_worked_number(self, f6):
        """True set {1, 3}, phi = S, z = 1: J = 0.553955, dJ/dz = 0.217597."""
        X, Y, t = f6
        graph, Y = nl.neighbor_graph(X, 3, t), label_matrix(Y, "Y")
        S = log_sums(graph, Y, 1.0, 3)
        slope = neighbor_sums(graph, Y, slopes(graph.distances, 1.0))
        truth = label_matrix([[0, 1, 0, 1]], "Y")
        J, dJ = pair_loss(truth, of_all_labels(S, 0.0), of_all_labels(slope, 0.0).data)
        np.testing.assert_allclose([J, dJ], [0.553955, 0.217597], atol=5e-7)

    @given(problem=problems(), z=st.sampled_from([0.1, 1.0, 5.0]))
    def test_equals_the_sum_over_all_pairs(self, problem, z):
        X, Y, _, k = problem
        _, graph, truth = trial_of(X, Y, k)
        S = log_sums(graph, truth, z, k)
        dense = np.log(S.toarray() + 1e-12)
        phi = of_all_labels(with_data(S, np.log(S.data + 1e-12)), np.log(1e-12))
        got = pair_loss(truth, phi, np.zeros(phi.nnz))[0]
        assert got == pytest.approx(oracles.surrogate(Y, dense), rel=1e-10, abs=1e-12)

    @pytest.mark.parametrize("all_labels", [False, True])
    @pytest.mark.parametrize("relative_rate", [0.5, 5.0, 20.0])
    def test_gradient_is_the_finite_difference(self, made, relative_rate, all_labels):
        _, graph, Y = made
        u = np.log(relative_rate / median_distance(graph))

        def J(u):
            S = log_sums(graph, Y, np.exp(u), 12)
            slope = neighbor_sums(graph, Y, slopes(graph.distances, np.exp(u))).data
            phi = with_data(S, np.log(S.data + 1e-12))
            slope = with_data(S, slope / (S.data + 1e-12))
            if all_labels:
                phi, slope = of_all_labels(phi, np.log(1e-12)), of_all_labels(slope, 0.0)
            return pair_loss(Y, phi, slope.data)

        by_difference = (J(u + 1e-5)[0] - J(u - 1e-5)[0]) / 2e-5
        assert J(u)[1] == pytest.approx(by_difference, rel=1e-6)

    def test_the_trial_has_the_gradient_by_log_z(self, made):
        trial, graph, _ = made
        u, rows = np.log(5 / median_distance(graph)), np.arange(0, 300, 3)
        after, before = (trial.surrogate(np.exp(u + h), rows)[0] for h in (1e-5, -1e-5))
        J, dJ = trial.surrogate(np.exp(u), rows)
        assert dJ == pytest.approx((after - before) / 2e-5, rel=1e-6)
        assert before != after
        assert J > 0

    def test_the_trial_leaves_out_pairs_that_no_rate_changes(self):
        # Label 1 is the row's own and no neighbor carries it; label 0 is that of the neighbor. In
        # the J of all pairs a greater rate would be better, and the order stays as it is.
        graph = NeighborGraph([[1]], [[1.0]], 2)
        Y = label_matrix([[0, 1], [1, 0]], "Y")
        S = log_sums(graph, Y, 1.0, 1)
        slope = neighbor_sums(graph, Y, slopes(graph.distances, 1.0))
        assert pair_loss(Y[[0]], of_all_labels(S, 0.0), of_all_labels(slope, 0.0).data)[1] < 0
        assert RateTrial(graph, Y, Y[[0]], 1).surrogate(1.0, np.array([0])) == (0, 0)

    def test_pairs_in_many_runs(self, made, monkeypatch):
        trial, _, _ = made
        expected = trial.surrogate(1.0, np.arange(300))
        monkeypatch.setattr(rates, "_PAIRS_AT_ONCE", 7)
        assert trial.surrogate(1.0, np.arange(300)) == pytest.approx(expected, rel=1e-12)


@given(problem=problems(), both=st.tuples(*[st.sampled_from([1e-3, 0.1, 1.0, 4.0, 1e6])] * 2))
def test_losses_differ_as_the_ranking_losses_do(problem, both):
    """The trial leaves out pairs with a label that no neighbor carries, which no rate changes."""
    X, Y, _, k = problem
    trial, graph, truth = trial_of(X, Y, k)
    full = []
    for rate in both:
        loss = nl.metrics.ranking_loss(truth, LabelScores(log_sums(graph, truth, rate, k), -1.0))
        full.append(0.0 if np.isnan(loss) else loss)
    got = trial.loss(both[0]) - trial.loss(both[1])
    assert got == pytest.approx(full[0] - full[1], abs=1e-12)


def test_a_loss_by_hand():
    # One row; its neighbors at 1 and 2 carry {0, 1} and {1, 2}. It carries {0, 3}: 0 is below 1 and
    # above 2. The pairs of 3, which no neighbor carries, are left out: 1 of 4 pairs is wrong.
    graph = NeighborGraph([[1, 2]], [[1.0, 2.0]], 3)
    Y = label_matrix([[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0]], "Y")
    assert RateTrial(graph, Y, Y[[0]], 2).loss(1.0) == 0.25


class Valley:
    """A mock trial: a loss and a noisy surrogate with minima at given log z."""

    def __init__(self, of_loss, of_surrogate=0.0):
        self.of_loss, self.of_surrogate = of_loss, of_surrogate
        self.noise = np.random.default_rng(0).normal(size=1000)
        self.noise -= self.noise.mean()

    def __len__(self):
        return len(self.noise)

    def loss(self, rate):
        return (np.log(rate) - self.of_loss) ** 2

    def surrogate(self, rate, rows):
        u = np.log(rate) - self.of_surrogate
        return u * u / 4, u / 2 + self.noise[rows].mean()


class TestFitting:
    def test_grid_finds_the_least_loss_of_a_fine_grid(self, made):
        trial, graph, _ = made
        unit = median_distance(graph)
        on_grid = min(trial.loss(rate) for rate in RELATIVE_RATES / unit)
        found = trial.loss(rate_by_grid(trial, unit))
        fine = min(trial.loss(rate) for rate in 2.0 ** np.linspace(-4, 7, 300) / unit)
        assert fine <= found <= on_grid
        assert found - fine < 0.1 * (on_grid - fine) + 1e-4

    def test_grid_closes_in_between_its_points(self):
        found = rate_by_grid(Valley(of_loss=1.2345), 1.0)
        assert np.log(found) == pytest.approx(1.2345, abs=3e-3)

    def test_gradient_goes_to_the_minimum_of_the_surrogate(self):
        trial = Valley(of_loss=1.2345, of_surrogate=1.24)
        found = rate_by_gradient(trial, 1.0, np.random.RandomState(0))
        assert np.log(found) == pytest.approx(1.24, abs=0.02)

    def test_gradient_stays_at_its_start_if_that_has_the_smaller_loss(self):
        trial = Valley(of_loss=1.2345, of_surrogate=2.0)
        found = rate_by_gradient(trial, 1.0, np.random.RandomState(0))
        assert found == RELATIVE_RATES[np.abs(np.log(RELATIVE_RATES) - 1.2345).argmin()]

    def test_rates_stay_in_range_for_any_scale(self):
        for scale in (1e-150, 1e-110, 1e110, 1e150):
            X = np.random.default_rng(0).normal(size=(30, 2)) * scale
            Y = np.random.default_rng(1).integers(0, 2, (30, 3))
            trial, graph, _ = trial_of(X, Y, 5)
            assert 1e-100 <= rate_by_grid(trial, median_distance(graph)) <= 1e100


def test_median_distance_leaves_out_zeros():
    indices = [[1, 2, 3]]
    assert median_distance(NeighborGraph(indices, [[0.0, 2.0, 4.0]], 4)) == 3
    assert median_distance(NeighborGraph(indices, [[0.0, 0.0, 0.0]], 4)) == 1
