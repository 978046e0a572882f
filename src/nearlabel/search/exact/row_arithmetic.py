"""Arithmetic on rows, dense or CSR: the same values in both forms, sums in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats, row_numbers, with_data
from nearlabel.search.budgets import ELEMENTS_AT_ONCE


def chunks(vectors: Any, width: int) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of rows with few elements, given `width` elements per row, with their places."""
    step = max(1, ELEMENTS_AT_ONCE // width)
    for start in range(0, vectors.shape[0], step):
        place = slice(start, min(start + step, vectors.shape[0]))
        yield place, vectors[place]


def unit_rows(vectors: Any) -> Any:
    """Rows of Euclidean length one in float64; zero rows are kept."""
    exponents, lengths = unit_scales(vectors)
    vectors = _scale(as_float(vectors), -exponents, np.ldexp)
    return _scale(vectors, np.where(lengths > 0, lengths, 1.0), np.divide)


def unit_scales(vectors: Any) -> tuple[Array, Floats]:
    """Exponents e and lengths of unit rows: (row / 2**e) / length; 0 for zero rows."""
    vectors = as_float(vectors)
    # A power of two scales the largest entry to about 1 without rounding: no square overflows.
    exponents = np.frexp(largest_entries(vectors))[1]
    vectors = _scale(vectors, -exponents, np.ldexp)
    return exponents, np.sqrt(sum_in_feature_order(squared(vectors)))


def as_float(vectors: Any) -> Any:
    """Rows as float64, dense or CSR, copied only if necessary."""
    return vectors.astype(np.float64, copy=False)


def float_kind(vectors: Any) -> Any:
    """The smaller of float32 and float64 that represents the numbers of these rows."""
    return np.float32 if np.can_cast(vectors.dtype, np.float32) else np.float64


def _scale(vectors: Any, factors: Array, operation: Any) -> Any:
    """Apply `operation` to each entry and its row's factor."""
    if not sparse.issparse(vectors):
        return operation(vectors, factors[:, None])
    return with_data(vectors, operation(vectors.data, factors[row_numbers(vectors)]))


def squared(vectors: Any) -> Any:
    """Each entry squared."""
    if not sparse.issparse(vectors):
        return vectors * vectors
    return with_data(vectors, vectors.data * vectors.data)


def sum_in_feature_order(terms: Any) -> Floats:
    """Row sums, adding one entry after another, for dense and CSR rows alike."""
    if sparse.issparse(terms):  # bincount adds its weights in their order
        terms.sort_indices()
        rows, n = row_numbers(terms), terms.shape[0]
        return np.asarray(np.bincount(rows, weights=terms.data, minlength=n), np.float64)
    return np.asarray(np.add.accumulate(terms, axis=1)[:, -1], np.float64)


def squared_lengths(vectors: Any) -> Floats:
    """Squared lengths of rows, in any order of addition."""
    if sparse.issparse(vectors):
        return sum_in_feature_order(squared(vectors))
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors), np.float64)


def largest_entries(vectors: Any) -> Floats:
    """The largest absolute entry of each row."""
    if not sparse.issparse(vectors):
        return np.asarray(np.abs(vectors).max(axis=1), np.float64)
    largest = np.zeros(vectors.shape[0])
    np.maximum.at(largest, row_numbers(vectors), np.abs(vectors.data))
    return largest


def share_features(A: Any, B: Any) -> Array:
    """Whether row i of A and row i of B have a common nonzero feature."""
    if not sparse.issparse(A):
        return np.asarray(((A != 0) & (B != 0)).any(axis=1))
    return np.asarray((A != 0).multiply(B != 0).sum(axis=1) > 0)


def dense_rows(vectors: Any) -> Array:
    """Rows as a dense array, of float64 or bool."""
    dense: Array = vectors.toarray() if sparse.issparse(vectors) else vectors
    return dense if dense.dtype == bool else as_float(dense)


def points_of(vectors: Any, metric: str) -> Floats:
    """Rows whose differences matter, dense: unit rows for cosine."""
    is_cosine, d = metric == "cosine", vectors.shape[1]
    parts = [unit_rows(rows) if is_cosine else rows for _, rows in chunks(vectors, d)]
    return np.concatenate([dense_rows(part) for part in parts])


def typical_length(vectors: Any) -> int:
    """Entries stored by a typical row, or by the difference of two."""
    if sparse.issparse(vectors):
        return min(2 + 2 * int(vectors.nnz // vectors.shape[0]), int(vectors.shape[1]))
    return int(vectors.shape[1])


def most_terms(vectors: Any, queries: Any) -> int:
    """The largest number of terms in a sum over the features of two rows."""
    if sparse.issparse(vectors):
        return int(np.diff(vectors.indptr).max() + np.diff(queries.indptr).max())
    return int(vectors.shape[1])
