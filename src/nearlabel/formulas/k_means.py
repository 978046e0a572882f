"""Clusters of rows by k-means, and which of them are large enough to learn from."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from nearlabel.common.arrays import Array, Csr, Floats, Matrix, Seed, csr_of_known, runs
from nearlabel.search import pair_distances

_ROWS = 2**17  # at most, for k-means: more hardly improve a few centers


def k_means_centers(X: Matrix, n_clusters: int, random_state: Seed) -> Floats:
    """Centers of at most `n_clusters` clusters, the best of ten starts, shape (m, d)."""
    if X.shape[0] > _ROWS:
        random = check_random_state(random_state)
        X = X[np.sort(random.choice(X.shape[0], _ROWS, replace=False))]
    if sparse.issparse(X):  # scikit-learn accepts 32-bit indices only
        csr: Csr = X
        X = csr_of_known(csr.data, csr.indices, csr.indptr, csr.shape)
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    clusters = min(int(n_clusters), X.shape[0])
    # A single start leaves one giant cluster on some sparse sets.
    means = KMeans(clusters, n_init=10, random_state=random_state)
    # One thread: sums over several threads would be rounded differently on another machine.
    with warnings.catch_warnings(), threadpool_limits(1):
        # Fewer distinct rows than clusters: the empty clusters are dropped later.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(means.fit(X).cluster_centers_, np.float64)


def center_distances(centers: Floats, X: Matrix) -> Floats:
    """Squared distances of the rows of X to the centers, shape (n, m)."""
    n, m = X.shape[0], len(centers)
    base = sparse.csr_array(centers) if sparse.issparse(X) else centers
    distances = np.empty((n, m))
    for run in runs(np.full(n, m), 2**20):
        row, center = np.divmod(np.arange(run.start * m, run.stop * m), m)
        distances[run] = pair_distances(base, "sqeuclidean", X, row, center).reshape(-1, m)
    return distances


def large_enough(distances: Floats, least: int) -> Array:
    """Centers left, each with at least `least` rows, after dropping the smallest one by one."""
    center = distances.argmin(axis=1)
    sizes = np.bincount(center, minlength=distances.shape[1])
    left = np.arange(len(sizes))
    while len(left) > 1 and sizes[left].min() < least:
        dropped = left[sizes[left].argmin()]
        left = left[left != dropped]
        rows = np.flatnonzero(center == dropped)
        center[rows] = left[distances[np.ix_(rows, left)].argmin(axis=1)]
        sizes += np.bincount(center[rows], minlength=len(sizes))
    return left
