"""The neighbors of each row, kept up to date while rows come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, runs
from nearlabel.common.files import FileError
from nearlabel.common.mapped_arrays import MappedArray, checked
from nearlabel.common.threads import run_blocks, run_slices
from nearlabel.graph import NeighborGraph
from nearlabel.search.living.arrivals import Arrivals

_GROWTH = 8  # arrays that are full grow by one part in so many, at least
_ROWS_AT_ONCE = 2**14
_CELLS_AT_ONCE = 2**20  # of lists, so that temporaries stay small
_CELLS_A_THREAD = 2**24
_FEW = 16  # places that are compared with all of a list, rather than looked up one by one
_MOST_PLACES = np.iinfo(np.int32).max


class HeadChanges(NamedTuple):
    """Rows whose first k neighbors are others than before; no new rows and no removed ones.

    Attributes
    ----------
    rows : ndarray of int, shape (r,)
        Their places, rising.
    before, after : ndarray of int, shape (r, k)
        Places of the neighbors.
    """

    rows: Array
    before: Array
    after: Array


class KeptNeighbors:
    """For each row its nearest others: at least k, and some to spare for when others go.

    The list of a row holds exactly its ``lengths[row]`` nearest rows, sorted by (distance, place);
    a row that was removed has none. Changed in place, by one writer: what is taken from here, but
    for `HeadChanges`, holds until the next change.

    Parameters
    ----------
    k : int
        Neighbors that each row always has.
    places, distances : ndarray, shape (n, width) or wider
        The neighbors, int32, and their distances, float32 or float64. Taken over where they are
        writable and in plain memory, else copied.
    lengths : ndarray of int32, shape (n,)
        How many of them each row has: 0, or from k to the width.

    Attributes
    ----------
    width : int
        Neighbors that a row has at most.
    is_whole : bool
        False while arrays are being changed, and for good where that failed half-way.
    """

    def __init__(self, k: int, places: Array, distances: Array, lengths: Array) -> None:
        _check_number(len(places))
        self.k = k
        self.width = width_of(k)
        self._n = len(places)
        self._places = _taken_over(places, np.int32, self.width)
        self._distances = _taken_over(distances, distances.dtype, self.width)
        self._lengths = _taken_over(lengths[:, None], np.int32, 1)[:, 0]
        self.is_whole = True
        self.version = 0

    @classmethod
    def of(cls, graph: NeighborGraph, k: int, alive: Array | None = None) -> KeptNeighbors:
        """Keep the neighbors of a graph, which has a row for each place, or for each alive one.

        It has at least k neighbors a row. The graph's own arrays are changed later on where they
        are wide enough for what is to be kept.
        """
        if graph.k < k:
            raise ValueError(f"graph must have at least k={k} neighbors per row; got {graph.k}")
        length = min(graph.k, width_of(k))
        n = len(graph) if alive is None else len(alive)
        lengths = np.full(n, length, np.int32)
        places, distances = graph.indices, graph.distances
        if len(graph) != n:
            if alive is None or np.count_nonzero(alive) != len(graph):
                raise ValueError(
                    f"graph must have a row for each of {n} places, or for each alive one; "
                    f"got {len(graph)}"
                )
            places = _filled((n, length), np.int32)
            distances = _filled((n, length), graph.distances.dtype)
            places[alive], distances[alive] = graph.indices[:, :length], graph.distances[:, :length]
        kept = cls(k, places, distances, lengths)
        if alive is not None:
            kept._clear(np.flatnonzero(~alive))
        return kept

    def __len__(self) -> int:
        return self._n

    def __getstate__(self) -> dict[str, Any]:  # without the room for more rows
        lists = dict(zip(("_places", "_distances", "_lengths"), self._lists(), strict=True))
        return self.__dict__ | lists

    @property
    def places(self) -> Array:
        """The neighbors, shape (n, width); -1 beyond the length of a row."""
        return self._places[: self._n]

    @property
    def distances(self) -> Array:
        """Their distances, shape (n, width); infinite beyond the length of a row."""
        return self._distances[: self._n]

    @property
    def lengths(self) -> Array:
        """How many neighbors of each row are known; 0 where it was removed."""
        return self._lengths[: self._n]

    def tree(self) -> dict[str, Array]:
        """The neighbors as a file keeps them; see `StoredNeighbors`."""
        return {"places": self.places, "distances": self.distances, "lengths": self.lengths}

    def limits(self) -> Array:
        """The distance of each row's last neighbor that is kept; -inf where it was removed."""
        last = np.maximum(self.lengths, 1) - 1
        limits: Array = self.distances[np.arange(self._n), last]
        limits[self.lengths == 0] = -np.inf
        return limits

    def head(self, rows: Array | None = None) -> NeighborGraph:
        """The first k neighbors of `rows`; of all that were not removed if None, and then shared.

        What is shared changes with these lists.
        """
        if rows is None and not self.lengths.all():
            rows = np.flatnonzero(self.lengths)
        taken = slice(None) if rows is None else rows
        places, distances = self.places[taken, : self.k], self.distances[taken, : self.k]
        return NeighborGraph.unchecked(places, distances, self._n)

    def pointing_at(self, places: Array, *, n_jobs: int = 1) -> Array:
        """The rows that have one of `places` among their first k neighbors."""
        left, _ = self._without(places, _mask(places, self._n), self.k, n_jobs)
        return np.flatnonzero(left < np.minimum(self.lengths, self.k))

    def add(self, arrivals: Arrivals, *, n_jobs: int = 1) -> HeadChanges:
        """Take in new rows, which get the next places."""
        graph, reached = arrivals
        n, end = self._n, self._n + len(graph)
        self._check_graph(graph, len(graph))
        _check_number(end)
        _check_places("row", reached.row, 0, n)
        _check_places("new", reached.new, n, end)
        if not len(reached.row) == len(reached.new) == len(reached.distance):
            raise ValueError("row, new and distance must be of the same length")
        self._make_room(end)
        order = np.argsort(reached.row, kind="stable")
        order = order[self.lengths[reached.row[order]] > 0]  # nobody reaches a removed row
        row = reached.row[order].astype(np.int64)
        new = reached.new[order].astype(np.int32)
        distance = reached.distance[order].astype(self._distances.dtype)
        rows = np.flatnonzero(_mask(row[distance < self.distances[row, self.k - 1]], n))
        before = self.places[rows, : self.k]
        self.is_whole = False
        _insert(self._lists(), row, new, distance, n_jobs)
        self._n = end
        self._write(np.arange(n, end), graph)
        changes = HeadChanges(rows, before, self.places[rows, : self.k])
        self.is_whole = True
        return changes

    def remove(
        self, places: Array, search: Callable[[Array], NeighborGraph], *, n_jobs: int = 1
    ) -> HeadChanges:
        """Take out rows; `search` finds neighbors anew, `width` of each, for rows with too few."""
        gone = _mask(places, self._n)
        left, first = self._without(places, gone, self.width, n_jobs)
        left[gone] = 0
        changed = (left < self.lengths) & ~gone
        short = np.flatnonzero(changed & (left < self.k))
        found = search(short) if len(short) else None
        if found is not None:
            self._check_graph(found, len(short))
        rows = np.flatnonzero(changed & (first < self.k))
        before = self.places[rows, : self.k]
        self.is_whole = False
        self._clear(np.flatnonzero(gone))
        keep = np.flatnonzero(changed & (left >= self.k))
        _drop(self._lists(), keep, gone, n_jobs)
        if found is not None:
            self._write(short, found)
        changes = HeadChanges(rows, before, self.places[rows, : self.k])
        self.is_whole = True
        return changes

    def _without(
        self, places: Array, gone: Array, columns: int, n_jobs: int
    ) -> tuple[Array, Array]:
        """How many of each row's first neighbors are not in `places`, and where the first is."""
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

    def _lists(self) -> tuple[Array, Array, Array]:
        return self.places, self.distances, self.lengths

    def _check_graph(self, graph: NeighborGraph, rows: int) -> None:
        if len(graph) != rows or graph.k < self.k:
            raise ValueError(
                f"{rows} rows must have at least {self.k} neighbors each; got {len(graph)} rows "
                f"with {graph.k}"
            )

    def _write(self, rows: Array, graph: NeighborGraph) -> None:
        """Make the neighbors of a graph the lists of some rows."""
        length = min(graph.k, self.width)
        if length < self.width:
            self._clear(rows)
        self._places[rows, :length] = graph.indices[:, :length]
        self._distances[rows, :length] = graph.distances[:, :length]
        self._lengths[rows] = length

    def _clear(self, rows: Array) -> None:
        """Leave some rows without neighbors."""
        self._places[rows], self._distances[rows], self._lengths[rows] = -1, np.inf, 0

    def _make_room(self, rows: int) -> None:
        if rows > len(self._places):
            room = max(rows, self._n + self._n // _GROWTH + 1)
            self._places = _copied(self._places[: self._n], room, self.width)
            self._distances = _copied(self._distances[: self._n], room, self.width)
            self._lengths = _copied(self._lengths[: self._n, None], room, 1)[:, 0]


class StoredNeighbors:
    """Kept neighbors as they stand in a file, looked at when a change first needs them.

    Parameters
    ----------
    tree : dict of arrays
        What `KeptNeighbors.tree` gave.
    k : int
    n : int
        Rows.
    """

    def __init__(self, tree: Mapping[str, Any], k: int, n: int) -> None:
        self._parts, self._k = (tree["places"], tree["distances"], tree["lengths"]), k
        places, distances, lengths = self._parts
        shape = n, width_of(k)
        if not all(isinstance(part, np.ndarray) for part in self._parts) or not (
            places.shape == distances.shape == shape and lengths.shape == (n,)
        ):
            raise ValueError(f"its kept neighbors are not of {n} rows, {shape[1]} each")
        if places.dtype != np.int32 or distances.dtype not in (np.float32, np.float64):
            raise TypeError("its kept neighbors are of other types")

    def taken_up(self) -> KeptNeighbors:
        """The neighbors, checked, so that they can be changed; the file stays as it is."""
        places, distances = (_own_copy(part) for part in self._parts[:2])
        lengths = checked(self._parts[2]).astype(np.int32)
        n, k, width = len(places), self._k, places.shape[1]
        if n and not min(k, n - 1) <= lengths.min() <= lengths.max() <= width:
            raise FileError(f"is damaged: its kept neighbors are not from {k} to {width} a row")
        for start in range(0, n, _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            inside = np.arange(width) < lengths[some, None]
            near, far = places[some], distances[some]
            wrong = np.where(inside, (near < 0) | (near >= n), near != -1)
            wrong[:, 1:] |= ~(far[:, 1:] >= far[:, :-1])
            if wrong.any():
                raise FileError("is damaged: its kept neighbors are no sorted rows")
        return KeptNeighbors(k, places, distances, lengths)


def _own_copy(array: Array) -> Array:
    """An array of a file, checked, that can be written to."""
    if isinstance(array, MappedArray):
        checked(array)
        return np.asarray(array.private())
    return array if array.flags.writeable else array.copy()


def width_of(k: int) -> int:
    """How many neighbors of a row are kept so that k are left when some of them go."""
    return k + max(3, k // 8)


def _insert(
    lists: tuple[Array, Array, Array], row: Array, new: Array, distance: Array, n_jobs: int
) -> None:
    """Put new neighbors, sorted by row, into lists where they are nearer than the last one kept."""
    core = engine.core()
    begin = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))
    rows, added = row[begin[:-1]], np.diff(begin)

    def work(run: slice) -> None:
        here = slice(begin[run.start], begin[run.stop])
        if core is not None:
            core.insert_neighbors(*lists, row[here], new[here], distance[here])
        else:
            _merge(lists, rows[run], added[run], new[here], distance[here])

    size = lists[0].shape[1]
    blocks = list(runs(added + size, _CELLS_AT_ONCE))
    run_slices(work, blocks, _threads(len(rows) * size, n_jobs), None)


def _merge(
    lists: tuple[Array, Array, Array], rows: Array, added: Array, new: Array, distance: Array
) -> None:
    """Sort the new neighbors of some rows, so many of each, into their lists."""
    places, distances, lengths = lists
    is_new = np.arange(added.max()) < added[:, None]
    near, far = _filled(is_new.shape, np.int32), _filled(is_new.shape, distances.dtype)
    near[is_new], far[is_new] = new, distance
    last = distances[rows, lengths[rows] - 1]
    is_new &= far < last[:, None]
    near[~is_new], far[~is_new] = -1, np.inf
    near = np.concatenate([places[rows], near], axis=1)
    far = np.concatenate([distances[rows], far], axis=1)
    order = np.lexsort((near, far))[:, : places.shape[1]]
    places[rows] = np.take_along_axis(near, order, axis=1)
    distances[rows] = np.take_along_axis(far, order, axis=1)
    lengths[rows] = np.minimum(lengths[rows] + is_new.sum(axis=1), places.shape[1])


def _drop(lists: tuple[Array, Array, Array], rows: Array, gone: Array, n_jobs: int) -> None:
    """Take what is gone out of the lists of some rows."""
    core = engine.core()
    places, distances, lengths = lists

    def work(block: slice) -> None:
        some = rows[block]
        if core is not None:
            core.drop_neighbors(*lists, some, gone.view(np.uint8))
            return
        near, far = places[some], distances[some]
        kept = (near >= 0) & ~gone[near]
        length = kept.sum(axis=1)
        inside = np.arange(near.shape[1]) < length[:, None]
        new_near, new_far = _filled(near.shape, near.dtype), _filled(far.shape, far.dtype)
        new_near[inside], new_far[inside] = near[kept], far[kept]
        places[some], distances[some], lengths[some] = new_near, new_far, length

    size = len(rows) * places.shape[1]
    run_blocks(work, len(rows), _ROWS_AT_ONCE, _threads(size, n_jobs), None)


def _threads(cells: int, n_jobs: int) -> int:
    """Threads that pay for some cells of lists: to start them takes some milliseconds."""
    return n_jobs if cells > _CELLS_A_THREAD else 1


def _filled(shape: tuple[int, ...], kind: Any) -> Array:
    """Lists without neighbors: no places, infinite distances."""
    return np.full(shape, -1 if np.dtype(kind).kind == "i" else np.inf, kind)


def _taken_over(array: Array, kind: Any, width: int) -> Array:
    """The first columns of an array that may be written to; a copy where they may not."""
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
    copy = np.empty((rows, width), array.dtype)
    copy[:n, :columns] = array[:, :columns]
    copy[:n, columns:] = _filled((), array.dtype)
    return copy


def _mask(places: Array, n: int) -> Array:
    """Which of n places are among some."""
    _check_places("places", places, 0, n)
    mask = np.zeros(n, bool)
    mask[places] = True
    return mask


def _check_number(rows: int) -> None:
    if rows > _MOST_PLACES:
        raise OverflowError(f"neighbors of at most {_MOST_PLACES} rows can be kept; got {rows}")


def _check_places(name: str, places: Array, low: int, end: int) -> None:
    if len(places) and not low <= places.min() <= places.max() < end:
        raise ValueError(
            f"{name} must be places from {low} to {end - 1}; got {places.min()} to {places.max()}"
        )
