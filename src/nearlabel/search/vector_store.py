"""Vectors in rows with ids: immutable states that share what they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Matrix, canonical_csr, text_array
from nearlabel.common.growing import Grown, GrownCsr
from nearlabel.common.messages import some
from nearlabel.common.threads import ForkSafeLock
from nearlabel.common.validation import check_same_length

_MOST_ID = 2**62  # ids are smaller


class VectorStore:
    """Vectors in rows, dense or CSR, from which stores with more or fewer rows are made.

    A row has a place, in order of arrival, and an id. Removed rows keep their places: they are no
    longer found by their ids, which can be used again. The first rows are kept as given, not
    copied: a read-only memory map stays one.

    Parameters
    ----------
    vectors : ndarray or csr_array, shape (n, d)
    ids : array-like of shape (n,), optional
        Unique row ids, integers or strings; by default 0, 1, 2 …
    next_id : int, optional
        The id of the next row without a given one; by default the one after the largest.

    Attributes
    ----------
    alive : ndarray of bool, shape (n,), or None
        Which rows have not been removed; None if none was.
    next_id : int
        Only increases, so that no row automatically gets the id of a removed one.

    Examples
    --------
    >>> store = VectorStore(np.zeros((2, 3)))
    >>> longer = store.added(np.ones((1, 3))).removed(np.array([0]))
    >>> longer.ids.tolist(), longer.vectors.shape, longer.rows_of([2]).tolist(), len(store)
    ([0, 1, 2], (3, 3), [2], 2)
    """

    def __init__(self, vectors: Matrix, ids: object = None, *, next_id: int | None = None) -> None:
        n = vectors.shape[0]
        self.ids: Array = np.arange(n) if ids is None else _checked_ids(ids, n)
        self.alive: Array | None = None
        self.next_id = max(next_id or 0, _after(self.ids))
        self._base = self.vectors = vectors
        self._tail: Grown | GrownCsr | None = None  # later rows
        self._grown_ids: Grown | None = None
        self._ascends = ids is None or _ascend(self.ids)
        self._places: _PlacesById | None = None  # by id, if ids do not ascend; made on first use

    def _changed(self, **parts: object) -> VectorStore:
        """A store that shares all but some parts."""
        store = VectorStore.__new__(VectorStore)
        store.__dict__ = {**vars(self), **parts}
        return store

    def __getstate__(self) -> dict[str, object]:  # without what is made on demand, and spare room
        state = {**vars(self), "_grown_ids": None, "_places": None}
        if self._tail is not None:
            state.pop("vectors", None)
        return state

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def vectors(self) -> Matrix:
        """All rows, including removed ones, shape (n, d); joined on first use."""
        assert self._tail is not None
        return _stacked(self._base, self._tail.array)

    def added(self, vectors: Any, ids: object = None) -> VectorStore:
        """A store with some more rows, with the given or the next ids.

        The new rows may be dense or CSR, regardless of the others.
        """
        (n, width), (_, d) = vectors.shape, self._base.shape
        if width != d:
            raise ValueError(f"vectors must have {d} features; got {width}")
        new = self._new_ids(ids, n)
        if not n:
            return self
        base, tail = self._base, self._tail
        if tail is not None and "vectors" in vars(self):  # no need to store them twice
            base, tail = self.vectors, None
        if sparse.issparse(base):
            rows, grown = canonical_csr(vectors), tail or GrownCsr(base[:0])
        else:
            rows = vectors.toarray() if sparse.issparse(vectors) else vectors
            grown = tail or Grown(np.empty((0, d), base.dtype))
        alive = None if self.alive is None else np.concatenate([self.alive, np.ones(n, bool)])
        names = (self._grown_ids or Grown(self.ids)).added(new) if len(self) else Grown(new)
        ascends = self._ascends and _ascend(new) and (not len(self) or new[0] > self.ids[-1])
        if self._places is not None:
            self._places.add(len(self), new)
        longer = self._changed(
            ids=names.array,
            alive=alive,
            next_id=max(self.next_id, _after(new)),
            _base=base,
            _tail=grown.added(rows),
            _grown_ids=names,
            _ascends=ascends,
        )
        vars(longer).pop("vectors", None)
        return longer

    def removed(self, places: Array) -> VectorStore:
        """A store in which the rows at these places are removed."""
        alive = np.ones(len(self), bool) if self.alive is None else self.alive.copy()
        alive[places] = False
        return self._changed(alive=alive)

    def take(self, places: Array | slice) -> Matrix:
        """The rows at some places, in their order; not copied for a range, if possible."""
        if self._tail is None or "vectors" in vars(self):
            return _plain(self.vectors[places])
        n, tail = self._base.shape[0], self._tail.array
        if isinstance(places, slice):
            start, stop, _ = places.indices(len(self))
            if stop <= n:
                return _plain(self._base[start:stop])
            if start >= n:
                return tail[start - n : stop - n]
            places = np.arange(start, stop)
        is_new = places >= n
        if not is_new.any():
            return _plain(self._base[places])
        rows = _stacked(self._base[places[~is_new]], tail[places[is_new] - n])
        return rows[np.argsort(np.argsort(is_new, kind="stable"))]

    def rows_of(self, ids: object) -> Array:
        """Places of the rows with `ids`, in their order."""
        asked = np.asarray(ids)
        places = self._places_of(asked)
        if len(places) and places.min() < 0:
            raise KeyError(f"no row has the id {some(asked[places < 0].tolist())}")
        return places

    def _places_of(self, asked: Array) -> Array:
        """Places of the rows with some ids; -1 if no row has an id."""
        places = np.full(len(asked), -1, np.intp)
        if not len(asked) or not len(self):
            return places
        if asked.dtype.kind == "u" and asked.max() < 2**63:  # otherwise both would become floats
            asked = asked.astype(np.int64)
        if self._ascends and asked.dtype.kind == "i":
            place = np.minimum(np.searchsorted(self.ids, asked), len(self) - 1)
            is_there = self.ids[place] == asked
            if self.alive is not None:
                is_there &= self.alive[place]
            places[is_there] = place[is_there]
            return places
        if self._places is None:
            self._places = _PlacesById(self.ids)
        for i, name in enumerate(asked.tolist()):
            for at in self._places.of(name):
                # Another store that has grown from the same one may have other rows there.
                is_own = at < len(self) and self.ids[at] == name
                if is_own and (self.alive is None or self.alive[at]):
                    places[i] = at  # of those that had this id at different times
        return places

    def _new_ids(self, ids: object, n: int) -> Array:
        """The ids of n new rows, validated or generated."""
        are_names = len(self) > 0 and self.ids.dtype.kind == "U"
        if ids is None:
            if are_names:
                raise ValueError("ids must be given: the existing rows have string ids")
            if self.next_id + n > _MOST_ID:
                raise ValueError("ids must be given: there are no more numbers below 2**62")
            return np.arange(self.next_id, self.next_id + n)
        new = _checked_ids(ids, n)
        if n and len(self) and (new.dtype.kind == "U") != are_names:
            raise TypeError(
                f"ids must have the type of the existing ones, {self.ids.dtype}; got {new.dtype}"
            )
        taken = np.flatnonzero(self._places_of(new) >= 0)
        if len(taken):
            raise ValueError(f"ids must be unique; {new[taken[0]].item()!r} is already in use")
        return new


def _stacked(first: Matrix, later: Matrix) -> Matrix:
    """All rows of both."""
    parts = [first, later]
    return sparse.vstack(parts, "csr") if sparse.issparse(later) else np.concatenate(parts)


def _plain(rows: Matrix) -> Matrix:
    """Rows taken from a memory map as an array."""
    return rows if sparse.issparse(rows) else np.asarray(rows)


class _PlacesById:
    """The places of rows by their ids, shared by a store and those that grow from it."""

    def __init__(self, ids: Array) -> None:
        self._places: dict[int | str, int | tuple[int, ...]] = {}
        self._lock = ForkSafeLock()
        self.add(0, ids)

    def add(self, first: int, ids: Array) -> None:
        """Note the ids of rows from place `first` on; an id that was reused has several places."""
        with self._lock.held():
            for place, name in enumerate(ids.tolist(), first):
                if self._places.setdefault(name, place) != place:
                    self._places[name] = tuple({*self.of(name), place})

    def of(self, name: int | str) -> tuple[int, ...]:
        """The places of all rows that have or had an id, or do in another store."""
        places = self._places.get(name, ())
        return (places,) if isinstance(places, int) else places


def _ascend(ids: Array) -> bool:
    """Whether ids are integers, each above the one before."""
    return ids.dtype.kind == "i" and bool(np.all(ids[1:] > ids[:-1]))


def _checked_ids(ids: Any, n: int) -> Array:
    """Unique ids of n rows."""
    if (np.ndim(ids) == 0 and not isinstance(ids, Iterable)) or isinstance(ids, str):
        raise TypeError(f"ids must be a list of one id per row; got {ids!r}")
    new = ids if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu" else _listed_ids(ids)
    check_same_length(ids=len(new), vectors=n)
    if new.dtype.kind != "U":
        beyond = new[(new >= _MOST_ID) | (new < -_MOST_ID)]
        if len(beyond):
            raise ValueError(f"ids must be less than 2**62; got {beyond[0]}")
        new = new.astype(np.int64)  # unsigned and signed integers would promote to floats
    values, counts = np.unique(new, return_counts=True)
    if len(values) < len(new):
        raise ValueError(f"ids must be unique; {values[counts > 1][0].item()!r} occurs twice")
    return new


def _listed_ids(ids: Any) -> Array:
    """Ids from a list, strings or integers; NumPy would convert mixed lists and gaps to strings."""
    listed = ids.tolist() if hasattr(ids, "tolist") else [*ids]
    are_texts = [isinstance(name, str) for name in listed]
    for place, (name, is_text) in enumerate(zip(listed, are_texts, strict=True)):
        is_number = isinstance(name, int | np.integer) and not isinstance(name, bool)
        if is_text != are_texts[0] or not (is_text or is_number):
            message = f"ids must be integers or strings, all of one kind; got {name!r}"
            raise TypeError(f"{message} at position {place}")
    if not any(are_texts):
        return np.array(listed, object)  # may be too large for a machine
    try:
        return text_array(listed)
    except ValueError as error:
        raise ValueError(f"ids: {error}") from None


def _after(ids: Array) -> int:
    """The number after the largest id; 0 for string ids."""
    return max(0, int(ids.max()) + 1) if ids.dtype.kind == "i" and len(ids) else 0
