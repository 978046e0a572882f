"""Arrays and sparse matrices to which rows are appended without copying what was there."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Csr, csr_of_known

_GROWTH = 8  # a full buffer grows by at least 1/8


class Grown:
    """An immutable array, from which a longer one is made by appending rows.

    The longer array shares the memory of the shorter one while there is free room behind it:
    appending to an old state a second time makes a copy. It has the same type if that represents
    the new rows exactly, otherwise a wider one.

    Examples
    --------
    >>> short = Grown(np.array([1, 2]))
    >>> short.added(np.array([3])).array, short.array
    (array([1, 2, 3]), array([1, 2]))
    """

    def __init__(self, array: Array, buffer: _Buffer | None = None) -> None:
        self.array = array
        self._buffer = buffer

    def __reduce__(self) -> tuple[type[Grown], tuple[Array]]:  # without the memory behind the array
        return Grown, (self.array,)

    def __len__(self) -> int:
        return len(self.array)

    def added(self, rows: Array) -> Grown:
        """The array with further rows appended."""
        array, buffer = self.array, self._buffer
        if not _holds(array.dtype, rows):
            array, buffer = array.astype(np.result_type(array, rows)), None
        n, end = len(array), len(array) + len(rows)
        if buffer is None or buffer.used != n or end > len(buffer.memory):
            room = max(end, n + n // _GROWTH + 1)
            # Zeros, so that freed memory, perhaps with a forgotten row, is not kept in it.
            buffer = _Buffer(np.zeros((room, *array.shape[1:]), array.dtype))
            buffer.memory[:n] = array
        buffer.memory[n:end] = rows
        buffer.used = end
        return Grown(buffer.memory[:end], buffer)


class GrownCsr:
    """The same for a CSR matrix, of which rows can be replaced, too.

    New rows are canonical, and may have further columns.
    """

    def __init__(self, array: Csr, parts: tuple[Grown, Grown, Grown] | None = None) -> None:
        self.array = array
        self._parts = parts

    def __reduce__(self) -> tuple[type[GrownCsr], tuple[Csr]]:
        return GrownCsr, (self.array,)

    def added(self, rows: Csr) -> GrownCsr:
        """The matrix with further rows appended."""
        csr, (m, q) = self.array, rows.shape
        data, indices, indptr = self._parts or map(Grown, (csr.data, csr.indices, csr.indptr))
        data, indices = data.added(rows.data), indices.added(rows.indices)
        indptr = indptr.added(csr.nnz + rows.indptr[1:].astype(np.int64))
        arrays = data.array, indices.array, indptr.array
        return GrownCsr(csr_of_known(*arrays, (csr.shape[0] + m, q)), (data, indices, indptr))

    def replaced(self, places: Array, rows: Csr) -> GrownCsr:
        """A copy of the matrix with other rows at `places`, unique and in any order."""
        csr, order = self.array, np.argsort(places, kind="stable")
        places, rows = np.asarray(places)[order], rows[order]
        sizes = np.diff(csr.indptr).astype(np.int64)
        sizes[places] = np.diff(rows.indptr)
        begin, end = csr.indptr[places].tolist(), csr.indptr[places + 1].tolist()
        stays = zip([0, *end], [*begin, None], strict=True)
        comes = zip(rows.indptr, [*rows.indptr[1:], 0], strict=True)
        pieces = [(slice(*old), slice(*new)) for old, new in zip(stays, comes, strict=True)]

        def joined(old: Array, new: Array) -> Array:
            return np.concatenate([part for one, two in pieces for part in (old[one], new[two])])

        data, indices = joined(csr.data, rows.data), joined(csr.indices, rows.indices)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return GrownCsr(csr_of_known(data, indices, indptr, (csr.shape[0], rows.shape[1])))


class _Buffer:
    """A buffer, and how much of it the longest array uses."""

    def __init__(self, memory: Array) -> None:
        self.memory = memory
        self.used = 0


def _holds(kind: np.dtype[np.generic], values: Array) -> bool:
    """Whether a type represents some values exactly."""
    if np.can_cast(values.dtype, kind):
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.array_equal(values.astype(kind), values))
