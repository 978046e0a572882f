"""Vectors in rows with ids: immutable states that share what they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, canonical_csr, csr_of_known
from nearlabel.common.growing import Grown
from nearlabel.common.messages import some
from nearlabel.common.threads import ForkSafeLock
from nearlabel.common.validation import check_same_length
from nearlabel.graph import index_type

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

    def __init__(self, vectors: Any, ids: Any = None, *, next_id: int | None = None) -> None:
        n = vectors.shape[0]
        names = np.arange(n) if ids is None else _checked_ids(ids, n)
        self._set(vectors, None, Grown(names), None, max(next_id or 0, _after(names)), _Names(n))

    def _set(
        self, base: Any, tail: Any, ids: Grown, alive: Array | None, next_id: int, names: _Names
    ) -> VectorStore:
        self._base, self._tail, self._ids, self._names = base, tail, ids, names
        self.alive, self.next_id = alive, next_id
        self._joined: Any = base if tail is None else None
        return self

    def __reduce__(self) -> Any:  # the lookup of ids is rebuilt on demand
        parts = self._base, self._tail, self._ids, self.alive, self.next_id
        return _from_parts, parts

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> Array:
        """The id of each row, including removed ones, shape (n,)."""
        return self._ids.array

    @property
    def vectors(self) -> Any:
        """All rows, including removed ones, shape (n, d); joined on first use."""
        if self._joined is None:
            parts = [self._base, self._tail.rows]
            is_sparse = sparse.issparse(self._base)
            self._joined = sparse.vstack(parts, "csr") if is_sparse else np.concatenate(parts)
        return self._joined

    def added(self, vectors: Any, ids: Any = None) -> VectorStore:
        """A store with some more rows, with the given or the next ids.

        The new rows may be dense or CSR, regardless of the others.
        """
        (n, width), (_, d) = vectors.shape, self._base.shape
        if width != d:
            raise ValueError(f"vectors must have {d} features; got {width}")
        new = self._new_ids(ids, n)
        base, tail = self._base, self._tail
        if tail is not None and self._joined is not None:  # no need to store them twice
            base, tail = self._joined, None
        if n:
            kind = _SparseTail if sparse.issparse(base) else _DenseTail
            tail = kind.of(base, vectors) if tail is None else tail.added(vectors)
        alive = self.alive
        if alive is not None:
            alive = np.concatenate([alive, np.ones(n, bool)])
        names = self._names.claimed(len(self), len(self) + n)
        next_id = max(self.next_id, _after(new))
        return _state(base, tail, self._ids_with(new), alive, next_id, names)

    def removed(self, places: Array) -> VectorStore:
        """A store in which the rows at these places are removed."""
        alive = np.ones(len(self), bool) if self.alive is None else self.alive.copy()
        alive[places] = False
        return _state(self._base, self._tail, self._ids, alive, self.next_id, self._names)

    def take(self, places: Array | slice) -> Any:
        """The rows at some places, in their order; not copied for a range, if possible."""
        if self._joined is not None:
            return _plain(self._joined[places])
        n, tail = self._base.shape[0], self._tail.rows
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
        if is_new.all():
            return tail[places - n]
        order = np.argsort(is_new, kind="stable")
        old, new = self._base[places[~is_new]], tail[places[is_new] - n]
        if sparse.issparse(old):
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            return sparse.vstack([old, new], "csr")[back]
        rows = np.empty((len(places), old.shape[1]), np.result_type(old, new))
        rows[~is_new], rows[is_new] = old, new
        return rows

    def rows_of(self, ids: Any) -> Array:
        """Places of the rows with `ids`, in their order."""
        asked = np.asarray(ids)
        places = self._places_of(asked)
        if len(places) and places.min() < 0:
            raise KeyError(f"no row has the id {some(asked[places < 0].tolist())}")
        return places

    def _places_of(self, asked: Array) -> Array:
        """Places of the rows with some ids; -1 if no row has an id."""
        found = np.full(len(asked), -1, np.intp)
        if not len(asked) or not len(self):
            return found
        if asked.dtype.kind == "u" and asked.max() < 2**63:  # otherwise both would become floats
            asked = asked.astype(np.int64)
        if self.ids.dtype.kind == "i" and asked.dtype.kind == "i" and self._names.rise(self.ids):
            place = np.minimum(np.searchsorted(self.ids, asked), len(self) - 1)
            is_there = self.ids[place] == asked
            if self.alive is not None:
                is_there &= self.alive[place]
            found[is_there] = place[is_there]
            return found
        by_name = self._names.places(self.ids)
        for i, name in enumerate(asked.tolist()):
            held = by_name.get(name, ())
            for one in (held,) if isinstance(held, int) else held:
                if one < len(self) and (self.alive is None or self.alive[one]):
                    found[i] = one  # of those that had this id at different times
        return found

    def _new_ids(self, ids: Any, n: int) -> Array:
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

    def _ids_with(self, new: Array) -> Grown:
        """The ids of all rows; in a wider type if new ids are longer."""
        ids = self._ids
        kind = np.result_type(ids.array, new) if len(ids) and len(new) else new.dtype
        if len(new) and kind != ids.array.dtype:
            ids = Grown(ids.array.astype(kind))
        return ids.added(new)


def _state(*parts: Any) -> VectorStore:
    """A store of parts that are known to be consistent."""
    return VectorStore.__new__(VectorStore)._set(*parts)


def _from_parts(base: Any, tail: Any, ids: Grown, alive: Array | None, next_id: int) -> VectorStore:
    return _state(base, tail, ids, alive, next_id, _Names(len(ids)))


def _plain(rows: Any) -> Any:
    """Rows taken from a memory map as an array."""
    return rows if sparse.issparse(rows) else np.asarray(rows)


class _DenseTail:
    """Dense rows appended to the first ones.

    They have the type of the first rows if that represents them exactly, otherwise a wider one: all
    numbers are preserved, so that distances are those of a fit on all rows at once.
    """

    def __init__(self, rows: Grown) -> None:
        self._rows = rows

    @classmethod
    def of(cls, base: Array, vectors: Any) -> _DenseTail:
        return cls(Grown(np.empty((0, base.shape[1]), base.dtype))).added(vectors)

    @property
    def rows(self) -> Array:
        return self._rows.array

    def added(self, vectors: Any) -> _DenseTail:
        new, before = vectors.toarray() if sparse.issparse(vectors) else vectors, self._rows
        if not _holds(before.array.dtype, new):
            before = Grown(before.array.astype(np.result_type(before.array, new)))
        return _DenseTail(before.added(new))


class _SparseTail:
    """CSR rows appended to the first ones; for their type see `_DenseTail`."""

    def __init__(self, data: Grown, indices: Grown, indptr: Grown, width: int) -> None:
        self._data, self._indices, self._indptr, self._width = data, indices, indptr, width

    @classmethod
    def of(cls, base: Csr, vectors: Any) -> _SparseTail:
        width = base.shape[1]
        empty = Grown(np.empty(0, base.dtype)), Grown(np.empty(0, index_type(width)))
        return cls(*empty, Grown(np.zeros(1, np.int64)), width).added(vectors)

    @property
    def rows(self) -> Csr:
        indptr = self._indptr.array
        shape = (len(indptr) - 1, self._width)
        return csr_of_known(self._data.array, self._indices.array, indptr, shape)

    def added(self, vectors: Any) -> _SparseTail:
        new, before = canonical_csr(vectors), self._data
        if not _holds(before.array.dtype, new.data):
            before = Grown(before.array.astype(np.result_type(before.array, new.data)))
        ends = self._indptr.array[-1] + new.indptr[1:].astype(np.int64)
        indices = self._indices.added(new.indices)
        return _SparseTail(before.added(new.data), indices, self._indptr.added(ends), self._width)


def _holds(kind: Any, numbers: Array) -> bool:
    """Whether a type represents some numbers exactly."""
    if np.can_cast(numbers.dtype, kind):
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.array_equal(numbers.astype(kind), numbers))


class _Names:
    """Places by id, computed when first needed, for a store and its successors.

    Ids of later rows do no harm: a store skips places beyond its end. The lookup of the longest
    store must not be shared with another one that grows from the same beginning.
    """

    def __init__(self, length: int) -> None:
        self._length = length  # of the longest store
        self._places: dict[Any, int | tuple[int, ...]] = {}
        self._known = 0  # rows whose ids are included
        self._rising: tuple[int, bool] = (0, True)  # whether the first ids are ascending
        self._lock = ForkSafeLock()

    def claimed(self, n: int, length: int) -> _Names:
        """The lookup of a store that grows from n rows to `length`."""
        with self._lock.held():
            if n != self._length:
                return _Names(length)
            self._length = length
            return self

    def rise(self, ids: Array) -> bool:
        """Whether the ids are ascending."""
        n, rise = self._rising
        if (len(ids) <= n) if rise else (len(ids) >= n):
            return rise
        start = max(n - 1, 0) if rise else 0
        rise = bool(np.all(ids[start + 1 :] > ids[start:-1]))
        if len(ids) > n:
            self._rising = len(ids), rise
        return rise

    def places(self, ids: Array) -> dict[Any, int | tuple[int, ...]]:
        """The place of each id, at least of these; all places of an id that was reused."""
        with self._lock.held():
            start = self._known
            for place, name in enumerate(ids[start:].tolist(), start):
                before = self._places.setdefault(name, place)
                if before != place:
                    several = (before,) if isinstance(before, int) else before
                    self._places[name] = (*several, place)
            self._known = max(start, len(ids))
        return self._places


def _checked_ids(ids: Any, n: int) -> Array:
    """Unique ids of n rows."""
    if (np.ndim(ids) == 0 and not isinstance(ids, Iterable)) or isinstance(ids, str):
        raise TypeError(f"ids must be a list of one id per row; got {ids!r}")
    new = np.asarray(ids if isinstance(ids, np.ndarray) else _listed_ids(ids))
    if new.dtype == object:  # as pandas stores strings
        new = np.asarray(_listed_ids(new))
    if not new.size:
        new = new.astype(np.int64)  # an empty list has type float
    check_same_length(ids=len(new), vectors=n)
    if new.dtype.kind not in "iuU":
        raise TypeError(f"ids must be integers or strings; got {new.dtype}")
    if new.dtype.kind in "iu":
        beyond = new[(new >= _MOST_ID) | (new < -_MOST_ID)]
        if len(beyond):
            raise ValueError(f"ids must be less than 2**62; got {beyond[0]}")
        new = new.astype(np.int64)  # unsigned and signed integers would promote to floats
    else:
        _refuse_half_characters(new)
    values, counts = np.unique(new, return_counts=True)
    if len(values) < len(new):
        raise ValueError(f"ids must be unique; {values[counts > 1][0].item()!r} occurs twice")
    return new


def _refuse_half_characters(names: Array) -> None:
    """Refuse ids with an unpaired surrogate, which cannot be stored in a file."""
    codes = np.ascontiguousarray(names, names.dtype.newbyteorder("=")).view(np.uint32)
    half = np.flatnonzero((codes >= 0xD800) & (codes <= 0xDFFF))
    if len(half):
        name = names[half[0] // (len(codes) // len(names))].item()
        raise ValueError(f"ids must not contain an unpaired surrogate; got {name!r}")


def _listed_ids(ids: Any) -> Any:
    """Ids from a list, strings or integers; NumPy would convert mixed lists and gaps to strings."""
    listed = ids.tolist() if hasattr(ids, "tolist") else [*ids]
    are_texts = [isinstance(name, str) for name in listed]
    for place, (name, is_text) in enumerate(zip(listed, are_texts, strict=True)):
        is_number = isinstance(name, int | np.integer) and not isinstance(name, bool)
        if is_text != are_texts[0] or not (is_text or is_number):
            message = f"ids must be integers or strings, all of one kind; got {name!r}"
            raise TypeError(f"{message} at position {place}")
        if is_text and name.endswith("\0"):
            raise ValueError(f"ids must not end in a NUL character; got {name!r}")
    return listed


def _after(ids: Array) -> int:
    """The number after the largest id; 0 for string ids."""
    return max(0, int(ids.max()) + 1) if ids.dtype.kind == "i" and len(ids) else 0
