"""What a rate z of exp(-z d) loses on training rows, each left out of its own neighbors.

Labels that no neighbor carries have S = 0 at every rate, so no rate changes the order of a pair
with one of them. Only the labels that occur among a row's neighbors are looked at: nothing is
rows x labels, and no labels have to be sampled.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from nearlabel.arrays import Array, Csr, Floats, entries_at, row_numbers, runs, with_data
from nearlabel.graph import NeighborGraph
from nearlabel.methods.noisy_or import log_sums, slopes
from nearlabel.statistics import neighbor_counts, neighbor_sums

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

    def loss(self, rate: float) -> float:
        """Ranking loss at a rate, of the pairs that depend on it; a tie is an error."""
        S = log_sums(self._graph, self._Y, rate, self._k).data
        # In each row the best first; of equal ones those that the row does not carry.
        order = np.lexsort((self._is_true, -S, self._row))
        row, is_true = self._row[order], self._is_true[order]
        false_so_far = np.cumsum(~is_true)
        false_in_rows = np.bincount(row[~is_true], minlength=len(self._share))
        before_row = np.cumsum(false_in_rows) - false_in_rows
        wrong = (false_so_far - before_row[row])[is_true]
        return float(wrong @ self._share[row[is_true]])

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

    def __len__(self) -> int:
        return len(self._graph)


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
    n, q = truth.shape
    row, size = row_numbers(phi), np.diff(truth.indptr)
    is_true = entries_at(truth, row, phi.indices)[0]
    a_row, a_phi, a_slope = row[is_true], phi.data[is_true], slope[is_true]
    b_phi, b_slope = phi.data[~is_true], slope[~is_true]
    n_b = np.bincount(row[~is_true], minlength=n)
    first_b = np.cumsum(n_b) - n_b
    if others is not None:
        more = np.repeat(np.arange(n), size - np.bincount(a_row, minlength=n))
        a_row = np.concatenate([a_row, more])
        a_phi = np.concatenate([a_phi, np.full(len(more), others)])
        a_slope = np.concatenate([a_slope, np.zeros(len(more))])
    a_share = share_of_a_pair(truth)[a_row]

    def summed(times: Floats, gap: Floats, gap_slope: Floats) -> Floats:
        return np.array([times @ np.logaddexp(0, -gap), -(times * expit(-gap)) @ gap_slope])

    total = np.zeros(2)
    for run in runs(n_b[a_row], _PAIRS_AT_ONCE):
        times = n_b[a_row[run]]
        a = np.repeat(np.arange(run.start, run.stop), times)
        b = np.arange(len(a)) - np.repeat(np.cumsum(times) - times, times) + first_b[a_row[a]]
        total += summed(a_share[a], a_phi[a] - b_phi[b], a_slope[a] - b_slope[b])
    if others is not None:  # the other b of a row all at once, times their number
        total += summed(a_share * (q - size - n_b)[a_row], a_phi - others, a_slope)
    return float(total[0]), float(total[1])
