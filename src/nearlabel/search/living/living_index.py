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
from functools import cached_property

import numpy as np

from nearlabel.common.arrays import Array, Matrix, Tree
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph, Recall, index_type, recall_of, sample_rows
from nearlabel.search.approximate.inverted_lists import InvertedLists
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.budgets import BLOCK_BYTES
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.index import ExactSearch, exact_index
from nearlabel.search.interfaces import Arrivals, Index, Reached
from nearlabel.search.restricted import first_visible, neighbors_with_margin
from nearlabel.search.vector_store import VectorStore

# benchmarks/living_models.py measures them.
_RECENT = 1024  # rows of a segment that is rebuilt for each added row
_MUCH_LARGER = 2  # times the later rows: such a segment is not merged
_FEWEST_JOINED = 4096  # rows after the first segment that are merged into it
_EXACT_TAIL = 16_384  # rows compared exactly if the first segment has lists
_ROWS_AT_ONCE = 65536  # whose neighbors are searched at once


@dataclass(frozen=True, eq=False)
class Segment:
    """An index of the rows at some places, from `start` to before `stop`.

    Attributes
    ----------
    index : Index
    vectors : ndarray or csr_array
        The rows.
    start, stop : int
    places : ndarray of int or None
        Their places, ascending; None if no place is left out.
    """

    index: Index
    vectors: Matrix
    start: int
    stop: int
    places: Array | None = None

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    def part_of(self, values: Array) -> Array:
        """The entries of an array over all places that belong to these rows."""
        return values[self.start : self.stop] if self.places is None else values[self.places]

    def search(
        self,
        queries: Matrix,
        k: int,
        limits: Array | None,
        alive: Array | None,
        dead: int,
        *,
        planned_for: int,
        n_jobs: int,
        progress: Progress | None,
    ) -> tuple[NeighborGraph, Reached | None]:
        """The k nearest remaining rows, by place, and the places that are reached.

        `dead` of the rows are not `alive`. `limits` has one entry per place, like `alive`.
        """
        asked = k if not dead else max(k + 1, neighbors_with_margin(k, len(self), dead))
        reached = None
        if limits is None:
            graph = self.index.graph(
                asked, queries, planned_for=planned_for, n_jobs=n_jobs, progress=progress
            )
        else:
            graph, pairs = self.index.nearest_and_reached(
                queries,
                asked,
                self.part_of(limits),
                planned_for=planned_for,
                n_jobs=n_jobs,
                progress=progress,
            )
            reached = pairs._replace(row=self._places_of(pairs.row, np.dtype(np.int64)))
        kind = np.dtype(index_type(self.stop))
        places = self._places_of(graph.indices, kind)
        if not dead or alive is None:
            found_rows = NeighborGraph.unchecked(places, graph.distances, self.stop, graph.recall)
            return found_rows, reached
        places, distances, short = first_visible(places, graph.distances, alive[places], k)
        while len(short):  # too many of their nearest rows were removed
            asked = min(2 * asked, len(self))
            further = self.index.graph(
                asked, queries[short], planned_for=planned_for, n_jobs=n_jobs
            )
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
        is_wrong = (distances[:, 1:] == distances[:, :-1]) & (indices[:, 1:] < indices[:, :-1])
        wrong = np.flatnonzero(is_wrong.any(axis=1))
        order = np.lexsort((indices[wrong], distances[wrong]), axis=1)
        indices[wrong] = np.take_along_axis(indices[wrong], order, axis=1)
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
        search: object,
        planned_for: int | None = None,
    ) -> LivingIndex:
        """The rows of a store, and one index of all of them; unchanged if it is one of these."""
        if isinstance(index, LivingIndex):
            return index
        size = search.block_bytes if isinstance(search, ExactSearch) else BLOCK_BYTES
        recall = search.recall if isinstance(search, InvertedLists) else InvertedLists.recall
        first = Segment(index, store.vectors, 0, len(store))
        living = cls(store, metric, (first,), store.alive, size, recall, None, planned_for)
        return living.joined() if store.alive is not None and index.has_own_distances else living

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
        return np.arange(self.n_places) if self.alive is None else np.flatnonzero(self.alive)

    @cached_property
    def dead_counts(self) -> list[int]:
        """How many rows of each segment were removed."""
        if self.alive is None:
            return [0] * len(self.segments)
        counts = [np.count_nonzero(segment.part_of(self.alive)) for segment in self.segments]
        return [len(segment) - int(n) for segment, n in zip(self.segments, counts, strict=True)]

    def added(self, store: VectorStore) -> LivingIndex:
        """The index of a store with some more rows."""
        before, n = self.n_places, len(store)
        alive = self.alive
        if alive is not None:
            alive = np.concatenate([alive, np.ones(n - before, bool)])
        longer = replace(self, store=store, alive=alive)
        first, *later = self.segments
        if first.index.has_own_distances:
            return longer.joined()
        most = max(_FEWEST_JOINED, 1 / 8 * len(first))
        if first.index.is_exact and n - first.stop > most:
            return longer.joined()
        start = before
        while later and later[-1].index.is_exact:
            last = later[-1]
            if n - last.start > _RECENT and len(last) > _MUCH_LARGER * (n - last.stop):
                break
            start = later.pop().start
        lists = first.index.lists if n - start > _EXACT_TAIL else None
        while lists is not None and later and len(later[-1]) <= _MUCH_LARGER * (n - later[-1].stop):
            start = later.pop().start
        segments = longer.new_segment(start, n, None if lists is None else lists.tail)
        return replace(longer, segments=(first, *later, *segments))

    def removed(self, places: Array) -> LivingIndex:
        """The index without the rows at some places."""
        alive = np.ones(self.n_places, bool) if self.alive is None else self.alive.copy()
        alive[places] = False
        shorter = replace(self, alive=alive)
        first, *later = self.segments
        if first.index.has_own_distances:
            return shorter.joined()
        dead = shorter.dead_counts
        # With so many removed, a search among the others alone is faster.
        if first.index.is_exact and dead[0] > 1 / 2 * len(first):
            return shorter.joined()
        later = [segment for segment, n in zip(later, dead[1:], strict=True) if n < len(segment)]
        return replace(shorter, segments=(first, *later))

    def joined(self) -> LivingIndex:
        """The same rows in one segment; unchanged if no row is left."""
        index = self.segments[0].index
        whole = self.new_segment(0, self.n_places, index.over if index.has_own_distances else None)
        return replace(self, segments=tuple(whole)) if whole else self

    def new_segment(
        self, start: int, stop: int, build: Callable[[Matrix], Index] | None = None
    ) -> list[Segment]:
        """A segment of the remaining rows at some places; none if there are none.

        Without `build` the search is exact.
        """
        n, places = stop - start, None
        left = n if self.alive is None else int(np.count_nonzero(self.alive[start:stop]))
        if not left:
            return []
        # A few removed rows may stay, which saves a copy.
        most = 0 if build is not None else 1 / 8 * n
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
        return [Segment(index, vectors, start, stop, places)]

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
            return self._search(queries, k, planned_for or k, None, n_jobs, progress)[0]
        if len(self.segments) == 1 and not self.dead_counts[0] and self.segments[0].places is None:
            return self.segments[0].index.graph(k, n_jobs=n_jobs, progress=progress)
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
            part, _ = self._search(queries, k + 1, self._planned(k), None, n_jobs, None)
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
        if self.segments[0].index.has_own_distances:
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
        probes = self.segments[0].index.probes(k, n_jobs=n_jobs)
        if probes is None:
            return self
        rows = self._alive_places()
        rows = rows[sample_rows(len(rows), seed=self.n_places)]
        planned = replace(self, planned_for=None)  # for k, regardless of `planned_for`
        # All lists: more than there can be.
        everything = planned.with_probes(k, Probes.fixed(2**31 - 1), None)
        all_lists = everything.segments[0].index.probes(k)
        assert all_lists is not None
        exact = everything.left_out(rows, k, n_jobs=n_jobs)
        while True:
            graph = planned.with_probes(k, probes, None).left_out(rows, k, n_jobs=n_jobs)
            recall = recall_of(graph.distances, exact, "base")
            if recall.value >= self.least_recall or probes.most == all_lists.most:
                return replace(self.with_probes(k, probes, recall), recall=recall)
            probes = probes.more(all_lists.most)

    def with_probes(self, k: int, probes: Probes, recall: Recall | None) -> LivingIndex:
        """The same index with other probes for k neighbors, and the given recall."""
        first, *later = self.segments
        first = replace(first, index=first.index.with_probes(k, probes, recall))
        later = [
            replace(segment, index=segment.index.behind(first.index.lists)) for segment in later
        ]
        return replace(self, segments=(first, *later))

    def stored(self) -> tuple[Tree, Array] | None:
        """What a file stores; removed rows are left out, and the others renumbered."""
        first = self.segments[0].index
        if len(self.segments) == 1 and self.alive is None:
            return first.stored()
        if first.homes is None:
            return None
        homes = np.full(self.n_places, -1)
        for segment in self.segments:
            of_rows = segment.index.homes
            if of_rows is not None:
                every = slice(segment.start, segment.stop)
                homes[every if segment.places is None else segment.places] = of_rows
        places = self._alive_places()
        return first.stored_with(self.store.take(places), homes[places])

    def _planned(self, k: int) -> int:
        return k if self.planned_for is None else min(k, self.planned_for)

    def _search(
        self,
        queries: Matrix,
        k: int,
        planned_for: int,
        limits: Array | None,
        n_jobs: int,
        progress: Progress | None,
    ) -> tuple[NeighborGraph, Reached]:
        """The neighbors of queries and, given limits of the rows, the rows that are reached."""
        graphs, reached = [], []
        for segment, dead in zip(self.segments, self.dead_counts, strict=True):
            wanted = min(k, len(segment) - dead)
            if not wanted:
                continue
            graph, pairs = segment.search(
                queries,
                wanted,
                limits,
                self.alive,
                dead,
                planned_for=planned_for,
                n_jobs=n_jobs,
                progress=progress,
            )
            progress = None  # the first segment is most of the work
            graphs.append(graph)
            if pairs is not None:
                reached.append(pairs)
        graph_of_all, pairs = (
            merged(graphs, k, self.n_places, n_jobs=n_jobs),
            Reached.joined(reached),
        )
        kind = graph_of_all.distances.dtype
        if limits is not None and pairs.distance.dtype != kind:
            pairs = pairs._replace(distance=pairs.distance.astype(kind))
            is_within = pairs.distance < limits[pairs.row]
            pairs = Reached(*(part[is_within] for part in pairs))
        return graph_of_all, pairs
