"""Exact search of clusters that are far from each other, by the compiled core.

Seen from one center, float32 has no digits left for the differences within a cluster. So near rows
are put side by side, and each stripe of them has a center of its own; see `DenseProducts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph
from nearlabel.search.budgets import KEPT_BYTES
from nearlabel.search.exact.choice_of_bounds import are_vague, products_for
from nearlabel.search.exact.compiled_index import (
    BaseRows,
    Blocks,
    CompiledIndex,
    fill_among,
)
from nearlabel.search.exact.core_rows import core_rows
from nearlabel.search.exact.dense_bounds import DenseProducts
from nearlabel.search.exact.row_arithmetic import chunks

_STRIPES = 16  # as a rule at least
_FEW_ROWS = 128  # of which no more stripes are made
_FEWEST_ROWS = 16  # of a stripe that could as well be a part of another one
_UNEVEN = 6  # times as many stripes as even ones would be are too many
_NARROW = 1 / 16  # share of the variance of all rows up to which a stripe is narrow
_MANY = 1 / 8  # share of the rows in narrow stripes from which on centers pay
_DIRECTIONS = 8  # along which it shows which rows are far from each other


def compiled_index(
    vectors: Any, metric: str, rows: Any, block_bytes: int
) -> CompiledIndex | CenteredIndex | None:
    """Base rows that the core bounds the distances of, or None where it cannot.

    `rows` are those rows as the core measures them.
    """
    products = products_for(vectors, metric)
    if products is None:
        return None
    n, d = vectors.shape
    is_small = 8 * n * d <= KEPT_BYTES
    if is_small and isinstance(products, DenseProducts) and are_vague(products, vectors):
        points = np.concatenate([products.points(rows) for _, rows in chunks(vectors, d)])
        side = min(products.side, isqrt(block_bytes // 4), max(_FEW_ROWS, n // _STRIPES))
        stripes = _near_rows(points, max(1, side))
        if stripes is not None and _are_narrow(points - products.center, stripes):
            return CenteredIndex(vectors, metric, products, points, stripes)
    return CompiledIndex(vectors, metric, rows, products, block_bytes)


class CenteredIndex:
    """Base rows in stripes of near rows, each seen from its own center."""

    def __init__(
        self,
        vectors: Any,
        metric: str,
        products: DenseProducts,
        points: Floats,
        stripes: Sequence[Array],
    ) -> None:
        self._order = np.concatenate(stripes).astype(np.int32)
        ends = np.cumsum([0, *map(len, stripes)]).tolist()
        self._stripes = [slice(*both) for both in pairwise(ends)]
        self._points = points[self._order]
        self._metric, self._products = metric, products
        self._own, self._packed = [], []
        for stripe in self._stripes:
            own = products.centered_at(self._points[stripe].mean(axis=0))
            self._own.append(own)
            self._packed.append(own.pack_points(self._points[stripe]))
        self._base_rows = BaseRows(
            core_rows(vectors[self._order], metric),
            np.concatenate([packed.errors for packed in self._packed]),
            products.scale,
            self._own[0].relative,
            self._order,
        )

    def reaches(self, queries: Any) -> bool:
        """Whether these queries can be searched."""
        return self._products.reaches(queries)

    def fill(
        self, queries: Any, found: NeighborGraph, n_jobs: int, progress: Progress | None
    ) -> Array:
        """Fill the graph of queries; see `CompiledIndex`."""
        if queries is None:
            return self._among(found, n_jobs, progress)
        return self._nearest(queries, found, n_jobs, progress)

    def _among(self, found: NeighborGraph, n_jobs: int, progress: Progress | None) -> Array:
        base = self._base_rows
        starts = [stripe.start for stripe in self._stripes]
        lists = base.shortlist(base.rows, base.errors, found.k, itself=0, starts=starts)

        def blocks(mine: int, others: Iterable[int]) -> Blocks:
            points = self._points[self._stripes[mine]]
            return ((starts[place], self._bounds(points, place)) for place in others)

        by_place = NeighborGraph.unchecked(
            np.zeros_like(found.indices), np.empty_like(found.distances), found.n_base
        )
        left = fill_among(lists, self._stripes, blocks, by_place, n_jobs, progress)
        found.indices[self._order] = self._order[by_place.indices]
        found.distances[self._order] = by_place.distances
        return np.sort(self._order[left])

    def _nearest(
        self, queries: Any, found: NeighborGraph, n_jobs: int, progress: Progress | None
    ) -> Array:
        m = len(found)
        given_up = np.empty(m, bool)

        def search(rows: slice) -> Iterator[None]:
            part = queries[rows]
            points = self._products.points(part)
            no_errors = np.zeros(len(points), np.float32)  # see `centered_at`
            lists = self._base_rows.shortlist(core_rows(part, self._metric), no_errors, found.k)
            home = self._nearest_stripes(points)
            # Its nearest stripe first: that gives every query a good limit.
            for is_home in (True, False):
                for place, stripe in enumerate(self._stripes):
                    some = np.flatnonzero((home == place) == is_home).astype(np.int32)
                    if len(some):
                        lists.offer_to(self._bounds(points[some], place), some, stripe.start)
                        yield
            places = np.zeros_like(found.indices[rows])
            lists.finish(0, places, found.distances[rows])
            found.indices[rows] = self._order[places]
            lists.given_up(given_up[rows])

        run_blocks(search, m, min(self._products.side, -(-m // n_jobs)), n_jobs, progress)
        return np.flatnonzero(given_up)

    def _bounds(self, points: Floats, place: int) -> Array:
        """Lower bounds between some points and a stripe of the base rows."""
        own, base = self._own[place], self._packed[place]
        block = np.empty((len(points), len(base.offsets)), np.float32)
        own.fill(block, own.pack_queries(own.pack_points(points)), base)
        return block

    def _nearest_stripes(self, points: Floats) -> Array:
        centers = np.array([own.center for own in self._own])
        sizes = np.einsum("ij,ij->i", centers, centers)
        return np.asarray(np.argmin(sizes - 2 * points @ centers.T, axis=1))


def _near_rows(points: Floats, side: int) -> list[Array] | None:
    """Rows in parts of at most `side` near ones: halves of halves along some directions.

    None where there would be many more parts than it takes: rows of all sizes have no clusters.
    """
    n = len(points)
    most = _STRIPES + _UNEVEN * n // side
    directions = np.random.default_rng(0).normal(size=(points.shape[1], _DIRECTIONS))
    shadows = points @ directions
    parts: list[Array] = []
    waiting = [np.arange(n)]
    while waiting:
        if len(parts) > most:
            return None
        rows = waiting.pop()
        low, high = shadows[rows].min(axis=0), shadows[rows].max(axis=0)
        widest = np.argmax(high - low)
        is_high = shadows[rows, widest] > low[widest] / 2 + high[widest] / 2
        halves = rows[~is_high], rows[is_high]
        if len(rows) <= side and not _are_far(halves, shadows[:, widest]):
            parts.append(rows)
        elif min(map(len, halves)):
            waiting += halves
        else:  # equal shadows
            parts += np.array_split(rows, -(-len(rows) // side))
    return parts


def _are_narrow(centered: Floats, stripes: Sequence[Array]) -> bool:
    """Whether many rows are much nearer to the center of their stripe than to that of all."""
    most = _NARROW * np.square(centered).sum() / len(centered)
    narrow = [rows for rows in stripes if np.var(centered[rows], axis=0).sum() <= most]
    return sum(map(len, narrow)) > _MANY * len(centered)


def _are_far(halves: tuple[Array, Array], shadow: Floats) -> bool:
    """Whether two halves are much farther from each other than one of them is wide."""
    if min(map(len, halves)) < _FEWEST_ROWS:
        return False
    (a, b), (c, e) = ((shadow[rows].min(), shadow[rows].max()) for rows in halves)
    return bool(min(b - a, e - c) < (c - b) / _STRIPES)
