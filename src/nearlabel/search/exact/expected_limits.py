"""Limits that the k-th nearest rows of queries hardly ever exceed, from a sample of the rows.

A search lists the rows within the limit of a query, which falls as more rows are seen. Until
then far more rows are listed than are needed. A sample tells the limit in advance: if its r-th
nearest row is nearer than the k-th nearest of all, then r of the k - 1 nearest are in the
sample. Of these the sample has `_EXPECTED` on average, and r is so much larger that this is
rare. It is noticed, because fewer than k rows are within the limit, and the query is searched
again without one. `benchmarks/special_ways.py` measures what this saves.
"""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array
from nearlabel.search.exact.packed_bounds import BlockBounds, Packed
from nearlabel.search.exact.row_arithmetic import CoreObject

_EXPECTED = 8  # of the k nearest rows in the sample: more take longer to compare than they save
_RANK = ceil(_EXPECTED + 3 * sqrt(_EXPECTED) + 3)


class ExpectedLimits:
    """The limits of queries, from a sample of the base rows.

    Parameters
    ----------
    bounds : BlockBounds
        Whose packed rows can be sliced.
    rows : Rows of the core
        The base rows.
    k : int
    """

    def __init__(self, bounds: BlockBounds, rows: CoreObject, k: int) -> None:
        n = len(rows)
        sample = np.random.default_rng(0).choice(n, _EXPECTED * n // k, replace=False)
        self._bounds = bounds
        self._base, errors = bounds.pack(None, rows, np.sort(sample).astype(np.int32))
        self._error = float(np.mean(errors))

    def of(self, queries: Packed, errors: Array, *, are_base_rows: bool) -> Array:
        """The limits of packed queries with these errors, on the scale of the bounds."""
        rank = _RANK + are_base_rows  # a query may be in the sample itself
        limits = np.empty(len(queries), np.float32)
        # Blocks stay in the processor's cache.
        step = max(1, 2**20 // len(self._base))
        memory = np.empty(min(step, len(queries)) * len(self._base), np.float32)
        for start in range(0, len(queries), step):
            chosen = np.arange(start, min(start + step, len(queries)), dtype=np.int32)
            block = self._bounds.block(queries[chosen], self._base, memory)
            engine.core().row_limits(block, rank, limits[start : start + step])
        # A bound is below the distance by half of the errors on average.
        return limits + np.float32(0.5) * (errors + np.float32(self._error))
