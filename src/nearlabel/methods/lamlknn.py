"""LAML-kNN: ML-kNN with tables of its own for each cluster of the items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers, with_data
from nearlabel.common.progress import Stages
from nearlabel.common.validation import check_integer, check_vectors
from nearlabel.formulas.k_means import center_distances, k_means_centers, large_enough
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import counts_and_own, neighbor_counts
from nearlabel.labels.default_scores import DefaultScores
from nearlabel.labels.histograms import LabelHistograms, cell_values, label_histograms
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.fields import Field, Histograms, Numbers, Reals
from nearlabel.methods.items import Training
from nearlabel.methods.mlknn import MLkNN
from nearlabel.methods.needs import Needs


@dataclass(repr=False, eq=False)
class LAMLkNN(MLkNN):
    """Locally adaptive ML-kNN: the likelihoods of counts differ from cluster to cluster [1]_.

    The training rows are divided into clusters by k-means. A row's neighbors are those among all
    rows, but how a count of neighbors speaks for a label is learned in each cluster by itself. A
    query reads the tables of the cluster whose center is nearest. One cluster is `MLkNN`.

    Parameters
    ----------
    n_clusters : int, default=5
        Clusters, m of the paper, before small ones are dropped.
    cluster_centers : array-like of shape (m, d), optional
        Centers to use instead of k-means, such as the `cluster_centers_` of another model.
    random_state : int, RandomState or None, default=None
        Of k-means, the best of ten starts; of more than 131,072 training rows it sees that many,
        drawn at random.
    n_neighbors, smoothing, metric, search, n_jobs
        As in `MLkNN`. Clusters are always Euclidean.

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

    smoothing: float = field(default=1.0, kw_only=True)
    n_clusters: int = 5
    cluster_centers: Any = None
    random_state: Any = None

    title = "LAML-kNN"
    needs = Needs(vectors=True, counts=True)
    stored: ClassVar[tuple[Field, ...]] = (
        Reals("centers", "cluster_centers_", "md"),
        Numbers("cluster", "_cluster", "n", below="m"),
        Histograms(clusters="_cluster"),
    )

    def _check_parameters(self) -> None:
        check_integer(self.n_clusters, "n_clusters", low=1)
        if self.cluster_centers is not None:
            _as_centers(self.cluster_centers)
        check_random_state(self.random_state)

    def _learn(self, seen: Training) -> None:
        centers = self.initial_centers(seen.X)
        distances = center_distances(centers, seen.X)
        # Departs from the paper, which leaves small clusters open.
        kept = large_enough(distances, self.n_neighbors_ + 1)
        self.cluster_centers_, self._cluster = centers[kept], distances[:, kept].argmin(axis=1)
        members = [np.flatnonzero(self._cluster == g) for g in range(len(kept))]
        graph, Y, n_jobs = seen.graph, seen.Y, seen.n_jobs
        stages = Stages(seen.progress, len(graph))
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
        if self.cluster_centers is None:
            return k_means_centers(X, self.n_clusters, self.random_state)
        centers = _as_centers(self.cluster_centers)
        if centers.shape[1] != X.shape[1]:
            raise ValueError(
                f"cluster_centers must have as many features as X: {X.shape[1]}; "
                f"got {centers.shape[1]}"
            )
        return centers

    @property
    def likelihood_(self) -> Floats:
        """Likelihoods as in `MLkNN`, of each cluster: shape (2, m', q, k + 1)."""
        return super().likelihood_.reshape(2, *self.prior_.shape, -1)

    def _clusters_of(self, X: Any) -> Array:
        return np.asarray(center_distances(self.cluster_centers_, X).argmin(axis=1))

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

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Any) -> dict[str, float]:
        cluster, q = int(self._clusters_of(X)[0]), self._labels.shape[1]
        return {"cluster": cluster, **super()._terms(cluster * q + label, count, graph, X)}


def _as_centers(centers: Any) -> Floats:
    """Centers that a user gave, in any form, as floats."""
    checked = check_vectors(centers, "cluster_centers")
    return np.asarray(checked.toarray() if sparse.issparse(checked) else checked, np.float64)
