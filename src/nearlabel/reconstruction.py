"""The weights by which the neighbors of a query are averaged to come as near to it as they can."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel import engine
from nearlabel.arrays import Array, Floats, row_numbers, runs
from nearlabel.simplex import simplex_weights

_ELEMENTS_AT_ONCE = 2**18  # of differences and products of neighbors: 2 MiB stay in the cache


def reconstruction_weights(vectors: Any, queries: Any, indices: Array) -> Floats:
    """Weights w that make ||t - sum_j w_j x_j||^2 least, w >= 0 and of sum 1, for each query t.

    Parameters
    ----------
    vectors : ndarray or CSR, shape (n, d)
    queries : ndarray or CSR, shape (m, d)
        In the form of `vectors`.
    indices : ndarray of int, shape (m, k)
        The neighbors x_j of each query: rows of `vectors`.

    Returns
    -------
    ndarray of float, shape (m, k)
        See `simplex_weights` for neighbors that leave a choice. Dense and CSR give the same.
    """
    m, k = indices.shape
    weights = np.empty((m, k))
    for rows in runs(_elements(vectors, queries, indices), _ELEMENTS_AT_ONCE):
        differences = _differences(vectors, queries[rows], indices[rows])
        weights[rows] = simplex_weights(_gram_matrices(differences))
    return weights


def _elements(vectors: Any, queries: Any, indices: Array) -> Array:
    """How many numbers the differences and the Gram matrix of each query have, at most."""
    m, k = indices.shape
    d = vectors.shape[1]
    if sparse.issparse(vectors):
        stored = np.diff(vectors.indptr)[indices].sum(axis=1) + np.diff(queries.indptr)
        return k * (np.minimum(stored, d) + k)
    return np.full(m, k * (d + k))


def _differences(vectors: Any, queries: Any, indices: Array) -> Floats:
    """x_j - t, shape (m, k, d), each query's times a power of two that brings the largest near 1.

    Of CSR rows only the features that are not zero in all of them, in their order; what is left
    over for queries with fewer such features is zero.
    """
    m, k = indices.shape
    if sparse.issparse(vectors):
        near, own = _common_columns(vectors[indices.ravel()], queries, k)
    else:
        near, own = vectors[indices], queries
    near = near.astype(np.float64, copy=False)
    own = own.astype(np.float64, copy=False)[:, None]
    # A quarter of huge numbers: their differences are finite.
    if max(np.abs(near).max(initial=0), np.abs(own).max(initial=0)) > 2.0**1000:
        near, own = near / 4, own / 4
    differences = np.subtract(near, own)
    largest = np.maximum(differences.max((1, 2), initial=0), -differences.min((1, 2), initial=0))
    exponent = np.frexp(largest)[1]
    # In two factors: one alone could be too large for a float.
    for part in (exponent // 2, exponent - exponent // 2):
        differences *= np.ldexp(1.0, -part)[:, None, None]
    return np.asarray(differences)


def _common_columns(near: Any, queries: Any, k: int) -> tuple[Floats, Floats]:
    """Dense forms of the neighbors, (m, k, width), and queries, (m, width), by used columns.

    `near` holds the k neighbors of the first query, then those of the second, and so on.
    """
    m, d = queries.shape
    near_row, query_row = row_numbers(near), row_numbers(queries)
    near_keys = near_row // k * d + near.indices
    query_keys = query_row * d + queries.indices
    keys = np.unique(np.concatenate([near_keys, query_keys]))
    begin = np.searchsorted(keys, np.arange(m + 1) * d)
    width = int(np.diff(begin).max(initial=0))
    rows = np.zeros((m * k, width))
    rows[near_row, np.searchsorted(keys, near_keys) - begin[near_row // k]] = near.data
    own = np.zeros((m, width))
    own[query_row, np.searchsorted(keys, query_keys) - begin[query_row]] = queries.data
    return rows.reshape(m, k, width), own


def _gram_matrices(rows: Floats) -> Floats:
    """The products of the rows of each set with each other, (m, k, k) for (m, k, d).

    Each is a sum in the order of the features: equal rows have equal products.
    """
    m, k, d = rows.shape
    core = engine.core()
    if core is None:
        gram = np.zeros((m, k, k))
        for feature in np.moveaxis(rows, 2, 0):
            gram += feature[:, :, None] * feature[:, None, :]
        return gram
    gram = np.empty((m, k, k))
    core.gram_matrices(rows, gram)
    return gram
