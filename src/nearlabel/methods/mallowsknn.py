"""The Mallows model of label ranking, with a neutral label, on the neighbors of a query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, Matrix, MatrixLike
from nearlabel.formulas.mallows import RankingKeys, dispersion
from nearlabel.graph import NeighborGraph
from nearlabel.labels.ranked_labels import CalibratedRanking
from nearlabel.labels.scores import LabelScores, labels_from
from nearlabel.methods.answers import neighbor_blocks
from nearlabel.methods.counting import CountingMethod
from nearlabel.methods.fields import Choice
from nearlabel.methods.fitted_model import of_one_state


@dataclass(repr=False, eq=False)
class MallowskNN(CountingMethod):
    """k nearest neighbors under the Mallows model of rankings [1]_.

    A label set is treated as an incomplete ranking: its labels come before a neutral label, all
    others after it. The neighbors' sets are drawn around one ranking of all labels, the less likely
    the more pairs they reverse. The most likely ranking sorts the labels by how many neighbors have
    them, with the neutral label at half of the neighbors (Theorem 1); a prior from the labels'
    frequencies breaks ties (Theorem 2). The labels before the neutral one are predicted.

    Parameters
    ----------
    estimate : {"map", "mle"}, default="map"
        Whether ties are broken by the frequency of labels in training (maximum a posteriori) or
        left as ties (maximum likelihood).
    n_neighbors, metric, search, n_jobs
        As in `MLkNN`.

    Attributes
    ----------
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in `MLkNN`.

    Notes
    -----
    `predict_proba` is (c + (n_l + 1) / (n + 2)) / (k + 1) for c of k neighbors and n_l of n rows
    with the label: at most 1/2 if c = k/2, which is not predicted, however frequent the label is.

    References
    ----------
    .. [1] W. Cheng and E. Hüllermeier, "A simple instance-based approach to multilabel
       classification using the Mallows model", workshop on learning from multi-label data, ECML
       PKDD 2009.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.MallowskNN(n_neighbors=3).fit(X, y)
    >>> ranking = model.calibrated_ranking([[2.2, 0.4]])
    >>> ranking.labels, ranking.neutral
    (array([[3, 1, 0, 2]], dtype=int32), array([3]))
    >>> model.theta([[2.2, 0.4]]).round(6)
    array([1.113112])
    """

    estimate: str = "map"

    title = "Mallows kNN"
    settings = (Choice("estimate", "_estimate", ("map", "mle")),)

    @cached_property
    def _by_count(self) -> RankingKeys:
        """The keys of Theorem 1, or with the prior of Theorem 2."""
        has_prior = self._estimate == "map"
        return RankingKeys(self._totals, len(self.items_), self.n_neighbors_, has_prior)

    @property
    def prior_(self) -> Floats:
        """The prior probability of each label, shape (q,)."""
        return self._by_count.g

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        return labels_from(scores, self._by_count.neutral)

    def _probabilities(self, scores: Floats, label: Array) -> Floats:
        return self._by_count.probabilities(scores, label)

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        theta = float(dispersion(graph, self._labels)[0])
        return {"share": count / graph.k, "prior": float(self.prior_[label]), "theta": theta}

    @of_one_state
    def calibrated_ranking(self, X: MatrixLike, top: int | None = None) -> CalibratedRanking:
        """Rank the labels of each row, with the position of the neutral label.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        top : int, optional
            How many labels; by default all.

        Returns
        -------
        CalibratedRanking
            The ranking pi that the model estimates. Tied labels are in column order.
        """
        X, top = self._check_queries(X), self._labels.shape[1] if top is None else top
        neutral = np.empty(X.shape[0], np.int64)
        ranking = self._ranked(X, None, top, sizes=neutral)
        return CalibratedRanking(ranking.labels, ranking.scores, ranking.label_names, neutral)

    @of_one_state
    def theta(self, X: MatrixLike) -> Floats:
        """How closely the neighbors of each row agree: the best spread given their ranking.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)

        Returns
        -------
        ndarray of float, shape (n,)
            Maximum likelihood given the ranking, which it never changes: 0 if the neighbors agree
            no better than by chance, infinite if all have the same labels.
        """
        blocks = neighbor_blocks(self, self._check_queries(X))
        return np.concatenate([dispersion(graph, self._labels) for _, graph, _ in blocks])
