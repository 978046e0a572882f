"""Lists of neighbors that are changed in place: new ones are inserted, others dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array
from nearlabel.common.mapped_arrays import is_mapped
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph

_GROWTH = 8  # full arrays grow by at least one part in this many,
_MORE_ROOM = 64  # and by some rows
_ROWS_AT_ONCE = 2**14
_CELLS_A_THREAD = 2**24
_FEW = 16  # places compared with a whole list instead of looked up individually


class NeighborLists:
    """The neighbors of some rows, sorted by (distance, place), and how many each of them has.

    Beyond the length of a list, places are -1 and distances infinite.

    Parameters
    ----------
    width : int
        The capacity of a list.
    places, distances : ndarray, shape (n, width) or wider
        int32, and float32 or float64. Used directly if they are writable and in plain memory;
        others, and those with fewer columns, are copied.
    lengths : ndarray of int, shape (n,)
    """

    def __init__(self, width: int, places: Array, distances: Array, lengths: Array) -> None:
        self._n = len(places)
        self._width = width
        self._places = _taken_over(places, np.int32, width)
        self._distances = _taken_over(distances, distances.dtype, width)
        self._lengths = np.array(lengths, np.int32)
        self._limits: Array | None = None  # of all rows, computed on first use

    def __len__(self) -> int:
        return self._n

    def __getstate__(self) -> dict[str, Any]:  # without spare room
        lists = {"_places": self.places, "_distances": self.distances, "_lengths": self.lengths}
        return self.__dict__ | lists | {"_limits": None}

    @property
    def places(self) -> Array:
        """The neighbors, shape (n, width)."""
        return self._places[: self._n]

    @property
    def distances(self) -> Array:
        """Their distances, shape (n, width)."""
        return self._distances[: self._n]

    @property
    def lengths(self) -> Array:
        """The number of neighbors of each row, shape (n,)."""
        return self._lengths[: self._n]

    def limits(self) -> Array:
        """The distance of the last neighbor of each row; -inf if it has none."""
        if self._limits is None:
            self._limits = self._limits_of(np.arange(self._n))
        return self._limits

    def _limits_of(self, rows: Array) -> Array:
        lengths = self.lengths[rows]
        limits: Array = self.distances[rows, np.maximum(lengths, 1) - 1]
        limits[lengths == 0] = -np.inf
        return limits

    def _note(self, rows: Array) -> None:
        """Update the limits of some rows that have changed."""
        if self._limits is not None:
            self._limits[rows] = self._limits_of(rows)

    def left_without(
        self, places: Array, gone: Array, columns: int, n_jobs: int
    ) -> tuple[Array, Array]:
        """How many of each row's first neighbors are not in `places`, and where the first one is.

        `gone` is the same as a mask over all places.
        """
        left, first = np.empty((2, self._n), np.int32)
        lists, lengths = self.places[:, :columns], np.minimum(self.lengths, columns)
        few = places.astype(np.int32) if len(places) <= _FEW else np.zeros(0, np.int32)
        core = engine.core()

        def look(block: slice) -> None:
            near, length = lists[block], lengths[block]
            if core is not None:
                mask = gone.view(np.uint8)
                core.left_without(near, length, mask, few, left[block], first[block])
                return
            inside = np.arange(columns) < length[:, None]
            hit = inside & gone[near]
            left[block] = length - hit.sum(axis=1)
            first[block] = np.where(hit.any(axis=1), hit.argmax(axis=1), length)

        run_blocks(look, self._n, _ROWS_AT_ONCE, _threads(lists.size, n_jobs), None)
        return left, first

    def insert(self, row: Array, new: Array, distance: Array) -> None:
        """Insert new neighbors, grouped by row, if they are nearer than the last one."""
        core = engine.core()
        begin = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))
        rows = row[begin[:-1]]
        if core is not None:
            core.insert_neighbors(self.places, self.distances, self.lengths, row, new, distance)
        elif len(rows):
            self._merge(rows, np.diff(begin), new, distance)
        self._note(rows)

    def _merge(self, rows: Array, added: Array, new: Array, distance: Array) -> None:
        """Merge the new neighbors of some rows, grouped by row, into their lists."""
        is_new = np.arange(added.max()) < added[:, None]
        near, far = _filled(is_new.shape, np.int32), _filled(is_new.shape, distance.dtype)
        near[is_new], far[is_new] = new, distance
        last = self.distances[rows, self.lengths[rows] - 1]
        is_new &= far < last[:, None]
        near[~is_new], far[~is_new] = -1, np.inf
        near = np.concatenate([self.places[rows], near], axis=1)
        far = np.concatenate([self.distances[rows], far], axis=1)
        order = np.lexsort((near, far))[:, : self._width]
        self.places[rows] = np.take_along_axis(near, order, axis=1)
        self.distances[rows] = np.take_along_axis(far, order, axis=1)
        self.lengths[rows] = np.minimum(self.lengths[rows] + is_new.sum(axis=1), self._width)

    def drop(self, rows: Array, gone: Array, n_jobs: int) -> None:
        """Remove places from the lists of some rows."""
        core = engine.core()
        places, distances, lengths = self.places, self.distances, self.lengths

        def work(block: slice) -> None:
            some = rows[block]
            if core is not None:
                core.drop_neighbors(places, distances, lengths, some, gone.view(np.uint8))
                return
            near, far = places[some], distances[some]
            kept = (near >= 0) & ~gone[near]
            length = kept.sum(axis=1)
            inside = np.arange(self._width) < length[:, None]
            places[some], distances[some], lengths[some] = -1, np.inf, length
            row, column = np.nonzero(inside)
            places[some[row], column], distances[some[row], column] = near[kept], far[kept]

        size = len(rows) * self._width
        run_blocks(work, len(rows), _ROWS_AT_ONCE, _threads(size, n_jobs), None)
        self._note(rows)

    def write(self, rows: Array, graph: NeighborGraph) -> None:
        """Replace the lists of some rows by the neighbors of a graph."""
        length = min(graph.k, self._width)
        if length < self._width:
            self.clear(rows)
        self.places[rows, :length] = graph.indices[:, :length]
        self.distances[rows, :length] = graph.distances[:, :length]
        self.lengths[rows] = length
        self._note(rows)

    def clear(self, rows: Array) -> None:
        """Empty the lists of some rows."""
        self.places[rows], self.distances[rows], self.lengths[rows] = -1, np.inf, 0
        self._note(rows)

    def take_into_memory(self) -> None:
        """Copy the lists of a mapped file at once: page by page, many changes would take longer."""
        if is_mapped(self._places):
            self._places = _copied(self.places, self._n, self._width)
            self._distances = _copied(self.distances, self._n, self._width)

    def make_room(self, rows: int) -> None:
        """Reserve room for some more rows; nothing changes until they are appended."""
        if self._n + rows > len(self._places):
            room = max(self._n + rows, self._n + self._n // _GROWTH + _MORE_ROOM)
            self._places = _copied(self.places, room, self._width)
            self._distances = _copied(self.distances, room, self._width)
            self._lengths = np.append(self.lengths, np.zeros(room - self._n, np.int32))

    def append(self, graph: NeighborGraph) -> None:
        """Append lists for the rows of a graph."""
        self.make_room(len(graph))
        self._n += len(graph)
        if self._limits is not None:
            self._limits = np.append(self._limits, np.zeros(len(graph), self._limits.dtype))
        self.write(np.arange(self._n - len(graph), self._n), graph)


def _threads(cells: int, n_jobs: int) -> int:
    """How many threads pay for a number of cells: starting them takes some milliseconds."""
    return n_jobs if cells > _CELLS_A_THREAD else 1


def _filled(shape: tuple[int, ...], kind: Any) -> Array:
    """Lists without neighbors: no places, infinite distances."""
    return np.full(shape, -1 if np.dtype(kind).kind == "i" else np.inf, kind)


def _taken_over(array: Array, kind: Any, width: int) -> Array:
    """The first columns of an array if it is writable; otherwise a copy."""
    if (
        array.flags.writeable
        and array.dtype == kind
        and array.shape[1] >= width
        and array.strides[1] == array.itemsize
    ):
        return np.asarray(array)[:, :width]
    return _copied(array.astype(kind, copy=False), len(array), width)


def _copied(array: Array, rows: int, width: int) -> Array:
    """A copy with room for more rows and columns."""
    n, columns = len(array), min(array.shape[1], width)
    copy = np.zeros((rows, width), array.dtype)
    copy[:n, :columns] = array[:, :columns]
    copy[:n, columns:] = _filled((), array.dtype)
    return copy
