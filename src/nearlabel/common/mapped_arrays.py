"""Arrays that stay in a file, mapped into memory, and are checked block by block on access."""

from __future__ import annotations

import os
from mmap import mmap
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, Self, cast

import numpy as np

from nearlabel.common.arrays import Array


class BlockChecks(Protocol):
    """The checksums in a file for the blocks of one of its arrays."""

    size: int  # bytes of a block; the last one may be shorter

    def check(self, block: int, content: Array) -> None:
        """Raise an error that names the file if the bytes of a block are not as written."""


class MappedArray(np.memmap[Any, Any]):
    """An array in a file, each block of which is compared with its checksum on first access.

    Rows by index or slice, ufuncs and NumPy's functions return checked data as plain arrays.
    `np.asarray` and the array's methods read its memory unchecked: to use these, or to pass the
    array to a kernel, take its `checked()` form.
    """

    _checks: BlockChecks | None = None  # arrays that NumPy derives from this one have none
    _file: tuple[int, int]  # device and inode of the file, whatever its name is now
    _is_right: Array

    @classmethod
    def of(
        cls,
        file: BinaryIO,
        place: int,
        dtype: Any,
        shape: Any,
        checks: BlockChecks,
        mode: Literal["r", "c"] = "r",
    ) -> Self:
        """Map the bytes of an open file that begin at `place`: read-only, or copy-on-write."""
        mapped: Any = np.memmap.__new__(cls, file, dtype, mode, place, shape)
        mapped._checks = checks
        mapped._file = _identity(file)
        mapped._is_right = np.zeros(-(-mapped.nbytes // checks.size), bool)
        return cast(Self, mapped)

    def checked(self, start: int | None = None, stop: int | None = None) -> Array:
        """The rows from `start` to before `stop` as a plain view, after checking their blocks."""
        self._check_rows(*slice(start, stop).indices(len(self))[:2])
        return self.view(np.ndarray)[start:stop]

    def checked_rows(self, rows: Any) -> Array:
        """A copy of some rows, after checking their blocks."""
        gathered: Array = self.view(np.ndarray)[rows]
        if not self._is_right.all():
            rows = np.asarray(rows)
            rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
            row_bytes, blocks = self.nbytes // len(self), len(self._is_right)
            start = rows.reshape(-1) % len(self) * row_bytes
            first, after = (
                np.bincount(at // self._known_checks().size, minlength=blocks + 1)
                for at in (start, start + row_bytes - 1 + self._known_checks().size)
            )
            self._check(np.flatnonzero(np.cumsum(first - after)[:blocks]))
        return gathered

    def private(self) -> Array:
        """The array mapped anew so that it can be changed, which does not change the file.

        Rows must be `checked()` before they are written to. If the file was replaced or removed
        since, this is a copy in memory.
        """
        try:
            with Path(str(self.filename)).open("rb") as file:
                if _identity(file) == self._file:
                    checks = self._known_checks()
                    private = self.of(file, self.offset, self.dtype, self.shape, checks, mode="c")
                    private._is_right = self._is_right.copy()
                    return private
        except FileNotFoundError:
            pass
        return self.checked().copy()

    def _known_checks(self) -> BlockChecks:
        if self._checks is None:
            raise TypeError("cannot check a part of a mapped array; call checked() on all of it")
        return self._checks

    def _check_rows(self, start: int, stop: int) -> None:
        size, row_bytes = self._known_checks().size, self.nbytes // len(self)
        if start < stop and not self._is_right.all():
            self._check(np.arange(start * row_bytes // size, -(-stop * row_bytes // size)))

    def _check(self, blocks: Array) -> None:
        """Check blocks, except those checked before.

        Two threads that reach a block at the same time both check it; neither waits.
        """
        checks, content = self._known_checks(), self.view(np.ndarray).reshape(-1).view(np.uint8)
        for block in blocks[~self._is_right[blocks]].tolist():
            checks.check(block, content[block * checks.size : (block + 1) * checks.size])
            self._is_right[block] = True

    def __getitem__(self, place: Any) -> Any:
        first = place[0] if isinstance(place, tuple) and place else place
        if isinstance(first, slice) and first.step in (None, 1):
            self.checked(first.start, first.stop)
        elif isinstance(place, np.ndarray) and place.ndim == 1:
            return self.checked_rows(place)
        elif isinstance(first, int | np.integer) and not isinstance(first, bool):
            self.checked_rows(first)
        else:
            self.checked()
        return self.view(np.ndarray)[place]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*checked_tree(inputs), **checked_tree(options))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*checked_tree(args), **checked_tree(kwargs))

    def __reduce__(self) -> Any:  # a copy, by pickle or otherwise, is a plain array
        return self.checked().__reduce__()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.checked().copy()


_INNER = (dict, list, tuple, MappedArray)  # a list of a million names contains none of these


def checked(array: Array) -> Array:
    """An array as a plain one, completely checked; free for one that is not mapped."""
    return array.checked() if isinstance(array, MappedArray) else array


def checked_rows(array: Array, rows: Any) -> Array:
    """Some rows of an array; if it is mapped, after checking their blocks."""
    found: Array = array.checked_rows(rows) if isinstance(array, MappedArray) else array[rows]
    return found


def checked_tree(node: Any) -> Any:
    """Dicts, lists and tuples with every array in them `checked`."""
    if isinstance(node, dict):
        return {key: checked_tree(value) for key, value in node.items()}
    if type(node) in (list, tuple):
        return type(node)(checked_tree(one) if isinstance(one, _INNER) else one for one in node)
    return checked(node)


def _identity(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def is_mapped(array: Array) -> bool:
    """Whether an array is mapped copy-on-write: a page is copied when it is written to."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return isinstance(array.base, mmap)
