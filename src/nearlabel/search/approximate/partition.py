"""Rows divided into lists of near rows, by k-means.

The centers are computed on a sample; the exact search decides which center is nearest, so that the
lists are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.graph import index_type
from nearlabel.search.budgets import ELEMENTS_AT_ONCE
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.index import ExactSearch
from nearlabel.search.exact.row_arithmetic import (
    as_float,
    chunks,
    float_kind,
    unit_rows,
)

# benchmarks/hard_clusters.py measures them.
_LISTS = 1.5  # times sqrt(n)
_LARGEST = 4  # times the mean size: longer lists are cut, so that blocks of bounds stay small


@dataclass(frozen=True)
class Lists:
    """Rows by list.

    Attributes
    ----------
    centers : ndarray of float, shape (n_lists, d)
    order : ndarray of int, shape (n,)
        Rows grouped by list.
    starts : ndarray of int, shape (n_lists + 1,)
        Where the rows of each list start in `order`.
    """

    centers: Array
    order: Array
    starts: Array

    def __len__(self) -> int:
        return len(self.centers)

    @classmethod
    def of(cls, centers: Array, homes: Array) -> Lists:
        """Rows in the lists of centers; `homes` has the center of each row, shape (n,)."""
        order = np.argsort(homes, kind="stable").astype(index_type(len(homes)))
        ends = np.cumsum(np.bincount(homes, minlength=len(centers)))
        return cls(centers, order, np.concatenate([[0], ends]))

    def homes(self) -> Array:
        """The list of each row, shape (n,)."""
        homes = np.empty(len(self.order), np.int64)
        homes[self.order] = np.repeat(np.arange(len(self)), self.sizes)
        return homes

    @property
    def sizes(self) -> Array:
        """The number of rows of each list."""
        return np.diff(self.starts)


def divide(
    vectors: Matrix,
    metric: Metric,
    seed: int,
    n_jobs: int,
    homes: Callable[[Array], Array] | None = None,
) -> Lists:
    """Divide dense rows into about 1.5 sqrt(n) lists of similar size.

    `homes`, if given, finds the nearest center of every row.
    """
    n = vectors.shape[0]
    random = np.random.default_rng(seed)
    count = max(1, round(_LISTS * np.sqrt(n)))
    centers = _means(_sample(vectors, count, random), count, metric, random, n_jobs)
    home = nearest_centers(vectors, centers, metric, n_jobs) if homes is None else homes(centers)
    sizes = np.bincount(home, minlength=len(centers))
    pieces = -(-sizes // max(1, _LARGEST * n // count))
    number = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = np.repeat(np.cumsum(sizes) - sizes, pieces)
    starts += number * np.repeat(sizes, pieces) // np.repeat(pieces, pieces)
    order = np.argsort(home, kind="stable").astype(index_type(n))
    return Lists(np.repeat(centers, pieces, axis=0), order, np.append(starts, n))


def nearest_centers(vectors: Matrix, centers: Array, metric: Metric, n_jobs: int) -> Array:
    """The nearest center of each row; ties by center."""
    index = ExactSearch().build(centers, metric)
    n, d = vectors.shape
    step = max(1, 8 * ELEMENTS_AT_ONCE // d)
    homes = [np.empty(0, np.int32)]
    for start in range(0, n, step):
        block = np.asarray(vectors[start : start + step])
        homes.append(index.graph(1, block, n_jobs=n_jobs).indices[:, 0])
    return np.concatenate(homes)


def _sample(vectors: Matrix, count: int, random: np.random.Generator) -> Array:
    """A sample of the rows for this number of centers."""
    n, d = vectors.shape
    # Some 30 rows a center; at least 8 where rows are so long that these take much memory.
    wanted = min(n, max(8 * count, min(30 * count, 2**26 // d)))
    return np.asarray(vectors[np.sort(random.choice(n, wanted, replace=False))])


def _means(
    rows: Array, count: int, metric: Metric, random: np.random.Generator, n_jobs: int
) -> Array:
    """Centers of some rows by k-means; unit rows if only their directions count."""
    kind = float_kind(rows)  # in float32, a common offset could make all centers equal
    rows = (unit_rows(rows) if metric == "cosine" else rows).astype(kind, copy=False)
    centers = rows[np.sort(random.choice(len(rows), count, replace=False))]
    # More rounds hardly change what a search finds.
    for _ in range(5):
        home = nearest_centers(rows, centers, metric, n_jobs)
        sums: Floats = np.zeros(centers.shape)
        for place, part in chunks(rows, rows.shape[1]):
            ones, numbers = np.ones(len(part)), np.arange(len(part))
            members = sparse.csr_array((ones, (home[place], numbers)), (count, len(part)))
            sums += members @ as_float(part)
        sizes = np.bincount(home, minlength=count)[:, None]
        centers = np.where(sizes > 0, sums / np.maximum(sizes, 1), centers).astype(kind)
    return np.asarray(centers)
