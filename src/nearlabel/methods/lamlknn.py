"""LAML-kNN: ML-kNN with separate tables for each cluster of the items."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from nearlabel.common.arrays import Array, Floats, row_numbers, with_data
from nearlabel.common.progress import Stages
from nearlabel.common.validation import (
    canonical_vectors,
    check_integer,
    check_n_jobs,
    check_vectors,
)
from nearlabel.formulas.k_means import center_distances, k_means_centers, large_enough
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import counts_and_own, neighbor_counts
from nearlabel.labels.default_scores import DefaultScores
from nearlabel.labels.histograms import LabelHistograms, label_histograms
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.changes import Change
from nearlabel.methods.fields import Field, Histograms, Numbers, Reals
from nearlabel.methods.items import Training
from nearlabel.methods.mlknn import MLkNN, priors
from nearlabel.methods.needs import Needs


@dataclass(repr=False, eq=False)
class LAMLkNN(MLkNN):
    """Locally adaptive ML-kNN: the likelihoods of counts differ from cluster to cluster [1]_.

    The training rows are divided into clusters by k-means. Neighbors are searched among all rows,
    but the likelihoods of counts are estimated in each cluster separately. A query uses the tables
    of the cluster with the nearest center. With one cluster this is `MLkNN`.

    Parameters
    ----------
    n_clusters : int, default=5
        Number of clusters, m of the paper, before small ones are dropped.
    cluster_centers : array-like of shape (m, d), optional
        Centers to use instead of k-means, such as the `cluster_centers_` of another model.
    random_state : int, RandomState or None, default=None
        Seed of k-means, the best of ten starts. If there are more than 131,072 training rows, it
        uses that many, drawn at random.
    n_neighbors, smoothing, counts, metric, search, n_jobs
        As in `MLkNN`. Clusters are always Euclidean. With even counts, the carrier that is left out
        is drawn from all rows, as neighbors are.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (m', d)
        Centers in use. With too few rows, all posteriors of a cluster would be alike, so a cluster
        with fewer than k + 1 rows is dropped, the smallest first, and its rows go to the nearest
        remaining center.
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
    by_blocks = None  # clusters are known when all vectors were seen

    def _check_parameters(self) -> None:
        check_integer(self.n_clusters, "n_clusters", low=1)
        if self.cluster_centers is not None:
            _as_centers(self.cluster_centers)
        check_random_state(self.random_state)

    def _learn(self, seen: Training) -> None:
        self._count_around(self.initial_centers(seen.X), seen)

    def _learn_on(self, seen: Training) -> None:
        self._count_around(self.cluster_centers_, seen)

    def _count_around(self, centers: Floats, seen: Training) -> None:
        """Count the rows of each cluster: those with the same nearest center."""
        distances = center_distances(centers, seen.X)
        # Departs from the paper, which does not treat small clusters.
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

    def _follow(self, change: Change) -> bool:
        assert change.counts is not None
        items, before = self._items, change.before
        new = np.arange(before.n_places, items.n_places)
        cluster = self._clusters_at(new)
        gone = np.zeros(len(before), bool)
        if items.alive is not None:
            gone = ~items.alive[before.places]
        self._cluster = np.concatenate([self._cluster[~gone], cluster])
        self.__dict__.pop("cluster_sizes_", None)
        sizes = self.cluster_sizes_
        if len(sizes) > 1 and sizes.min() <= self.n_neighbors_:  # it joins the nearest, as in fit
            return False
        places = np.concatenate([part.row for part in change.counts])
        rows, which = np.unique(places, return_inverse=True)
        group = self._clusters_at(rows)[which]
        q, n_jobs = self._labels.shape[1], check_n_jobs(self.n_jobs)
        self._counted = self._living_tables().changed(change.counts, sizes, q, group, n_jobs=n_jobs)
        return True

    def _clusters_at(self, places: Array) -> Array:
        """The clusters of training rows."""
        if not len(places):
            return np.empty(0, self._cluster.dtype)
        assert self._items.store is not None
        return self._clusters_of(self._items.store.take(places)).astype(self._cluster.dtype)

    @cached_property
    def cluster_sizes_(self) -> Array:
        """Rows of each cluster."""
        return np.bincount(self._cluster, minlength=len(self.cluster_centers_))

    @cached_property
    def prior_(self) -> Floats:
        """P(H_1) in each cluster, shape (m', q)."""
        n, n_l, *_ = self._counted.at_0()
        return priors(self._smoothing, n, n_l)[0].value.reshape(len(self.cluster_centers_), -1)

    @cached_property
    def _defaults(self) -> DefaultScores:
        """Posteriors of count 0 in each cluster."""
        values = self._posteriors.at_0()
        return DefaultScores(values.reshape(len(self.cluster_centers_), -1))

    def _prepare(self) -> None:
        super()._prepare()
        _ = self.cluster_sizes_

    def initial_centers(self, X: Any) -> Floats:
        """The given centers, or those of k-means."""
        if self.cluster_centers is None:
            return k_means_centers(X, self.n_clusters, self.random_state)
        centers = _as_centers(self.cluster_centers)
        if centers.shape[1] != X.shape[1]:
            raise ValueError(
                f"cluster_centers must have as many features as X, {X.shape[1]}; "
                f"got {centers.shape[1]}"
            )
        return centers

    def with_known(self, X: Any, known: dict[Hashable, Any]) -> LAMLkNN:
        """The model with the centers that an earlier one has found: they do not depend on k."""
        draws_anew = isinstance(self.random_state, np.random.RandomState | np.random.Generator)
        if self.cluster_centers is not None or draws_anew:
            return self
        key = ("centers", self.n_clusters, self.random_state)
        if key not in known:
            self.check_parameters()
            known[key] = self.initial_centers(canonical_vectors(X))
        model: LAMLkNN = clone(self).set_params(cluster_centers=known[key])
        return model

    @property
    def likelihood_(self) -> Floats:
        """Likelihoods as in `MLkNN`, per cluster: shape (2, m', q, k + 1)."""
        return super().likelihood_.reshape(2, *self.prior_.shape, -1)

    def _clusters_of(self, X: Any) -> Array:
        return np.asarray(center_distances(self.cluster_centers_, X).argmin(axis=1))

    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        counts, cluster = neighbor_counts(graph, self._labels), self._clusters_of(X)
        group = cluster[row_numbers(counts)]
        posteriors = self._posteriors_of(counts.indices, counts.data, group)
        return LabelScores.of(with_data(counts, posteriors), self._defaults, cluster)

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        both, cluster = counts_and_own(graph, self._labels, rows), self._clusters_of(X)
        own, j = np.divmod(both.data, graph.k + 1)
        group = cluster[row_numbers(both)]
        touched = self._posteriors.left_out(both.indices, j, own, group)
        defaults = self._posteriors.left_out_at_0().reshape(self.prior_.shape)
        return LabelScores.of(with_data(both, touched), DefaultScores(defaults), cluster)

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Any) -> dict[str, float]:
        cluster = int(self._clusters_of(X)[0])
        return {"cluster": cluster, **self._terms_in(label, count, cluster)}


def _as_centers(centers: Any) -> Floats:
    """Centers that a user gave, in any form, as floats."""
    checked = check_vectors(centers, "cluster_centers")
    return np.asarray(checked.toarray() if sparse.issparse(checked) else checked, np.float64)
