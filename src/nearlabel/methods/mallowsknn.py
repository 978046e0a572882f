"""The Mallows model of label ranking, with a neutral label, on the neighbors of a query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, with_data
from nearlabel.common.validation import check_integer
from nearlabel.formulas.dispersion import dispersion, reversed_pairs
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import counts_and_own, neighbor_counts
from nearlabel.labels.decisions import labels_from
from nearlabel.labels.default_scores import DefaultScores
from nearlabel.labels.ranked_labels import RankedLabels
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.answers import each_run
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fields import Choice
from nearlabel.methods.fitted_model import of_one_state


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedRanking(RankedLabels):
    """Ranked labels of each row, and the position of the neutral label among them.

    Attributes
    ----------
    labels, scores, names
        As in `RankedLabels`.
    neutral : ndarray of int, shape (n,)
        Number of labels before the neutral one: those that are predicted.
    """

    neutral: Array


def prior(n: int, n_l: Array) -> Floats:
    """The prior g of Theorem 2, kept inside (0, 1), so that it is less than one count."""
    return np.asarray((n_l + 1) / (n + 2))


@dataclass(repr=False, eq=False)
class MallowskNN(NeighborClassifier):
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
    `predict_proba` is (c + (n_l + 1) / (n + 2)) / (k + 1) for c of k neighbors and n_l of n
    training rows with the label. A label with c = k/2, which is not predicted, gets at most 1/2,
    however frequent it is.

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

    def _ranked_by(self, count: Array, prior: Floats) -> Floats:
        """The sort key of labels: f = c / k of Theorem 1, or with the prior of Theorem 2."""
        k = self.n_neighbors_
        return np.asarray(count / k if self._estimate == "mle" else (count + prior) / (k + 1))

    def _prepare(self) -> None:
        """Compute now what every prediction needs, so that predictions do not modify the model."""
        _ = self.prior_, self._defaults

    @cached_property
    def prior_(self) -> Floats:
        """The prior probability of each label, shape (q,)."""
        return prior(len(self.items_), self._totals)

    @cached_property
    def _defaults(self) -> DefaultScores:
        return DefaultScores(self._ranked_by(0 * self._totals, self.prior_)[None])

    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        counts = neighbor_counts(graph, self._labels)
        values = self._ranked_by(counts.data, self.prior_[counts.indices])
        return LabelScores.of(with_data(counts, values), self._defaults)

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        n, totals = len(self.items_) - 1, self._totals
        both = counts_and_own(graph, self._labels, rows)
        own, count = np.divmod(both.data, graph.k + 1)
        touched = self._ranked_by(count, prior(n, totals[both.indices] - own))
        defaults = self._ranked_by(0 * totals, prior(n, totals))
        return LabelScores.of(with_data(both, touched), DefaultScores(defaults[None]))

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        # c > k/2: the paper does not say whether to predict a label with c = k/2; we do not.
        k = self.n_neighbors_
        if self._estimate == "mle":
            return labels_from(scores, 0.5, strict=True)
        return labels_from(scores, (k // 2 + 1) / (k + 1))

    def _probabilities(self, scores: Floats, label: Array) -> Floats:
        k = self.n_neighbors_
        if self._estimate == "map":
            return scores
        return np.asarray((k * scores + self.prior_[label]) / (k + 1))

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Any) -> dict[str, float]:
        return {
            "share": count / graph.k,
            "prior": float(self.prior_[label]),
            "theta": float(self._theta(graph)[0]),
        }

    @of_one_state
    def calibrated_ranking(self, X: Any, top: int | None = None) -> CalibratedRanking:
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
        X = self._check_queries(X)
        top = self._labels.shape[1] if top is None else check_integer(top, "top", low=1)
        neutral = np.empty(X.shape[0], np.int64)

        def note(place: slice, scores: LabelScores, graph: NeighborGraph, _: Any) -> None:
            neutral[place] = np.diff(self._decide(scores, graph).indptr)

        ranking = self._ranked(X, None, top, also=note)
        return CalibratedRanking(ranking.labels, ranking.scores, ranking.label_names, neutral)

    @of_one_state
    def theta(self, X: Any) -> Floats:
        """How closely the neighbors of each row agree: the best spread given their ranking.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)

        Returns
        -------
        ndarray of float, shape (n,)
            The maximum likelihood estimate of theta given the ranking: 0 if the neighbors agree no
            better than by chance, infinite if all have the same labels. It never changes the
            ranking.
        """
        X = self._check_queries(X)
        theta = np.empty(X.shape[0])

        def note(place: slice, _: LabelScores, graph: NeighborGraph, *__: Any) -> None:
            theta[place] = self._theta(graph)

        each_run(self, note, X)
        return theta

    def _theta(self, graph: NeighborGraph) -> Floats:
        sizes = np.diff(self._labels.indptr)[graph.indices].astype(np.int64)
        pairs = reversed_pairs(neighbor_counts(graph, self._labels), sizes)
        return dispersion(pairs, sizes, self._labels.shape[1])
