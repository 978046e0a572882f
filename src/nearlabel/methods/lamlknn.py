"""LAML-kNN: ML-kNN with tables of its own for each cluster of the items."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    csr_of_known,
    row_numbers,
    runs,
    with_data,
)
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import check_integer, check_n_jobs, check_vectors
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import counts_and_own, neighbor_counts
from nearlabel.labels.default_scores import DefaultScores
from nearlabel.labels.histograms import LabelHistograms, cell_values, label_histograms
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.mlknn import MLkNN
from nearlabel.methods.needs import Needs
from nearlabel.methods.stored import Field, Histograms, Numbers, Reals
from nearlabel.search import pair_distances

_PAIRS_AT_ONCE = 2**20  # of rows and centers
_ROWS = 2**17  # that k-means sees at most: more tell little more of a few centers
_RESTARTS = 10  # a single start leaves one giant cluster on some sparse sets


class LAMLkNN(MLkNN):
    """Locally adaptive ML-kNN: the likelihoods of counts differ from cluster to cluster [1]_.

    The training rows are divided into clusters by k-means. A row's neighbors are those among all
    rows, but how a count of neighbors speaks for a label is learned in each cluster by itself. A
    query reads the tables of the cluster whose center is nearest. One cluster is `MLkNN`.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors, k of the paper. More than n - 1 are lowered to n - 1, in all formulas, with a
        warning.
    n_clusters : int, default=5
        Clusters, m of the paper, before small ones are dropped.
    cluster_centers : array-like of shape (m, d), optional
        Centers to use instead of k-means, such as the `cluster_centers_` of another model.
    smoothing : float, default=1.0
        s of the paper: rows added to every cell of the counts.
    random_state : int, RandomState or None, default=None
        Of k-means, whose best of ten starts is taken. Of more than 131,072 training rows it sees
        so many, drawn at random.
    metric : str or callable, default="euclidean"
        Of the neighbors; see `neighbor_graph`. Clusters are always Euclidean.
    search : {"auto", "exact", "approximate"} or object, default="auto"
        A faiss index, a transformer, a function or a `Search`, too: see `neighbor_graph`.
    n_jobs : int, optional
        Threads; -1 for all cores. The result is the same.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (m', d)
        Centers in use. Too few rows make all posteriors of a cluster alike, so a cluster with fewer
        than k + 1 rows is dropped, the smallest first, and its rows go to the nearest center left.
    cluster_sizes_ : ndarray of shape (m',)
        Training rows of each cluster.
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in `MLkNN`.

    References
    ----------
    .. [1] D. Wang, J. Wang, F. Hu, L. Li and X. Zhang, "A locally adaptive multi-label k-nearest
       neighbor algorithm", PAKDD 2018.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.LAMLkNN(n_neighbors=2, n_clusters=2, random_state=0).fit(X, y)
    >>> sorted(model.cluster_sizes_.tolist())
    [3, 3]
    """

    title = "LAML-kNN"
    needs = Needs(vectors=True, counts=True)
    stored: ClassVar[tuple[Field, ...]] = (
        Reals("centers", "cluster_centers_", "md"),
        Numbers("cluster", "_cluster", "n", below="m"),
        Histograms(clusters="_cluster"),
    )

    def __init__(
        self,
        n_neighbors: int = 10,
        n_clusters: int = 5,
        cluster_centers: Any = None,
        smoothing: float = 1.0,
        random_state: Any = None,
        metric: Any = "euclidean",
        search: Any = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_neighbors, smoothing, metric, search, n_jobs)
        self.n_clusters = n_clusters
        self.cluster_centers = cluster_centers
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_integer(self.n_clusters, "n_clusters", low=1)
        if self.cluster_centers is not None:
            _as_centers(self.cluster_centers)
        check_random_state(self.random_state)

    def _learn(
        self, graph: NeighborGraph, Y: Csr, X: Any, rows: Array, progress: Progress | None
    ) -> None:
        centers = self.initial_centers(X)
        distances = _center_distances(centers, X)
        # Departs from the paper, which leaves small clusters open.
        kept = _large_enough(distances, self.n_neighbors_ + 1)
        self.cluster_centers_, self._cluster = centers[kept], distances[:, kept].argmin(axis=1)
        members = [np.flatnonzero(self._cluster == g) for g in range(len(kept))]
        n_jobs, stages = check_n_jobs(self.n_jobs), Stages(progress, len(graph))
        tables = [
            label_histograms(graph, Y, rows=own, n_jobs=n_jobs, progress=stages.next(len(own)))
            for own in members
        ]
        self._counted = LabelHistograms.stacked(tables)

    def _prepare(self) -> None:
        super()._prepare()
        m, q = len(self.cluster_centers_), self._labels.shape[1]
        self.cluster_sizes_ = np.bincount(self._cluster, minlength=m)
        self.prior_ = self.prior_.reshape(m, q)
        self._defaults = DefaultScores(self._defaults.values.reshape(m, q))

    def initial_centers(self, X: Any) -> Floats:
        """The given centers, or those of k-means."""
        if self.cluster_centers is not None:
            centers = _as_centers(self.cluster_centers)
            if centers.shape[1] != X.shape[1]:
                raise ValueError(
                    f"cluster_centers must have as many features as X: {X.shape[1]}; "
                    f"got {centers.shape[1]}"
                )
            return centers
        if X.shape[0] > _ROWS:
            random = check_random_state(self.random_state)
            X = X[np.sort(random.choice(X.shape[0], _ROWS, replace=False))]
        if sparse.issparse(X):  # scikit-learn takes indices of 32 bits only
            X = csr_of_known(X.data, X.indices, X.indptr, X.shape)
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning

        means = KMeans(
            min(int(self.n_clusters), X.shape[0]),
            n_init=_RESTARTS,
            random_state=self.random_state,
        )
        # One thread: the sums of several would round in another way on another machine.
        with warnings.catch_warnings(), threadpool_limits(1):
            # Fewer distinct rows than clusters: the clusters without rows are dropped.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.asarray(means.fit(X).cluster_centers_, np.float64)

    @property
    def likelihood_(self) -> Floats:
        """Likelihoods as in `MLkNN`, of each cluster: shape (2, m', q, k + 1)."""
        return super().likelihood_.reshape(2, *self.prior_.shape, -1)

    def _clusters_of(self, X: Any) -> Array:
        return np.asarray(_center_distances(self.cluster_centers_, X).argmin(axis=1))

    def _table_labels(self, entries: Csr, cluster: Array) -> Array:
        """The label of the stacked tables for each entry: that of its row's cluster."""
        return np.asarray(cluster[row_numbers(entries)] * entries.shape[1] + entries.indices)

    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        counts, cluster = neighbor_counts(graph, self._labels), self._clusters_of(X)
        label = self._table_labels(counts, cluster)
        posteriors = cell_values(self._table, self._counted.start, label, counts.data)
        return LabelScores.of(with_data(counts, posteriors), self._defaults, cluster)

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        both, cluster = counts_and_own(graph, self._labels, rows), self._clusters_of(X)
        own, j = np.divmod(both.data, graph.k + 1)
        label = self._table_labels(both, cluster)
        touched = self._posterior(*self._counted.without_own(label, j, own))
        defaults = self._posterior(*self._counted.without_one_at_0()).reshape(self.prior_.shape)
        return LabelScores.of(with_data(both, touched), DefaultScores(defaults), cluster)

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Any) -> Mapping[str, float]:
        cluster, q = int(self._clusters_of(X)[0]), self._labels.shape[1]
        return {"cluster": cluster, **super()._terms(cluster * q + label, count, graph, X)}


def _as_centers(centers: Any) -> Floats:
    """Centers that a user gave, in any form, as floats."""
    checked = check_vectors(centers, "cluster_centers")
    return np.asarray(checked.toarray() if sparse.issparse(checked) else checked, np.float64)


def _center_distances(centers: Floats, X: Any) -> Floats:
    """Squared distances of the rows of X to the centers, shape (n, m)."""
    n, m = X.shape[0], len(centers)
    base = sparse.csr_array(centers) if sparse.issparse(X) else centers
    distances = np.empty((n, m))
    for some in runs(np.full(n, m), _PAIRS_AT_ONCE):
        row, center = np.divmod(np.arange(some.start * m, some.stop * m), m)
        distances[some] = pair_distances(base, "sqeuclidean", X, row, center).reshape(-1, m)
    return distances


def _large_enough(distances: Floats, least: int) -> Array:
    """Centers that keep at least so many rows each, when the smallest are dropped one by one."""
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
