"""Packed rows of dense rows, or of CSR rows that are made dense block by block."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Floats
from nearlabel.search.exact.packed_bounds import FAR, Packed, Products, power_of_two_near
from nearlabel.search.exact.row_arithmetic import chunks, dense_rows, unit_rows

_MOST_SLACK = 1 / 64  # for which the relative error below is enough


class DenseProducts(Products):
    """Products of dense rows by BLAS, with the offsets among the factors."""

    side = 768  # BLAS is fastest so, and the block is still in a cache when it is read
    factor: ClassVar[float]

    def __init__(self, center: Floats, unit: float, scale: float) -> None:
        self.center, self._unit = center, unit
        super().__init__(scale, len(center))

    @abstractmethod
    def points(self, rows: Any) -> Floats:
        """Rows whose differences matter, dense and in float64."""

    @property
    def can_move(self) -> bool:
        """Whether `centered_at` is possible: not for a great many features."""
        return self._slack <= _MOST_SLACK

    def centered_at(self, center: Floats) -> Self:
        """The same bounds from another center, sharp for base rows that are near to it.

        A base row y is packed from the center c of its own block, a query x for each block anew.
        The error of their bound is a share s of |x - c|² + |y - c|². With |x - c|² at most
        2 |x - y|² + 2 |y - c|² that is at most s (2 |x - y|² + 3 |y - c|²): a part of the distance
        itself, and three times the error of y. That of x, which differs from block to block, is
        not needed.
        """
        moved = copy(self)
        moved.center = center
        moved.relative = 4.5 * self._slack
        moved._margins = 3 * self._margins
        return moved

    def pack(self, rows: Any) -> Packed:
        """Base rows as the products take them."""
        n, d = rows.shape
        factors, sizes = np.empty((n, d + 2), np.float32), np.empty(n)
        for place, part in chunks(rows, d):  # for the float64 on the way
            factors[place, :d], sizes[place] = self._measured(self.points(part))
        return self._with_offsets(factors, sizes)

    def pack_points(self, points: Floats) -> Packed:
        """Some rows that are points already as the products take them."""
        n, d = points.shape
        factors = np.empty((n, d + 2), np.float32)
        factors[:, :d], sizes = self._measured(points)
        return self._with_offsets(factors, sizes)

    def _with_offsets(self, factors: Array, sizes: Floats) -> Packed:
        packed = self._packed(factors, sizes)
        factors[:, -2] = packed.offsets
        factors[:, -1] = 1
        return packed

    def pack_queries(self, rows: Packed) -> Packed:
        """Packed rows as they enter products from the left."""
        d = rows.factors.shape[1] - 2
        left = np.empty_like(rows.factors)
        np.multiply(rows.factors[:, :d], np.float32(self.factor), out=left[:, :d])
        left[:, d] = 1
        left[:, d + 1] = rows.offsets
        return Packed(left, rows.offsets, rows.errors)

    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        np.matmul(queries.factors, base.factors.T, out=block)

    def bytes_of(self, rows: Any) -> int:
        n, d = rows.shape
        return int(4 * n * (d + 2))

    def _measured(self, points: Floats) -> tuple[Floats, Floats]:
        """Factors in float64, and sizes."""
        centered = points - self.center
        centered *= self._unit
        return centered, self._sizes(centered)

    def _sizes(self, centered: Floats) -> Floats:
        return np.asarray(np.einsum("ij,ij->i", centered, centered))


class CosineProducts(DenseProducts):
    """Half of |x|² + |y|² - 2 xy of unit rows."""

    factor = -1.0

    def __init__(self, d: int) -> None:
        super().__init__(np.zeros(d), 1.0, 1.0)

    def points(self, rows: Any) -> Floats:
        return dense_rows(unit_rows(rows))

    def _measured(self, points: Floats) -> tuple[Floats, Floats]:
        centered = points - self.center
        # A row of zeros is at distance 1 from all, as if it had a length in a place of its own.
        return centered, (self._sizes(centered) + ~points.any(axis=1)) / 2


class EuclideanProducts(DenseProducts):
    """|x|² + |y|² - 2 xy of centered rows: a common offset would swamp the differences."""

    factor = -2.0

    def __init__(self, center: Floats, reach: float) -> None:
        unit = power_of_two_near(reach)
        super().__init__(center, unit, unit**2)

    def reaches(self, queries: Any) -> bool:
        with np.errstate(over="ignore"):
            return largest_entry(queries, self.center) * self._unit <= FAR

    def points(self, rows: Any) -> Floats:
        return dense_rows(rows)


class ManhattanSums(EuclideanProducts):
    """The sum of |x - y| of centered rows, by a loop of the core's own."""

    share = 0.0

    def __init__(self, center: Floats, reach: float) -> None:
        super().__init__(center, reach)
        self.scale = self._unit

    def _with_offsets(self, factors: Array, sizes: Floats) -> Packed:
        return self._packed(np.ascontiguousarray(factors[:, :-2]), sizes)

    def pack_queries(self, rows: Packed) -> Packed:
        return rows

    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        engine.core().manhattan_block(
            queries.factors, base.factors, queries.offsets, base.offsets, block
        )

    def _sizes(self, centered: Floats) -> Floats:
        return np.asarray(np.abs(centered).sum(axis=1))


def largest_entry(rows: Any, center: Floats) -> float:
    """The largest absolute entry of centered rows."""
    low, high = dense_rows(rows.min(axis=0)), dense_rows(rows.max(axis=0))
    return float(np.maximum(high.ravel() - center, center - low.ravel()).max())
