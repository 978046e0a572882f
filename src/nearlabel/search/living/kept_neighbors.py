"""The neighbors of each row, kept up to date while rows are added and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError
from nearlabel.common.mapped_arrays import MappedArray, checked
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph
from nearlabel.search.living.arrivals import Arrivals
from nearlabel.search.living.neighbor_lists import NeighborLists

_ROWS_AT_ONCE = 2**12  # copied at once, so that temporaries stay small
_ROWS_A_RUN = 2**13  # changed at once, while they are in the processor's cache
_MANY = 8  # an insertion affects many rows if it affects one in this many
_MOST_PLACES = np.iinfo(np.int32).max


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
    removed row has none. Changed in place by one writer: everything returned from here, except
    `HeadChanges`, is valid until the next change.

    Parameters
    ----------
    k : int
        The number of neighbors that each row always has.
    places, distances : ndarray, shape (n, width) or wider
        The neighbors, int32, and their distances, float32 or float64. Used directly if they are
        writable and in plain memory, otherwise copied.
    lengths : ndarray of int, shape (n,)
        The number of neighbors of each row: 0, or from k to the width.

    Attributes
    ----------
    width : int
        The maximum number of neighbors of a row.
    version : int
        Increased before any change: a reader that expects another version has the neighbors of
        other rows, or of an unfinished change.
    """

    def __init__(self, k: int, places: Array, distances: Array, lengths: Array) -> None:
        _check_number(len(places))
        self.k = k
        self.width = width_of(k)
        # Rows added later have lists of their own, so that nothing large is copied to make room.
        self._first = NeighborLists(self.width, places, distances, lengths)
        self._later = NeighborLists(self.width, places[:0], distances[:0], lengths[:0])
        self.version = 0  # last: a copy made during a change finds another number

    @classmethod
    def of(cls, graph: NeighborGraph, k: int, alive: Array | None = None) -> KeptNeighbors:
        """Keep the neighbors of a graph with one row per place, or per place in use.

        It has at least k neighbors per row; further ones may be missing, marked by -1. The graph's
        own arrays are modified later if they are wide enough.
        """
        if graph.k < k:
            raise ValueError(f"graph must have at least k={k} neighbors per row; got {graph.k}")
        length = min(graph.k, width_of(k))
        n = len(graph) if alive is None else len(alive)
        if len(graph) == n:
            kept = cls(k, graph.indices, graph.distances, _lengths(graph, length))
            if alive is not None:
                kept._first.clear(np.flatnonzero(~alive))
            return kept
        if alive is None or np.count_nonzero(alive) != len(graph):
            raise ValueError(
                f"graph must have one row for each of {n} places, or for each alive one; "
                f"got {len(graph)}"
            )
        places = np.full((n, width_of(k)), -1, np.int32)
        distances = np.full(places.shape, np.inf, graph.distances.dtype)
        kept = cls(k, places, distances, np.zeros(n))
        kept._first.write(np.flatnonzero(alive), graph)
        return kept

    def __len__(self) -> int:
        return len(self._first) + len(self._later)

    @property
    def places(self) -> Array:
        """The neighbors, shape (n, width), padded with -1. A copy once rows were added."""
        return self._joined("places")

    @property
    def distances(self) -> Array:
        """Their distances, shape (n, width); infinite beyond the length of a row."""
        return self._joined("distances")

    @property
    def lengths(self) -> Array:
        """The number of known neighbors of each row; 0 for removed rows."""
        return self._joined("lengths")

    def copy(self) -> KeptNeighbors:
        """The current neighbors, unaffected by later changes."""
        lists = (np.array(part) for part in (self.places, self.distances, self.lengths))
        copied = KeptNeighbors(self.k, *lists)
        copied.version = self.version
        return copied

    def tree(self) -> dict[str, Array]:
        """The neighbors as stored in a file; see `StoredNeighbors`."""
        return {"places": self.places, "distances": self.distances, "lengths": self.lengths}

    def limits(self) -> Array:
        """The distance of the last kept neighbor of each row; -inf for removed rows."""
        return np.concatenate([self._first.limits(), self._later.limits()])

    def head(self, rows: Array | None = None) -> NeighborGraph:
        """The first k neighbors of `rows`; of all rows that were not removed if None.

        Until rows are added or removed, these are shared rather than copied.
        """
        if rows is None and self.lengths.all():
            places, distances = self.places[:, : self.k], self.distances[:, : self.k]
        else:
            rows = np.flatnonzero(self.lengths) if rows is None else rows
            places, distances = self._head("places", rows), self._head("distances", rows)
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
        n, end = len(self), len(self) + len(graph)
        self._check_graph(graph, len(graph))
        _check_number(end)
        _check_places("row", reached.row, 0, n)
        _check_places("new", reached.new, n, end)
        if not len(reached.row) == len(reached.new) == len(reached.distance):
            raise ValueError("row, new and distance must have the same length")
        order = _stable_order(reached.row)
        order = order[self.lengths[reached.row[order]] > 0]  # removed rows are not reached
        order = order[_side_by_side(reached.row[order], reached.new[order])]
        row = reached.row[order].astype(np.int64)
        new = reached.new[order].astype(np.int32)
        distance = reached.distance[order].astype(self._first.distances.dtype)
        begin = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))

        def insert(run: slice) -> None:
            pairs = slice(begin[run.start], begin[run.stop])
            look(self._insert(row[pairs], new[pairs], distance[pairs]))

        self.version += 1
        self._later.make_room(len(graph))
        if len(row) * _MANY > n:
            self._first.take_into_memory()
        run_blocks(insert, len(begin) - 1, _ROWS_A_RUN, n_jobs, None)
        self._later.append(graph)

    def _insert(self, row: Array, new: Array, distance: Array) -> HeadChanges:
        """Insert new neighbors, grouped by row."""
        in_head = np.empty(len(row), bool)
        for lists, which, own in self._parts(row):
            in_head[which] = distance[which] < lists.distances[own, self.k - 1]
        rows = row[in_head]
        rows = rows[np.diff(rows, prepend=-1) != 0]
        before = self._head("places", rows)
        for lists, which, own in self._parts(row):
            lists.insert(own, new[which], distance[which])
        return HeadChanges(rows, before, self._head("places", rows))

    def remove(
        self, places: Array, search: Callable[[Array], NeighborGraph], *, n_jobs: int = 1
    ) -> HeadChanges:
        """Remove rows; `search` finds `width` neighbors for each row that has too few left."""
        gone = _mask(places, len(self))
        left, first = self._left_without(places, gone, self.width, n_jobs)
        changed = (left < self.lengths) & ~gone
        short = np.flatnonzero(changed & (left < self.k))
        found = search(short) if len(short) else None
        if found is not None:
            self._check_graph(found, len(short))
        rows = np.flatnonzero(changed & (first < self.k))
        before = self._head("places", rows)
        self.version += 1
        for lists, _, own in self._parts(np.flatnonzero(gone)):
            lists.clear(own)
        for lists, _, own in self._parts(np.flatnonzero(changed & (left >= self.k))):
            lists.drop(own, gone, n_jobs)
        if found is not None:
            for lists, which, own in self._parts(short):
                lists.write(own, found.take(which))
        return HeadChanges(rows, before, self._head("places", rows))

    def _parts(self, rows: Array) -> Iterator[tuple[NeighborLists, Array | slice, Array]]:
        """Both lists, the positions of their rows in `rows`, and the row numbers in them."""
        n = len(self._first)
        is_later = rows >= n
        at = len(rows) - np.count_nonzero(is_later)
        which: tuple[Array | slice, Array | slice] = slice(at), slice(at, None)
        if is_later[:at].any():  # rows that are not ascending
            which = ~is_later, is_later
        yield self._first, which[0], rows[which[0]]
        yield self._later, which[1], rows[which[1]] - n

    def _joined(self, name: str) -> Array:
        first, later = getattr(self._first, name), getattr(self._later, name)
        return np.concatenate([first, later]) if len(later) else first

    def _head(self, name: str, rows: Array) -> Array:
        """The first k places or distances of some rows."""
        head = np.empty((len(rows), self.k), getattr(self._first, name).dtype)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            run = slice(start, start + _ROWS_AT_ONCE)
            for lists, which, own in self._parts(rows[run]):
                head[run][which] = _rows(getattr(lists, name), own)[:, : self.k]
        return head

    def _left_without(
        self, places: Array, gone: Array, columns: int, n_jobs: int
    ) -> tuple[Array, Array]:
        parts = [
            lists.left_without(places, gone, columns, n_jobs)
            for lists in (self._first, self._later)
        ]
        left, first = (np.concatenate(part) for part in zip(*parts, strict=True))
        return left, first

    def _check_graph(self, graph: NeighborGraph, rows: int) -> None:
        if len(graph) != rows or graph.k < self.k:
            raise ValueError(
                f"{rows} rows must have at least {self.k} neighbors each; got {len(graph)} rows "
                f"with {graph.k}"
            )


class StoredNeighbors:
    """Kept neighbors stored in a file, read when a change first needs them.

    Parameters
    ----------
    tree : dict of arrays
        As returned by `KeptNeighbors.tree`.
    k : int
    n : int
        Rows.
    """

    def __init__(self, tree: Mapping[str, Any], k: int, n: int) -> None:
        self._parts, self._k = (tree["places"], tree["distances"], tree["lengths"]), k
        self._taken_up: KeptNeighbors | None = None
        places, distances, lengths = self._parts
        shape = n, width_of(k)
        if not all(isinstance(part, np.ndarray) for part in self._parts) or not (
            places.shape == distances.shape == shape and lengths.shape == (n,)
        ):
            raise ValueError(f"its kept neighbors must have {n} rows of {shape[1]}")
        if places.dtype != np.int32 or distances.dtype not in (np.float32, np.float64):
            raise TypeError("its kept neighbors have unexpected types")

    def taken_up(self) -> KeptNeighbors:
        """The neighbors, validated and modifiable; the file stays unchanged.

        Always the same object, so that only one caller can change them.
        """
        if self._taken_up is None:
            self._taken_up = self._checked()
        return self._taken_up

    def _checked(self) -> KeptNeighbors:
        places, distances = (_own_copy(part) for part in self._parts[:2])
        lengths = checked(self._parts[2]).astype(np.int32)
        n, k, width = len(places), self._k, places.shape[1]
        if n and not min(k, n - 1) <= lengths.min() <= lengths.max() <= width:
            raise FileError(
                f"is damaged: the number of kept neighbors per row must be from {k} to {width}"
            )
        for start in range(0, n, _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            inside = np.arange(width) < lengths[some, None]
            near, far = places[some], distances[some]
            wrong = np.where(inside, (near < 0) | (near >= n), near != -1)
            wrong[:, 1:] |= ~(far[:, 1:] >= far[:, :-1])
            if wrong.any():
                raise FileError("is damaged: its kept neighbors are not sorted")
        return KeptNeighbors(k, places, distances, lengths)


def _own_copy(array: Array) -> Array:
    """A validated, writable copy of an array of a file."""
    if isinstance(array, MappedArray):
        checked(array)
        return np.asarray(array.private())
    return array if array.flags.writeable else array.copy()


def _lengths(graph: NeighborGraph, most: int) -> Array:
    """The number of neighbors of each row of a graph, up to a maximum."""
    if graph.recall is None:
        return np.full(len(graph), most)
    return np.asarray(np.count_nonzero(graph.indices[:, :most] >= 0, axis=1))


def width_of(k: int) -> int:
    """How many neighbors are kept per row, so that k are left after some removals."""
    return k + max(3, k // 8)


def _side_by_side(row: Array, new: Array) -> Array:
    """An order of ascending rows that groups the rows reached by the same new row.

    They share neighbors, so that these are more often in the processor's cache.
    """
    is_first = np.diff(row, prepend=-1) > 0
    which = np.cumsum(is_first) - 1
    return _stable_order(new[is_first][which])


def _stable_order(places: Array) -> Array:
    """A key that sorts places stably."""
    # Distinct keys allow a sort that is not stable, and several times faster.
    return np.argsort(places.astype(np.int64) * len(places) + np.arange(len(places)))


def _rows(array: Array, rows: Array) -> Array:
    """Some rows of an array, copied."""
    # NumPy's `take` is faster than indexing, but copies the whole array if it is a view.
    return array.take(rows, axis=0, mode="clip") if array.flags.c_contiguous else array[rows]


def _mask(places: Array, n: int) -> Array:
    """A mask over n places."""
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
