"""Names of array types, and what several layers need of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Csr = Any  # scipy ships no types: a scipy.sparse.csr_array


def canonical_csr(matrix: Any) -> Csr:
    """`matrix` as a ``csr_array`` with sorted rows and no duplicates.

    Shares the memory of a CSR input that is so already; copies any other, so that the caller's
    matrix stays as it was.
    """
    csr = sparse.csr_array(matrix)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def with_data(pattern: Csr, data: Array) -> Csr:
    """A matrix that stores `data` where `pattern` stores its entries; shares their places."""
    return sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)


def row_numbers(matrix: Csr) -> Array:
    """The row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
