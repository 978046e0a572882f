"""The rate z of exp(-z d), fitted to the ranking loss on training rows: by a grid or by gradients.

Rates are tried as zeta = z times the median distance of a neighbor, so that the scale of the
features does not matter. Labels that no neighbor has have S = 0 at every rate, so no rate changes
the order of a pair with one of them. Only the labels of a row's neighbors are visited: no array is
rows x labels, and no labels have to be sampled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from nearlabel.common.arrays import Array, Csr, Floats, entries_at, row_numbers, runs, with_data
from nearlabel.formulas.noisy_or import HIGHEST_RATE, LOWEST_RATE, log_sums, slopes
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import neighbor_counts, neighbor_sums

RELATIVE_RATES = 2.0 ** np.linspace(-4, 7, 23)
_PAIRS_AT_ONCE = 2**20


class RateTrial:
    """Training rows that rates are tried on, each with its neighbors among the others.

    Y has the labels of the base rows of the graph and `truth` those of its own rows; the model has
    k neighbors.
    """

    def __init__(self, graph: NeighborGraph, Y: Csr, truth: Csr, k: int) -> None:
        self._graph, self._Y, self._truth, self._k = graph, Y, truth, k
        touched = neighbor_counts(graph, Y)
        self._row = row_numbers(touched)
        self._is_true = entries_at(truth, self._row, touched.indices)[0]
        self._share = share_of_a_pair(truth)

    def __len__(self) -> int:
        return len(self._graph)

    def loss(self, rate: float) -> float:
        """Ranking loss at a rate, over the pairs that depend on it; a tie is an error."""
        S = log_sums(self._graph, self._Y, rate, self._k).data
        return sum(
            float(self._share[self._row[a]] @ (S[a] <= S[b]))
            for a, b in _pairs(self._row, self._is_true)
        )

    def surrogate(self, rate: float, rows: Array) -> tuple[float, float]:
        """J of some rows with phi = log(S + 1e-12), and its derivative by u = log z.

        Departs from the paper: only over pairs whose order depends on the rate. With the others, J
        decreases while a greater z brings S of false labels closer to 0, far beyond the best loss.
        """
        graph = self._graph.take(rows)
        S = log_sums(graph, self._Y, rate, self._k)
        slope = neighbor_sums(graph, self._Y, slopes(graph.distances, rate))
        phi = with_data(S, np.log(S.data + 1e-12))
        return pair_loss(self._truth[rows], phi, slope.data / (S.data + 1e-12))


def share_of_a_pair(truth: Csr) -> Floats:
    """What one wrong pair of each row adds to the ranking loss: 1 / (|Y| |not Y|) / rows.

    Rows with no label or with all labels have no pairs, and are left out of the mean.
    """
    size = np.diff(truth.indptr)
    pairs = size * (truth.shape[1] - size)
    share = np.zeros(len(pairs))
    share[pairs > 0] = 1 / pairs[pairs > 0] / np.count_nonzero(pairs)
    return share


def pair_loss(truth: Csr, phi: Csr, slope: Floats) -> tuple[float, float]:
    """The surrogate J of the ranking loss and its derivative, over the labels that phi stores.

    J = mean_i 1 / (|Y| |not Y|) sum_{a in Y, b not in Y} log(1 + exp(-(phi_a - phi_b)))

    `slope` is the derivative of each stored phi.
    """
    row, share = row_numbers(phi), share_of_a_pair(truth)
    J = derivative = 0.0
    for a, b in _pairs(row, entries_at(truth, row, phi.indices)[0]):
        times, gap = share[row[a]], phi.data[a] - phi.data[b]
        J += float(times @ np.logaddexp(0, -gap))
        derivative -= float((times * expit(-gap)) @ (slope[a] - slope[b]))
    return J, derivative


def _pairs(row: Array, is_true: Array) -> Iterator[tuple[Array, Array]]:
    """Pairs of a true and a false entry of a row, by position, a bounded number at a time.

    Entries are sorted by row.
    """
    true, false = np.flatnonzero(is_true), np.flatnonzero(~is_true)
    first, end = (np.searchsorted(row[false], row[true], side) for side in ("left", "right"))
    for run in runs(end - first, _PAIRS_AT_ONCE):
        times = (end - first)[run]
        within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        yield np.repeat(true[run], times), false[np.repeat(first[run], times) + within]


def median_distance(graph: NeighborGraph) -> float:
    """The median distance to a neighbor, the unit of 1 / z; 1 if all are 0.

    Distances of 0 are left out: at these a label is certain at every rate.
    """
    positive = graph.distances[graph.distances > 0]
    return float(np.median(positive)) if positive.size else 1.0


def rate_by_grid(trial: RateTrial, unit: float) -> float:
    """The rate with the least loss: on a grid, then by golden section around its best point.

    `unit` is the median distance.
    """
    best, least = _best_of_grid(trial, unit)
    tried = {float(RELATIVE_RATES[best]): least}

    def loss(log_zeta: float) -> float:
        zeta = float(np.exp(log_zeta))
        tried[zeta] = trial.loss(_rate(zeta, unit))
        return tried[zeta]

    golden = (np.sqrt(5) - 1) / 2
    low, high = np.log(RELATIVE_RATES.take([best - 1, best + 1], mode="clip"))
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(10):  # to 1/300 of the width of the interval
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = loss(right)
    # The loss has steps and several minima: keep the best rate seen, not the last one.
    return _rate(min(tried, key=lambda zeta: (tried[zeta], zeta)), unit)


def rate_by_gradient(trial: RateTrial, unit: float, random: np.random.RandomState) -> float:
    """The rate by stochastic gradient descent on the surrogate, from the best of the grid.

    Batches of rows, steps in log z, and the mean of the second half of them (Polyak averaging). If
    its loss is no smaller, the best of the grid is kept: the surrogate is neither the ranking loss
    nor convex. `unit` is the median distance.
    """
    best, least = _best_of_grid(trial, unit)
    low, high = np.log(RELATIVE_RATES[[0, -1]])
    place, path = np.log(RELATIVE_RATES[best]), []
    for _ in range(200):
        rows = random.choice(len(trial), min(128, len(trial)), replace=False)
        slope = trial.surrogate(_rate(np.exp(place), unit), rows)[1]
        place = np.clip(place - slope / 2, low, high)
        path.append(place)
    rate = _rate(np.exp(np.mean(path[100:])), unit)
    return rate if trial.loss(rate) < least else _rate(RELATIVE_RATES[best], unit)


def _best_of_grid(trial: RateTrial, unit: float) -> tuple[int, float]:
    """The index of the least loss, the lowest rate among equal ones, and that loss."""
    losses = [trial.loss(_rate(zeta, unit)) for zeta in RELATIVE_RATES]
    best = int(np.argmin(losses))
    return best, losses[best]


def _rate(zeta: float, unit: float) -> float:
    return float(np.clip(zeta / unit, LOWEST_RATE, HIGHEST_RATE))
