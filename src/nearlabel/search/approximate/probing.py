"""Rows in lists, and searches in the lists nearest to a query.

Rows are identified here by their places in the order of the lists. Among the rows of its lists the
neighbors of a query are exact, ties by number; so they do not depend on threads, blocks or engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Floats, runs
from nearlabel.common.progress import Progress
from nearlabel.common.threads import one_blas_thread, run_blocks, run_slices
from nearlabel.graph import NeighborGraph, Recall, sort_equally_far
from nearlabel.search.approximate.partition import Lists, divide
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.budgets import BLOCK_BYTES, ELEMENTS_AT_ONCE
from nearlabel.search.exact.byte_bounds import (
    ByteBounds,
    byte_bounds,
    multiplies_bytes,
    side_by_side,
)
from nearlabel.search.exact.compiled_index import CompiledIndex, PackedStripes
from nearlabel.search.exact.distances import space
from nearlabel.search.exact.index import ExactIndex
from nearlabel.search.exact.packed_bounds import BlockBounds, DenseBounds, bounds_for
from nearlabel.search.exact.reaching import Reach
from nearlabel.search.exact.row_arithmetic import core_rows, float_kind, points_of
from nearlabel.search.interfaces import Reached
from nearlabel.search.reordered_rows import RowsFromFile, ordered_rows

_QUERIES_AT_ONCE = 8192  # they share lists, and their results stay in a cache
_PACKED_BYTES = 2**30  # packed lists are cached up to this size


@dataclass(frozen=True)
class QueryPlan:
    """What queries for k neighbors need.

    Attributes
    ----------
    probes : Probes
    recall : Recall or None
        Of base rows searched as if they were queries; None if not measured.
    """

    probes: Probes
    recall: Recall | None


class ListedRows:
    """Dense rows in lists.

    Parameters
    ----------
    lists : Lists
    rows : ndarray of float, shape (n, d), or RowsFromFile
        The rows by place.
    metric : str
    bounds : DenseBounds, optional
        Bounds on their distances; by default they are computed, which reads all rows.
    byte_share : float, optional
        With `bounds`, the parameter of bounds from bytes, if these are tight enough.
    """

    def __init__(
        self,
        lists: Lists,
        rows: Array | RowsFromFile,
        metric: str,
        bounds: DenseBounds | None = None,
        byte_share: float | None = None,
    ) -> None:
        self.lists, self.metric = lists, metric
        self._sizes = np.append(lists.sizes, 0)  # those of the lists, and of none
        self.file = rows if isinstance(rows, RowsFromFile) else None
        self.rows = rows.rows if isinstance(rows, RowsFromFile) else rows
        self.space = space(self.rows, metric)
        self.bounds: DenseBounds | None = None
        self.byte_share = byte_share
        self._centers = ExactIndex(lists.centers, metric, BLOCK_BYTES)
        # How lists are compared, the fastest way first: the next is for queries that are given up.
        self._compiled: list[CompiledIndex] = []
        if engine.core() is None:
            return
        measured = core_rows(rows, metric) if self.file is None else self.file.as_core_rows(metric)
        if bounds is None:
            self.touch(np.arange(len(lists)))
            of_rows = bounds_for(self.rows, metric)
            bounds = of_rows if isinstance(of_rows, DenseBounds) else None  # as of all dense rows
            if bounds is not None and bounds.are_vague(measured):
                # Lists that are far from each other are centered individually.
                bounds = bounds.centered_at(points_of(lists.centers, metric))
            if bounds is not None:
                as_bytes = byte_bounds(bounds, measured, side_by_side(len(measured)))
                self.byte_share = None if as_bytes is None else as_bytes.share
        if bounds is None:
            return
        self.bounds = bounds
        ways: list[BlockBounds] = [bounds]
        if self.byte_share is not None and multiplies_bytes():
            ways.insert(0, ByteBounds(bounds, self.byte_share))
        for way in ways:
            touch = None if self.file is None else self.file.touch
            starts = lists.starts.tolist()
            stripes = PackedStripes(way, self.rows, measured, starts, _PACKED_BYTES, touch)
            self._compiled.append(CompiledIndex(stripes, metric, lists.order))

    @classmethod
    def divided(cls, vectors: Array, metric: str, seed: int, n_jobs: int) -> ListedRows:
        """Rows divided into lists: a copy, in memory or in a temporary file."""
        lists = divide(vectors, metric, seed, n_jobs)
        return cls(lists, ordered_rows(vectors, lists.order, float_kind(vectors)), metric)

    def touch(self, lists: Array) -> None:
        """Make sure that the rows of some lists may be read."""
        if self.file is not None:
            self.file.touch(lists)

    def lists_of(self, places: Array) -> Array:
        """The lists of some rows."""
        return np.searchsorted(self.lists.starts, places, side="right") - 1

    def __len__(self) -> int:
        return len(self.rows)

    def least_probes(self, k: int) -> int:
        """The number of lists that is sure to contain k rows."""
        return int(np.searchsorted(np.cumsum(np.sort(self.lists.sizes)), k)) + 1

    def _probed_lists(self, queries: Array, probes: Probes, rows: int) -> tuple[Array, Array]:
        """The lists that each query probes, nearest first, and which of these have too few rows.

        The first has shape (m, probes.most); `len(self.lists)` stands for none.
        """
        graph = self._centers.graph(probes.most, queries, margin=probes.margin)
        is_near = graph.distances <= graph.distances[:, :1] + probes.margin
        near = np.where(is_near, graph.indices, len(self.lists))
        is_short = self._sizes[near].sum(axis=1) < rows
        if is_short.any():
            near[is_short] = self._centers.graph(probes.most, queries[is_short]).indices
        return near, is_short & (self._sizes[near].sum(axis=1) < rows)

    def distances_of_centers(self, places: Array) -> Floats:
        """The distances of some rows to all centers, sorted, shape (m, n_lists)."""
        self.touch(self.lists_of(places))
        return self._centers.graph(len(self.lists), self.rows[places]).distances

    def _room(self, m: int, k: int, kind: type[np.floating] = np.float64) -> NeighborGraph:
        """Room for the k neighbors of m queries."""
        indices, distances = np.empty((m, k), np.int32), np.empty((m, k), kind)
        return NeighborGraph.unchecked(indices, distances, len(self))

    def search(
        self,
        queries: Array,
        probes: Probes,
        found: NeighborGraph,
        itself: int = -1,
        reach: Reach | None = None,
    ) -> Iterator[None]:
        """Write the neighbors of some queries among their nearest lists, in many steps.

        Query i is the row `itself` + i and excluded from its own neighbors, unless `itself` is -1.
        A query whose lists contain too few rows is compared with all. `reach` collects the pairs
        within its limits.
        """
        near, is_short = self._probed_lists(queries, probes, found.k + (itself >= 0))
        if not is_short.any():
            yield from self._compare(queries, near, found, itself, reach)
            return
        assert itself < 0, "probes must be at least `least_probes`"
        for chosen, lists in ((np.flatnonzero(~is_short), near), (np.flatnonzero(is_short), None)):
            if not len(chosen):
                continue
            part = self._room(len(chosen), found.k)
            its_reach = None if reach is None else reach.of(chosen)
            its_lists = None if lists is None else lists[chosen]
            yield from self._compare(queries[chosen], its_lists, part, -1, its_reach)
            found.indices[chosen], found.distances[chosen] = part.indices, part.distances

    def _compare(
        self,
        queries: Array,
        near: Array | None,
        found: NeighborGraph,
        itself: int,
        reach: Reach | None,
    ) -> Iterator[None]:
        """Write the neighbors of some queries among the rows of given lists, all if None.

        A list with the number `len(self.lists)` is none.
        """
        given_up = np.ones(len(queries), bool)
        for number, compiled in enumerate(self._compiled):
            how: dict[str, Any] = {"itself": itself, "reach": reach}
            if number == 0:
                places = found.indices, found.distances
                yield from compiled.search(queries, near, *places, given_up, **how)
                continue
            for query in np.flatnonzero(given_up).tolist():  # there are few
                single = slice(query, query + 1)
                if itself >= 0:
                    how["itself"] = itself + query
                if reach is not None:
                    how["reach"] = reach.of(np.array([query]))
                places = found.indices[single], found.distances[single]
                lists = None if near is None else near[single]
                yield from compiled.search(queries[single], lists, *places, given_up[single], **how)
        left = np.flatnonzero(given_up)
        every = np.arange(len(self.lists))[None]
        counts = np.full(len(left), len(self))
        if near is not None:
            counts = self._sizes[near[left].astype(np.intp)].sum(axis=1)
        for run in runs(counts, ELEMENTS_AT_ONCE // queries.shape[1]):
            lists = every.repeat(len(left[run]), axis=0) if near is None else near[left[run]]
            self._by_numpy(queries, left[run], lists.astype(np.intp), found, itself, reach)
            yield

    def nearest(
        self,
        queries: Array,
        k: int,
        probes: Probes,
        n_jobs: int,
        progress: Progress | None = None,
        reach: Reach | None = None,
    ) -> NeighborGraph:
        """The neighbors of any queries, by place; queries with the same nearest list together."""
        m = len(queries)
        step = min(_queries_at_once(probes), -(-m // n_jobs))
        order = np.arange(m)
        if step < m:
            nearest = self._centers.graph(1, queries, n_jobs=n_jobs).indices[:, 0]
            order = np.argsort(nearest, kind="stable")
        graph = self._room(m, k)

        def search(block: slice) -> Iterator[None]:
            chosen = order[block]
            part = self._room(len(chosen), k)
            its_reach = None if reach is None else reach.of(chosen)
            yield from self.search(queries[chosen], probes, part, reach=its_reach)
            graph.indices[chosen], graph.distances[chosen] = part.indices, part.distances

        run_blocks(search, m, step, n_jobs, progress)
        return graph

    def answer(
        self,
        queries: Array,
        k: int,
        plan: QueryPlan,
        n_jobs: int,
        progress: Progress | None,
        reach: Reach | None = None,
    ) -> NeighborGraph:
        """The graph of any queries: neighbors by number, distances in float32 if they fit."""
        # For few queries BLAS uses one thread anyway.
        with nullcontext() if len(queries) <= 256 else one_blas_thread:
            graph = self.nearest(queries, k, plan.probes, n_jobs, progress, reach)
        fits = graph.distances.max() <= np.finfo(np.float32).max  # queries may be far away
        numbers = np.empty(graph.indices.shape, self.lists.order.dtype)
        distances = np.empty(graph.indices.shape, np.float32 if fits else np.float64)

        def sort(block: slice) -> None:
            numbers[block], distances[block] = self._by_number(graph.take(block), distances.dtype)

        run_blocks(sort, len(queries), 1024, n_jobs, None)
        return NeighborGraph.unchecked(numbers, distances, len(self), plan.recall)

    def _by_number(self, found: NeighborGraph, kind: npt.DTypeLike) -> tuple[Array, Array]:
        """Neighbors by number instead of place, and their distances in another type."""
        near, far = self.lists.order[found.indices], found.distances.astype(kind)
        sort_equally_far(near, far)
        return near, far

    def answer_and_reached(
        self,
        queries: Array,
        k: int,
        plan: QueryPlan,
        limits: Array,
        n_jobs: int,
        progress: Progress | None,
    ) -> tuple[NeighborGraph, Reached]:
        """The graph of any queries, and the rows of their lists with a query within their limit."""
        reach = self._reach(limits)
        graph = self.answer(queries, k, plan, n_jobs, progress, reach)
        query, place, distance = reach.pairs()
        return graph, Reached(self.lists.order[place], query, distance)

    def _reach(self, limits: Array) -> Reach:
        """Collects the pairs within limits, by place, list by list."""
        order = self.lists.order
        if not self._compiled:
            return Reach(limits[order], np.float32)
        compiled = self._compiled[0]
        by_place, scaled = np.empty(len(self), limits.dtype), np.empty(len(self), np.float32)
        known: set[int] = set()

        def prepare(places: slice) -> None:
            if places.start < places.stop and places.start not in known:
                by_place[places] = limits[order[places]]
                scaled[places] = compiled.scaled_limits(by_place[places])
                known.add(places.start)

        return Reach(by_place, np.float32, scaled, prepare)

    def left_out(self, places: Array, k: int, probes: Probes, n_jobs: int) -> NeighborGraph:
        """The neighbors of some rows, by place, each excluded from its own."""
        self.touch(self.lists_of(places))
        return self.nearest(self.rows[places], k + 1, probes, n_jobs).without(places)

    def among(
        self,
        k: int,
        probes: Probes,
        n_jobs: int,
        progress: Progress | None = None,
        lists: slice | None = None,
    ) -> NeighborGraph:
        """The neighbors of the rows of some lists, by number; distances in float32.

        In the order of their lists; without `lists`, of all rows in their own order.
        """
        starts, chosen = self.lists.starts, range(len(self.lists))[lists or slice(None)]
        first = int(starts[chosen.start])
        self.touch(np.asarray(chosen))
        graph = self._room(int(starts[chosen.stop]) - first, k, np.float32)

        def search(part: slice) -> Iterator[None]:
            ends = starts[[chosen.start + part.start, chosen.start + part.stop]]
            places = slice(*ends.tolist())
            near = self._room(places.stop - places.start, k)
            yield from self.search(self.rows[places], probes, near, places.start)
            rows = self.lists.order[places]
            if lists is not None:
                rows = np.arange(places.start, places.stop) - first
            graph.indices[rows], graph.distances[rows] = self._by_number(near, np.float32)

        sizes = self.lists.sizes[chosen.start : chosen.stop]
        run_slices(search, list(runs(sizes, _queries_at_once(probes))), n_jobs, progress)
        return graph

    def _by_numpy(
        self,
        queries: Array,
        chosen: Array,
        near: Array,
        found: NeighborGraph,
        itself: int,
        reach: Reach | None,
    ) -> None:
        """Write the neighbors of the chosen queries, measured against all rows of their lists."""
        self.touch(near[near < len(self.lists)])
        counts = self._sizes[near]
        first = np.repeat(self.lists.starts[near].ravel(), counts.ravel())
        ends = np.cumsum(counts)
        place = first + np.arange(len(first)) - np.repeat(ends - counts.ravel(), counts.ravel())
        query = np.repeat(chosen, counts.sum(axis=1))
        if itself >= 0:
            other = place != itself + query
            query, place = query[other], place[other]
        distances = self.space.distances(queries, query, place)
        order = np.lexsort((self.lists.order[place], distances, query))
        taken = order[np.searchsorted(query, chosen)[:, None] + np.arange(found.k)]
        if not np.isfinite(distances[taken]).all():
            raise ValueError("a distance to a neighbor is too large for float64; rescale X")
        found.indices[chosen], found.distances[chosen] = place[taken], distances[taken]
        if reach is not None:
            reach.keep(query, place, distances)


def _queries_at_once(probes: Probes) -> int:
    """How many queries are searched together; fewer if each has many lists."""
    # Their probes take about 80 MiB.
    return max(1, min(_QUERIES_AT_ONCE, 2**21 // probes.most))
