"""Rows in another order: in memory, or in a file, whose parts are checked when first searched."""

from __future__ import annotations

import errno
import shutil
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from nearlabel.common import engine
from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError
from nearlabel.common.threads import ForkSafeLock
from nearlabel.search.budgets import ELEMENTS_AT_ONCE
from nearlabel.search.exact.row_arithmetic import CoreObject, float_kind, unit_scales

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
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self.rows.dtype

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, numbers: Array | slice) -> Array:
        """Some rows, a slice or an array of their numbers."""
        return np.asarray(self.rows[self._place[numbers]])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """All rows in the order of their numbers."""
        if copy is False:
            raise ValueError("reordered rows cannot be converted to an array without a copy")
        rows = np.empty(self.shape, self.dtype if dtype is None else dtype)
        step = max(1, ELEMENTS_AT_ONCE // self.shape[1])
        for start in range(0, len(self), step):
            rows[self.order[start : start + step]] = self.rows[start : start + step]
        return rows


def ordered_rows(vectors: Array, order: Array, kind: npt.DTypeLike) -> Array:
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


def _aligned(shape: tuple[int, ...], kind: npt.DTypeLike) -> Array:
    """An empty array that begins at a cache line, as loads of a whole line should."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.empty(size + _LINE, np.uint8)
    first = -memory.ctypes.data % _LINE
    aligned: Array = memory[first : first + size].view(kind)
    return aligned.reshape(shape)


class RowsFromFile:
    """Rows from a file, in the order of lists, each list prepared when it is first searched.

    A model file is mapped into memory, and nothing of it has been read when the first query
    arrives. To answer it quickly, only the lists that it probes are checked and packed.

    Parameters
    ----------
    source : ndarray, shape (n, d)
        A mapped array checks its blocks when rows are taken by index.
    starts : ndarray of int, shape (n_lists + 1,)

    Attributes
    ----------
    rows : ndarray of float, shape (n, d)
        To be read only after `touch`.
    """

    def __init__(self, source: Array, starts: Array) -> None:
        self.source, self._starts = source, starts
        kind = float_kind(source)
        self._is_read_in_place = source.dtype == kind and source.dtype.isnative
        self.rows = np.asarray(source) if self._is_read_in_place else np.empty(source.shape, kind)
        self._scales = np.zeros(0, np.int32), np.zeros(0)
        self._is_seen = np.zeros(len(starts) - 1, bool)
        self._lock = ForkSafeLock()

    def as_core_rows(self, metric: str) -> CoreObject:
        """The rows in the form that the core measures; to be read after `touch`."""
        if metric == "cosine":
            self._scales = np.zeros(len(self.rows), np.int32), np.zeros(len(self.rows))
        return engine.core().dense_rows(self.rows, metric, *self._scales)

    def touch(self, lists: Array | int) -> None:
        """Check the rows of some lists, which may then be read."""
        for number in np.unique(lists):
            if not self._is_seen[number]:
                with self._lock.held():
                    self._look_at(slice(*self._starts[number : number + 2].tolist()))
                    self._is_seen[number] = True

    def _look_at(self, places: slice) -> None:
        part = np.asarray(self.source[places])  # checks its blocks
        if not np.isfinite(part).all():
            path = getattr(self.source, "filename", None) or "the model's file"
            raise FileError(f"{path} is damaged: its vectors contain a number that is not finite")
        if not self._is_read_in_place:
            self.rows[places] = part
        if len(self._scales[1]) and len(part):
            exponents, lengths = self._scales
            exponents[places], lengths[places] = unit_scales(part)
