"""What a rate z of exp(-z d) loses on training rows, each left out of its own neighbors.

Labels that no neighbor carries have S = 0 at every rate, so no rate changes the order of a pair
with one of them. Only the labels that occur among a row's neighbors are looked at: nothing is
rows x labels, and no labels have to be sampled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from nearlabel.common.arrays import Array, Csr, Floats, entries_at, row_numbers, runs, with_data
from nearlabel.formulas.noisy_or import log_sums, slopes
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import neighbor_counts, neighbor_sums

_FLOOR = 1e-12  # phi = log(S + floor)
_PAIRS_AT_ONCE = 2**20


class RateTrial:
    """Training rows that rates are tried on, each with its neighbors among the others.

    Parameters
    ----------
    graph : NeighborGraph of n rows over n_base
    Y : csr_array, shape (n_base, q)
    truth : csr_array, shape (n, q)
        The labels of the n rows themselves.
    k : int
        Neighbors of the model.
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
        """Ranking loss at a rate, of the pairs that depend on it; a tie is an error."""
        S = log_sums(self._graph, self._Y, rate, self._k).data
        return sum(
            float(self._share[self._row[a]] @ (S[a] <= S[b]))
            for a, b in _pairs(self._row, self._is_true)
        )

    def surrogate(self, rate: float, rows: Array) -> tuple[float, float]:
        """J of some rows with phi = log(S + 1e-12), and its derivative by u = log z.

        Departs from the paper: only of pairs whose order depends on the rate. With the others, J
        falls as long as z brings S of the wrong labels nearer to 0, far beyond the least loss.
        """
        graph = self._graph.take(rows)
        S = log_sums(graph, self._Y, rate, self._k)
        slope = neighbor_sums(graph, self._Y, slopes(graph.distances, rate))
        phi = with_data(S, np.log(S.data + _FLOOR))
        return pair_loss(self._truth[rows], phi, slope.data / (S.data + _FLOOR))


def share_of_a_pair(truth: Csr) -> Floats:
    """What one wrong pair of each row adds to the ranking loss: 1 / (|Y| |not Y|) / rows.

    Rows that carry no label or all have no pairs, and are left out of the mean.
    """
    size = np.diff(truth.indptr)
    pairs = size * (truth.shape[1] - size)
    share = np.zeros(len(pairs))
    share[pairs > 0] = 1 / pairs[pairs > 0] / np.count_nonzero(pairs)
    return share


def pair_loss(
    truth: Csr, phi: Csr, slope: Floats, *, others: float | None = None
) -> tuple[float, float]:
    """The surrogate J of the ranking loss, and its derivative.

    J = mean_i 1 / (|Y| |not Y|) sum_{a in Y, b not in Y} log(1 + exp(-(phi_a - phi_b)))

    Parameters
    ----------
    truth : csr_array, shape (n, q)
    phi : csr_array, shape (n, q)
        Stored for some labels of each row.
    slope : ndarray
        The derivative of each stored phi.
    others : float, optional
        phi of all other labels, with derivative 0; by default the sum is over stored ones only.
    """
    row, share = row_numbers(phi), share_of_a_pair(truth)
    is_true = entries_at(truth, row, phi.indices)[0]
    parts = [
        _lost(share[row[a]], phi.data[a] - phi.data[b], slope[a] - slope[b])
        for a, b in _pairs(row, is_true)
    ]
    if others is not None:  # all of a row at once, times their number
        n, q = truth.shape
        size = np.diff(truth.indptr)
        more_true = size - np.bincount(row[is_true], minlength=n)
        more_false = q - size - np.bincount(row[~is_true], minlength=n)
        a, b = is_true, ~is_true
        parts += [
            _lost((share * more_false)[row[a]], phi.data[a] - others, slope[a]),
            _lost((share * more_true)[row[b]], others - phi.data[b], -slope[b]),
            _lost(share * more_true * more_false, np.zeros(n), np.zeros(n)),
        ]
    J, derivative = np.sum(parts, axis=0) if parts else (0.0, 0.0)
    return float(J), float(derivative)


def _lost(times: Floats, gap: Floats, slope: Floats) -> tuple[float, float]:
    """What pairs with phi_a - phi_b = gap add to J, and to its derivative."""
    return float(times @ np.logaddexp(0, -gap)), float(-(times * expit(-gap)) @ slope)


def _pairs(row: Array, is_true: Array) -> Iterator[tuple[Array, Array]]:
    """Pairs of a true and a false entry of one row, as places, so many at once as memory allows.

    Entries are sorted by row.
    """
    true, false = np.flatnonzero(is_true), np.flatnonzero(~is_true)
    first, end = (np.searchsorted(row[false], row[true], side) for side in ("left", "right"))
    for run in runs(end - first, _PAIRS_AT_ONCE):
        times = (end - first)[run]
        within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        yield np.repeat(true[run], times), false[np.repeat(first[run], times) + within]
