"""Lower bounds on distances for blocks of rows, in float32, from products of packed rows.

A packed row has factors p, an offset o and an error e. For any two of them

    factor p·p' + o + o'  <=  distance  <=  factor p·p' + o + o' + e + e'

where the distance is scaled, and squared for euclidean; for manhattan the sum of |p - p'| stands in
place of the product. All rounding errors are inside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.row_arithmetic import (
    as_float,
    chunks,
    dense_rows,
    squared_lengths,
    unit_rows,
)

_UNIT = 2.0**-24  # unit roundoff of float32
_TINY = 2.0**-124  # covers what underflow, to zero even, can take from one term in float32
_MOST_TERMS = 2**20  # of a sum whose error the bounds can tell
_FAR = 2.0**40  # queries may be so much larger than the base rows
_ORDINARY = 1e-140, 1e140  # sizes whose squares are safe in float64; others take the NumPy engine
_SPARSE_COST = 25  # a product of two stored features takes as long as so many in a dense product


@dataclass(frozen=True)
class Packed:
    """Rows as the products take them; see the head of this file."""

    factors: Any  # float32, dense or CSR
    offsets: Array  # float32
    errors: Array  # float32


class Products(ABC):
    """How the lower bounds of one metric come from products of packed rows."""

    side: ClassVar[int]  # rows of a block, as measured
    share: ClassVar[float] = 1.0  # of the sizes of two rows in their bound, beside the product

    def __init__(self, scale: float, terms: int) -> None:
        self.scale = scale  # from a distance, squared for euclidean, to the products
        # With S the size (the squared length) of both rows together: the rounding of the factors,
        # of the offsets and of a sum of `terms` products err by less than (2 terms + 10) units of
        # S. Twice that is taken.
        self._slack = 4 * (terms + 8) * _UNIT
        self._tiny = (terms + 8) * _TINY

    def reaches(self, queries: Any) -> bool:  # noqa: ARG002 - unit rows never overflow
        """Whether the products of these queries are safe from overflow."""
        return True

    @abstractmethod
    def pack(self, rows: Any) -> Packed:
        """Base rows as the products take them."""

    def pack_queries(self, rows: Packed) -> Packed:
        """Packed rows as they enter products from the left."""
        return rows

    @abstractmethod
    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        """Write the lower bounds of all pairs of a query and a base row."""

    @abstractmethod
    def bytes_of(self, rows: Any) -> int:
        """Memory of rows when they are packed."""

    def _packed(self, factors: Any, sizes: Floats) -> Packed:
        margin = self._slack * sizes + self._tiny
        offsets = (self.share * sizes - margin).astype(np.float32)
        return Packed(factors, offsets, ((2 + 1e-5) * margin).astype(np.float32))


class DenseProducts(Products):
    """Products of dense rows by BLAS, with the offsets among the factors."""

    side = 768  # BLAS is fastest so, and the block is still in a cache when it is read
    factor: ClassVar[float]

    def pack(self, rows: Any) -> Packed:
        d = rows.shape[1]
        factors, sizes = self._factors_and_sizes(rows, more=2)
        packed = self._packed(factors, sizes)
        factors[:, d] = packed.offsets
        factors[:, d + 1] = 1
        return packed

    def pack_queries(self, rows: Packed) -> Packed:
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

    def _factors_and_sizes(self, rows: Any, more: int) -> tuple[Array, Floats]:
        """Factors with room for some `more`, and sizes; in chunks, for the float64 on the way."""
        n, d = rows.shape
        factors, sizes = np.empty((n, d + more), np.float32), np.empty(n)
        for place, part in chunks(rows, d):
            factors[place, :d], sizes[place] = self._measured(part)
        return factors, sizes

    @abstractmethod
    def _measured(self, rows: Any) -> tuple[Floats, Floats]:
        """Factors in float64, and sizes."""


class CosineProducts(DenseProducts):
    """1 - xy of unit rows."""

    factor = -1.0

    def __init__(self, d: int) -> None:
        super().__init__(1.0, d)

    def _measured(self, rows: Any) -> tuple[Floats, Floats]:
        return dense_rows(unit_rows(rows)), np.full(rows.shape[0], 0.5)


class EuclideanProducts(DenseProducts):
    """|x|² + |y|² - 2 xy of centered rows: a common offset would swamp the differences."""

    factor = -2.0

    def __init__(self, center: Floats, reach: float) -> None:
        self._center, self._unit = center, _power_of_two_near(reach)
        super().__init__(self._unit**2, len(center))

    def reaches(self, queries: Any) -> bool:
        with np.errstate(over="ignore"):
            return _reach(queries, self._center) * self._unit <= _FAR

    def _measured(self, rows: Any) -> tuple[Floats, Floats]:
        centered = self._centered(rows)
        return centered, np.einsum("ij,ij->i", centered, centered)

    def _centered(self, rows: Any) -> Floats:
        centered = np.subtract(dense_rows(rows), self._center)
        centered *= self._unit
        return centered


class ManhattanSums(EuclideanProducts):
    """The sum of |x - y| of centered rows, by a loop of the core's own."""

    share = 0.0

    def __init__(self, center: Floats, reach: float) -> None:
        super().__init__(center, reach)
        self.scale = self._unit

    def pack(self, rows: Any) -> Packed:
        return self._packed(*self._factors_and_sizes(rows, more=0))

    def pack_queries(self, rows: Packed) -> Packed:
        return rows

    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        engine.core().manhattan_block(
            queries.factors, base.factors, queries.offsets, base.offsets, block
        )

    def _measured(self, rows: Any) -> tuple[Floats, Floats]:
        centered = self._centered(rows)
        return centered, np.abs(centered).sum(axis=1)


class SparseProducts(Products):
    """Products of CSR rows: for each feature of a query, the base rows that store it."""

    side = 2048
    factor: ClassVar[float]

    def __init__(self, scale: float, vectors: Csr) -> None:
        super().__init__(scale, _longest_row(vectors))
        # Of more features than entries only those are kept that some base row stores.
        self._features = np.unique(vectors.indices) if vectors.shape[1] > vectors.nnz else None

    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        base.factors.postings.block(
            *queries.factors.parts, self.factor, queries.offsets, base.offsets, block
        )

    def bytes_of(self, rows: Any) -> int:
        stripes = -(-rows.shape[0] // self.side)
        features = rows.shape[1] if self._features is None else len(self._features)
        return int(16 * rows.nnz + 8 * features * stripes)


class SparseEuclideanProducts(SparseProducts):
    """|x|² + |y|² - 2 xy."""

    factor = -2.0

    def __init__(self, vectors: Csr, reach: float) -> None:
        self._unit = _power_of_two_near(reach)
        super().__init__(self._unit**2, vectors)

    def reaches(self, queries: Any) -> bool:
        return _largest(queries) * self._unit <= _FAR

    def pack(self, rows: Any) -> Packed:
        scaled = as_float(rows) * self._unit
        return self._packed(SparseFactors(scaled, self._features), squared_lengths(scaled))


class SparseCosineProducts(SparseProducts):
    """1 - xy of unit rows."""

    factor = -1.0

    def __init__(self, vectors: Csr) -> None:
        super().__init__(1.0, vectors)

    def pack(self, rows: Any) -> Packed:
        factors = SparseFactors(unit_rows(rows), self._features)
        return self._packed(factors, np.full(rows.shape[0], 0.5))


class SparseFactors:
    """CSR rows in the types that the core takes, and turned round once they are asked for.

    Only the given features, in order; by default all.
    """

    def __init__(self, rows: Csr, features: Array | None = None) -> None:
        starts, columns, values = rows.indptr, rows.indices, rows.data
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

    @cached_property
    def postings(self) -> Any:
        """The rows by feature."""
        return engine.core().Postings(*self.parts, self._width)


def products_for(vectors: Any, metric: Metric) -> Products | None:
    """How the core bounds the distances of these rows, or None where NumPy does."""
    packs_sparse = sparse.issparse(vectors) and not _better_dense(vectors)
    terms = _longest_row(vectors) if packs_sparse else vectors.shape[1]
    if terms > _MOST_TERMS:
        return None
    if metric == "cosine":
        d = vectors.shape[1]
        return SparseCosineProducts(vectors) if packs_sparse else CosineProducts(d)
    if metric not in ("euclidean", "sqeuclidean", "manhattan"):
        return None
    if packs_sparse:
        reach = _largest(vectors)
        is_known = metric != "manhattan" and _is_ordinary(reach)
        return SparseEuclideanProducts(vectors, reach) if is_known else None
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.asarray(vectors.mean(axis=0, dtype=np.float64)).ravel()
        reach = _reach(vectors, center)
    if not _is_ordinary(reach):
        return None
    return (ManhattanSums if metric == "manhattan" else EuclideanProducts)(center, reach)


def _better_dense(vectors: Csr) -> bool:
    """Whether CSR rows have so much in common that dense products are faster."""
    n, d = vectors.shape
    if _SPARSE_COST * vectors.nnz < n * d:  # no share is above 1
        return False
    share = np.bincount(vectors.indices, minlength=d) / n  # of the rows that store each feature
    return bool(_SPARSE_COST * np.sum(share * share) >= d)


def _longest_row(rows: Csr) -> int:
    return int(np.diff(rows.indptr).max(initial=0))


def _largest(rows: Csr) -> float:
    return float(np.abs(as_float(rows).data).max(initial=0))


def _reach(rows: Any, center: Floats) -> float:
    """The largest absolute entry of centered rows."""
    low, high = (dense_rows(ends).ravel() for ends in (rows.min(axis=0), rows.max(axis=0)))
    return float(np.maximum(high - center, center - low).max())


def _is_ordinary(reach: float) -> bool:
    low, high = _ORDINARY
    return reach == 0 or low <= reach <= high


def _power_of_two_near(reach: float) -> float:
    """A power of two that brings `reach` to at most 1."""
    return float(np.ldexp(1.0, -int(np.frexp(reach)[1])))
