"""Label sets of rows, with additions and replacements."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr, csr_of_known
from nearlabel.common.growing import Grown

_MOST_SMALL = np.iinfo(np.int32).max


class LabelRows:
    """An immutable label matrix from which others are made.

    Added rows are appended in the same memory; replacing rows copies the matrix.

    Parameters
    ----------
    matrix : csr_array of ones, shape (n, q)
    """

    def __init__(self, matrix: Csr, parts: tuple[Grown, Grown, Grown] | None = None) -> None:
        self.matrix = matrix
        self._parts = parts

    def __reduce__(self) -> Any:
        return LabelRows, (self.matrix,)

    def added(self, rows: Csr) -> LabelRows:
        """With further rows, which may have further columns."""
        matrix, (m, q) = self.matrix, rows.shape
        data, indices, indptr = self._parts or (
            Grown(part) for part in (matrix.data, matrix.indices, matrix.indptr)
        )
        if matrix.nnz + rows.nnz > _MOST_SMALL and indptr.array.dtype == np.int32:
            indices, indptr = (Grown(part.array.astype(np.int64)) for part in (indices, indptr))
        data, indices = data.added(rows.data), indices.added(rows.indices)
        indptr = indptr.added(matrix.nnz + rows.indptr[1:].astype(np.int64))
        parts = data, indices, indptr
        arrays = data.array, indices.array, indptr.array
        return LabelRows(csr_of_known(*arrays, (matrix.shape[0] + m, q)), parts)

    def replaced(self, places: Array, rows: Csr) -> LabelRows:
        """With new labels for the rows at `places`, unique and in any order."""
        matrix, order = self.matrix, np.argsort(places, kind="stable")
        places, rows = np.asarray(places)[order], rows[order]
        sizes = np.diff(matrix.indptr).astype(np.int64)
        sizes[places] = np.diff(rows.indptr)
        begin, end = matrix.indptr[places], matrix.indptr[places + 1]
        pieces = []
        for after, before, one, two in zip(
            [0, *end.tolist()],
            [*begin.tolist(), None],
            rows.indptr,
            [*rows.indptr[1:], 0],
            strict=True,
        ):
            pieces += [matrix.indices[after:before], rows.indices[one:two]]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices = np.concatenate(pieces)
        data = np.ones(len(indices), matrix.data.dtype)
        shape = matrix.shape[0], rows.shape[1]
        return LabelRows(csr_of_known(data, indices, indptr, shape))
