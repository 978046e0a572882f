"""Limits that the k-th nearest rows of queries hardly ever exceed, from a sample of the base rows.

A search lists the rows within the limit of a query, which falls as more rows are seen. Until then
far more rows are listed than are needed. A sample tells the limit in advance: if its r-th nearest
row is nearer than the k-th nearest of all, then r of the k - 1 nearest are in the sample. Of these
the sample has `_EXPECTED` on average, and r is so much larger that this is rare. It is noticed,
because fewer than k rows are within the limit, and the query is searched again without one.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array

_EXPECTED = 8  # of the k nearest rows in the sample: more take longer to compare than they save
_RANK = ceil(_EXPECTED + 3 * sqrt(_EXPECTED) + 3)
_FEWEST_ROWS = 32  # per neighbor
_BLOCK = 2**20  # bounds computed at once


class ExpectedLimits:
    """A sample of the base rows for the limits of the k-th nearest ones.

    Parameters
    ----------
    bounds : PackedBounds or ByteBounds
    vectors : ndarray or csr_array, shape (n, d)
    rows : Rows of the core
        The same rows.
    k : int
    """

    def __init__(self, bounds: Any, vectors: Any, rows: Any, k: int) -> None:
        n = len(rows)
        sample = np.random.default_rng(0).choice(n, _EXPECTED * n // k, replace=False)
        self._bounds = bounds
        self._base, errors = bounds.pack(vectors, rows, np.sort(sample).astype(np.int32))
        self._error = float(np.mean(errors))

    def of(self, queries: Any, errors: Array, *, are_base_rows: bool) -> Array:
        """The limits of packed queries with these errors, on the scale of the bounds."""
        rank = _RANK + are_base_rows  # a query may be in the sample itself
        limits = np.empty(len(queries), np.float32)
        step = max(1, _BLOCK // len(self._base))
        memory = np.empty(min(step, len(queries)) * len(self._base), np.float32)
        for start in range(0, len(queries), step):
            some = np.arange(start, min(start + step, len(queries)), dtype=np.int32)
            block = self._bounds.block(queries[some], self._base, memory)
            engine.core().row_limits(block, rank, limits[start : start + step])
        # A bound is below the distance by half of the errors on average.
        return limits + np.float32(0.5) * (errors + np.float32(self._error))


def expected_limits(bounds: Any, vectors: Any, rows: Any, k: int) -> ExpectedLimits | None:
    """A sample for limits, or None if it would not save time."""
    if k < bounds.many_neighbors or len(rows) < _FEWEST_ROWS * k:
        return None
    if not bounds.is_divisible or bounds.centers is not None:
        return None
    return ExpectedLimits(bounds, vectors, rows, k)
