"""Arrays that stay in a file, mapped into memory, and are checked block by block on access."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Self, cast

import numpy as np
import numpy.typing as npt

from nearlabel.common.arrays import Array


class MappedArray(np.memmap[Any, Any]):
    """An array in a file, each block of which is compared with its checksum on first access.

    Rows by index or slice, ufuncs and NumPy's functions return checked data as plain arrays.
    `np.asarray` and the array's methods read its memory unchecked: to use these, or to pass the
    array to a kernel, take its `checked()` form.
    """

    _block_size = 0  # bytes; 0 in arrays that NumPy derives from this one, which have no checks
    _check_block: Callable[[int, Array], None]
    _is_right: Array

    def __new__(
        cls,
        file: BinaryIO,
        place: int,
        dtype: npt.DTypeLike,
        shape: tuple[int, ...],
        block_size: int,
        check_block: Callable[[int, Array], None],
    ) -> Self:
        """Map the bytes of an open file that begin at `place`, read-only.

        `check_block` raises an error that names the file if the bytes of a block with this number
        are not as written. The last block may be shorter.
        """
        self: Any = super().__new__(cls, file, dtype, "r", place, shape)
        self._block_size, self._check_block = block_size, check_block
        self._is_right = np.zeros(-(-self.nbytes // block_size), bool)
        return cast(Self, self)

    def checked(self, start: int | None = None, stop: int | None = None) -> Array:
        """The rows from `start` to before `stop` as a plain view, after checking their blocks."""
        first, end, _ = slice(start, stop).indices(len(self))
        size, row_bytes = self._checked_size(), self.nbytes // len(self)
        if first < end and not self._is_right.all():
            self._check(np.arange(first * row_bytes // size, -(-end * row_bytes // size)))
        return self.view(np.ndarray)[start:stop]

    def checked_rows(self, rows: Any) -> Array:
        """A copy of some rows, after checking their blocks."""
        gathered: Array = self.view(np.ndarray)[rows]
        if not self._is_right.all():
            rows = np.asarray(rows)
            places = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
            row_bytes, blocks = self.nbytes // len(self), len(self._is_right)
            start, size = places.reshape(-1) % len(self) * row_bytes, self._checked_size()
            first, after = (
                np.bincount(at // size, minlength=blocks + 1)
                for at in (start, start + row_bytes - 1 + size)
            )
            self._check(np.flatnonzero(np.cumsum(first - after)[:blocks]))
        return gathered

    def _checked_size(self) -> int:
        if not self._block_size:
            raise TypeError("cannot check a part of a mapped array; call checked() on all of it")
        return self._block_size

    def _check(self, blocks: Array) -> None:
        """Check blocks, except those checked before.

        Two threads that reach a block at the same time both check it; neither waits.
        """
        size, content = self._checked_size(), self.view(np.ndarray).reshape(-1).view(np.uint8)
        for block in blocks[~self._is_right[blocks]].tolist():
            self._check_block(block, content[block * size : (block + 1) * size])
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

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> Any:
        return getattr(ufunc, method)(*checked_tree(inputs), **checked_tree(options))

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: Iterable[object],
        kwargs: Mapping[str, object],
    ) -> Any:
        return function(*checked_tree(args), **checked_tree(kwargs))

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A copy, by pickle or otherwise, is a plain array."""
        return self.checked().__reduce__()

    def __deepcopy__(self, memo: object) -> Any:
        return self.checked().copy()


def checked(array: Array) -> Array:
    """An array as a plain one, completely checked; free for one that is not mapped."""
    return array.checked() if isinstance(array, MappedArray) else array


def checked_tree(node: Any) -> Any:
    """Dicts, lists and tuples with every array in them `checked`."""
    if isinstance(node, dict):
        return {key: checked_tree(value) for key, value in node.items()}
    if type(node) in (list, tuple):
        inner = (dict, list, tuple, MappedArray)  # a list of a million names has none of these
        return type(node)(checked_tree(v) if isinstance(v, inner) else v for v in node)
    return checked(node)
