"""Rows that come and go: an index of most of them, and small ones of those that came later.

Each index is a segment of the places, in their order. What was removed stays in its segment, and is
dropped from what is found there: a few rows more are asked for. Neighbors of all segments are
merged by (distance, place), which is what a search of all rows at once finds.

A segment of few rows is built in no time. So a row that is added makes the last segment anew, and a
segment that is not much larger than what came after it is joined with that: as many rows as came
meanwhile pay for it. In the end all are joined with the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress
from nearlabel.graph import NeighborGraph, Recall, index_type
from nearlabel.search.approximate.inverted_lists import InvertedLists
from nearlabel.search.approximate.probe_counts import more_probes
from nearlabel.search.approximate.recall import recall_of, sample_rows
from nearlabel.search.budgets import BLOCK_BYTES
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.equal_rows import EqualRowsIndex
from nearlabel.search.exact.index import ExactIndex, ExactSearch, exact_index
from nearlabel.search.interfaces import Index
from nearlabel.search.living.arrivals import Arrivals, Reached
from nearlabel.search.plugged.foreign_answers import PluggedIndex
from nearlabel.search.precomputed import PrecomputedIndex
from nearlabel.search.restricted import first_visible, neighbors_with_margin
from nearlabel.search.vector_store import VectorStore

_RECENT = 1024  # rows of a segment that is made anew for each row that is added
_MUCH_LARGER = 2  # times what came later: such a segment stays as it is
_FEWEST_JOINED, _SHARE_JOINED = (
    4096,
    1 / 8,
)  # of the rows of the first segment, to be joined with it
_MOST_DEAD = 1 / 2  # share of a segment's rows from which on it is built without these
_FEW_DEAD = 1 / 8  # share of the rows that may as well be in a segment that is built
_EXACT_TAIL = 16_384  # rows that are compared one by one where the first segment has lists
_MOST_LISTED = 8  # segments of lists, before they are joined
_ALL_LISTS = 2**31 - 1  # more than there can be
_ROWS_AT_ONCE = 65536  # whose neighbors are searched together


@dataclass(frozen=True)
class Segment:
    """An index of the rows of some places, from `start` to before `stop`.

    Attributes
    ----------
    vectors : ndarray or csr_array
        The rows.
    places : ndarray of int or None
        Their places, rising; None where no place is left out.
    """

    index: Index
    vectors: Any
    metric: Metric
    start: int
    stop: int
    places: Array | None = None

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    def part_of(self, values: Array) -> Array:
        """What an array of all places has for these."""
        return values[self.start : self.stop] if self.places is None else values[self.places]

    def places_of(self, rows: Array, kind: Any) -> Array:
        """The places of some rows."""
        if self.places is not None:
            return self.places[rows].astype(kind, copy=False)
        rows = rows.astype(kind, copy=False)
        return rows + kind(self.start) if self.start else rows

    def nearest_and_reached(
        self, queries: Any, k: int, limits: Array, **how: Any
    ) -> tuple[NeighborGraph, Reached]:
        """What the index finds, or, where it has no such method, what an exact search reaches."""
        both = getattr(self.index, "nearest_and_reached", None)
        if both is not None:
            found: tuple[NeighborGraph, Reached] = both(queries, k, limits, **how)
            return found
        graph = self.index.graph(k, queries, **how)
        exactly = self._exact.nearest_and_reached
        return graph, exactly(queries, 1, limits, n_jobs=how["n_jobs"])[1]

    @cached_property
    def _exact(self) -> ExactIndex | EqualRowsIndex:
        return exact_index(self.vectors, self.metric)


@dataclass(frozen=True)
class LivingIndex:
    """Rows that are ready to be searched, those that were removed left out; never changes.

    Attributes
    ----------
    store : VectorStore
        The rows, by place.
    metric : str or callable
    segments : tuple of Segment
        In the order of their places.
    alive : ndarray of bool, shape (n_places,), or None
        Which rows were not removed; None where none was.
    block_bytes : int
        For exact searches; see `ExactSearch`.
    least_recall : float
        For searches by lists; see `InvertedLists`.
    recall : Recall or None
        As last measured.
    planned_for : int or None
        How many neighbors lists are probed for where rows are searched among themselves: those
        beyond are found as far as the same probes do. By default all that are asked for.
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
        """The rows of a store, and an index of them all."""
        size = search.block_bytes if isinstance(search, ExactSearch) else BLOCK_BYTES
        recall = search.recall if isinstance(search, InvertedLists) else InvertedLists.recall
        first = Segment(index, store.vectors, metric, 0, len(store))
        living = cls(store, metric, (first,), store.alive, size, recall, None, planned_for)
        return living if _foreign(index) is None else living._joined()

    @property
    def n_places(self) -> int:
        """Rows, those removed included."""
        return len(self.store)

    @cached_property
    def n_alive(self) -> int:
        """Rows that were not removed."""
        return self.n_places if self.alive is None else int(np.count_nonzero(self.alive))

    @cached_property
    def _dead(self) -> list[int]:
        """How many rows of each segment were removed."""
        if self.alive is None:
            return [0] * len(self.segments)
        alive = self.alive
        return [len(one) - int(np.count_nonzero(one.part_of(alive))) for one in self.segments]

    def added(self, store: VectorStore) -> LivingIndex:
        """The index of a store that has some rows more."""
        before, n = self.n_places, len(store)
        alive = self.alive
        if alive is not None:
            alive = np.concatenate([alive, np.ones(n - before, bool)])
        longer = replace(self, store=store, alive=alive)
        first, *later = self.segments
        if _foreign(first.index) is not None:
            return longer._joined()
        most = max(_FEWEST_JOINED, _SHARE_JOINED * len(first))
        if _is_exact(first.index) and n - first.stop > most:
            return longer._joined()
        start = before
        while later and not _is_listed(later[-1].index):
            last = later[-1]
            if n - last.start > _RECENT and len(last) > _MUCH_LARGER * (n - last.stop):
                break
            start = later.pop().start
        lists = _lists_of(first.index) if n - start > _EXACT_TAIL else None
        if lists is not None and len(later) >= _MOST_LISTED:
            start, later = later[0].start, []
        made = longer._segment(start, n, None if lists is None else lists.tail)
        return replace(longer, segments=(first, *later, *made))

    def removed(self, places: Array) -> LivingIndex:
        """The index without the rows of some places."""
        alive = np.ones(self.n_places, bool) if self.alive is None else self.alive.copy()
        alive[places] = False
        shorter = replace(self, alive=alive)
        first, *later = self.segments
        if _foreign(first.index) is not None:
            return shorter._joined()
        dead = shorter._dead
        if _is_exact(first.index) and dead[0] > _MOST_DEAD * len(first):
            return shorter._joined()
        kept = [one for one, gone in zip(later, dead[1:], strict=True) if gone < len(one)]
        return replace(shorter, segments=(first, *kept))

    def _joined(self) -> LivingIndex:
        """The same rows in one segment; as they are where no row is left."""
        foreign = _foreign(self.segments[0].index)
        made = self._segment(0, self.n_places, None if foreign is None else foreign.over)
        return replace(self, segments=tuple(made)) if made else self

    def _segment(
        self, start: int, stop: int, build: Callable[[Any], Index] | None = None
    ) -> list[Segment]:
        """A segment of the rows of some places that are there; none where there are none.

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
        self, k: int, queries: Any = None, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """The k nearest rows of each query, or of each row that is there among the others."""
        if queries is not None:
            return self._search(queries, k, k, None, n_jobs, progress)[0]
        if len(self.segments) == 1 and not self._dead[0] and self.segments[0].places is None:
            return self.segments[0].index.graph(k, **_how(n_jobs, progress))
        alive = np.arange(self.n_places) if self.alive is None else np.flatnonzero(self.alive)
        return self.left_out(alive, k, n_jobs=n_jobs, progress=progress)

    def left_out(
        self, places: Array, k: int, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """The k nearest rows of some rows, each left out of its own neighbors."""
        n, kind = len(places), index_type(self.n_places)
        first = self.segments[0]
        if isinstance(first.index, PrecomputedIndex):  # it may hold no distance of a row to itself
            return self._precomputed_left_out(first.index, places, k, n_jobs)
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

    def _precomputed_left_out(
        self, index: PrecomputedIndex, places: Array, k: int, n_jobs: int
    ) -> NeighborGraph:
        wanted = _with_margin(k, self.n_places - 1, self._dead[0])
        found = index.graph(wanted, n_jobs=n_jobs).take(places)
        if self.alive is None:
            return found
        indices, distances, short = first_visible(
            found.indices, found.distances, self.alive[found.indices], k
        )
        if len(short):
            again = index.graph(self.n_places - 1, n_jobs=n_jobs).take(places[short])
            indices[short], distances[short], _ = first_visible(
                again.indices, again.distances, self.alive[again.indices], k
            )
        return NeighborGraph.unchecked(indices, distances, self.n_places)

    def arrivals(
        self,
        first: int,
        k: int,
        limits: Array,
        *,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> Arrivals:
        """What the rows from place `first` on bring with them.

        Parameters
        ----------
        first : int
            Rows from here on are new; all of them are there.
        k : int
            Neighbors of each new row.
        limits : ndarray of float, shape (first,)
            An old row is reached by a new one that is nearer than this.
        """
        new = np.arange(first, self.n_places)
        if _foreign(self.segments[0].index) is not None:
            return self._foreign_arrivals(new, k, limits, n_jobs)
        limits = np.concatenate([limits, np.full(len(new), -np.inf)])
        queries = self.store.take(slice(first, self.n_places))
        how = self._planned(k), limits, n_jobs, progress
        graph, reached = self._search(queries, k + 1, *how)
        return Arrivals(graph.without(new), reached._replace(new=reached.new + first))

    def _foreign_arrivals(self, new: Array, k: int, limits: Array, n_jobs: int) -> Arrivals:
        """What new rows bring where only the search knows distances: all others are asked."""
        old = np.flatnonzero(limits > 0)
        graph = self.left_out(old, k, n_jobs=n_jobs)
        row, column = np.nonzero(
            (graph.indices >= len(limits)) & (graph.distances < limits[old, None])
        )
        reached = Reached(old[row], graph.indices[row, column], graph.distances[row, column])
        return Arrivals(self.left_out(new, k, n_jobs=n_jobs), reached)

    def measured(self, k: int, *, n_jobs: int = 1) -> LivingIndex:
        """The index with the recall of k neighbors as it is now, and with more probes if needed.

        Where nothing is searched by lists, the index as it is.
        """
        lists = _lists_of(self.segments[0].index)
        probes = None if lists is None else lists.probes(k, n_jobs=n_jobs)
        if probes is None:
            return self
        alive = np.arange(self.n_places) if self.alive is None else np.flatnonzero(self.alive)
        some = alive[sample_rows(len(alive), seed=self.n_places)]
        unplanned = replace(self, planned_for=None)
        everything = unplanned._probing(k, _ALL_LISTS, None)
        count = _lists_of(everything.segments[0].index).probes(k)
        exact = everything.left_out(some, k, n_jobs=n_jobs)
        while True:
            found = unplanned._probing(k, probes, None).left_out(some, k, n_jobs=n_jobs)
            recall = recall_of(found.distances, exact, "base")
            more = more_probes(probes, count)
            if recall.value >= self.least_recall or more == probes:
                return replace(self._probing(k, probes, recall), recall=recall)
            probes = more

    def _probing(self, k: int, probes: int, recall: Recall | None) -> LivingIndex:
        """The index that looks into so many lists for k neighbors."""
        first, *later = self.segments
        lists = _lists_of(first.index).with_probes(k, probes, recall)
        equal = first.index if isinstance(first.index, EqualRowsIndex) else None
        first = replace(first, index=lists if equal is None else equal.searched_by(lists))
        for place, one in enumerate(later):
            tail: Any = one.index
            if _is_listed(tail):
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
        """The neighbors of queries and, with limits of the rows, which rows are reached."""
        kind, parts, reached, recall = index_type(self.n_places), [], [], None
        for segment, dead in zip(self.segments, self._dead, strict=True):
            wanted = min(k, len(segment) - dead)
            if not wanted:
                continue
            asked, how = _with_margin(wanted, len(segment), dead), _how(n_jobs, progress)
            if _plans(segment.index):
                how["planned_for"] = planned_for
            progress = None  # the first segment is most of the work
            if limits is None:
                graph = segment.index.graph(asked, queries, **how)
            else:
                its = segment.part_of(limits)
                graph, pairs = segment.nearest_and_reached(queries, asked, its, **how)
                reached.append(pairs._replace(row=segment.places_of(pairs.row, np.int64)))
            recall = graph.recall if recall is None else recall
            how.pop("progress", None)
            parts.append(self._visible(segment, graph, queries, wanted, how))
        places, distances = _merged(parts, k)
        found = NeighborGraph.unchecked(places.astype(kind, copy=False), distances, self.n_places)
        found.recall = recall
        pairs = Reached.joined(reached)
        if limits is not None and pairs.distance.dtype != distances.dtype:
            pairs = pairs._replace(distance=pairs.distance.astype(distances.dtype))
            kept = pairs.distance < limits[pairs.row]
            pairs = Reached(*(part[kept] for part in pairs))
        return found, pairs

    def _visible(
        self, segment: Segment, graph: NeighborGraph, queries: Any, k: int, how: dict[str, Any]
    ) -> tuple[Array, Array]:
        """Places and distances of the k nearest rows of a segment that are there."""
        kind = index_type(self.n_places)
        places = segment.places_of(graph.indices, kind)
        if graph.k == k or self.alive is None:  # none was removed
            return places, graph.distances
        alive, asked = self.alive, graph.k
        places, distances, short = first_visible(places, graph.distances, alive[places], k)
        while len(short):
            asked = min(2 * asked, len(segment))
            graph = segment.index.graph(asked, queries[short], **how)
            again = segment.places_of(graph.indices, kind)
            places[short], distances[short], still = first_visible(
                again, graph.distances, alive[again], k
            )
            short = short[still]
        return places, distances


def _merged(parts: list[tuple[Array, Array]], k: int) -> tuple[Array, Array]:
    """The first k of several neighbors by (distance, place)."""
    if len(parts) == 1:
        return parts[0]
    kinds = {distances.dtype for _, distances in parts}
    places, distances = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    if np.dtype(np.float32) in kinds and distances.max(initial=0) <= np.finfo(np.float32).max:
        distances = distances.astype(np.float32, copy=False)
    order = np.lexsort((places, distances), axis=1)[:, :k]
    return np.take_along_axis(places, order, axis=1), np.take_along_axis(distances, order, axis=1)


def _with_margin(k: int, n: int, dead: int) -> int:
    """How many of n rows are asked for so that k that are there are found, as a rule."""
    return max(k + 1, neighbors_with_margin(k, n, dead)) if dead else k


def _is_exact(index: Index) -> bool:
    """Whether an index is exact, so that one of more rows is made in the same way."""
    distinct = index.index if isinstance(index, EqualRowsIndex) else index
    return isinstance(distinct, ExactIndex)


def _foreign(index: Index) -> PluggedIndex | None:
    """An index whose distances nobody else knows: it is made anew with every change."""
    return index if isinstance(index, PluggedIndex) and index.has_own_distances else None


def _lists_of(index: Index) -> Any:
    """The index to whose lists further rows can be added, or None."""
    distinct = index.index if isinstance(index, EqualRowsIndex) else index
    return distinct if hasattr(distinct, "tail") else None


def _is_listed(index: Index) -> bool:
    """Whether an index is of rows that were added to lists."""
    return hasattr(index, "behind")


def _plans(index: Index) -> bool:
    """Whether an index prepares itself for a number of neighbors, and should so for one only."""
    return hasattr(index, "tail") or hasattr(index, "behind")


def _how(n_jobs: int, progress: Progress | None) -> dict[str, Any]:
    """How to search: a search from outside need not know progress that nobody asks for."""
    return {"n_jobs": n_jobs} if progress is None else {"n_jobs": n_jobs, "progress": progress}
