"""Arrays to whose end rows are added, without a copy and without a change of what was there."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array

_GROWTH = 8  # a buffer that is full grows by one part in so many, at least


class Grown:
    """An array that never changes, and from which a longer one is made by adding rows.

    The longer one shares the memory of the shorter, as long as there is room behind it that nobody
    else has taken: who adds to an old state a second time gets a copy.

    Examples
    --------
    >>> short = Grown(np.array([1, 2]))
    >>> short.added(np.array([3])).array, short.array
    (array([1, 2, 3]), array([1, 2]))
    """

    def __init__(self, array: Array, buffer: _Buffer | None = None) -> None:
        self.array = array
        self._buffer = buffer

    def __reduce__(self) -> Any:  # what is behind the array is nobody's business
        return Grown, (self.array,)

    def __len__(self) -> int:
        return len(self.array)

    def added(self, rows: Array) -> Grown:
        """The array with some rows more."""
        n, end = len(self.array), len(self.array) + len(rows)
        buffer = self._buffer
        if buffer is None or buffer.used != n or end > len(buffer.memory):
            room = max(end, n + n // _GROWTH + 1)
            # Of zeros: what was freed before, a forgotten row perhaps, is not kept in there.
            buffer = _Buffer(np.zeros((room, *self.array.shape[1:]), self.array.dtype))
            buffer.memory[:n] = self.array
        buffer.memory[n:end] = rows
        buffer.used = end
        return Grown(buffer.memory[:end], buffer)


class _Buffer:
    """Memory, and how much of it belongs to the longest array."""

    def __init__(self, memory: Array) -> None:
        self.memory = memory
        self.used = 0
