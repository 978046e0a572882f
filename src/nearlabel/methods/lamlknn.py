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

from nearlabel.common.arrays import Array, Floats, Matrix, MatrixLike, Seed
from nearlabel.common.validation import (
    canonical_vectors,
    check_integer,
    check_n_jobs,
    check_vectors,
)
from nearlabel.formulas.k_means import center_distances, k_means_centers, large_enough
from nearlabel.graph import NeighborGraph
from nearlabel.labels.histograms import label_histograms
from nearlabel.methods.fields import Field, Numbers, Reals
from nearlabel.methods.fitted_model import Needs, Training
from nearlabel.methods.learned_counts import Histograms, RowChange, living
from nearlabel.methods.mlknn import MLkNN


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
    cluster_centers: MatrixLike | None = None
    random_state: Seed = None

    title = "LAML-kNN"
    needs = Needs(vectors=True, counts=True)
    kept_by_changes = "the centers"
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
        self._count_around(self._initial_centers(seen.X), seen)

    def _learn_on(self, seen: Training) -> None:
        self._count_around(self.cluster_centers_, seen)

    def _count_around(self, centers: Floats, seen: Training) -> None:
        """Count the rows of each cluster: those with the same nearest center."""
        distances = center_distances(centers, seen.X)
        # Departs from the paper, which does not treat small clusters.
        left = large_enough(distances, self.n_neighbors_ + 1)
        self.cluster_centers_, self._cluster = centers[left], distances[:, left].argmin(axis=1)
        self._counted = label_histograms(
            seen.graph,
            seen.Y,
            group=self._cluster,
            groups=len(left),
            n_jobs=seen.n_jobs,
            progress=seen.progress,
        )

    def _follow(self, change: RowChange) -> bool:
        assert change.counts is not None
        new = self._clusters_at(np.arange(change.before.n_places, change.after.n_places))
        self._cluster = np.concatenate([self._cluster[change.stayed], new])
        sizes = self.cluster_sizes_
        if len(sizes) > 1 and sizes.min() <= self.n_neighbors_:  # it joins the nearest, as in fit
            return False
        places = np.concatenate([part.row for part in change.counts])
        rows, which = np.unique(places, return_inverse=True)
        self._counted = living(self._counted, self.n_neighbors_).changed(
            change.counts,
            sizes,
            change.after.n_labels,
            self._clusters_at(rows)[which],
            n_jobs=check_n_jobs(self.n_jobs),
        )
        return True

    def _clusters_at(self, places: Array) -> Array:
        """The clusters of training rows."""
        if not len(places):
            return np.empty(0, self._cluster.dtype)
        assert self.items_.store is not None
        return self._groups(self.items_.store.take(places)).astype(self._cluster.dtype)

    @cached_property
    def cluster_sizes_(self) -> Array:
        """Rows of each cluster."""
        return np.bincount(self._cluster, minlength=len(self.cluster_centers_))

    def _prepare(self) -> None:
        super()._prepare()
        _ = self.cluster_sizes_

    def _initial_centers(self, X: Matrix) -> Floats:
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

    def _with_known(self, X: Matrix, known: dict[Hashable, Any]) -> LAMLkNN:
        """The model with the centers that an earlier one has found: they do not depend on k."""
        draws_anew = isinstance(self.random_state, np.random.RandomState | np.random.Generator)
        if self.cluster_centers is not None or draws_anew:
            return self
        key = ("centers", self.n_clusters, self.random_state)
        if key not in known:
            self.check_parameters()
            known[key] = self._initial_centers(canonical_vectors(X))
        model: LAMLkNN = clone(self).set_params(cluster_centers=known[key])
        return model

    def _groups(self, X: Matrix) -> Array:
        return np.asarray(center_distances(self.cluster_centers_, X).argmin(axis=1))

    def _by_group(self, values: Floats) -> Floats:
        return values.reshape(len(self.cluster_centers_), -1)

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        return {"cluster": int(self._groups(X)[0]), **super()._terms(label, count, graph, X)}


def _as_centers(centers: MatrixLike) -> Floats:
    """Centers that a user gave, in any form, as floats."""
    checked = check_vectors(centers, "cluster_centers")
    return np.asarray(checked.toarray() if sparse.issparse(checked) else checked, np.float64)
