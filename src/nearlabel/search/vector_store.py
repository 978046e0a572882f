"""Append-able storage of vectors whose rows have ids that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array
from nearlabel.common.validation import check_same_length


class VectorStore:
    """Vectors in rows, dense or CSR, to which rows can be added.

    Rows are kept as they were given, not copied, until something is appended and all are asked for
    again: a read-only memory map stays one.

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
        self._parts = [vectors]
        self._row_of: dict[Any, int] | None = None  # made when it is asked for
        self._next_id = vectors.shape[0]
        self.ids = np.arange(self._next_id)  # the id of each row, shape (n,)
        if ids is not None:
            self.ids = _checked_ids(ids, vectors.shape[0], {})
            self._next_id = _after(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def vectors(self) -> Any:
        """All rows in order of arrival, shape (n, d)."""
        if len(self._parts) > 1:
            is_sparse = sparse.issparse(self._parts[0])
            join = sparse.vstack if is_sparse else np.concatenate
            self._parts = [join(self._parts)]
        return self._parts[0]

    def append(self, vectors: Any, ids: Any = None) -> None:
        """Add rows at the end, with the given or the next ids: all of them or, on error, none."""
        (n, width), before = vectors.shape, self._parts[0]
        if width != before.shape[1]:
            raise ValueError(f"vectors must have {before.shape[1]} features; got {width}")
        if sparse.issparse(vectors) != sparse.issparse(before):
            kind = "sparse" if sparse.issparse(before) else "dense"
            raise TypeError(f"vectors must be {kind}, as the rows stored before are")
        row_of = self._rows_by_id()
        if ids is not None:
            new = _checked_ids(ids, n, row_of)
            if len(self) and (new.dtype.kind == "U") != (self.ids.dtype.kind == "U"):
                raise TypeError(f"ids must be like those before, {self.ids.dtype}; got {new.dtype}")
        elif self.ids.dtype.kind == "U" and len(self):
            raise ValueError("ids must be given: the rows stored before have names")
        else:
            new = np.arange(self._next_id, self._next_id + n)
        row_of.update(zip(new.tolist(), range(len(self), len(self) + n), strict=True))
        self._parts.append(vectors)
        self.ids = np.concatenate([self.ids, new])
        self._next_id = max(self._next_id, _after(new))

    def rows_of(self, ids: Any) -> Array:
        """Rows that carry `ids`, in their order."""
        row_of = self._rows_by_id()
        try:
            return np.array([row_of[name] for name in np.asarray(ids).tolist()], np.intp)
        except KeyError as error:
            raise KeyError(f"no row has the id {error.args[0]!r}") from None

    def _rows_by_id(self) -> dict[Any, int]:
        if self._row_of is None:
            self._row_of = {name: row for row, name in enumerate(self.ids.tolist())}
        return self._row_of


def _checked_ids(ids: Any, n: int, taken: dict[Any, int]) -> Array:
    """Unique ids of n rows, none of them taken already."""
    new = np.asarray(ids)
    if new.dtype == object and all(isinstance(name, str) for name in new):  # as pandas has them
        new = np.array(new.tolist(), dtype=np.str_)
    check_same_length(ids=len(new), vectors=n)
    if new.dtype.kind not in "iuU":
        raise TypeError(f"ids must be integers or strings; got {new.dtype}")
    if new.dtype.kind == "u":  # unsigned and signed integers would promote to floats
        new = new.astype(np.int64)
    values, counts = np.unique(new, return_counts=True)
    for name, count in zip(values.tolist(), counts.tolist(), strict=True):
        if count > 1 or name in taken:
            raise ValueError(f"ids must be unique; {name!r} is given twice")
    return new


def _after(ids: Array) -> int:
    """The number after the largest id; 0 for names."""
    return int(ids.max()) + 1 if ids.dtype.kind == "i" and len(ids) else 0
