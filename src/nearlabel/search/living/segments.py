"""A segment of the rows: an index, and what a search finds in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph, index_type
from nearlabel.search.approximate.list_index import ListIndex, TailIndex
from nearlabel.search.automatic import AutoIndex
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.equal_rows import EqualRowsIndex
from nearlabel.search.exact.index import ExactIndex, exact_index
from nearlabel.search.interfaces import Index
from nearlabel.search.living.arrivals import Reached
from nearlabel.search.plugged.foreign_answers import PluggedIndex
from nearlabel.search.restricted import first_visible, neighbors_with_margin

_ROWS_AT_ONCE = 2**10  # merged at once


@dataclass(frozen=True, eq=False)
class Segment:
    """An index of the rows at some places, from `start` to before `stop`.

    Attributes
    ----------
    index : Index
    vectors : ndarray or csr_array
        The rows.
    metric : str or callable
    start, stop : int
    places : ndarray of int or None
        Their places, ascending; None if no place is left out.
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
        """The entries of an array over all places that belong to these rows."""
        return values[self.start : self.stop] if self.places is None else values[self.places]

    def search(
        self,
        queries: Any,
        k: int,
        limits: Array | None,
        alive: Array | None,
        dead: int,
        **how: Any,
    ) -> tuple[NeighborGraph, Reached | None]:
        """The k nearest remaining rows, by place, and the places that are reached.

        `dead` of the rows are not `alive`. `limits` has one entry per place, like `alive`.
        """
        asked = k if not dead else max(k + 1, neighbors_with_margin(k, len(self), dead))
        reached = None
        if limits is None:
            graph = self.index.graph(asked, queries, **how)
        else:
            graph, pairs = self._nearest_and_reached(queries, asked, self.part_of(limits), how)
            reached = pairs._replace(row=self._places_of(pairs.row, np.int64))
        kind = index_type(self.stop)
        places = self._places_of(graph.indices, kind)
        if not dead or alive is None:
            found = NeighborGraph.unchecked(places, graph.distances, self.stop, graph.recall)
            return found, reached
        how.pop("progress", None)  # it has already reported the end
        places, distances, short = first_visible(places, graph.distances, alive[places], k)
        while len(short):  # too many of their nearest rows were removed
            asked = min(2 * asked, len(self))
            more = self.index.graph(asked, queries[short], **how)
            again = self._places_of(more.indices, kind)
            places[short], distances[short], still = first_visible(
                again, more.distances, alive[again], k
            )
            short = short[still]
        return NeighborGraph.unchecked(places, distances, self.stop, graph.recall), reached

    def _places_of(self, rows: Array, kind: Any) -> Array:
        if self.places is not None:
            return self.places[rows].astype(kind, copy=False)
        rows = rows.astype(kind, copy=False)
        return rows + kind(self.start) if self.start else rows

    def _nearest_and_reached(
        self, queries: Any, k: int, limits: Array, how: dict[str, Any]
    ) -> tuple[NeighborGraph, Reached]:
        """The result of the index or, if it has no such method, what an exact search reaches."""
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


def merged(graphs: list[NeighborGraph], k: int, n_base: int, *, n_jobs: int = 1) -> NeighborGraph:
    """The k nearest of the results of several segments, by (distance, place)."""
    first, kind = graphs[0], index_type(n_base)
    if len(graphs) == 1:
        places = first.indices.astype(kind, copy=False)
        return NeighborGraph.unchecked(places, first.distances, n_base, first.recall)
    told = np.result_type(*(graph.distances for graph in graphs))
    if any(graph.distances.dtype == np.float32 for graph in graphs):
        most = np.finfo(np.float32).max
        fits = all(graph.distances.max(initial=0) <= most for graph in graphs)
        told = np.dtype(np.float32) if fits else told
    shape = len(first), min(k, sum(graph.k for graph in graphs))
    found = NeighborGraph.unchecked(np.empty(shape, kind), np.empty(shape, told), n_base)
    found.recall = first.recall

    def merge(block: slice) -> None:
        indices = np.concatenate([graph.indices[block] for graph in graphs], axis=1)
        distances = np.concatenate([graph.distances[block] for graph in graphs], axis=1)
        distances = distances.astype(told, copy=False)
        # Each is sorted, and later segments have higher places, so ties are usually in order,
        # unless rounding has created them.
        order = np.argsort(distances, axis=1, kind="stable")
        indices = np.take_along_axis(indices, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        is_wrong = (distances[:, 1:] == distances[:, :-1]) & (indices[:, 1:] < indices[:, :-1])
        wrong = np.flatnonzero(is_wrong.any(axis=1))
        order = np.lexsort((indices[wrong], distances[wrong]), axis=1)
        indices[wrong] = np.take_along_axis(indices[wrong], order, axis=1)
        found.indices[block], found.distances[block] = indices[:, :k], distances[:, :k]

    run_blocks(merge, len(first), _ROWS_AT_ONCE, n_jobs, None)
    return found


def is_exact(index: Index) -> bool:
    """Whether an index is exact, so that more rows can be indexed in the same way."""
    distinct = index.index if isinstance(index, EqualRowsIndex) else index
    return isinstance(distinct, ExactIndex)


def foreign(index: Index) -> PluggedIndex | None:
    """An index whose distances only it knows: it is rebuilt after every change."""
    return index if isinstance(index, PluggedIndex) and index.has_own_distances else None


def lists_of(index: Index) -> ListIndex | AutoIndex | None:
    """The index to whose lists further rows can be added."""
    distinct = index.index if isinstance(index, EqualRowsIndex) else index
    return distinct if isinstance(distinct, ListIndex | AutoIndex) else None


def with_lists(index: Index, lists: Any) -> Index:
    """An index of the same rows with other lists."""
    return index.searched_by(lists) if isinstance(index, EqualRowsIndex) else lists


def is_listed(index: Index) -> bool:
    """Whether the index of a later segment has rows that were added to lists."""
    return isinstance(index, TailIndex | AutoIndex)


def makes_plans(index: Index) -> bool:
    """Whether an index prepares itself for a number of neighbors, which should be small."""
    distinct = index.index if isinstance(index, EqualRowsIndex) else index
    return isinstance(distinct, ListIndex | TailIndex | AutoIndex)
