"""Arrays to which rows are appended without copying or changing what was there."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array

_GROWTH = 8  # a full buffer grows by at least 1/8


class Grown:
    """An immutable array, from which a longer one is made by appending rows.

    The longer array shares the memory of the shorter one while there is free room behind it:
    appending to an old state a second time makes a copy.

    Examples
    --------
    >>> short = Grown(np.array([1, 2]))
    >>> short.added(np.array([3])).array, short.array
    (array([1, 2, 3]), array([1, 2]))
    """

    def __init__(self, array: Array, buffer: _Buffer | None = None) -> None:
        self.array = array
        self._buffer = buffer

    def __reduce__(self) -> Any:  # without the spare memory behind the array
        return Grown, (self.array,)

    def __len__(self) -> int:
        return len(self.array)

    def added(self, rows: Array) -> Grown:
        """The array with further rows appended."""
        n, end = len(self.array), len(self.array) + len(rows)
        buffer = self._buffer
        if buffer is None or buffer.used != n or end > len(buffer.memory):
            room = max(end, n + n // _GROWTH + 1)
            # Zeros, so that freed memory, perhaps with a forgotten row, is not kept in it.
            buffer = _Buffer(np.zeros((room, *self.array.shape[1:]), self.array.dtype))
            buffer.memory[:n] = self.array
        buffer.memory[n:end] = rows
        buffer.used = end
        return Grown(buffer.memory[:end], buffer)


class _Buffer:
    """A buffer, and how much of it the longest array uses."""

    def __init__(self, memory: Array) -> None:
        self.memory = memory
        self.used = 0
