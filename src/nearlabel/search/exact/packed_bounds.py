"""Lower bounds on distances for blocks of rows, in float32, from products of packed rows.

A packed row has factors p, an offset o and an error e. For any two of them

    lower = factor p·p' + o + o'  <=  distance  <=  (lower + e + e') (1 + relative)

where the distance is scaled, and squared for euclidean; for manhattan the sum of |p - p'| replaces
the product. All rounding errors are included. The error of a query is infinite if it is so much
larger than the base rows that its products might overflow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, Floats, Matrix, is_sparse, with_data
from nearlabel.search.exact.row_arithmetic import CoreObject, as_float, squared_lengths, unit_rows

Packed: TypeAlias = Any  # rows as bounds pack them: an array, `SparseFactors`, or of the core

UNIT = 2.0**-24  # unit roundoff of float32
_TINY = 2.0**-124  # covers underflow of one term in float32, even to zero
_MARGINS = 2 + 1e-5  # between a lower and an upper bound
_FAR = 2.0**100  # size of a query at which products might overflow, as in the core
_ORDINARY = 1e-140, 1e140  # sizes whose squares are safe in float64; others use NumPy
_SPARSE_COST = 25  # a sparse product costs as much as this many dense ones
_SAMPLE = 64, 1024  # queries and base rows on which bounds are tested


class BlockBounds(ABC):
    """Bounds on the distances of blocks of queries and base rows, compared with limits.

    Attributes
    ----------
    side : int
        Base rows of a block, by default.
    scale : float
        Of the bounds: by how much they exceed distances, or their squares for euclidean.
    panel : int
        Stripes of base rows start at multiples of this.
    many_neighbors : int
        For this many, comparing a sample takes less time than it saves; see `ExpectedLimits`.
    relative : float
        See above.
    marks_apart : bool
        Whether pairs without a common feature have a bound of their own.
    centers : ndarray of float, shape (n_stripes, d), or None
        Of the stripes, if each has one of its own.
    sharper : BlockBounds or None
        Slower ones for what these leave open. A `Shortlist` then also bounds it again.
    """

    side: int
    scale: float
    panel = 1
    many_neighbors = 200
    relative = 0.0
    marks_apart = False
    centers: Floats | None = None
    sharper: BlockBounds | None = None

    @abstractmethod
    def pack(
        self,
        vectors: Matrix | None,
        rows: CoreObject,
        chosen: slice | Array,
        stripe: int | None = None,
    ) -> tuple[Packed, Array]:
        """Some rows, packed for comparison with a stripe, and their errors.

        They are given as vectors, which only CSR rows need, and in the form of the core.
        """

    @abstractmethod
    def as_queries(self, packed: Packed) -> Packed:
        """Packed rows as they enter products from the left."""

    @abstractmethod
    def block(self, queries: Packed, base: Packed, memory: Array) -> Array:
        """The lower bounds of all pairs of a query and a base row, written to given memory."""

    def left_open(self, rows: CoreObject, sample: Array, queries: int) -> float:
        """How many rows the bounds of a query leave open on average, among others of a sample.

        The first ones of the sample are the queries. The nearest row is always open.
        """
        asked, query_errors = self.pack(None, rows, sample[:queries])
        base, base_errors = self.pack(None, rows, sample[queries:])
        memory = np.empty(len(asked) * len(base), np.float32)
        lower = self.block(self.as_queries(asked), base, memory)
        nearest = np.min(lower + query_errors[:, None] + base_errors, axis=1)
        return float(np.mean((lower <= nearest[:, None]).sum(axis=1)))

    def offer(
        self, lists: CoreObject, queries: Packed, base: Packed, memory: Array, query: int, row: int
    ) -> None:
        """Let a `Shortlist` take the near pairs of a block, for its queries and its base rows.

        Only for its queries if these are the base rows.
        """
        lists.offer(self.block(queries, base, memory), query, row, query != row)

    def offer_to(
        self,
        lists: CoreObject,
        queries: Packed,
        base: Packed,
        memory: Array,
        chosen: Array,
        row: int,
    ) -> Array | None:
        """Let a `Shortlist` take the near pairs of the chosen queries.

        Returns the block, if it was written.
        """
        if len(chosen) < len(queries):
            queries = queries[chosen]
        block = self.block(queries, base, memory)
        lists.offer_to(block, chosen, row)
        return block


class DenseBounds(BlockBounds):
    """Bounds of dense rows, or of CSR rows that are densified block by block.

    |x|² + |y|² - 2 xy of centered rows, since a common offset would swamp the differences, half of
    that for the unit rows of cosine, or the sum of |x - y|. The offsets are two more factors, so
    that a block of bounds is one matrix product.

    With `centers`, one for each stripe of base rows, the bounds are tight for base rows near their
    center: a base row y is packed relative to the center c of its own stripe, a query x for each
    stripe separately. The error of their bound is a share s of |x - c|² + |y - c|². With |x - c|²
    at most 2 |x - y|² + 2 |y - c|² that is at most s (2 |x - y|² + 3 |y - c|²): a part of the
    distance itself, and three times the error of y. The error of x, which differs between stripes,
    is not needed.
    """

    side = 768  # fastest for BLAS, and the block is still cached when it is read

    def __init__(
        self, metric: str, center: Floats, reach: float, centers: Floats | None = None
    ) -> None:
        self.metric, self.center, self.reach, self.centers = metric, center, reach, centers
        self.unit = 1.0 if metric == "cosine" else _power_of_two_near(reach)
        self.scale = self.unit if metric == "manhattan" else self.unit**2
        d = len(center)
        self._rounding = _rounding(d)
        self.relative = 0.0 if centers is None else 4.5 * self._rounding[0]
        self._margins = _MARGINS if centers is None else 3 * _MARGINS
        factor = {"cosine": -1, "manhattan": 1}.get(metric, -2)
        self._factors = np.array([factor] * d + [1, 1], np.float32)

    def pack(
        self,
        _: Matrix | None,
        rows: CoreObject,
        chosen: slice | Array,
        stripe: int | None = None,
    ) -> tuple[Packed, Array]:
        """Factors and errors of some rows, relative to the center of a stripe."""
        if isinstance(chosen, slice):
            chosen = np.arange(chosen.start, chosen.stop, dtype=np.int32)
        center = self.center if self.centers is None or stripe is None else self.centers[stripe]
        factors = np.empty((len(chosen), len(self._factors)), np.float32)
        errors = np.empty(len(chosen), np.float32)
        slack, tiny = self._rounding
        rows.pack(chosen, center, self.unit, slack, tiny, self._margins, factors, errors)
        return factors, errors

    def as_queries(self, factors: Array) -> Array:
        """Factors with those of the product; an offset is multiplied by 1."""
        left = factors * self._factors
        left[:, -2:] = left[:, :-3:-1]
        return left

    def block(self, queries: Array, base: Array, memory: Array) -> Array:
        """The lower bounds of all pairs of a query and a base row, written to given memory."""
        block = memory[: len(queries) * len(base)].reshape(len(queries), len(base))
        if self.metric == "manhattan":
            engine.core().manhattan_block(queries, base, block)
        else:
            np.matmul(queries, base.T, out=block)
        return block

    def centered_at(self, centers: Floats) -> DenseBounds:
        """The same bounds with other centers, one for each stripe of base rows."""
        return DenseBounds(self.metric, self.center, self.reach, centers)

    def are_vague(self, rows: CoreObject) -> bool:
        """Whether the bounds of most rows leave many others open, tested on a sample.

        This happens if clusters are much farther apart than they are wide: relative to one center,
        float32 has no digits left for the differences within a cluster.
        """
        n, (queries, base) = len(rows), _SAMPLE
        # Centers of stripes need rounding errors that are small relative to distances.
        if n < queries + base or self._rounding[0] > 1 / 64:
            return False
        sample = np.random.default_rng(0).choice(n, queries + base, replace=False).astype(np.int32)
        # Beyond this, measuring what is open dominates.
        return self.left_open(rows, sample, queries) > 1 + 1 / 256 * base


class SparseBounds(BlockBounds):
    """Bounds of CSR rows: for each feature of a query, the base rows that store it.

    |x|² + |y|² - 2 xy, or 1 - xy of unit rows; rows without a common feature are at distance 1
    exactly and marked as apart.
    """

    side = 2048
    many_neighbors = 2**62  # a sample of packed rows could not be sliced

    def __init__(self, metric: str, vectors: Csr, reach: float) -> None:
        self.marks_apart = metric == "cosine"
        self._unit = 1.0 if self.marks_apart else _power_of_two_near(reach)
        self.scale = self._unit**2
        self._slack, self._tiny = _rounding(_longest_row(vectors))
        # If there are more features than entries, only those that some base row stores are kept.
        self._features = np.unique(vectors.indices) if vectors.shape[1] > vectors.nnz else None

    def pack(
        self,
        vectors: Csr,
        _: CoreObject,
        chosen: slice | Array,
        stripe: int | None = None,  # noqa: ARG002
    ) -> tuple[Packed, Array]:
        """Factors and errors of some rows."""
        rows = vectors[chosen]
        with np.errstate(over="ignore"):
            if self.marks_apart:
                rows = unit_rows(rows)
                # The product of two nonzero factors must not underflow to zero, see `Postings`.
                # Unit rows may be off by this, and its square fits into float32.
                larger = np.copysign(np.maximum(np.abs(rows.data), 1e-19), rows.data)
                rows = with_data(rows, np.where(rows.data == 0, 0, larger))
                sizes = np.full(rows.shape[0], 0.5)
            else:
                rows = as_float(rows) * self._unit
                sizes = squared_lengths(rows)
        is_near = sizes <= _FAR
        sizes = np.where(is_near, sizes, 0)
        margin = self._slack * sizes + self._tiny
        errors = np.where(is_near, _MARGINS * margin, np.inf)
        starts, columns, values = rows.indptr, rows.indices, rows.data
        width = rows.shape[1]
        if self._features is not None:
            width = len(self._features)
            place = np.searchsorted(self._features, columns)
            place[place == width] = 0
            is_given = self._features[place] == columns if width else np.zeros(len(place), bool)
            starts = np.concatenate([[0], np.cumsum(is_given)])[starts]
            columns, values = place[is_given], values[is_given]
        parts = (
            starts.astype(np.int64, copy=False),
            columns.astype(np.int32, copy=False),
            np.clip(values, -_FAR, _FAR).astype(np.float32),
            (sizes - margin).astype(np.float32),
        )
        return SparseFactors(parts, width, self.marks_apart), errors.astype(np.float32)

    def as_queries(self, factors: SparseFactors) -> SparseFactors:
        """Factors as they enter products from the left."""
        return factors

    def block(self, queries: SparseFactors, base: SparseFactors, memory: Array) -> Array:
        """The lower bounds of all pairs of a query and a base row, written to given memory."""
        block = memory[: len(queries) * len(base)].reshape(len(queries), len(base))
        base.postings.block(*queries.parts, block)
        return block


class SparseFactors:
    """CSR rows in the types of the core, and their transpose on first use."""

    def __init__(self, parts: tuple[Array, ...], width: int, marks_apart: bool) -> None:
        self.parts = parts  # row starts, columns, values, offsets
        self._width, self._marks_apart = width, marks_apart
        self._postings: CoreObject = None

    def __len__(self) -> int:
        return len(self.parts[-1])

    @property
    def nbytes(self) -> int:
        """The memory of both forms."""
        return int(16 * len(self.parts[1]) + 8 * self._width)

    @property
    def postings(self) -> CoreObject:
        """The rows by feature."""
        if self._postings is None:
            core = engine.core()
            kind = (-1.0, core.APART) if self._marks_apart else (-2.0,)
            self._postings = core.Postings(*self.parts, self._width, *kind)
        return self._postings


def bounds_for(vectors: Matrix, metric: str) -> DenseBounds | SparseBounds | None:
    """How the core bounds the distances of these rows, or None if NumPy has to."""
    stays_sparse = is_sparse(vectors) and not _better_dense(vectors)
    terms = _longest_row(vectors) if stays_sparse else vectors.shape[1]
    # The error of a longer sum is not bounded usefully.
    if terms > 2**20 or (stays_sparse and metric == "manhattan"):
        return None
    center, reach = np.zeros(vectors.shape[1] if not stays_sparse else 0), 1.0
    if stays_sparse and metric != "cosine":
        reach = float(np.abs(as_float(vectors).data).max(initial=0))
    elif metric != "cosine":
        low, high = vectors.min(axis=0), vectors.max(axis=0)
        if is_sparse(vectors):
            low, high = low.toarray().ravel(), high.toarray().ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            center = np.asarray(vectors.mean(axis=0, dtype=np.float64)).ravel()
            reach = float(np.maximum(high - center, center - low).max())
    if not is_ordinary(reach):
        return None
    if stays_sparse:
        return SparseBounds(metric, vectors, reach)
    return DenseBounds(metric, center, reach)


def is_ordinary(reach: float) -> bool:
    """Whether the core can bound the distances of rows with this range of sizes."""
    return reach == 0 or _ORDINARY[0] <= reach <= _ORDINARY[1]


def _better_dense(vectors: Csr) -> bool:
    """Whether CSR rows have so many common features that dense products are faster."""
    n, d = vectors.shape
    if _SPARSE_COST * vectors.nnz < n * d:  # no share is above 1
        return False
    share = np.bincount(vectors.indices, minlength=d) / n  # of the rows that store each feature
    return bool(_SPARSE_COST * np.sum(share * share) >= d)


def _longest_row(rows: Csr) -> int:
    """The largest number of entries in a row."""
    return int(np.diff(rows.indptr).max(initial=0))


def _power_of_two_near(reach: float) -> float:
    """A power of two that scales `reach` to at most 1."""
    return float(np.ldexp(1.0, -int(np.frexp(reach)[1])))


def _rounding(terms: int) -> tuple[float, float]:
    """The errors of sums of `terms` products: a share of the size of both rows, and a constant.

    With S the size (the squared length) of both rows together: the rounding of the factors, of the
    offsets and of the sum has an error below (2 terms + 10) units of S. Twice that is used.
    """
    return 4 * (terms + 8) * UNIT, (terms + 8) * _TINY
