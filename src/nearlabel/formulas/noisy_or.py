"""Log-sums of the noisy-or, for every rate and distance.

A neighbor at distance d that carries a label speaks for it with probability exp(-z d), and all
neighbors speak independently: P = 1 - prod (1 - exp(-z d_j)). P rounds to 1 early, and to 0 for
large rates z. Labels are therefore ranked by

    S = sum w(z d_j),    w(x) = -log(1 - exp(-x)),    P = 1 - exp(-S),

and where that nears underflow by its order alone, see `faint_sums`.
"""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers
from nearlabel.formulas.faint_sums import FAINTEST, faint_scores
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import neighbor_sums

# Within these rates w(z d) < 975 for every float64 distance d > 0.
LOWEST_RATE, HIGHEST_RATE = 1e-100, 1e100
_CERTAIN = 1000.0  # times k, in the place of w(0), which is infinite
_TINY = 1e-290  # below it z d nears underflow, and w(z d) is -log(z d) to the last bit


def log_sums(graph: NeighborGraph, Y: Csr, rate: float, k: int) -> Csr:
    """S of the labels that occur among each row's neighbors.

    Below `FAINTEST` S is continued down to 0, in the same order, by `faint_scores`.

    Parameters
    ----------
    graph : NeighborGraph of n rows over n_base
    Y : csr_array, shape (n_base, q)
    rate : float
        z, from `LOWEST_RATE` to `HIGHEST_RATE`.
    k : int
        Neighbors of the model, for `weights`.

    Returns
    -------
    csr_array of float, shape (n, q)
    """
    sums = neighbor_sums(graph, Y, weights(graph.distances, rate, k))
    faint = sums.data < FAINTEST
    if faint.any():
        row = row_numbers(sums)
        rows = np.unique(row[faint])
        continued = np.empty(sums.nnz)
        continued[np.isin(row, rows)] = faint_scores(graph.take(rows), Y, rate)
        sums.data[faint] = continued[faint]
    return sums


def weights(distances: Array, rate: float, k: int) -> Floats:
    """w(z d) = -log(1 - exp(-z d)) of each neighbor, in the shape of the distances.

    A neighbor at distance 0 makes its labels certain. It counts 1000 k, more than the others of k
    neighbors can together: so labels are ordered by the number of such neighbors, then, as far as
    float64 can tell, by S of the others.
    """
    d = distances.astype(np.float64, copy=False)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        x = rate * d
        near, far = -np.log(-np.expm1(-x)), -np.log1p(-np.exp(-x))  # each where it loses no digit
        tiny = -(np.log(rate) + np.log(d))
    w = np.where(x < np.log(2), near, far)
    w = np.where(x < _TINY, tiny, w)
    return np.where(d == 0, _CERTAIN * k, w)


def slopes(distances: Array, rate: float) -> Floats:
    """dw/du = -x / (exp(x) - 1) at x = z d, u = log z; 0 at distance 0, certain at every rate."""
    d = distances.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = rate * d
        slope = np.where(x < 700, -x / np.expm1(x), 0.0)
    slope[x == 0] = -1.0  # the limit, where z d underflows
    slope[d == 0] = 0.0
    return slope
