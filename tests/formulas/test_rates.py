from __future__ import annotations

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.common.validation import label_matrix
from nearlabel.formulas.rate_losses import RateTrial
from nearlabel.formulas.rates import (
    RELATIVE_RATES,
    median_distance,
    rate_by_gradient,
    rate_by_grid,
)
from nearlabel.graph import NeighborGraph

pytestmark = pytest.mark.engines


def trial_of(X, Y, k):
    Y = label_matrix(Y, "Y")
    graph = nl.neighbor_graph(X, k)
    return RateTrial(graph, Y, Y, k), graph, Y


@pytest.fixture(scope="module")
def made():
    """300 rows, 12 labels that live in places, of which neighbors leave out most."""
    data = nl.datasets.make_local_labels(300, 4, 12, labels_per_sample=2, random_state=3)
    return trial_of(data.X, data.Y, 12)


class Valley:
    """In the place of a trial: a loss and a noisy surrogate with their minima at given log z."""

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

    def test_a_gradient_is_reproducible_for_a_seed(self, made):
        trial, graph, _ = made
        found = {
            rate_by_gradient(trial, median_distance(graph), np.random.RandomState(5))
            for _ in range(2)
        }
        assert len(found) == 1

    def test_gradient_is_not_worse_than_its_start(self, made):
        trial, graph, _ = made
        unit = median_distance(graph)
        start = min(trial.loss(rate) for rate in RELATIVE_RATES / unit)
        for seed in range(3):
            found = rate_by_gradient(trial, unit, np.random.RandomState(seed))
            assert trial.loss(found) <= start

    def test_rates_stay_in_range_whatever_the_scale(self):
        for scale in (1e-150, 1e-110, 1e110, 1e150):
            X = np.random.default_rng(0).normal(size=(30, 2)) * scale
            Y = np.random.default_rng(1).integers(0, 2, (30, 3))
            trial, graph, _ = trial_of(X, Y, 5)
            assert 1e-100 <= rate_by_grid(trial, median_distance(graph)) <= 1e100


def test_median_distance_leaves_out_zeros():
    indices = [[1, 2, 3]]
    assert median_distance(NeighborGraph(indices, [[0.0, 2.0, 4.0]], 4)) == 3
    assert median_distance(NeighborGraph(indices, [[0.0, 0.0, 0.0]], 4)) == 1
