"""Arithmetic on rows, dense or CSR: the same values in both forms, sums in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import (
    Array,
    Floats,
    Matrix,
    is_sparse,
    kernel_array,
    row_numbers,
    with_data,
)
from nearlabel.search.budgets import ELEMENTS_AT_ONCE

CoreObject: TypeAlias = Any  # rows, shortlists and others: the compiled core has no types for mypy

METRICS = ("euclidean", "sqeuclidean", "cosine", "manhattan")


def chunks(vectors: Matrix, width: int) -> Iterator[tuple[slice, Matrix]]:
    """Yield blocks of rows with few elements, given `width` elements per row, with their places."""
    step = max(1, ELEMENTS_AT_ONCE // width)
    for start in range(0, vectors.shape[0], step):
        place = slice(start, min(start + step, vectors.shape[0]))
        yield place, vectors[place]


def unit_rows(vectors: Matrix) -> Matrix:
    """Rows of Euclidean length one in float64; zero rows are kept."""
    exponents, lengths = unit_scales(vectors)
    vectors = _scale(as_float(vectors), -exponents, np.ldexp)
    return _scale(vectors, np.where(lengths > 0, lengths, 1.0), np.divide)


def unit_scales(vectors: Matrix) -> tuple[Array, Floats]:
    """Exponents e and lengths of unit rows: (row / 2**e) / length; 0 for zero rows."""
    vectors = as_float(vectors)
    # A power of two scales the largest entry to about 1 without rounding: no square overflows.
    exponents = np.frexp(largest_entries(vectors))[1]
    vectors = _scale(vectors, -exponents, np.ldexp)
    return exponents, np.sqrt(sum_in_feature_order(squared(vectors)))


def as_float(vectors: Matrix) -> Matrix:
    """Rows as float64, dense or CSR, copied only if necessary."""
    return vectors.astype(np.float64, copy=False)


def float_kind(vectors: Matrix) -> type[np.floating]:
    """The smaller of float32 and float64 that represents the numbers of these rows."""
    return np.float32 if np.can_cast(vectors.dtype, np.float32) else np.float64


def _scale(vectors: Matrix, factors: Array, operation: Callable[[Array, Array], Array]) -> Matrix:
    """Apply `operation` to each entry and its row's factor."""
    if not is_sparse(vectors):
        return operation(vectors, factors[:, None])
    return with_data(vectors, operation(vectors.data, factors[row_numbers(vectors)]))


def squared(vectors: Matrix) -> Matrix:
    """Each entry squared."""
    if not is_sparse(vectors):
        return vectors * vectors
    return with_data(vectors, vectors.data * vectors.data)


def sum_in_feature_order(terms: Matrix) -> Floats:
    """Row sums, adding one entry after another, for dense and CSR rows alike."""
    if is_sparse(terms):  # bincount adds its weights in their order
        terms.sort_indices()
        rows, n = row_numbers(terms), terms.shape[0]
        return np.asarray(np.bincount(rows, weights=terms.data, minlength=n), np.float64)
    return np.asarray(np.add.accumulate(terms, axis=1)[:, -1], np.float64)


def squared_lengths(vectors: Matrix) -> Floats:
    """Squared lengths of rows, in any order of addition."""
    if is_sparse(vectors):
        return sum_in_feature_order(squared(vectors))
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors), np.float64)


def largest_entries(vectors: Matrix) -> Floats:
    """The largest absolute entry of each row."""
    if not is_sparse(vectors):
        return np.asarray(np.abs(vectors).max(axis=1), np.float64)
    largest = np.zeros(vectors.shape[0])
    np.maximum.at(largest, row_numbers(vectors), np.abs(vectors.data))
    return largest


def share_features(A: Matrix, B: Matrix) -> Array:
    """Whether row i of A and row i of B have a common nonzero feature."""
    if not is_sparse(A):
        return np.asarray(((A != 0) & (B != 0)).any(axis=1))
    return np.asarray((A != 0).multiply(B != 0).sum(axis=1) > 0)


def dense_rows(vectors: Matrix) -> Array:
    """Rows as a dense array, of float64 or bool."""
    dense: Array = vectors.toarray() if is_sparse(vectors) else vectors
    return dense if dense.dtype == bool else as_float(dense)


def points_of(vectors: Matrix, metric: str) -> Floats:
    """Rows whose differences matter, dense: unit rows for cosine."""
    is_cosine, d = metric == "cosine", vectors.shape[1]
    parts = [unit_rows(rows) if is_cosine else rows for _, rows in chunks(vectors, d)]
    return np.concatenate([dense_rows(part) for part in parts])


def typical_length(vectors: Matrix) -> int:
    """Entries stored by a typical row, or by the difference of two."""
    if is_sparse(vectors):
        return min(2 + 2 * int(vectors.nnz // vectors.shape[0]), int(vectors.shape[1]))
    return int(vectors.shape[1])


def most_terms(vectors: Matrix, queries: Matrix) -> int:
    """The largest number of terms in a sum over the features of two rows."""
    if is_sparse(vectors) and is_sparse(queries):
        return int(np.diff(vectors.indptr).max() + np.diff(queries.indptr).max())
    return int(vectors.shape[1])


def core_rows(vectors: Matrix, metric: str, copied_bytes: float = np.inf) -> CoreObject:
    """Rows in the form in which the core measures canonical distances.

    None if their type or layout requires a copy that takes too much memory.
    """
    if not is_sparse(vectors):
        step, feature = vectors.strides
        is_plain = (  # floats in C order: read without a copy
            vectors.dtype in (np.float32, np.float64)
            and vectors.dtype.isnative
            and feature == vectors.itemsize
            and step % vectors.itemsize == 0
            and vectors.flags.aligned
        )
        if not is_plain:
            if 8 * vectors.size > copied_bytes:
                return None
            vectors = kernel_array(vectors, float_kind(vectors))
    exponents, lengths = np.empty(0, np.int32), np.empty(0)
    if metric == "cosine":
        parts = [unit_scales(rows) for _, rows in chunks(vectors, typical_length(vectors))]
        exponents, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not is_sparse(vectors):
        return engine.core().dense_rows(np.asarray(vectors), metric, exponents, lengths)
    return engine.core().sparse_rows(
        vectors.indptr.astype(np.int64, copy=False),
        vectors.indices.astype(np.int32, copy=False),
        as_float(vectors).data,
        vectors.shape[1],
        metric,
        exponents,
        lengths,
    )
