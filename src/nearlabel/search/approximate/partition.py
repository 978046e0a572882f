"""Rows divided into lists of near rows, by k-means.

The centers are computed on a sample; the exact search decides which center is nearest, so that the
lists are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats
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

_LISTS = 1.5  # times sqrt(n)
_ROWS_A_CENTER = 30  # in the sample for k-means
_FEWEST_ROWS_A_CENTER = 8  # if rows are so long that the sample would be large
_SAMPLED_ELEMENTS = 2**26  # limit on the size of the sample
_ROUNDS = 5  # more rounds hardly change what a search finds
_LARGEST = 4  # times the mean size: longer lists are split
_SMALLEST = 1 / 8  # of the mean size: shorter lists are dissolved
_NEARLY_ALL = 0.9  # of a list in one part: splitting it again would not end


@dataclass(frozen=True)
class Lists:
    """Rows by list.

    Attributes
    ----------
    centers : ndarray of float, shape (n_lists, d)
    order : ndarray of int, shape (n,)
        Rows grouped by list; lists next to each other are usually near in space, too.
    starts : ndarray of int, shape (n_lists + 1,)
        Where the rows of each list start in `order`.
    """

    centers: Array
    order: Array
    starts: Array

    def __len__(self) -> int:
        return len(self.centers)

    @property
    def sizes(self) -> Array:
        """The number of rows of each list."""
        return np.diff(self.starts)


def divide(
    vectors: Any,
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
    centers = _means(_sample(vectors, None, count, random), count, metric, random, n_jobs)
    home = nearest_centers(vectors, centers, metric, n_jobs) if homes is None else homes(centers)
    centers, home = _without_short(vectors, centers, home, n / count, metric, n_jobs)
    lists = _without_long(vectors, centers, home, n / count, metric, random, n_jobs)
    centers = np.array([center for center, _ in lists])
    chain = _side_by_side(centers, metric, random, n_jobs)
    order = np.concatenate([lists[place][1] for place in chain]).astype(index_type(n))
    ends = np.cumsum([len(lists[place][1]) for place in chain])
    return Lists(centers[chain], order, np.concatenate([[0], ends]))


def divide_by(centers: Array, vectors: Any, metric: Metric, n_jobs: int) -> Lists:
    """Divide dense rows into the lists of given centers, some of which may stay empty."""
    home = nearest_centers(vectors, centers, metric, n_jobs)
    order = np.argsort(home, kind="stable").astype(index_type(len(home)))
    ends = np.cumsum(np.bincount(home, minlength=len(centers)))
    return Lists(centers, order, np.concatenate([[0], ends]))


def nearest_centers(
    vectors: Any, centers: Array, metric: Metric, n_jobs: int, rows: Array | None = None
) -> Array:
    """The nearest center of each of some rows, all if None; ties by center."""
    index = ExactSearch().build(centers, metric)
    n = vectors.shape[0] if rows is None else len(rows)
    step = max(1, 8 * ELEMENTS_AT_ONCE // vectors.shape[1])
    homes = [np.empty(0, np.int32)]
    for start in range(0, n, step):
        some = slice(start, start + step) if rows is None else rows[start : start + step]
        homes.append(index.graph(1, np.asarray(vectors[some]), n_jobs=n_jobs).indices[:, 0])
    return np.concatenate(homes)


def _sample(vectors: Any, rows: Array | None, count: int, random: np.random.Generator) -> Array:
    """A sample of the given rows, all if None, for this number of centers."""
    n = vectors.shape[0] if rows is None else len(rows)
    wanted = min(_ROWS_A_CENTER * count, _SAMPLED_ELEMENTS // vectors.shape[1])
    wanted = min(n, max(wanted, _FEWEST_ROWS_A_CENTER * count))
    some = np.sort(random.choice(n, wanted, replace=False))
    return np.asarray(vectors[some if rows is None else rows[some]])


def _means(
    rows: Array, count: int, metric: Metric, random: np.random.Generator, n_jobs: int
) -> Array:
    """Centers of some rows by k-means; unit rows if only their directions count."""
    kind = float_kind(rows)  # in float32, a common offset could make all centers equal
    rows = (unit_rows(rows) if metric == "cosine" else rows).astype(kind, copy=False)
    centers = rows[np.sort(random.choice(len(rows), count, replace=False))]
    for _ in range(_ROUNDS):
        home = nearest_centers(rows, centers, metric, n_jobs)
        sums: Floats = np.zeros(centers.shape)
        for place, part in chunks(rows, rows.shape[1]):
            ones, numbers = np.ones(len(part)), np.arange(len(part))
            members = sparse.csr_array((ones, (home[place], numbers)), (count, len(part)))
            sums += members @ as_float(part)
        sizes = np.bincount(home, minlength=count)[:, None]
        centers = np.where(sizes > 0, sums / np.maximum(sizes, 1), centers).astype(kind)
    return np.asarray(centers)


def _without_short(
    vectors: Any, centers: Array, home: Array, mean: float, metric: Metric, n_jobs: int
) -> tuple[Array, Array]:
    """Drop the centers of short lists; their rows go to the nearest remaining ones."""
    sizes = np.bincount(home, minlength=len(centers))
    kept = sizes >= _SMALLEST * mean
    number = np.cumsum(kept) - 1
    lost = np.flatnonzero(~kept[home])
    home = number[home]
    centers = centers[kept]
    if len(lost):
        home[lost] = nearest_centers(vectors, centers, metric, n_jobs, lost)
    return centers, home


def _without_long(
    vectors: Any,
    centers: Array,
    home: Array,
    mean: float,
    metric: Metric,
    random: np.random.Generator,
    n_jobs: int,
) -> list[tuple[Array, Array]]:
    """Centers and rows of the lists, with long lists split."""
    by_list = np.split(np.argsort(home, kind="stable"), np.cumsum(np.bincount(home))[:-1])
    waiting = list(zip(centers, by_list, strict=True))[::-1]
    lists = []
    while waiting:
        center, rows = waiting.pop()
        if len(rows) <= _LARGEST * mean:
            lists.append((center, rows))
            continue
        count = int(np.ceil(len(rows) / mean))
        parts = _means(_sample(vectors, rows, count, random), count, metric, random, n_jobs)
        inside = nearest_centers(vectors, parts, metric, n_jobs, rows)
        for part in np.unique(inside):
            members = rows[inside == part]
            if len(members) <= _NEARLY_ALL * len(rows):
                waiting.append((parts[part], members))
            else:  # equal rows: any split will do
                pieces = np.array_split(members, int(np.ceil(len(members) / mean)))
                lists += [(parts[part], piece) for piece in pieces]
    return lists


def _side_by_side(
    centers: Array, metric: Metric, random: np.random.Generator, n_jobs: int
) -> Array:
    """An order of the centers in which neighbors in space are usually near each other.

    Groups of centers, each followed by the nearest remaining one.
    """
    count = max(1, round(np.sqrt(len(centers))))
    groups = _means(centers, count, metric, random, n_jobs)
    home = nearest_centers(centers, groups, metric, n_jobs)
    apart = as_float(groups)
    left = np.ones(count, bool)
    chain = []
    group = 0
    for _ in range(count):
        chain.append(np.flatnonzero(home == group))
        left[group] = False
        far = np.sum((apart - apart[group]) ** 2, axis=1)
        group = int(np.argmin(np.where(left, far, np.inf)))
    return np.concatenate(chain)
