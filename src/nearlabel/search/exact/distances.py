"""One canonical distance per metric, and cheap bounds on it.

The canonical distance of two rows is computed in float64, adding the terms of the features one by
one in feature order without fused operations. It does not depend on block sizes, threads or BLAS,
and is the same for CSR and dense rows: a feature that is zero in both rows adds exactly zero. It is
too slow for all pairs, so a search first computes `Space.bounds`: lower and upper bounds from one
matrix product that include the rounding errors of both computations. Only pairs that the bounds
leave open are computed canonically.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats, Matrix, is_sparse, runs
from nearlabel.common.validation import check_choice
from nearlabel.search.budgets import ELEMENTS_AT_ONCE, KEPT_BYTES
from nearlabel.search.exact.row_arithmetic import (
    as_float,
    chunks,
    dense_rows,
    largest_entries,
    most_terms,
    share_features,
    squared,
    squared_lengths,
    sum_in_feature_order,
    typical_length,
    unit_rows,
)

UNIT = 2.0**-53  # unit roundoff of float64
TINY = 2.0**-1022  # smallest normal float64: covers underflow of one term

Metric = str | Callable[[Array, Array], float]


@dataclass(frozen=True)
class Bounds:
    """Bounds on the distances from a block of queries to all base rows, on any increasing scale.

    A distance lies between ``lower`` and ``lower * (1 + relative) + row[:, None] + column``.
    """

    lower: Floats  # (n_queries, n_base)
    relative: float = 0.0
    row: Floats | None = None  # (n_queries,)
    column: Floats | None = None  # (n_base,)

    def upper(self, row: Array, column: Array) -> Floats:
        """Upper bounds of pairs of a query and a base row."""
        upper: Floats = self.lower[row, column] * (1 + self.relative)
        with np.errstate(invalid="ignore"):
            upper = upper if self.row is None else upper + self.row[row]
            upper = upper if self.column is None else upper + self.column[column]
        upper[~np.isfinite(upper)] = np.inf
        return upper


class Space(ABC):
    """Base rows under one metric."""

    densifies: ClassVar[bool] = False  # whether CSR rows are densified, a few at a time

    def __init__(self, vectors: Matrix) -> None:
        self.vectors = vectors

    @property
    def width(self) -> int:
        """How many numbers a typical row takes while distances are computed."""
        return int(self.vectors.shape[1]) if self.densifies else typical_length(self.vectors)

    def prepare(self) -> None:  # noqa: B027 - most metrics need nothing
        """Compute what `bounds` needs from all base rows."""

    @abstractmethod
    def bounds(self, queries: Matrix) -> Bounds:
        """Bounds on the distances between `queries` and all base rows."""

    def scaled(self, limits: Floats) -> Floats:
        """Limits of distances on the scale of the bounds, rounded outward."""
        return limits

    @abstractmethod
    def canonical(self, A: Matrix, B: Matrix) -> Floats:
        """Canonical distances between row i of A and row i of B, both float64, dense or CSR."""

    def distances(self, queries: Matrix, query_rows: Array, base_rows: Array) -> Floats:
        """Canonical distances of the pairs (query_rows[i], base_rows[i])."""
        result = np.empty(len(query_rows))
        sizes = np.full(len(query_rows), self.vectors.shape[1])  # numbers per pair
        if is_sparse(self.vectors) and is_sparse(queries) and not self.densifies:
            stored = np.diff(queries.indptr)[query_rows] + np.diff(self.vectors.indptr)[base_rows]
            sizes = np.asarray(stored + 1, np.int64)
        for pairs in runs(sizes, ELEMENTS_AT_ONCE):
            with np.errstate(over="ignore"):
                result[pairs] = self.canonical(
                    as_float(queries[query_rows[pairs]]), as_float(self.vectors[base_rows[pairs]])
                )
        if np.isnan(result).any():
            raise ValueError("metric returned NaN; distances must be numbers")
        return result

    def _empty_bounds(self, queries: Matrix) -> Floats:
        return np.empty((queries.shape[0], self.vectors.shape[0]))


class ProductSpace(Space):
    """A metric whose bounds come from inner products of prepared rows."""

    prepared: Floats | None = None

    @abstractmethod
    def ready(self, rows: Matrix) -> Matrix:
        """Rows as they enter the products."""

    def prepare(self) -> None:
        if is_sparse(self.vectors):
            self.transposed = sparse.csr_array(self.ready(self.vectors).T)
        elif 8 * self.vectors.size <= KEPT_BYTES:
            self.prepared = self.ready(self.vectors)

    def ready_chunks(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield blocks of prepared base rows, with their places."""
        for place, rows in chunks(self.vectors, self.width):
            yield place, self.ready(rows) if self.prepared is None else self.prepared[place]

    def products(self, queries: Matrix) -> Floats:
        """Inner products of prepared queries with all base rows."""
        if is_sparse(self.vectors):
            return np.asarray((queries @ self.transposed).toarray())
        result = self._empty_bounds(queries)
        for place, rows in self.ready_chunks():
            np.matmul(queries, rows.T, out=result[:, place])
        return result


class Euclidean(ProductSpace):
    """sqrt of the sum of squared differences; bounds by |x|² + |y|² - 2xy on centered rows."""

    center: Floats | None = None

    def prepare(self) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if not is_sparse(self.vectors):  # a common offset would swamp the differences
                self.center = np.mean(self.vectors, axis=0, dtype=np.float64)
            super().prepare()
            self.norms = np.concatenate([squared_lengths(rows) for _, rows in self.ready_chunks()])

    def ready(self, rows: Matrix) -> Matrix:
        return as_float(rows) if self.center is None else as_float(rows) - self.center

    def bounds(self, queries: Matrix) -> Bounds:
        with np.errstate(over="ignore", invalid="ignore"):
            queries = self.ready(queries)
            lower = self.products(queries)
            # Both norms, the product, the centering and the canonical sum each have an error of at
            # most about d units of (|x| + |y|)² <= 2 (|x|² + |y|²); the root merges neighbors
            # within 2 units. That is less than (4 d + 36) units of |x|² + |y|²: twice that is used.
            slack = 8 * (most_terms(self.vectors, queries) + 8) * UNIT
            tiny = (queries.shape[1] + 8) * TINY
            norms = squared_lengths(queries)
            lower *= -2
            lower += ((1 - slack) * norms - tiny)[:, None]
            lower += (1 - slack) * self.norms
            if not np.isfinite(4 * (norms.max() + self.norms.max())):
                _open_overflows(lower)
            return Bounds(lower, 0.0, 2 * (slack * norms + tiny), 2 * slack * self.norms)

    def scaled(self, limits: Floats) -> Floats:
        # The square and the root of the canonical distance have an error of a unit or two.
        with np.errstate(over="ignore"):
            return np.where(limits > 0, limits * limits * (1 + 8 * UNIT) + TINY, -np.inf)

    def canonical(self, A: Matrix, B: Matrix) -> Floats:
        return np.sqrt(sum_in_feature_order(squared(A - B)))


class SquaredEuclidean(Euclidean):
    """The sum of squared differences."""

    def scaled(self, limits: Floats) -> Floats:
        return limits

    def canonical(self, A: Matrix, B: Matrix) -> Floats:
        return sum_in_feature_order(squared(A - B))


class Cosine(ProductSpace):
    """1 - cosine, as half the squared difference of the unit rows.

    So the distance of equal rows is exactly zero. Rows that share no feature are at distance 1, and
    so is a row of zeros from every row, as in scikit-learn.
    """

    def ready(self, rows: Matrix) -> Matrix:
        return unit_rows(rows)

    def bounds(self, queries: Matrix) -> Bounds:
        lower = self.products(self.ready(queries))
        slack = 8 * (most_terms(self.vectors, queries) + 8) * UNIT
        np.subtract(1 - slack, lower, out=lower)
        return Bounds(lower, row=np.full(len(lower), 2 * slack))

    def canonical(self, A: Matrix, B: Matrix) -> Floats:
        a, b = unit_rows(A), unit_rows(B)
        distances: Floats = sum_in_feature_order(squared(a - b)) / 2
        distances[(largest_entries(A) == 0) | (largest_entries(B) == 0)] = 1
        near = np.flatnonzero(np.abs(distances - 1) <= (A.shape[1] + 8) * 2.0**-50)
        distances[near[~share_features(a[near], b[near])]] = 1  # whose sums have rounding errors
        return distances


class Pairwise(Space):
    """A metric whose bounds come from a pairwise distance function of scipy or scikit-learn."""

    densifies = True
    name: ClassVar[str]  # the name of the metric in SciPy

    def bounds(self, queries: Matrix) -> Bounds:
        lower = self._empty_bounds(queries)
        for place, rows in chunks(self.vectors, self.width):
            lower[:, place] = self._pairwise(queries, rows)
        slack = 4 * (most_terms(self.vectors, queries) + 8) * UNIT
        lower *= 1 - slack
        _open_overflows(lower)
        return Bounds(lower, 3 * slack)

    def _pairwise(self, queries: Matrix, rows: Matrix) -> Floats:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(dense_rows(queries), dense_rows(rows), self.name))


class Manhattan(Pairwise):
    """The sum of absolute differences."""

    name = "cityblock"
    densifies = False

    def _pairwise(self, queries: Matrix, rows: Matrix) -> Floats:
        if not is_sparse(rows):
            return super()._pairwise(queries, rows)
        from sklearn.metrics.pairwise import manhattan_distances

        narrow = []  # 32-bit indices are required
        for part in map(sparse.csr_array, (queries, rows)):
            indices, indptr = part.indices.astype(np.int32), part.indptr.astype(np.int32)
            parts = as_float(part).data, indices, indptr
            narrow.append(sparse.csr_matrix(parts, shape=part.shape))
        return np.asarray(manhattan_distances(*narrow))

    def canonical(self, A: Matrix, B: Matrix) -> Floats:
        return sum_in_feature_order(abs(A - B))


class Chebyshev(Pairwise):
    """The largest absolute difference."""

    name = "chebyshev"

    def canonical(self, A: Matrix, B: Matrix) -> Floats:
        return np.asarray(np.max(np.abs(dense_rows(A) - dense_rows(B)), axis=1))


class Hamming(Pairwise):
    """The share of features that differ."""

    name = "hamming"

    def canonical(self, A: Matrix, B: Matrix) -> Floats:
        return np.asarray(np.sum(dense_rows(A) != dense_rows(B), axis=1) / A.shape[1])


class Jaccard(Pairwise):
    """1 - |A and B| / |A or B| of the sets of non-zero features; two empty sets are at 0."""

    name = "jaccard"

    def _pairwise(self, queries: Matrix, rows: Matrix) -> Floats:
        return super()._pairwise(dense_rows(queries) != 0, dense_rows(rows) != 0)

    def canonical(self, A: Matrix, B: Matrix) -> Floats:
        a, b = dense_rows(A) != 0, dense_rows(B) != 0
        either = np.sum(a | b, axis=1)
        return np.asarray(np.sum(a ^ b, axis=1) / np.maximum(either, 1))


class Function(Space):
    """A metric given as a function of two 1-d arrays: one call per pair."""

    densifies = True

    def __init__(self, vectors: Matrix, function: Callable[[Array, Array], float]) -> None:
        super().__init__(vectors)
        self.function = function

    def bounds(self, queries: Matrix) -> Bounds:
        lower = self._empty_bounds(queries)
        for place, rows in chunks(self.vectors, self.width):
            base = _read_only(rows)
            for i, query in enumerate(_read_only(queries)):
                lower[i, place] = [self.function(query, row) for row in base]
        _open_overflows(lower)
        return Bounds(lower)

    def canonical(self, A: Matrix, B: Matrix) -> Floats:
        values = [self.function(a, b) for a, b in zip(_read_only(A), _read_only(B), strict=True)]
        distances = np.asarray(values, dtype=np.float64)
        if np.any(distances < 0):
            raise ValueError(
                f"metric must not be negative; the function returned {distances.min()}"
            )
        return distances


def _open_overflows(lower: Floats) -> None:
    """Make a bound that overflowed vacuous: its pair stays a candidate."""
    lower[~np.isfinite(lower)] = -np.inf


def _read_only(rows: Matrix) -> Array:
    """Dense rows that a user's function cannot write to."""
    view = dense_rows(rows).view()
    view.flags.writeable = False
    return view


SPACES: dict[str, type[Space]] = {
    "euclidean": Euclidean,
    "sqeuclidean": SquaredEuclidean,
    "cosine": Cosine,
    "manhattan": Manhattan,
    "chebyshev": Chebyshev,
    "hamming": Hamming,
    "jaccard": Jaccard,
}
SLOW = ("chebyshev", "hamming", "jaccard")


def check_metric(metric: object) -> Metric:
    """`metric` if it is a function or a known name; otherwise an error lists the names."""
    known = (*SPACES, "precomputed")
    if callable(metric) or (isinstance(metric, str) and metric in known):
        return metric
    return str(check_choice(metric, "metric", known, also="a function of two rows, or "))


def space(vectors: Matrix, metric: Metric) -> Space:
    """The base rows `vectors` under `metric`, a name or a function of two rows."""
    check_metric(metric)
    return Function(vectors, metric) if callable(metric) else SPACES[metric](vectors)


def warn_if_slow(metric: Metric) -> None:
    """Warn if a metric compares row by row."""
    if callable(metric) or metric in SLOW:
        from sklearn.exceptions import EfficiencyWarning

        named = f"metric={metric!r}" if isinstance(metric, str) else "a function as metric"
        fast = ", ".join(name for name in SPACES if name not in SLOW)
        warnings.warn(
            f"{named} compares row by row, which is slow; fast metrics are {fast}",
            EfficiencyWarning,
            stacklevel=2,
        )
