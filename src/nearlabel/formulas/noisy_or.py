"""Log-sums of the noisy-or, for every rate and distance.

A neighbor at distance d with a label supports it with probability exp(-z d), independently of the
other neighbors: P = 1 - prod (1 - exp(-z d_j)). P soon rounds to 1, and for large rates z to 0.
Labels are therefore ranked by

    S = sum w(z d_j),    w(x) = -log(1 - exp(-x)),    P = 1 - exp(-S),

and by log S where S is too small for float64.
"""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import blocks_of_votes, neighbor_sums

# Within these rates w(z d) < 975 for every float64 distance d > 0.
LOWEST_RATE, HIGHEST_RATE = 1e-100, 1e100
FAINTEST = 1e-300  # sums below it are ranked by their logarithm


def log_sums(graph: NeighborGraph, Y: Csr, rate: float, k: int) -> Csr:
    """S of the labels that occur among each row's neighbors, shape (n, q).

    Y has the labels of the base rows, and k is the number of neighbors of the model. S < FAINTEST
    is replaced by FAINTEST log(FAINTEST) / log S, which falls to 0 in the same order.
    """
    sums = neighbor_sums(graph, Y, weights(graph.distances, rate, k))
    faint = sums.data < FAINTEST
    if faint.any():
        row = row_numbers(sums)
        rows = np.unique(row[faint])
        blocks = blocks_of_votes(graph.take(rows), Y)
        log_S = np.concatenate([_log_of_sums(part, Y, rate) for _, part in blocks])
        sums.data[faint] = FAINTEST * np.log(FAINTEST) / log_S[faint[np.isin(row, rows)]]
    return sums


def _log_of_sums(graph: NeighborGraph, Y: Csr, rate: float) -> Floats:
    """Log of the sum of exp(-z d_j) for each label of a row's neighbors, in the order of columns.

    This is log S wherever S < FAINTEST: beyond z d = 690, w(z d) is exp(-z d) to the last bit.
    """
    votes = Y[graph.indices.ravel()]  # row i k + j: the labels of neighbor j of row i
    neighbor = row_numbers(votes)
    entry = neighbor // graph.k * Y.shape[1] + votes.indices
    order = np.argsort(entry, kind="stable")  # nearest first within an entry
    d = graph.distances.ravel()[neighbor[order]].astype(np.float64)
    first = np.flatnonzero(np.diff(entry[order], prepend=-1))
    with np.errstate(over="ignore", under="ignore"):
        x = np.minimum(rate * d, np.finfo(np.float64).max)
        nearest = np.repeat(x[first], np.diff(first, append=len(x)))
        return np.asarray(np.log(np.add.reduceat(np.exp(nearest - x), first)) - x[first])


def by_frequency(totals: Array, n: int) -> Floats:
    """Scores of labels that no neighbor has, if `totals` of n rows have them: 0 to -1e-300.

    Departs from the paper, in which all S = 0 tie: the frequent ones first, and all of them below
    every label that a neighbor has.
    """
    return np.asarray(-FAINTEST * (1 - (totals + 1) / (n + 2)))


def weights(distances: Array, rate: float, k: int) -> Floats:
    """w(z d) = -log(1 - exp(-z d)) of each neighbor, in the shape of the distances.

    A neighbor at distance 0 makes its labels certain. It counts 1000 k, more than all other
    neighbors together: so labels are ranked by the number of such neighbors, then, within the
    precision of float64, by S of the others.
    """
    d = distances.astype(np.float64, copy=False)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        x = rate * d
        near, far = -np.log(-np.expm1(-x)), -np.log1p(-np.exp(-x))  # each where it is accurate
        tiny = -(np.log(rate) + np.log(d))
    w = np.where(x < np.log(2), near, far)
    # Near underflow of z d, w(z d) is -log(z d) to the last bit.
    w = np.where(x < 1e-290, tiny, w)
    return np.where(d == 0, 1000.0 * k, w)


def slopes(distances: Array, rate: float) -> Floats:
    """dw/du = -x / (exp(x) - 1) at x = z d, u = log z; 0 at distance 0, certain at every rate."""
    d = distances.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = rate * d
        slope = np.where(x < 700, -x / np.expm1(x), 0.0)
    slope[x == 0] = -1.0  # the limit, where z d underflows
    slope[d == 0] = 0.0
    return slope
