"""Clusters of rows by k-means, and which of them are large enough to learn from."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from nearlabel.common.arrays import Array, Floats, csr_of_known, runs
from nearlabel.search import pair_distances

_PAIRS_AT_ONCE = 2**20  # of rows and centers
_ROWS = 2**17  # at most, for k-means: more hardly improve a few centers
_RESTARTS = 10  # a single start leaves one giant cluster on some sparse sets


def k_means_centers(X: Any, n_clusters: int, random_state: Any) -> Floats:
    """Centers of at most `n_clusters` clusters, the best of ten starts, shape (m, d)."""
    if X.shape[0] > _ROWS:
        random = check_random_state(random_state)
        X = X[np.sort(random.choice(X.shape[0], _ROWS, replace=False))]
    if sparse.issparse(X):  # scikit-learn accepts 32-bit indices only
        X = csr_of_known(X.data, X.indices, X.indptr, X.shape)
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    clusters = min(int(n_clusters), X.shape[0])
    means = KMeans(clusters, n_init=_RESTARTS, random_state=random_state)
    # One thread: sums over several threads would be rounded differently on another machine.
    with warnings.catch_warnings(), threadpool_limits(1):
        # Fewer distinct rows than clusters: the empty clusters are dropped later.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(means.fit(X).cluster_centers_, np.float64)


def center_distances(centers: Floats, X: Any) -> Floats:
    """Squared distances of the rows of X to the centers, shape (n, m)."""
    n, m = X.shape[0], len(centers)
    base = sparse.csr_array(centers) if sparse.issparse(X) else centers
    distances = np.empty((n, m))
    for some in runs(np.full(n, m), _PAIRS_AT_ONCE):
        row, center = np.divmod(np.arange(some.start * m, some.stop * m), m)
        distances[some] = pair_distances(base, "sqeuclidean", X, row, center).reshape(-1, m)
    return distances


def large_enough(distances: Floats, least: int) -> Array:
    """Centers left, each with at least `least` rows, after dropping the smallest one by one."""
    center = distances.argmin(axis=1)
    sizes = np.bincount(center, minlength=distances.shape[1])
    kept = np.arange(len(sizes))
    while len(kept) > 1 and sizes[kept].min() < least:
        dropped = kept[sizes[kept].argmin()]
        kept = kept[kept != dropped]
        rows = np.flatnonzero(center == dropped)
        center[rows] = kept[distances[np.ix_(rows, kept)].argmin(axis=1)]
        sizes += np.bincount(center[rows], minlength=len(sizes))
    return kept
