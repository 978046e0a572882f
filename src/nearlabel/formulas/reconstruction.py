"""Queries as weighted averages of their neighbors: the best weights, and the residuals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, Floats, Matrix, kernel_array, row_numbers, runs
from nearlabel.formulas.simplex import simplex_weights
from nearlabel.search.exact.index import matching

_ELEMENTS_AT_ONCE = 2**18  # of differences and products of neighbors: 2 MiB stay in the cache


class Reconstruction(NamedTuple):
    """The result of `reconstruct`."""

    weights: Floats  # (m, k), nonnegative, with sum 1 for each query
    residuals: Floats  # (m,), Euclidean distances of the queries from their weighted averages


def reconstruct(vectors: Matrix, queries: Matrix, indices: Array) -> Reconstruction:
    """Find the weights w >= 0 with sum 1 that minimize ||t - sum_j w_j x_j||^2 for each query t.

    `indices` (m, k) has the neighbors x_j of each query, rows of `vectors`. If several weights are
    best, or nearly so, the ridge of `simplex_weights` decides. Dense and CSR rows give the same
    weights, to the last bit.
    """
    queries = matching(queries, vectors)
    weights, residuals = np.empty(indices.shape), np.empty(len(indices))
    for rows in runs(_elements(vectors, queries, indices), _ELEMENTS_AT_ONCE):
        differences, exponent = _differences(vectors, queries[rows], indices[rows])
        w = weights[rows] = simplex_weights(_gram_matrices(differences))
        lengths = np.linalg.norm(w[:, None, :] @ differences, axis=(1, 2))
        with np.errstate(over="ignore"):  # an overflow gives infinity
            residuals[rows] = np.ldexp(lengths, exponent)
    return Reconstruction(weights, residuals)


def _elements(vectors: Matrix, queries: Matrix, indices: Array) -> Array:
    """The size of the differences and the Gram matrix of each query, at most."""
    m, k = indices.shape
    features = np.full(m, vectors.shape[1])
    if sparse.issparse(vectors):
        base: Csr = vectors
        own: Csr = queries
        stored = np.diff(base.indptr)[indices].sum(axis=1) + np.diff(own.indptr)
        features = np.minimum(features, stored)
    return np.asarray(k * (features + k))


def _differences(vectors: Matrix, queries: Matrix, indices: Array) -> tuple[Floats, Array]:
    """(x_j - t) / 2**e, shape (m, k, d), and e, shape (m,), which scales the largest close to 1.

    So no square overflows, and not all of them underflow. For CSR rows, only the features that one
    of them stores, in order; a query with fewer of these than others is padded with zeros.
    """
    if sparse.issparse(vectors):
        near, own = _stored_features(vectors[indices.ravel()], queries, indices.shape[1])
    else:
        near, own = vectors[indices], queries
    near, own = (part.astype(np.float64, copy=False) for part in (near, own[:, None]))
    with np.errstate(over="ignore"):
        differences = near - own
    quarters = 0
    if not np.isfinite(differences).all():
        differences, quarters = near / 4 - own / 4, 2
    largest = np.abs(differences).max(axis=(1, 2), initial=0)
    exponent = np.frexp(largest)[1]
    # In two steps: the power of two that scales the smallest float to 1 is not a float itself.
    for part in (exponent // 2, exponent - exponent // 2):
        differences *= np.ldexp(1.0, -part)[:, None, None]
    return differences, exponent + quarters


def _stored_features(near: Csr, queries: Csr, k: int) -> tuple[Floats, Floats]:
    """CSR rows as dense ones, (m, k, width) and (m, width), without features that are all zero.

    `near` has the k neighbors of the first query, then those of the second, and so on.
    """
    m, d = queries.shape
    near_row, query_row = row_numbers(near), row_numbers(queries)
    near_key = near_row // k * d + near.indices  # a unique number per query and feature
    query_key = query_row * d + queries.indices
    keys = np.unique(np.concatenate([near_key, query_key]))
    first = np.searchsorted(keys, np.arange(m + 1) * d)
    width = int(np.diff(first).max(initial=0))
    rows, own = np.zeros((m * k, width)), np.zeros((m, width))
    rows[near_row, np.searchsorted(keys, near_key) - first[near_row // k]] = near.data
    own[query_row, np.searchsorted(keys, query_key) - first[query_row]] = queries.data
    return rows.reshape(m, k, width), own


def _gram_matrices(rows: Floats) -> Floats:
    """The Gram matrix of each set of rows: (m, k, k) from (m, k, d).

    Products are summed in the order of the features, so that equal rows have equal products and
    features that are zero do not matter, to the last bit.
    """
    m, k, _ = rows.shape
    gram = np.zeros((m, k, k))
    core = engine.core()
    if core is None:
        for feature in np.moveaxis(rows, 2, 0):
            gram += feature[:, :, None] * feature[:, None, :]
    else:
        core.gram_matrices(kernel_array(rows, np.float64), gram)
    return gram
