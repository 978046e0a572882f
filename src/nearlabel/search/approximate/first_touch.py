"""Rows of lists that are prepared when their list is first searched.

A model file is mapped into memory, and nothing of it has been read when the first query arrives.
To answer it quickly, only the lists that it probes are checked and packed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError
from nearlabel.common.threads import ForkSafeLock
from nearlabel.search.exact.packed_bounds import DenseBounds
from nearlabel.search.exact.row_arithmetic import float_kind, unit_scales


class RowsFromFile:
    """Rows from a file, in the order of lists.

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

    def __init__(self, source: Any, starts: Array) -> None:
        self.source, self._starts = source, starts
        kind = float_kind(source)
        self._is_read_in_place = source.dtype == kind and source.dtype.isnative
        self.rows = np.asarray(source) if self._is_read_in_place else np.empty(source.shape, kind)
        self._scales = np.zeros(0, np.int32), np.zeros(0)
        self._is_seen = np.zeros(len(starts) - 1, bool)
        self._lock = ForkSafeLock()

    def as_core_rows(self, metric: str) -> Any:
        """The rows in the form that the core measures; to be read after `touch`."""
        if metric == "cosine":
            self._scales = np.zeros(len(self.rows), np.int32), np.zeros(len(self.rows))
        return engine.core().dense_rows(self.rows, metric, *self._scales)

    def touch(self, lists: Any) -> None:
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


class PackedLists:
    """Rows packed for bounds, list by list at the first search; see `PackedStripes`.

    Parameters
    ----------
    bounds : DenseBounds
    rows : Rows of the core
    starts : ndarray of int, shape (n_lists + 1,)
    kept_bytes : int
        Packed lists are cached up to this size.
    first : RowsFromFile, optional
        The source of the rows.
    """

    def __init__(
        self,
        bounds: DenseBounds,
        rows: Any,
        starts: Array,
        kept_bytes: int,
        first: RowsFromFile | None = None,
    ) -> None:
        self.errors = np.zeros(len(rows), np.float32)
        self._bounds, self._rows, self._first = bounds, rows, first
        self._starts = starts.tolist()
        self._kept: dict[int, Array] = {}
        self._bytes_left = kept_bytes
        self._lock = ForkSafeLock()

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> Array:
        kept = self._kept.get(number)
        if kept is not None:
            return kept
        if self._first is not None:
            self._first.touch(number)
        places = slice(self._starts[number], self._starts[number + 1])
        factors, errors = self._bounds.pack(None, self._rows, places, number)
        packed: Array = factors
        with self._lock.held():
            self.errors[places] = errors  # two concurrent threads write the same values
            if number not in self._kept and packed.nbytes <= self._bytes_left:
                self._kept[number] = packed
                self._bytes_left -= packed.nbytes
        return packed
