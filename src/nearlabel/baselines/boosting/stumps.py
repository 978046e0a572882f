"""Decision stumps: the best one for the weights of a round, and the sides of learned ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from nearlabel.baselines.boosting.sorted_columns import MISSING, SortedColumns
from nearlabel.common import engine
from nearlabel.common.arrays import Array, Floats, Matrix, kernel_array, runs

_VALUES_AT_ONCE = 2**22  # of the features of all stumps


class Stump(NamedTuple):
    """A feature, one of its cuts and the place of that among them, and the loss Z."""

    feature: int
    place: int
    cut: float
    loss: float


def best_stump(columns: SortedColumns, weights: Floats, reached: Array | None = None) -> Stump:
    """The stump with the least loss; of equal ones the lowest feature, then the lowest cut.

    Parameters
    ----------
    columns : SortedColumns
    weights : ndarray of float, shape (n, 2q)
        As `exact_weights` gives them; zero for rows that are not reached.
    reached : ndarray of bool, shape (n,), optional
        Rows that take part; by default all.
    """
    losses, places = best_cuts(columns, weights, reached)
    feature = int(losses.argmin())
    place = int(places[feature])
    cut = float(columns.cuts[columns.first[feature] + place])
    return Stump(feature, place, cut, float(losses[feature]))


def best_cuts(
    columns: SortedColumns, weights: Floats, reached: Array | None = None
) -> tuple[Floats, Array]:
    """The least loss of each feature, and the place of its lowest cut with that loss.

    The loss is Z = W0 + 2 sum over both sides and all labels of sqrt(W+ W-), where W0 is the weight
    of rows without a value. A feature that has no cut has an infinite loss.
    """
    losses, places = np.full(columns.d, np.inf), np.zeros(columns.d, np.int64)
    core = engine.core()
    if core is not None:
        is_reached = np.ones(columns.n, bool) if reached is None else reached
        core.best_cuts(
            kernel_array(weights, np.float64),
            kernel_array(is_reached, bool).view(np.uint8),
            *(columns.rows, columns.start, columns.known),
            *(columns.first, columns.ends, columns.rest),
            *(losses, places),
        )
        return losses, places
    q = weights.shape[1] // 2
    total = weights.sum(axis=0)
    for feature in np.flatnonzero(np.diff(columns.first)):
        rows = columns.rows[columns.start[feature] : columns.start[feature + 1]]
        known = columns.known[feature]
        ends = columns.ends[columns.first[feature] : columns.first[feature + 1]]
        missing = weights[rows[known:]].sum(axis=0)
        sums = np.zeros((known + 1, 2 * q))
        np.cumsum(weights[rows[:known]], axis=0, out=sums[1:])
        left = sums[ends]
        left[columns.rest[feature] :] += total - missing - sums[-1]
        right = total - missing - left
        terms = np.sqrt(left[:, :q] * left[:, q:]) + np.sqrt(right[:, :q] * right[:, q:])
        # Every fourth label, one after the other, and then the four sums: as the kernel adds them.
        lanes = np.zeros((len(ends), -(-q // 4) * 4))
        lanes[:, :q] = terms
        lanes = np.cumsum(lanes.reshape(len(ends), -1, 4), axis=1)[:, -1]
        divided = (lanes[:, 0] + lanes[:, 1]) + (lanes[:, 2] + lanes[:, 3])
        loss = missing.sum() + 2 * divided
        places[feature] = loss.argmin()
        losses[feature] = loss[places[feature]]
    return losses, places


def stump_sides(X: Matrix, features: Array, cuts: Floats) -> Array:
    """LEFT, RIGHT or MISSING for m rows of vectors and t stumps, an array of int8, shape (t, m)."""
    used, place = np.unique(features, return_inverse=True)
    sides = np.empty((len(features), X.shape[0]), np.int8)
    for run in runs(np.full(X.shape[0], len(features)), _VALUES_AT_ONCE):
        values = X[run][:, used]
        values = sparse.csr_array(values).toarray() if sparse.issparse(values) else values
        values = values.T[place]
        sides[:, run] = values > cuts[:, None]
        sides[:, run][np.isnan(values)] = MISSING
    return sides
