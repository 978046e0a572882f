"""Which bounds suit some rows, and whether they are sharp enough."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Csr
from nearlabel.search.exact.dense_bounds import (
    CosineProducts,
    DenseProducts,
    EuclideanProducts,
    ManhattanSums,
    largest_entry,
)
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.packed_bounds import Products
from nearlabel.search.exact.sparse_bounds import (
    SparseCosineProducts,
    SparseEuclideanProducts,
    largest_stored,
    longest_row,
)

_MOST_TERMS = 2**20  # of a sum whose error the bounds can tell
_ORDINARY = 1e-140, 1e140  # sizes whose squares are safe in float64; others take the NumPy engine
_SPARSE_COST = 25  # a product of two stored features takes as long as so many in a dense product
_SAMPLE = 64, 1024  # queries and base rows on which bounds are tried
_VAGUE = 1 / 256  # share of the rows that bounds leave open: more take most of the time


def products_for(vectors: Any, metric: Metric) -> Products | None:
    """How the core bounds the distances of these rows, or None where NumPy does."""
    packs_sparse = sparse.issparse(vectors) and not _better_dense(vectors)
    terms = longest_row(vectors) if packs_sparse else vectors.shape[1]
    if terms > _MOST_TERMS:
        return None
    if metric == "cosine":
        d = vectors.shape[1]
        return SparseCosineProducts(vectors) if packs_sparse else CosineProducts(d)
    if metric not in ("euclidean", "sqeuclidean", "manhattan"):
        return None
    if packs_sparse:
        reach = largest_stored(vectors)
        is_known = metric != "manhattan" and _is_ordinary(reach)
        return SparseEuclideanProducts(vectors, reach) if is_known else None
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.asarray(vectors.mean(axis=0, dtype=np.float64)).ravel()
        reach = largest_entry(vectors, center)
    if not _is_ordinary(reach):
        return None
    return (ManhattanSums if metric == "manhattan" else EuclideanProducts)(center, reach)


def _better_dense(vectors: Csr) -> bool:
    """Whether CSR rows have so much in common that dense products are faster."""
    n, d = vectors.shape
    if _SPARSE_COST * vectors.nnz < n * d:  # no share is above 1
        return False
    share = np.bincount(vectors.indices, minlength=d) / n  # of the rows that store each feature
    return bool(_SPARSE_COST * np.sum(share * share) >= d)


def _is_ordinary(reach: float) -> bool:
    low, high = _ORDINARY
    return reach == 0 or low <= reach <= high


def are_vague(products: Products, vectors: Any) -> bool:
    """Whether the bounds of most rows leave many others open: tried on a sample.

    So it is where clusters are much farther from each other than their rows are: seen from one
    center, float32 has no digits left for the differences within a cluster.
    """
    n, (queries, base) = vectors.shape[0], _SAMPLE
    if n < queries + base or not isinstance(products, DenseProducts) or not products.can_move:
        return False
    sample = np.random.default_rng(0).choice(n, queries + base, replace=False)
    left, right = (products.pack(vectors[np.sort(some)]) for some in np.split(sample, [queries]))
    lower = np.empty((queries, base), np.float32)
    products.fill(lower, products.pack_queries(left), right)
    nearest = np.min(lower + left.errors[:, None] + right.errors, axis=1)
    is_open = lower <= nearest[:, None]
    return bool(np.mean(is_open.sum(axis=1)) > 1 + _VAGUE * base)
