"""Append-able storage of vectors whose rows have ids that stay."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array
from nearlabel.common.validation import check_same_length


class VectorStore:
    """Vectors in rows, dense or CSR, to which rows can be added.

    The first rows are kept as they were given, not copied: a read-only memory map stays one until
    something is appended.

    Parameters
    ----------
    vectors : ndarray or csr_array, shape (n, d)
    ids : array-like of shape (n,), optional
        Unique names of the rows; by default 0, 1, 2 … in order of arrival. They never change and
        are never given twice.

    Examples
    --------
    >>> store = VectorStore(np.zeros((2, 3)))
    >>> store.append(np.ones((1, 3)))
    >>> store.ids.tolist(), store.vectors.shape
    ([0, 1, 2], (3, 3))
    """

    def __init__(self, vectors: Any, ids: Any = None) -> None:
        self._n_features = int(vectors.shape[1])
        self._columns = [_Growing(part) for part in _parts(vectors)]
        self._next_id = 0
        self._ids = _Growing(self._new_ids(ids, vectors.shape[0], taken=None))

    def __len__(self) -> int:
        return len(self._ids.values)

    @property
    def ids(self) -> Array:
        """The id of each row, shape (n,)."""
        return self._ids.values

    @property
    def vectors(self) -> Any:
        """All rows in order of arrival, shape (n, d)."""
        if len(self._columns) == 1:
            return self._columns[0].values
        data, indices, ends = (column.values for column in self._columns)
        indptr = np.concatenate([np.zeros(1, ends.dtype), ends])
        return sparse.csr_array((data, indices, indptr), shape=(len(self), self._n_features))

    def append(self, vectors: Any, ids: Any = None) -> None:
        """Add rows at the end, with the given or the next ids: all of them or, on error, none."""
        if vectors.shape[1] != self._n_features:
            raise ValueError(
                f"vectors must have {self._n_features} features; got {vectors.shape[1]}"
            )
        if sparse.issparse(vectors) != (len(self._columns) == 3):
            kind = "sparse" if len(self._columns) == 3 else "dense"
            raise TypeError(f"vectors must be {kind}, as the rows stored before are")
        parts = _parts(vectors)
        new = self._new_ids(ids, vectors.shape[0], taken=self._row_of)
        if len(parts) == 3:  # ends of the new rows count on from the last one
            parts[2] = parts[2] + len(self._columns[0].values)
        for column, part in zip([*self._columns, self._ids], [*parts, new], strict=True):
            column.extend(part)
        self.__dict__.pop("_row_of", None)

    def rows_of(self, ids: Any) -> Array:
        """Rows that carry `ids`, in their order."""
        try:
            rows = [self._row_of[name] for name in np.asarray(ids).tolist()]
        except KeyError as error:
            raise KeyError(f"no row has the id {error.args[0]!r}") from None
        return np.array(rows, dtype=np.intp)

    @cached_property
    def _row_of(self) -> dict[Any, int]:
        return {name: row for row, name in enumerate(self.ids.tolist())}

    def _new_ids(self, ids: Any, n: int, taken: dict[Any, int] | None) -> Array:
        if ids is None:
            if taken and self.ids.dtype.kind not in "iu":
                raise ValueError("ids must be given: the rows stored before have names")
            new = np.arange(self._next_id, self._next_id + n)
        else:
            new = np.asarray(ids)
            check_same_length(ids=len(new), vectors=n)
            if new.dtype.kind not in "iuU":
                raise TypeError(f"ids must be integers or strings; got {new.dtype}")
            if new.dtype.kind == "u":  # unsigned and signed integers would promote to floats
                new = new.astype(np.int64)
            if taken and (new.dtype.kind == "U") != (self.ids.dtype.kind == "U"):
                raise TypeError(f"ids must be like those before, {self.ids.dtype}; got {new.dtype}")
            values, counts = np.unique(new, return_counts=True)
            again = counts > (np.array([name not in (taken or ()) for name in values.tolist()]))
            if again.any():
                raise ValueError(f"ids must be unique; {values[again][0].item()!r} is given twice")
        if n and new.dtype.kind in "iu":
            self._next_id = max(self._next_id, int(new.max()) + 1)
        return new


class _Growing:
    """An array that grows along its first axis; its room doubles, so that appending is cheap."""

    def __init__(self, values: Array) -> None:
        self._room, self._length = values, len(values)

    @property
    def values(self) -> Array:
        return self._room[: self._length]

    def extend(self, values: Array) -> None:
        length = self._length + len(values)
        dtype = np.promote_types(self._room.dtype, values.dtype)
        if length > len(self._room) or dtype != self._room.dtype or not self._owns:
            room = np.empty((max(length, 2 * self._length), *self._room.shape[1:]), dtype)
            room[: self._length] = self.values
            self._room = room
        self._room[self._length : length] = values
        self._length = length

    @property
    def _owns(self) -> bool:
        """Whether there is room behind the values, which there never is in a user's own array."""
        return len(self._room) > self._length


def _parts(vectors: Any) -> list[Array]:
    """The arrays that hold the rows: one of a dense matrix, three of a CSR one."""
    if not sparse.issparse(vectors):
        return [vectors]
    return [vectors.data, vectors.indices, vectors.indptr[1:]]
