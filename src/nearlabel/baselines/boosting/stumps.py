"""The best stump for the weights of a round: one pass over sorted features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearlabel.baselines.boosting.sorted_columns import SortedColumns
from nearlabel.common import engine
from nearlabel.common.arrays import Array, Floats, kernel_array


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
    core = engine.core()
    if core is None:
        return _best_cuts(columns, weights)
    losses, places = np.empty(columns.d), np.empty(columns.d, np.int64)
    is_reached = np.ones(columns.n, bool) if reached is None else reached
    core.best_cuts(
        kernel_array(weights, np.float64),
        kernel_array(is_reached, bool).view(np.uint8),
        columns.rows,
        columns.start,
        columns.known,
        columns.first,
        columns.ends,
        columns.rest,
        losses,
        places,
    )
    return losses, places


def _best_cuts(columns: SortedColumns, weights: Floats) -> tuple[Floats, Array]:
    q = weights.shape[1] // 2
    total = weights.sum(axis=0)
    losses, places = np.full(columns.d, np.inf), np.zeros(columns.d, np.int64)
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
        found = (lanes[:, 0] + lanes[:, 1]) + (lanes[:, 2] + lanes[:, 3])
        loss = missing.sum() + 2 * found
        places[feature] = loss.argmin()
        losses[feature] = loss[places[feature]]
    return losses, places
