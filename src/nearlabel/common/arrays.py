"""Array types, and helpers for sparse matrices that several layers need.

SciPy and scikit-learn ship no types: for mypy, their classes accept and are anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from nearlabel.common.messages import shown

Array = npt.NDArray[Any]  # of any type
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer]
Booleans = npt.NDArray[np.bool_]
Csr: TypeAlias = sparse.csr_array
Matrix = Array | Csr  # checked rows: dense, or a csr_array

Number = int | float | np.number | np.bool_  # one element of an array
Tree = dict[str, Any]  # JSON values and arrays: trees of model files, keyword arguments, records
# What users pass, before it is checked:
MatrixLike = npt.ArrayLike | Csr  # one row per item: lists, an array, a sparse matrix, a table
LabelsLike = MatrixLike | Iterable[object]  # 0/1 rows, the tags of each row, or two classes
Seed = int | np.random.Generator | np.random.RandomState | None  # a `random_state`


# Whether rows are sparse: SciPy's test says nothing to mypy.
is_sparse = cast(Callable[[Matrix], TypeGuard[Csr]], sparse.issparse)


def canonical_csr(matrix: MatrixLike) -> Csr:
    """`matrix` as a ``csr_array`` with sorted rows and no duplicates.

    Shares the memory of a CSR input that is canonical already; copies any other, so that the
    caller's matrix is never modified.
    """
    if isinstance(matrix, np.ndarray) and matrix.ndim == 2:
        # The same check as SciPy's, in one pass over booleans, which is far faster.
        n, width = matrix.shape
        place = np.flatnonzero(matrix != 0)
        indptr = np.searchsorted(place, np.arange(n + 1) * width)
        return csr_of_known(matrix.ravel()[place], place % max(width, 1), indptr, matrix.shape)
    csr = sparse.csr_array(matrix)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def csr_of_known(data: Array, indices: Array, indptr: Array, shape: tuple[int, ...]) -> Csr:
    """A CSR matrix from arrays known to be canonical; with 32-bit indices if they suffice."""
    small = max(int(indptr[-1]), *shape) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64  # SciPy would widen both to the wider one
    parts = (data, indices.astype(kind, copy=False), indptr.astype(kind, copy=False))
    csr = sparse.csr_array(parts, shape=shape)
    csr.has_canonical_format = True  # known, so that SciPy does not check it again
    return csr


def csr_of_parts(data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Csr:
    """A CSR matrix from untrusted arrays, or a ValueError if they do not form one.

    Everything is checked before SciPy sees it: a wrong index would crash the interpreter.
    """
    rows, columns = shape
    are_sizes = isinstance(rows, int) and isinstance(columns, int)
    if not (are_sizes and 0 <= rows < 2**48 and 0 <= columns < 2**31):
        raise ValueError(f"shape {shape} is not valid for a sparse matrix")
    for name, part in (("indices", indices), ("indptr", indptr)):
        if part.ndim != 1 or part.dtype.kind not in "iu":
            raise ValueError(f"{name} must be a 1-d array of integers; got {part.dtype}")
    if data.ndim != 1 or data.dtype.kind not in "biuf" or data.dtype.itemsize not in (1, 2, 4, 8):
        raise ValueError(f"data must be a 1-d array of numbers; got {data.dtype}")
    if data.dtype == np.float16 or not all(p.dtype.isnative for p in (data, indices, indptr)):
        raise ValueError("SciPy does not support sparse matrices of these types")
    ends = len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
    if not ends or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError("indptr must rise from 0 to the number of entries and never decrease")
    if len(indices) and not 0 <= indices.min() <= indices.max() < columns:
        raise ValueError(f"indices must be from 0 to {columns - 1}")
    return sparse.csr_array((data, indices, indptr), shape=shape)


def with_data(pattern: Csr, data: Array) -> Csr:
    """A matrix with the sparsity pattern of `pattern` and the values `data`.

    It shares its index arrays with `pattern`: nothing may be sorted or removed in place.
    """
    return sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)


def kernel_array(array: Array, kind: npt.DTypeLike) -> Array:
    """A contiguous array of the given type, as compiled kernels expect; copied only if needed."""
    return np.require(array, kind, ["C", "A"])


def kernel_rows(matrix: Csr) -> tuple[Array, Array]:
    """The indptr and the indices of a CSR matrix as compiled kernels expect them.

    Both have the same type, int32 or int64; copied only if needed.
    """
    types = {matrix.indptr.dtype, matrix.indices.dtype}
    kind = types.pop() if types in ({np.dtype(np.int32)}, {np.dtype(np.int64)}) else np.int64
    return kernel_array(matrix.indptr, kind), kernel_array(matrix.indices, kind)


def kernel_places(places: Array) -> Array:
    """Places of rows in the types of the compiled core: 32 or 64 bits, and a slice stays one."""
    kind = places.dtype if places.dtype in (np.int32, np.int64) else np.int64
    return np.require(places, kind, "A")


def row_numbers(matrix: Csr) -> Array:
    """The row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))


def row_entries(matrix: Csr, row: int) -> list[tuple[int, Number]]:
    """The columns and the values of a row's stored entries, as Python numbers."""
    inside = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return list(zip(matrix.indices[inside].tolist(), matrix.data[inside].tolist(), strict=True))


def entries_at(matrix: Csr, row: Array, column: Array) -> tuple[Array, Array]:
    """Look up (row, column) pairs in a canonical CSR matrix.

    Returns
    -------
    found : ndarray of bool
        Whether the matrix stores an entry there.
    value : ndarray
        The stored entry; undefined where there is none.
    """
    if not matrix.nnz:
        return np.zeros(len(row), bool), np.zeros(len(row), matrix.dtype)
    width = matrix.shape[1]
    keys = row_numbers(matrix) * width + matrix.indices
    wanted = np.asarray(row, np.int64) * width + column
    at = np.minimum(np.searchsorted(keys, wanted), matrix.nnz - 1)
    return keys[at] == wanted, matrix.data[at]


def runs(work: Array, limit: int) -> Iterator[slice]:
    """Divide rows into runs whose work stays within `limit`; a row over it is its own run."""
    total = np.concatenate([[0], np.cumsum(work)])
    start = 0
    while start < len(work):
        stop = int(np.searchsorted(total, total[start] + limit, side="right")) - 1
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop


def text_array(names: Collection[object]) -> Array:
    """Strings as an array, or a ValueError if it would not keep them unchanged."""
    longest = ""
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"expected a string; got {shown(repr(name))}")
        # A NUL would end the string in an array; an unpaired surrogate cannot be encoded.
        if not name.isprintable() and any(m == "\0" or "\ud800" <= m <= "\udfff" for m in name):
            raise ValueError(f"{shown(name)} contains a NUL or an unpaired surrogate")
        longest = name if len(name) > len(longest) else longest
    if 4 * len(longest) * len(names) > 2**28 and len(longest) > 200:  # bytes: all take its room
        raise ValueError(f"{shown(longest)} has {len(longest)} characters, too many for a name")
    return np.array(names, dtype=np.str_)
