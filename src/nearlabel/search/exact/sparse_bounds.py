"""Packed rows of CSR rows: products of two rows by the features that both store."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, with_data
from nearlabel.search.exact.packed_bounds import FAR, Packed, Products, power_of_two_near
from nearlabel.search.exact.row_arithmetic import as_float, squared_lengths, unit_rows

_LEAST_FACTOR = 1e-19  # whose square is a float32; unit rows may be off by so little


class SparseProducts(Products):
    """Products of CSR rows: for each feature of a query, the base rows that store it."""

    side = 2048
    factor: ClassVar[float]

    def __init__(self, scale: float, vectors: Csr) -> None:
        super().__init__(scale, longest_row(vectors))
        # Of more features than entries only those are kept that some base row stores.
        self._features = np.unique(vectors.indices) if vectors.shape[1] > vectors.nnz else None

    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        apart = engine.core().APART if self.tells_apart else None
        base.factors.postings.block(
            *queries.factors.parts, self.factor, queries.offsets, base.offsets, block, apart
        )

    def bytes_of(self, rows: Any) -> int:
        stripes = -(-rows.shape[0] // self.side)
        features = rows.shape[1] if self._features is None else len(self._features)
        return int(16 * rows.nnz + 8 * features * stripes)


class SparseEuclideanProducts(SparseProducts):
    """|x|² + |y|² - 2 xy."""

    factor = -2.0

    def __init__(self, vectors: Csr, reach: float) -> None:
        self._unit = power_of_two_near(reach)
        super().__init__(self._unit**2, vectors)

    def reaches(self, queries: Any) -> bool:
        return largest_stored(queries) * self._unit <= FAR

    def pack(self, rows: Any) -> Packed:
        scaled = as_float(rows) * self._unit
        return self._packed(SparseFactors(scaled, self._features), squared_lengths(scaled))


class SparseCosineProducts(SparseProducts):
    """1 - xy of unit rows; rows that share nothing, at 1 exactly, are told apart by that alone."""

    factor = -1.0
    tells_apart = True

    def __init__(self, vectors: Csr) -> None:
        super().__init__(1.0, vectors)

    def pack(self, rows: Any) -> Packed:
        unit = unit_rows(rows)
        # The product of two that are not zero must not be zero either, see `Postings::block`.
        larger = np.copysign(np.maximum(np.abs(unit.data), _LEAST_FACTOR), unit.data)
        unit = with_data(unit, np.where(unit.data == 0, 0, larger))
        factors = SparseFactors(unit, self._features)
        return self._packed(factors, np.full(rows.shape[0], 0.5))


class SparseFactors:
    """CSR rows in the types that the core takes, and turned round once they are asked for.

    Only the given features, in order; by default all.
    """

    def __init__(self, rows: Csr, features: Array | None = None) -> None:
        starts, columns, values = rows.indptr, rows.indices, rows.data
        self._postings: Any = None
        self._width = int(rows.shape[1])
        if features is not None:
            self._width = len(features)
            place = np.searchsorted(features, columns)
            place[place == self._width] = 0
            is_given = features[place] == columns if self._width else np.zeros(len(place), bool)
            starts = np.concatenate([[0], np.cumsum(is_given)])[starts]
            columns, values = place[is_given], values[is_given]
        self.parts = (  # where rows begin, columns, values
            starts.astype(np.int64, copy=False),
            columns.astype(np.int32, copy=False),
            values.astype(np.float32),
        )

    @property
    def postings(self) -> Any:
        """The rows by feature."""
        if self._postings is None:
            self._postings = engine.core().Postings(*self.parts, self._width)
        return self._postings


def longest_row(rows: Csr) -> int:
    """Most entries that a row stores."""
    return int(np.diff(rows.indptr).max(initial=0))


def largest_stored(rows: Csr) -> float:
    """The largest absolute entry."""
    return float(np.abs(as_float(rows).data).max(initial=0))
