"""The neighbors of each row, kept up to date while rows are added and removed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError
from nearlabel.common.growing import Grown
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph
from nearlabel.search.interfaces import Arrivals

_ROWS_AT_ONCE = 2**13  # changed or compared at once, while they are in the processor's cache
_CELLS_A_THREAD = 2**24  # fewer do not pay for another thread
_FEW = 16  # places compared with a whole list instead of looked up individually


class HeadChanges(NamedTuple):
    """Rows whose first k neighbors have changed, excluding new and removed rows.

    Attributes
    ----------
    rows : ndarray of int, shape (r,)
        Their places.
    before, after : ndarray of int, shape (r, k)
        Places of the neighbors.
    """

    rows: Array
    before: Array
    after: Array


class KeptNeighbors:
    """The nearest other rows of each row: at least k, and some in reserve for removals.

    The list of a row has exactly its ``lengths[row]`` nearest rows, sorted by (distance, place); a
    removed row has none. Beyond its length, places are -1 and distances infinite. Changed in place
    by one writer: everything returned from here, except `HeadChanges`, is valid until the next
    change.

    Parameters
    ----------
    k : int
        The number of neighbors that each row always has.
    places, distances : ndarray, shape (n, at least k)
        The neighbors, and their distances in float32 or float64; copied.
    lengths : ndarray of int, shape (n,)
        The number of neighbors of each row: 0, or from k to the width.

    Attributes
    ----------
    width : int
        The maximum number of neighbors of a row. Rows get their reserve as other rows are added,
        and when they are searched again because too few neighbors are left.
    version : int
        Increased before any change: a reader that expects another version has the neighbors of
        other rows, or of an unfinished change.
    """

    def __init__(self, k: int, places: Array, distances: Array, lengths: Array) -> None:
        self.k, self.width = k, k + max(3, k // 8)
        padding = (0, 0), (0, max(0, self.width - places.shape[1]))
        places, distances = places[:, : self.width], distances[:, : self.width]
        self._places = Grown(np.pad(places.astype(np.int32), padding, constant_values=-1))
        self._distances = Grown(np.pad(distances, padding, constant_values=np.inf))
        self._lengths = Grown(np.minimum(lengths, self.width).astype(np.int32))
        self._limits: Array | None = None  # of all rows, computed on first use
        self.version = 0  # last: a copy made during a change finds another number

    @classmethod
    def of(cls, graph: NeighborGraph, k: int, alive: Array | None = None) -> KeptNeighbors:
        """Keep the neighbors of a graph with one row per place, or per place in use."""
        if (graph.indices[:, k:] < 0).any():  # files of format 3 lack spare ones of some rows
            graph = graph.head(k)
        _check_lists(graph)
        if alive is None:
            return cls(k, graph.indices, graph.distances, np.full(len(graph), graph.k))
        n, rows = len(alive), np.flatnonzero(alive)
        lists = cls(k, np.empty((n, 0)), np.empty((n, 0), graph.distances.dtype), np.zeros(n))
        lists._write(rows, graph.take(rows) if len(rows) < len(graph) else graph)
        return lists

    def __len__(self) -> int:
        return len(self._lengths)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_limits": None}

    @property
    def places(self) -> Array:
        """The neighbors, shape (n, width)."""
        return self._places.array

    @property
    def distances(self) -> Array:
        """Their distances, shape (n, width)."""
        return self._distances.array

    @property
    def lengths(self) -> Array:
        """The number of known neighbors of each row, shape (n,); 0 for removed rows."""
        return self._lengths.array

    def copy(self) -> KeptNeighbors:
        """The current neighbors, unaffected by later changes."""
        return deepcopy(self)

    def limits(self) -> Array:
        """The distance of the last kept neighbor of each row; -inf for removed rows."""
        if self._limits is None:
            self._limits = self._limits_of(slice(None))
        return self._limits

    def head(self, rows: Array | None = None) -> NeighborGraph:
        """The first k neighbors of `rows`; of all rows that were not removed if None.

        If no row was removed, those of all rows are shared rather than copied.
        """
        lists = self.places, self.distances
        if rows is None and self.lengths.all():
            places, distances = (part[:, : self.k] for part in lists)
        else:
            rows = np.flatnonzero(self.lengths) if rows is None else rows
            places, distances = (part[rows, : self.k] for part in lists)
        return NeighborGraph.unchecked(places, distances, len(self))

    def pointing_at(self, places: Array, *, n_jobs: int = 1) -> Array:
        """The rows with one of `places` among their first k neighbors."""
        left, _ = self._left_without(places, _mask(places, len(self)), self.k, n_jobs)
        return np.flatnonzero(left < np.minimum(self.lengths, self.k))

    def add(
        self, arrivals: Arrivals, look: Callable[[HeadChanges], None], *, n_jobs: int = 1
    ) -> None:
        """Insert new rows, which get the next places.

        `look` is called from several threads, with blocks of rows whose first neighbors have
        changed.
        """
        graph, reached = arrivals
        n, m = len(self), len(graph)
        order = np.argsort(reached.row, kind="stable")
        order = order[self.lengths[reached.row[order]] > 0]  # removed rows are not reached
        row = reached.row[order].astype(np.int64)
        new = reached.new[order].astype(np.int32)
        distance = reached.distance[order].astype(self.distances.dtype)
        begin = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))

        def insert(run: slice) -> None:
            pairs = slice(begin[run.start], begin[run.stop])
            look(self._insert(row[pairs], new[pairs], distance[pairs]))

        self.version += 1
        run_blocks(insert, len(begin) - 1, _ROWS_AT_ONCE, n_jobs, None)
        self._places = self._places.added(np.full((m, self.width), -1, np.int32))
        self._distances = self._distances.added(np.full((m, self.width), np.inf, distance.dtype))
        self._lengths = self._lengths.added(np.zeros(m, np.int32))
        if self._limits is not None:
            self._limits = np.append(self._limits, np.zeros(m, self._limits.dtype))
        self._write(np.arange(n, n + m), graph)

    def remove(
        self, places: Array, search: Callable[[Array], NeighborGraph], *, n_jobs: int = 1
    ) -> HeadChanges:
        """Remove rows; `search` finds `width` neighbors for each row that has too few left."""
        gone = _mask(places, len(self))
        left, first = self._left_without(places, gone, self.width, n_jobs)
        changed = (left < self.lengths) & ~gone
        short = np.flatnonzero(changed & (left < self.k))
        again = search(short) if len(short) else None
        rows = np.flatnonzero(changed & (first < self.k))
        before = self.places[rows, : self.k]
        self.version += 1
        self._clear(np.flatnonzero(gone))
        self._drop(np.flatnonzero(changed & (left >= self.k)), gone, n_jobs)
        if again is not None:
            self._write(short, again)
        return HeadChanges(rows, before, self.places[rows, : self.k])

    def _left_without(
        self, places: Array, gone: Array, columns: int, n_jobs: int
    ) -> tuple[Array, Array]:
        """How many of each row's first neighbors are not in `places`, and where the first one is.

        `gone` is the same as a mask over all places.
        """
        left, first = np.empty((2, len(self)), np.int32)
        lists, lengths = self.places[:, :columns], np.minimum(self.lengths, columns)
        few = places.astype(np.int32) if len(places) <= _FEW else np.zeros(0, np.int32)
        core = engine.core()

        def look(block: slice) -> None:
            near, length = lists[block], lengths[block]
            if core is not None:
                mask = gone.view(np.uint8)
                core.left_without(near, length, mask, few, left[block], first[block])
                return
            hit = (np.arange(columns) < length[:, None]) & gone[near]
            left[block] = length - hit.sum(axis=1)
            first[block] = np.where(hit.any(axis=1), hit.argmax(axis=1), length)

        run_blocks(look, len(self), _ROWS_AT_ONCE, _threads(lists.size, n_jobs), None)
        return left, first

    def _insert(self, row: Array, new: Array, distance: Array) -> HeadChanges:
        """Insert new neighbors, grouped by row, if they are nearer than the last one."""
        begin = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))
        in_head = row[distance < self.distances[row, self.k - 1]]
        heads = in_head[np.diff(in_head, prepend=-1) != 0]
        before, rows = self.places[heads, : self.k], row[begin[:-1]]
        core = engine.core()
        if core is not None:
            core.insert_neighbors(self.places, self.distances, self.lengths, row, new, distance)
        elif len(rows):
            self._merge(rows, np.diff(begin), new, distance)
        self._note(rows)
        return HeadChanges(heads, before, self.places[heads, : self.k])

    def _merge(self, rows: Array, added: Array, new: Array, distance: Array) -> None:
        """Merge the new neighbors of some rows, grouped by row, into their lists."""
        is_new = np.arange(added.max()) < added[:, None]
        near = np.full(is_new.shape, -1, np.int32)
        far = np.full(is_new.shape, np.inf, distance.dtype)
        near[is_new], far[is_new] = new, distance
        last = self.distances[rows, self.lengths[rows] - 1]
        is_new &= far < last[:, None]
        near[~is_new], far[~is_new] = -1, np.inf
        near = np.concatenate([self.places[rows], near], axis=1)
        far = np.concatenate([self.distances[rows], far], axis=1)
        order = np.lexsort((near, far))[:, : self.width]
        self.places[rows] = np.take_along_axis(near, order, axis=1)
        self.distances[rows] = np.take_along_axis(far, order, axis=1)
        self.lengths[rows] = np.minimum(self.lengths[rows] + is_new.sum(axis=1), self.width)

    def _drop(self, rows: Array, gone: Array, n_jobs: int) -> None:
        """Remove places from the lists of some rows."""
        core = engine.core()
        places, distances, lengths = self.places, self.distances, self.lengths

        def work(block: slice) -> None:
            own = rows[block]
            if core is not None:
                core.drop_neighbors(places, distances, lengths, own, gone.view(np.uint8))
                return
            near, far = places[own], distances[own]
            stays = (near >= 0) & ~gone[near]
            length = stays.sum(axis=1)
            places[own], distances[own], lengths[own] = -1, np.inf, length
            row, column = np.nonzero(np.arange(self.width) < length[:, None])
            places[own[row], column], distances[own[row], column] = near[stays], far[stays]

        size = len(rows) * self.width
        run_blocks(work, len(rows), _ROWS_AT_ONCE, _threads(size, n_jobs), None)
        self._note(rows)

    def _write(self, rows: Array | slice, graph: NeighborGraph) -> None:
        """Replace the lists of some rows by the neighbors of a graph."""
        length = min(graph.k, self.width)
        self._clear(rows)
        self.places[rows, :length] = graph.indices[:, :length]
        self.distances[rows, :length] = graph.distances[:, :length]
        self.lengths[rows] = length
        self._note(rows)

    def _clear(self, rows: Array | slice) -> None:
        """Empty the lists of some rows."""
        self.places[rows], self.distances[rows], self.lengths[rows] = -1, np.inf, 0
        self._note(rows)

    def _limits_of(self, rows: Array | slice) -> Array:
        lengths, last = self.lengths[rows], self.distances[rows]
        limits: Array = last[np.arange(len(last)), np.maximum(lengths, 1) - 1]
        limits[lengths == 0] = -np.inf
        return limits

    def _note(self, rows: Array | slice) -> None:
        """Update the limits of some rows that have changed."""
        if self._limits is not None:
            self._limits[rows] = self._limits_of(rows)


def _threads(cells: int, n_jobs: int) -> int:
    """How many threads pay for a number of cells: starting them takes some milliseconds."""
    return n_jobs if cells > _CELLS_A_THREAD else 1


def _mask(places: Array, n: int) -> Array:
    """A mask over n places."""
    mask = np.zeros(n, bool)
    mask[places] = True
    return mask


def _check_lists(graph: NeighborGraph) -> None:
    """Refuse neighbors that are no rows or not sorted: they may come from a damaged file."""
    for _, block in graph.blocks(_ROWS_AT_ONCE):
        near, far = block.indices, block.distances
        is_wrong = (near < 0) | (near >= graph.n_base)
        is_wrong[:, 1:] |= ~(far[:, 1:] >= far[:, :-1])
        if is_wrong.any():
            raise FileError("the model is damaged: its kept neighbors are not sorted rows of it")
