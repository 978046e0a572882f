"""Rows in clusters that are far from each other: near rows are grouped into stripes.

Relative to a common center, float32 has no digits left for the differences within a cluster. So
each stripe of near rows has its own center; see `DenseBounds`.
"""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Floats

_STRIPES = 16  # usually the minimum
_FEW_ROWS = 128  # that are not split further
_FEWEST_ROWS = 16  # of a stripe that could be part of another one
_UNEVEN = 6  # at most this many times the number of even stripes
_NARROW = 1 / 16  # share of the variance of all rows up to which a stripe is narrow
_MANY = 1 / 8  # share of the rows in narrow stripes for which centers pay
_DIRECTIONS = 8  # along which distant rows are separated


def near_rows(points: Floats, center: Floats, side: int) -> list[Array] | None:
    """Rows in stripes of at most `side` near ones, by halving along some directions.

    None if this takes too many stripes, since rows of all sizes have no clusters, or if few rows
    are much nearer to the center of their stripe than to the common center.
    """
    n = len(points)
    side = min(side, max(_FEW_ROWS, n // _STRIPES))
    most = _STRIPES + _UNEVEN * n // side
    directions = np.random.default_rng(0).normal(size=(points.shape[1], _DIRECTIONS))
    shadows = points @ directions
    parts: list[Array] = []
    waiting = [np.arange(n)]
    while waiting:
        if len(parts) > most:
            return None
        rows = waiting.pop()
        low, high = shadows[rows].min(axis=0), shadows[rows].max(axis=0)
        widest = np.argmax(high - low)
        is_high = shadows[rows, widest] > low[widest] / 2 + high[widest] / 2
        halves = rows[~is_high], rows[is_high]
        if len(rows) <= side and not _are_far(halves, shadows[:, widest]):
            parts.append(rows)
        elif min(map(len, halves)):
            waiting += halves
        else:  # equal projections
            parts += np.array_split(rows, -(-len(rows) // side))
    apart = points - center
    most_variance = _NARROW * np.square(apart).sum() / n
    narrow = [rows for rows in parts if np.var(apart[rows], axis=0).sum() <= most_variance]
    return parts if sum(map(len, narrow)) > _MANY * n else None


def _are_far(halves: tuple[Array, Array], shadow: Floats) -> bool:
    """Whether two halves are much farther apart than one of them is wide."""
    if min(map(len, halves)) < _FEWEST_ROWS:
        return False
    (a, b), (c, e) = ((shadow[rows].min(), shadow[rows].max()) for rows in halves)
    return bool(min(b - a, e - c) < (c - b) / _STRIPES)
