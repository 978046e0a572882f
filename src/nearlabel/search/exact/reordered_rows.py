"""Rows in another order: in memory, or in a temporary file if they are large."""

from __future__ import annotations

import errno
import shutil
import tempfile
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.search.budgets import ELEMENTS_AT_ONCE

_KEPT_BYTES = 2**31  # in memory up to this size
_LINE = 64  # bytes of a line of the cache


class ReorderedRows:
    """Dense rows that are stored in another order than that of their numbers.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
        A mapped array stays mapped.
    order : ndarray of int, shape (n,)
        The number of each row.
    """

    def __init__(self, rows: Array, order: Array) -> None:
        self.rows, self.order = rows, order
        self._place = np.empty_like(order)
        self._place[order] = np.arange(len(order), dtype=order.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and features."""
        return self.rows.shape

    @property
    def dtype(self) -> Any:
        """The type of the entries."""
        return self.rows.dtype

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, numbers: Any) -> Array:
        """Some rows, a slice or an array of their numbers."""
        return np.asarray(self.rows[self._place[numbers]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All rows in the order of their numbers."""
        if copy is False:
            raise ValueError("reordered rows cannot be converted to an array without a copy")
        rows = np.empty(self.shape, self.dtype if dtype is None else dtype)
        step = max(1, ELEMENTS_AT_ONCE // self.shape[1])
        for start in range(0, len(self), step):
            rows[self.order[start : start + step]] = self.rows[start : start + step]
        return rows


def ordered_rows(vectors: Any, order: Array, kind: Any) -> Array:
    """A copy of dense rows in the given order, as floats of one type.

    A temporary file has no name, so that nothing of it is left, however the program ends. It is
    written as a file, not as a memory map, so that a full disk is an error, not a crash.
    """
    shape = len(order), vectors.shape[1]
    size = shape[0] * shape[1] * np.dtype(kind).itemsize
    step = max(1, ELEMENTS_AT_ONCE // shape[1])
    if size <= _KEPT_BYTES:
        rows = _aligned(shape, kind)
        for start in range(0, len(order), step):
            rows[start : start + step] = vectors[order[start : start + step]]
        return rows
    try:
        if shutil.disk_usage(tempfile.gettempdir()).free < size:
            raise OSError(errno.ENOSPC, "no space left on device")
        with tempfile.TemporaryFile(prefix="nearlabel-") as file:
            for start in range(0, len(order), step):
                part = vectors[order[start : start + step]]
                file.write(np.ascontiguousarray(part, kind).data)
            file.flush()
            return np.memmap(file, kind, "r", shape=shape)
    except OSError as error:
        raise OSError(
            error.errno,
            f"a temporary copy of the vectors, {size / 2**30:.1f} GiB, could not be written to "
            f"{tempfile.gettempdir()} ({error.strerror}); it was removed. Free space there, "
            "or set TMPDIR to another folder",
        ) from error


def _aligned(shape: tuple[int, ...], kind: Any) -> Array:
    """An empty array that begins at a cache line, as loads of a whole line should."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.empty(size + _LINE, np.uint8)
    first = -memory.ctypes.data % _LINE
    aligned: Array = memory[first : first + size].view(kind)
    return aligned.reshape(shape)
