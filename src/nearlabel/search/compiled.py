"""Exact search by the compiled core: bounds in float32, canonical distances for what they leave.

Rows are packed as float32 factors p with an offset o and an error e, so that for any two of them

    factor p·p' + o + o'  <=  distance (scaled; squared for euclidean)  <=  the same + e + e'

with all rounding errors inside. A block of such lower bounds is one matrix product. The core's
`Shortlist` keeps, for each query, the rows that may be among its k nearest, and asks for canonical
distances of these alone. Among the rows themselves each block is computed once, and serves its rows
and its columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import isqrt
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel import engine
from nearlabel.arrays import Array, Csr, Floats
from nearlabel.graph import NeighborGraph
from nearlabel.search.distances import Metric
from nearlabel.search.rows import (
    as_float,
    chunks,
    dense_rows,
    squared_lengths,
    typical_length,
    unit_rows,
    unit_scales,
)
from nearlabel.search.threads import Progress, run_blocks

_UNIT = 2.0**-24  # unit roundoff of float32
_TINY = 2.0**-124  # covers what underflow, to zero even, can take from one term in float32
_FAR = 2.0**40  # queries may be so much larger than the base rows
_ORDINARY = 1e-140, 1e140  # sizes whose squares are safe in float64; others take the NumPy engine
_KEPT_ELEMENTS = 2**26  # packed rows are kept up to here: 256 MiB
_SIDE = 768  # rows of a block, as measured: BLAS is fastest so, and the block is still in a cache
_SIDE_UNKEPT = 4096  # rows of a block where rows are packed anew for each: that must not count
_SPARSE_COST = 25  # a product of two stored features takes as long as so many in a dense product


@dataclass(frozen=True)
class Packed:
    """Rows as the products take them; see the head of this file."""

    factors: Any  # float32, dense or CSR
    offsets: Array  # float32
    errors: Array  # float32


class Products(ABC):
    """How lower bounds of one metric come from products of packed rows."""

    side = _SIDE

    def __init__(self, scale: float, terms: int) -> None:
        self.scale = scale  # from a distance, squared for euclidean, to the products
        # The rounding of the factors, of the offsets and of a sum of `terms` products err by less
        # than (2 terms + 10) units of o + o' without slack; twice that is taken.
        self.slack = 4 * (terms + 8) * _UNIT
        self.tiny = (terms + 8) * _TINY

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

    def _packed(self, factors: Any, sizes: Floats) -> Packed:
        """Factors with the offsets and errors of rows of which `sizes` are squared lengths."""
        offsets = (1 - self.slack) * sizes - self.tiny
        errors = (2 + 1e-5) * (self.slack * sizes + self.tiny)
        return Packed(factors, offsets.astype(np.float32), errors.astype(np.float32))


class DenseProducts(Products):
    """Products of dense rows by BLAS, with the offsets among the factors."""

    factor: float

    def pack_queries(self, rows: Packed) -> Packed:
        d = rows.factors.shape[1] - 2
        left = np.empty_like(rows.factors)
        np.multiply(rows.factors[:, :d], np.float32(self.factor), out=left[:, :d])
        left[:, d] = 1
        left[:, d + 1] = rows.offsets
        return Packed(left, rows.offsets, rows.errors)

    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        np.matmul(queries.factors, base.factors.T, out=block)

    def _packed(self, factors: Any, sizes: Floats) -> Packed:
        n, d = factors.shape
        right = np.empty((n, d + 2), np.float32)
        right[:, :d] = factors
        packed = super()._packed(right, sizes)
        right[:, d] = packed.offsets
        right[:, d + 1] = 1
        return packed


class Euclidean(DenseProducts):
    """|x|² + |y|² - 2 xy of centered rows."""

    factor = -2.0

    def __init__(self, center: Floats, reach: float) -> None:
        self.center, self.shrink = center, _power_of_two_near(reach)
        super().__init__(self.shrink**2, len(center))

    def reaches(self, queries: Any) -> bool:
        with np.errstate(over="ignore"):
            return _reach(queries, self.center) * self.shrink <= _FAR

    def pack(self, rows: Any) -> Packed:
        centered = self._centered(rows)
        return self._packed(centered, np.einsum("ij,ij->i", centered, centered))

    def _centered(self, rows: Any) -> Floats:
        centered = np.subtract(dense_rows(rows), self.center)
        centered *= self.shrink
        return centered


class Cosine(DenseProducts):
    """1 - xy of unit rows."""

    factor = -1.0

    def __init__(self, d: int) -> None:
        super().__init__(1.0, d)

    def pack(self, rows: Any) -> Packed:
        return self._packed(dense_rows(unit_rows(rows)), np.full(rows.shape[0], 0.5))


class Manhattan(Euclidean):
    """The sum of |x - y| of centered rows, by a loop of the core's own."""

    def __init__(self, center: Floats, reach: float) -> None:
        super().__init__(center, reach)
        self.scale = self.shrink

    def pack(self, rows: Any) -> Packed:
        centered = self._centered(rows)
        errors = (2 + 1e-5) * (self.slack * np.abs(centered).sum(axis=1) + self.tiny)
        offsets = -0.5 * errors
        return Packed(*(part.astype(np.float32) for part in (centered, offsets, errors)))

    def pack_queries(self, rows: Packed) -> Packed:
        return rows

    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        engine.core().manhattan_block(
            queries.factors, base.factors, queries.offsets, base.offsets, block
        )


class SparseProducts(Products):
    """Products of CSR rows: for each feature of a query, the base rows that store it."""

    side = 2048

    factor: float

    def __init__(self, scale: float, vectors: Csr) -> None:
        super().__init__(scale, int(np.diff(vectors.indptr).max(initial=0)))

    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        base.factors.postings.block(
            *queries.factors.parts, self.factor, queries.offsets, base.offsets, block
        )


class SparseEuclidean(SparseProducts):
    """|x|² + |y|² - 2 xy."""

    factor = -2.0

    def __init__(self, vectors: Csr, reach: float) -> None:
        self.shrink = _power_of_two_near(reach)
        super().__init__(self.shrink**2, vectors)

    def reaches(self, queries: Any) -> bool:
        return _largest(queries) * self.shrink <= _FAR

    def pack(self, rows: Any) -> Packed:
        shrunk = as_float(rows) * self.shrink
        return self._packed(SparseFactors(shrunk), squared_lengths(shrunk))


class SparseCosine(SparseProducts):
    """1 - xy of unit rows."""

    factor = -1.0

    def __init__(self, vectors: Csr) -> None:
        super().__init__(1.0, vectors)

    def pack(self, rows: Any) -> Packed:
        return self._packed(SparseFactors(unit_rows(rows)), np.full(rows.shape[0], 0.5))


class SparseFactors:
    """CSR rows in the types that the core takes, and turned round once they are asked for."""

    def __init__(self, rows: Csr) -> None:
        self._width = int(rows.shape[1])
        self.parts = (  # where rows begin, columns, values
            rows.indptr.astype(np.int64, copy=False),
            rows.indices.astype(np.int32, copy=False),
            rows.data.astype(np.float32),
        )

    @cached_property
    def postings(self) -> Any:
        """The rows by feature."""
        return engine.core().Postings(*self.parts, self._width)


def products_for(vectors: Any, metric: Metric) -> Products | None:
    """How the core bounds the distances of these rows, or None where NumPy does."""
    if engine.core() is None or not _fits(vectors):
        return None
    packs_sparse = sparse.issparse(vectors) and not _better_dense(vectors)
    if metric == "cosine":
        return SparseCosine(vectors) if packs_sparse else Cosine(vectors.shape[1])
    if metric not in ("euclidean", "sqeuclidean", "manhattan"):
        return None
    if packs_sparse:
        reach = _largest(vectors)
        is_known = metric != "manhattan" and _is_ordinary(reach)
        return SparseEuclidean(vectors, reach) if is_known else None
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.asarray(vectors.mean(axis=0, dtype=np.float64)).ravel()
        reach = _reach(vectors, center)
    if not _is_ordinary(reach):
        return None
    return (Manhattan if metric == "manhattan" else Euclidean)(center, reach)


class CompiledIndex:
    """Base rows that the core searches."""

    def __init__(self, vectors: Any, metric: str, products: Products, block_bytes: int) -> None:
        self._vectors, self._metric, self._products = vectors, metric, products
        self._rows = _core_rows(vectors, metric)
        n, d = vectors.shape
        side = products.side
        is_sparse = isinstance(products, SparseProducts)
        elements = vectors.nnz + d * (n // side) if is_sparse else vectors.size
        self._is_kept = elements <= _KEPT_ELEMENTS
        if not self._is_kept:
            side = _SIDE_UNKEPT
        side = max(1, min(side, isqrt(block_bytes // 4)))
        self._side = -(-n // -(-n // side))  # stripes of one size
        packed = (products.pack(vectors[stripe]) for stripe in self._stripes())
        if self._is_kept:
            self._kept = list(packed)
            self._errors = np.concatenate([stripe.errors for stripe in self._kept])
        else:
            self._errors = np.concatenate([stripe.errors for stripe in packed])

    def reaches(self, queries: Any) -> bool:
        """Whether these queries can be searched."""
        return self._products.reaches(queries)

    def among(self, found: NeighborGraph, n_jobs: int, progress: Progress | None) -> Array:
        """Fill the graph of the base rows, each left out of its own row; see `nearest`."""
        n = self._vectors.shape[0]
        count = -(-n // self._side)
        lists = self._shortlist(self._rows, found.k, self._errors, itself=True)

        def compare(rows: slice, *, with_others: bool) -> None:
            mine = rows.start // self._side
            queries = self._products.pack_queries(self._base(mine))
            others = _partners(mine, count) if with_others else [mine]
            for first, block in self._blocks(queries, others):
                lists.offer(block, rows.start, first, with_others)

        def finish(rows: slice) -> None:
            part = found.rows(rows.start, rows.stop)
            lists.finish(rows.start, part.indices, part.distances)

        # Within itself first: that gives every row a good limit.
        run_blocks(partial(compare, with_others=False), n, self._side, n_jobs, None)
        run_blocks(partial(compare, with_others=True), n, self._side, n_jobs, progress)
        run_blocks(finish, n, self._side, n_jobs, None)
        given_up = np.empty(n, bool)
        lists.given_up(given_up)
        return np.flatnonzero(given_up)

    def nearest(
        self, queries: Any, found: NeighborGraph, n_jobs: int, progress: Progress | None
    ) -> Array:
        """Fill the graph of queries.

        Returns
        -------
        ndarray of int
            Queries that are left to do: float32 tells too little about their distances.
        """
        m, count = queries.shape[0], -(-self._vectors.shape[0] // self._side)
        given_up = np.empty(m, bool)

        def search(rows: slice) -> None:
            part = queries[rows]
            packed = self._products.pack(part)
            core_rows = _core_rows(part, self._metric)
            lists = self._shortlist(core_rows, found.k, packed.errors, itself=False)
            packed = self._products.pack_queries(packed)
            for first, block in self._blocks(packed, range(count)):
                lists.offer(block, 0, first, False)
            mine = found.rows(rows.start, rows.stop)
            lists.finish(0, mine.indices, mine.distances)
            lists.given_up(given_up[rows])

        run_blocks(search, m, min(self._side, -(-m // n_jobs)), n_jobs, progress)
        return np.flatnonzero(given_up)

    def _shortlist(self, queries: Any, k: int, errors: Array, *, itself: bool) -> Any:
        """Empty lists of the k nearest base rows of some rows, with some room above k."""
        others = len(self._rows) - itself
        return engine.core().Shortlist(
            queries=queries,
            base=self._rows,
            k=k,
            room=min(2 * k + 16, others),
            query_errors=errors,
            base_errors=self._errors,
            scale=self._products.scale,
            itself=itself,
            stripe=self._side,
        )

    def _stripes(self) -> Iterator[slice]:
        n = self._vectors.shape[0]
        return (slice(start, min(start + self._side, n)) for start in range(0, n, self._side))

    def _base(self, place: int) -> Packed:
        if self._is_kept:
            return self._kept[place]
        return self._products.pack(self._vectors[place * self._side : (place + 1) * self._side])

    def _blocks(self, queries: Packed, places: Iterable[int]) -> Iterator[tuple[int, Array]]:
        """Lower bounds between packed queries and some stripes of the base rows, in one memory."""
        height = len(queries.offsets)
        memory = np.empty(height * self._side, np.float32)
        for place in places:
            base = self._base(place)
            block = memory[: height * len(base.offsets)].reshape(height, -1)
            self._products.fill(block, queries, base)
            yield place * self._side, block


def _partners(mine: int, count: int) -> Iterator[int]:
    """The stripes that a stripe is compared with: each two once, and all have as much to do."""
    for step in range(1, count // 2 + 1):
        if 2 * step < count or mine < step:
            yield (mine + step) % count


def _core_rows(vectors: Any, metric: str) -> Any:
    """Rows as the core measures canonical distances of them."""
    exponents, lengths = np.empty(0, np.int32), np.empty(0)
    if metric == "cosine":
        parts = [unit_scales(rows) for _, rows in chunks(vectors, typical_length(vectors))]
        exponents, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    if sparse.issparse(vectors):
        return engine.core().sparse_rows(
            vectors.indptr.astype(np.int64, copy=False),
            vectors.indices.astype(np.int32, copy=False),
            as_float(vectors).data,
            vectors.shape[1],
            metric,
            exponents,
            lengths,
        )
    values = np.asarray(vectors)
    if values.dtype not in (np.float32, np.float64) or not _side_by_side(values):
        values = np.ascontiguousarray(values, np.result_type(values, np.float32))
    return engine.core().dense_rows(values, metric, exponents, lengths)


def _fits(vectors: Any) -> bool:
    """Whether the core can read these rows as they stand, or as a copy that is not too large."""
    n, d = vectors.shape
    if max(n, d) >= 2**31:
        return False
    if sparse.issparse(vectors) or vectors.size <= _KEPT_ELEMENTS:
        return True
    return vectors.dtype in (np.float32, np.float64) and _side_by_side(vectors)


def _side_by_side(values: Array) -> bool:
    """Whether the features of each row stand side by side in memory."""
    step, feature = values.strides
    return feature == values.itemsize and step % values.itemsize == 0 and values.flags.aligned


def _better_dense(vectors: Csr) -> bool:
    """Whether CSR rows have so much in common that dense products are faster."""
    n, d = vectors.shape
    share = np.bincount(vectors.indices, minlength=d) / n  # of the rows that store each feature
    return bool(_SPARSE_COST * np.sum(share * share) >= d)


def _largest(rows: Csr) -> float:
    return float(np.abs(as_float(rows).data).max(initial=0))


def _reach(rows: Any, center: Floats) -> float:
    """The largest absolute entry of centered rows, rounded up."""
    low, high = (dense_rows(ends).ravel() for ends in (rows.min(axis=0), rows.max(axis=0)))
    return float(np.maximum(high - center, center - low).max())


def _is_ordinary(reach: float) -> bool:
    low, high = _ORDINARY
    return reach == 0 or low <= reach <= high


def _power_of_two_near(reach: float) -> float:
    """A power of two that brings `reach` to at most 1."""
    return float(np.ldexp(1.0, -int(np.frexp(reach)[1])))
