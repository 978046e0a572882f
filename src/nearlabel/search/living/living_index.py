"""Rows that are added and removed: an index of most of them, and small ones of later rows.

Each index is a segment of the places, in their order. Removed rows stay in their segment and are
dropped from its results: a few more rows are requested. The neighbors of all segments are merged by
(distance, place), which is what a search of all rows at once finds.

A small segment is built quickly. So adding a row rebuilds the last segment, and a segment that is
not much larger than those after it is merged with them: the cost is amortized over the rows added
meanwhile. In the end all are merged into the first, whose index says when (`Index.renewal`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import numpy as np

from nearlabel.common.arrays import Array, Matrix, Tree
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.graph import (
    NeighborGraph,
    Recall,
    index_type,
    sort_equally_far,
)
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.index import exact_index
from nearlabel.search.interfaces import Arrivals, Index, Reached, SearchOptions
from nearlabel.search.restricted import first_visible, neighbors_with_margin
from nearlabel.search.vector_store import VectorStore

# benchmarks/living_models.py measures them.
_RECENT = 1024  # rows of a segment that is rebuilt for each added row
_MUCH_LARGER = 2  # times the later rows: such a segment is not merged
_DEAD = 1 / 8  # of the rows of an exact segment may be removed ones, which saves a copy
_ROWS_AT_ONCE = 65536  # whose neighbors are searched at once


@dataclass(frozen=True, eq=False)
class Segment:
    """An index of the rows at some places.

    Attributes
    ----------
    index : Index
    start, stop : int
        The places are from `start` to before `stop`,
    places : ndarray of int or None
        and only these of them, ascending; None if all are.
    """

    index: Index
    start: int
    stop: int
    places: Array | None = None

    def __len__(self) -> int:
        return int(self.index.vectors.shape[0])

    @property
    def at(self) -> Array | slice:
        """The places of the rows, to index an array over all places."""
        return slice(self.start, self.stop) if self.places is None else self.places

    def search(
        self,
        queries: Matrix,
        k: int,
        limits: Array | None,
        alive: Array | None,
        dead: int,
        **how: Unpack[SearchOptions],
    ) -> tuple[NeighborGraph, Reached | None]:
        """The k nearest remaining rows, by place, and the places that are reached.

        `dead` of the rows are not `alive`. `limits` has one entry per place, like `alive`.
        """
        asked = k if not dead else max(k + 1, neighbors_with_margin(k, len(self), dead))
        reached = None
        if limits is None:
            graph = self.index.graph(asked, queries, **how)
        else:
            graph, pairs = self.index.nearest_and_reached(queries, asked, limits[self.at], **how)
            reached = pairs._replace(row=self._places_of(pairs.row, np.dtype(np.int64)))
        how["progress"] = None
        kind = np.dtype(index_type(self.stop))
        places, distances = self._places_of(graph.indices, kind), graph.distances
        if dead and alive is not None:
            places, distances, short = first_visible(places, distances, alive[places], k)
            while len(short):  # too many of their nearest rows were removed
                asked = min(2 * asked, len(self))
                further = self.index.graph(asked, queries[short], **how)
                again = self._places_of(further.indices, kind)
                places[short], distances[short], still = first_visible(
                    again, further.distances, alive[again], k
                )
                short = short[still]
        return NeighborGraph.unchecked(places, distances, self.stop, graph.recall), reached

    def _places_of(self, rows: Array, kind: np.dtype[np.integer]) -> Array:
        if self.places is not None:
            return self.places[rows].astype(kind, copy=False)
        rows = rows.astype(kind, copy=False)
        return rows + kind.type(self.start) if self.start else rows


def merged(graphs: list[NeighborGraph], k: int, n_base: int, *, n_jobs: int = 1) -> NeighborGraph:
    """The k nearest of the results of several segments, by (distance, place)."""
    first, kind = graphs[0], index_type(n_base)
    if len(graphs) == 1:
        places = first.indices.astype(kind, copy=False)
        return NeighborGraph.unchecked(places, first.distances, n_base, first.recall)
    form = np.result_type(*(graph.distances for graph in graphs))
    if any(graph.distances.dtype == np.float32 for graph in graphs):
        most = np.finfo(np.float32).max
        fits = all(graph.distances.max(initial=0) <= most for graph in graphs)
        form = np.dtype(np.float32) if fits else form
    shape = len(first), min(k, sum(graph.k for graph in graphs))
    whole = NeighborGraph.unchecked(np.empty(shape, kind), np.empty(shape, form), n_base)
    whole.recall = first.recall

    def merge(block: slice) -> None:
        indices = np.concatenate([graph.indices[block] for graph in graphs], axis=1)
        distances = np.concatenate([graph.distances[block] for graph in graphs], axis=1)
        distances = distances.astype(form, copy=False)
        # Each is sorted, and later segments have higher places, so ties are usually in order,
        # unless rounding has created them.
        order = np.argsort(distances, axis=1, kind="stable")
        indices = np.take_along_axis(indices, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        sort_equally_far(indices, distances)
        whole.indices[block], whole.distances[block] = indices[:, :k], distances[:, :k]

    run_blocks(merge, len(first), 2**10, n_jobs, None)
    return whole


@dataclass(frozen=True, eq=False)
class LivingIndex(Index):
    """Rows ready to be searched, without the removed ones; immutable.

    Attributes
    ----------
    store : VectorStore
        The rows, by place.
    metric : str or callable
    segments : tuple of Segment
        Ordered by place.
    planned_for : int or None
        The number of neighbors for which lists are probed when rows are searched among themselves;
        further ones are found as far as the same probes reach. By default all that are requested.
    """

    store: VectorStore
    metric: Metric
    segments: tuple[Segment, ...]
    planned_for: int | None = None

    @classmethod
    def of(
        cls, index: Index, store: VectorStore, metric: Metric, planned_for: int | None = None
    ) -> LivingIndex:
        """The rows of a store, and an index of all its places; unchanged if it is one of these."""
        if isinstance(index, LivingIndex):
            return index
        return cls(store, metric, (Segment(index, 0, len(store)),), planned_for).over(store)

    def __getstate__(self) -> dict[str, object]:
        return vars(self).copy()  # a concurrent search may store what it has counted

    @property
    def vectors(self) -> Matrix:  # type: ignore[override]
        """The rows of all places."""
        return self.store.vectors

    @property
    def n_places(self) -> int:
        """The number of rows, including removed ones."""
        return len(self.store)

    def _alive_places(self) -> Array:
        alive = self.store.alive
        return np.arange(self.n_places) if alive is None else np.flatnonzero(alive)

    @cached_property
    def dead_counts(self) -> list[int]:
        """How many rows of each segment were removed."""
        alive = self.store.alive
        if alive is None:
            return [0] * len(self.segments)
        return [len(part) - int(np.count_nonzero(alive[part.at])) for part in self.segments]

    def over(self, store: VectorStore) -> LivingIndex:
        """The index of a store with some rows more or less."""
        start, n = self.n_places, len(store)
        changed = replace(self, store=store)
        first, dead = self.segments[0], changed.dead_counts
        renew = first.index.renewal(n - first.stop, dead[0])
        if renew is not None:
            return changed._renewed(renew)
        pairs = zip(self.segments[1:], dead[1:], strict=True)
        later = [part for part, gone in pairs if gone < len(part)]
        if start < n:
            while later:
                last = later[-1]
                if n - last.start > _RECENT and len(last) > _MUCH_LARGER * (n - last.stop):
                    break
                start = later.pop().start
            vectors, places = changed._rows(start, _DEAD)
            later.append(Segment(exact_index(vectors, self.metric), start, n, places))
        return replace(changed, segments=(first, *later))

    def _renewed(self, renew: Callable[[Matrix, Array], Index]) -> LivingIndex:
        """The same rows in one segment."""
        first = self.segments[0]
        vectors, places = self._rows(0, _DEAD if first.index.is_exact else 0)
        numbers = np.full(self.n_places, -1)
        numbers[first.at] = np.arange(len(first))
        index = renew(vectors, numbers if places is None else numbers[places])
        return replace(self, segments=(Segment(index, 0, self.n_places, places),))

    def _rows(self, start: int, most_dead: float) -> tuple[Matrix, Array | None]:
        """The rows from a place on, and their places; None if all are there.

        Removed ones are left out if they are more than the share `most_dead`.
        """
        alive = self.store.alive
        if alive is not None:
            places = start + np.flatnonzero(alive[start:])
            if len(places) < (1 - most_dead) * (self.n_places - start):
                return self.store.take(places), places
        whole = start == 0
        return self.store.vectors if whole else self.store.take(slice(start, None)), None

    def graph(
        self,
        k: int,
        queries: Matrix | None = None,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """The k nearest rows of each query, or of each row among the others.

        For queries, lists are probed as for `planned_for` neighbors.
        """
        if queries is not None:
            how = SearchOptions(planned_for=planned_for or k, n_jobs=n_jobs, progress=progress)
            return self._search(queries, k, None, **how)[0]
        first = self.segments[0]
        if len(self.segments) == 1 and not self.dead_counts[0] and first.places is None:
            return first.index.graph(k, n_jobs=n_jobs, progress=progress)
        return self.left_out(self._alive_places(), k, n_jobs=n_jobs, progress=progress)

    def left_out(
        self, rows: Array, k: int, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """The k nearest rows of some rows, each excluded from its own neighbors."""
        n, kind = len(rows), index_type(self.n_places)
        graph = NeighborGraph.unchecked(
            np.empty((n, k), kind), np.zeros((n, k), np.float32 if n else np.float64), self.n_places
        )
        for start in range(0, n, _ROWS_AT_ONCE):
            block = rows[start : start + _ROWS_AT_ONCE]
            queries = self.store.take(block)
            how = SearchOptions(planned_for=self._planned(k), n_jobs=n_jobs)
            part, _ = self._search(queries, k + 1, None, **how)
            part = part.without(block)
            form = np.result_type(part.distances, graph.distances)
            graph.distances = graph.distances.astype(form, copy=False)
            graph.recall = part.recall
            at = slice(start, start + len(block))
            graph.indices[at], graph.distances[at] = part.indices, part.distances
            if progress is not None:
                progress(at.stop, n)
        return graph

    def arrivals(
        self,
        first: int,
        k: int,
        limits: Array,
        *,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> Arrivals:
        """The neighbors of the rows from place `first` on, and the rows they reach.

        Parameters
        ----------
        first : int
            Rows from here on are new; none of them is removed.
        k : int
            Neighbors per new row.
        limits : ndarray of float, shape (first,)
            An old row is reached by a new one that is nearer than this.
        """
        new = np.arange(first, self.n_places)
        limits = np.concatenate([limits, np.full(len(new), -np.inf)])
        queries = self.store.take(slice(first, self.n_places))
        how = SearchOptions(planned_for=self._planned(k), n_jobs=n_jobs, progress=progress)
        graph, reached = self._search(queries, k + 1, limits, **how)
        return Arrivals(graph.without(new), reached._replace(new=reached.new + first))

    def recall(self, k: int, *, n_jobs: int = 1) -> Recall | None:
        """The recall of k neighbors in the first segment; later rows are searched exactly."""
        return self.segments[0].index.recall(k, n_jobs=n_jobs)

    def stored(self) -> tuple[Tree, Array] | None:
        """What a file stores; removed rows are left out, and the others renumbered."""
        first = self.segments[0].index
        lists = first.stored()
        if lists is None or (len(self.segments) == 1 and self.store.alive is None):
            return lists
        renew = first.renewal(sys.maxsize, 0)
        return None if renew is None else self._renewed(renew).segments[0].index.stored()

    def _planned(self, k: int) -> int:
        return k if self.planned_for is None else min(k, self.planned_for)

    def _search(
        self, queries: Matrix, k: int, limits: Array | None, **how: Unpack[SearchOptions]
    ) -> tuple[NeighborGraph, Reached]:
        """The neighbors of queries and, given limits of the rows, the rows that are reached."""
        graphs, reached = [], []
        for segment, dead in zip(self.segments, self.dead_counts, strict=True):
            wanted = min(k, len(segment) - dead)
            if not wanted:
                continue
            graph, pairs = segment.search(queries, wanted, limits, self.store.alive, dead, **how)
            how["progress"] = None  # the first segment is most of the work
            graphs.append(graph)
            if pairs is not None:
                reached.append(pairs)
        graph = merged(graphs, k, self.n_places, n_jobs=how.get("n_jobs", 1))
        pairs = Reached.joined(reached)
        kind = graph.distances.dtype
        if limits is not None and pairs.distance.dtype != kind:
            pairs = pairs._replace(distance=pairs.distance.astype(kind))
            is_within = pairs.distance < limits[pairs.row]
            pairs = Reached(*(part[is_within] for part in pairs))
        return graph, pairs
