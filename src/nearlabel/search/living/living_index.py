"""Rows that are added and removed: an index of most of them, and small ones of later rows.

Each index is a segment of the places, in their order. Removed rows stay in their segment and are
dropped from its results: a few more rows are requested. The neighbors of all segments are merged by
(distance, place), which is what a search of all rows at once finds.

A small segment is built quickly. So adding a row rebuilds the last segment, and a segment that is
not much larger than those after it is merged with them: the cost is amortized over the rows added
meanwhile. In the end all are merged into the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress
from nearlabel.graph import NeighborGraph, Recall, index_type
from nearlabel.search.approximate.inverted_lists import InvertedLists
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.approximate.recall import recall_of, sample_rows
from nearlabel.search.budgets import BLOCK_BYTES
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.index import ExactSearch, exact_index
from nearlabel.search.interfaces import Index
from nearlabel.search.living.arrivals import Arrivals, Reached
from nearlabel.search.living.segments import (
    Segment,
    foreign,
    is_exact,
    is_listed,
    lists_of,
    makes_plans,
    merged,
    with_lists,
)
from nearlabel.search.precomputed import PrecomputedIndex
from nearlabel.search.vector_store import VectorStore

_RECENT = 1024  # rows of a segment that is rebuilt for each added row
_MUCH_LARGER = 2  # times the later rows: such a segment is not merged
_FEWEST_JOINED = 4096  # rows after the first segment that are merged into it
_SHARE_JOINED = 1 / 8  # of its own rows, if that is more
_MOST_DEAD = 1 / 2  # share of removed rows above which a segment is rebuilt without them
_FEW_DEAD = 1 / 8  # share of removed rows that a new segment may include
_EXACT_TAIL = 16_384  # rows compared exactly if the first segment has lists
_ALL_LISTS = 2**31 - 1  # more than there can be
_ROWS_AT_ONCE = 65536  # whose neighbors are searched at once


@dataclass(frozen=True, eq=False)
class LivingIndex:
    """Rows ready to be searched, without the removed ones; immutable.

    Attributes
    ----------
    store : VectorStore
        The rows, by place.
    metric : str or callable
    segments : tuple of Segment
        Ordered by place.
    alive : ndarray of bool, shape (n_places,), or None
        Which rows were not removed; None if none was.
    block_bytes : int
        For exact searches; see `ExactSearch`.
    least_recall : float
        For searches by lists; see `InvertedLists`.
    recall : Recall or None
        As last measured.
    planned_for : int or None
        The number of neighbors for which lists are probed when rows are searched among themselves;
        further ones are found as far as the same probes reach. By default all that are requested.
    """

    store: VectorStore
    metric: Metric
    segments: tuple[Segment, ...]
    alive: Array | None
    block_bytes: int = BLOCK_BYTES
    least_recall: float = InvertedLists.recall
    recall: Recall | None = None
    planned_for: int | None = None

    @classmethod
    def of(
        cls,
        index: Index,
        store: VectorStore,
        metric: Metric,
        search: Any,
        planned_for: int | None = None,
    ) -> LivingIndex:
        """The rows of a store, and one index of all of them."""
        size = search.block_bytes if isinstance(search, ExactSearch) else BLOCK_BYTES
        recall = search.recall if isinstance(search, InvertedLists) else InvertedLists.recall
        first = Segment(index, store.vectors, metric, 0, len(store))
        living = cls(store, metric, (first,), store.alive, size, recall, None, planned_for)
        return living if store.alive is None or foreign(index) is None else living._joined()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self).copy()  # a concurrent search may store what it has counted

    @property
    def n_places(self) -> int:
        """The number of rows, including removed ones."""
        return len(self.store)

    def _alive_places(self) -> Array:
        return np.arange(self.n_places) if self.alive is None else np.flatnonzero(self.alive)

    @cached_property
    def _dead(self) -> list[int]:
        """How many rows of each segment were removed."""
        if self.alive is None:
            return [0] * len(self.segments)
        alive = self.alive
        return [len(one) - int(np.count_nonzero(one.part_of(alive))) for one in self.segments]

    def added(self, store: VectorStore, *, n_jobs: int = 1) -> LivingIndex:
        """The index of a store with some more rows."""
        before, n = self.n_places, len(store)
        alive = self.alive
        if alive is not None:
            alive = np.concatenate([alive, np.ones(n - before, bool)])
        longer = replace(self, store=store, alive=alive)
        first, *later = self.segments
        if foreign(first.index) is not None:
            return longer._joined()
        most = max(_FEWEST_JOINED, _SHARE_JOINED * len(first))
        if is_exact(first.index) and n - first.stop > most:
            return longer._joined()
        start = before
        while later and not is_listed(later[-1].index):
            last = later[-1]
            if n - last.start > _RECENT and len(last) > _MUCH_LARGER * (n - last.stop):
                break
            start = later.pop().start
        lists = lists_of(first.index) if n - start > _EXACT_TAIL else None
        while lists is not None and later and len(later[-1]) <= _MUCH_LARGER * (n - later[-1].stop):
            start = later.pop().start
        tail = None if lists is None else partial(lists.tail, n_jobs=n_jobs)
        made = longer._segment(start, n, tail)
        return replace(longer, segments=(first, *later, *made))

    def removed(self, places: Array) -> LivingIndex:
        """The index without the rows at some places."""
        alive = np.ones(self.n_places, bool) if self.alive is None else self.alive.copy()
        alive[places] = False
        shorter = replace(self, alive=alive)
        first, *later = self.segments
        if foreign(first.index) is not None:
            return shorter._joined()
        dead = shorter._dead
        if is_exact(first.index) and dead[0] > _MOST_DEAD * len(first):
            return shorter._joined()
        kept = [one for one, gone in zip(later, dead[1:], strict=True) if gone < len(one)]
        return replace(shorter, segments=(first, *kept))

    def _joined(self) -> LivingIndex:
        """The same rows in one segment; unchanged if no row is left."""
        other = foreign(self.segments[0].index)
        made = self._segment(0, self.n_places, None if other is None else other.over)
        return replace(self, segments=tuple(made)) if made else self

    def _segment(
        self, start: int, stop: int, build: Callable[[Any], Index] | None = None
    ) -> list[Segment]:
        """A segment of the remaining rows at some places; none if there are none.

        Without `build` the search is exact.
        """
        n, places, vectors = stop - start, None, None
        left = n if self.alive is None else int(np.count_nonzero(self.alive[start:stop]))
        if not left:
            return []
        most = 0 if build is not None else _FEW_DEAD * n
        if self.alive is not None and n - left > most:
            places = start + np.flatnonzero(self.alive[start:stop])
            vectors = self.store.take(places)
        else:
            all_rows = start == 0 and stop == self.n_places
            vectors = self.store.vectors if all_rows else self.store.take(slice(start, stop))
        if build is None:
            index: Index = exact_index(vectors, self.metric, self.block_bytes)
        else:
            index = build(vectors)
        return [Segment(index, vectors, self.metric, start, stop, places)]

    def graph(
        self,
        k: int,
        queries: Any = None,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """The k nearest rows of each query, or of each row among the others.

        For queries, lists are probed as for `planned_for` neighbors.
        """
        if queries is not None:
            return self._search(queries, k, planned_for or k, None, n_jobs, progress)[0]
        if len(self.segments) == 1 and not self._dead[0] and self.segments[0].places is None:
            return self.segments[0].index.graph(k, **_how(n_jobs, progress))
        return self.left_out(self._alive_places(), k, n_jobs=n_jobs, progress=progress)

    def left_out(
        self, places: Array, k: int, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """The k nearest rows of some rows, each excluded from its own neighbors."""
        n, kind = len(places), index_type(self.n_places)
        index = self.segments[0].index
        if isinstance(index, PrecomputedIndex) and self.alive is None:
            return index.graph(k, n_jobs=n_jobs).take(
                places
            )  # may lack distances of rows to themselves
        found = NeighborGraph.unchecked(
            np.empty((n, k), kind), np.zeros((n, k), np.float32 if n else np.float64), self.n_places
        )
        for start in range(0, n, _ROWS_AT_ONCE):
            some = places[start : start + _ROWS_AT_ONCE]
            rows = self.store.take(some)
            part, _ = self._search(rows, k + 1, self._planned(k), None, n_jobs, None)
            part = part.without(some)
            told = np.result_type(part.distances, found.distances)
            found.distances = found.distances.astype(told, copy=False)
            found.recall = part.recall
            at = slice(start, start + len(some))
            found.indices[at], found.distances[at] = part.indices, part.distances
            if progress is not None:
                progress(start + len(some), n)
        return found

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
        if foreign(self.segments[0].index) is not None:
            return self._foreign_arrivals(new, k, limits, n_jobs)
        limits = np.concatenate([limits, np.full(len(new), -np.inf)])
        queries = self.store.take(slice(first, self.n_places))
        how = self._planned(k), limits, n_jobs, progress
        graph, reached = self._search(queries, k + 1, *how)
        return Arrivals(graph.without(new), reached._replace(new=reached.new + first))

    def _foreign_arrivals(self, new: Array, k: int, limits: Array, n_jobs: int) -> Arrivals:
        """The same if only the search knows distances: all other rows are searched again."""
        old = np.flatnonzero(limits > 0)
        graph = self.left_out(old, k, n_jobs=n_jobs)
        row, column = np.nonzero(
            (graph.indices >= len(limits)) & (graph.distances < limits[old, None])
        )
        reached = Reached(old[row], graph.indices[row, column], graph.distances[row, column])
        return Arrivals(self.left_out(new, k, n_jobs=n_jobs), reached)

    def measured(self, k: int, *, n_jobs: int = 1) -> LivingIndex:
        """The index with the current recall of k neighbors measured, and more probes if needed.

        Unchanged if nothing is searched by lists.
        """
        lists = lists_of(self.segments[0].index)
        probes = None if lists is None else lists.probes(k, n_jobs=n_jobs)
        if lists is None or probes is None:
            return self
        some = self._alive_places()
        some = some[sample_rows(len(some), seed=self.n_places)]
        planned = replace(self, planned_for=None)  # for k, regardless of `planned_for`
        everything = planned._probing(k, Probes.fixed(_ALL_LISTS), None)
        every: Any = lists_of(everything.segments[0].index)
        count = every.probes(k).most
        exact = everything.left_out(some, k, n_jobs=n_jobs)
        while True:
            found = planned._probing(k, probes, None).left_out(some, k, n_jobs=n_jobs)
            recall = recall_of(found.distances, exact, "base")
            if recall.value >= self.least_recall or probes.most == count:
                return replace(self._probing(k, probes, recall), recall=recall)
            probes = probes.more(count)

    def _probing(self, k: int, probes: Probes, recall: Recall | None) -> LivingIndex:
        """The index that probes these lists for k neighbors."""
        first, *later = self.segments
        lists: Any = lists_of(first.index)
        lists = lists.with_probes(k, probes, recall)
        first = replace(first, index=with_lists(first.index, lists))
        for place, one in enumerate(later):
            tail: Any = one.index
            if is_listed(tail):
                later[place] = replace(one, index=tail.behind(lists))
        return replace(self, segments=(first, *later))

    def _planned(self, k: int) -> int:
        return k if self.planned_for is None else min(k, self.planned_for)

    def _search(
        self,
        queries: Any,
        k: int,
        planned_for: int,
        limits: Array | None,
        n_jobs: int,
        progress: Progress | None,
    ) -> tuple[NeighborGraph, Reached]:
        """The neighbors of queries and, given limits of the rows, the rows that are reached."""
        graphs, reached = [], []
        for segment, dead in zip(self.segments, self._dead, strict=True):
            wanted = min(k, len(segment) - dead)
            if not wanted:
                continue
            how = _how(n_jobs, progress)
            progress = None  # the first segment is most of the work
            if makes_plans(segment.index):
                how["planned_for"] = planned_for
            graph, pairs = segment.search(queries, wanted, limits, self.alive, dead, **how)
            graphs.append(graph)
            if pairs is not None:
                reached.append(pairs)
        found, pairs = merged(graphs, k, self.n_places, n_jobs=n_jobs), Reached.joined(reached)
        kind = found.distances.dtype
        if limits is not None and pairs.distance.dtype != kind:
            pairs = pairs._replace(distance=pairs.distance.astype(kind))
            kept = pairs.distance < limits[pairs.row]
            pairs = Reached(*(part[kept] for part in pairs))
        return found, pairs


def _how(n_jobs: int, progress: Progress | None) -> dict[str, Any]:
    """Search options: an external search need not support progress that nobody requests."""
    return {"n_jobs": n_jobs} if progress is None else {"n_jobs": n_jobs, "progress": progress}
