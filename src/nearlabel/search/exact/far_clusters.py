"""Rows in clusters that are far from each other: near rows are grouped into stripes.

Relative to a common center, float32 has no digits left for the differences within a cluster. So
each stripe of near rows has its own center; see `DenseBounds`.
"""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Floats

# benchmarks/hard_data.py has the data that need them: two clusters far from each other.
_STRIPES = 16  # usually the minimum
_FEW_ROWS = 128  # that are not split further


def near_rows(points: Floats, center: Floats, side: int) -> list[Array] | None:
    """Rows in stripes of at most `side` near ones, by halving along some directions.

    None if this takes too many stripes, since rows of all sizes have no clusters, or if few rows
    are much nearer to the center of their stripe than to the common center.
    """
    n = len(points)
    side = min(side, max(_FEW_ROWS, n // _STRIPES))
    # If clusters take many more stripes than even ones, they are none.
    most = _STRIPES + 6 * n // side
    # Distant rows are far apart along some of these.
    directions = np.random.default_rng(0).normal(size=(points.shape[1], 8))
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
    # Centers pay if an eighth of the rows are in stripes much narrower than all rows.
    most_variance = 1 / 16 * np.square(apart).sum() / n
    narrow = [rows for rows in parts if np.var(apart[rows], axis=0).sum() <= most_variance]
    return parts if sum(map(len, narrow)) > 1 / 8 * n else None


def _are_far(halves: tuple[Array, Array], shadow: Floats) -> bool:
    """Whether two halves are much farther apart than one of them is wide."""
    # A few far rows are no cluster.
    if min(map(len, halves)) < 16:
        return False
    (a, b), (c, e) = ((shadow[rows].min(), shadow[rows].max()) for rows in halves)
    return bool(min(b - a, e - c) < (c - b) / _STRIPES)
