"""The Mallows model of label ranking, with a neutral label, on the neighbors of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, with_data
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_choice, check_integer
from nearlabel.formulas.dispersion import dispersion, reversed_pairs
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import blocks_of_votes, counts_and_own, label_totals, neighbor_counts
from nearlabel.labels.decisions import labels_from
from nearlabel.labels.ranks import DefaultScores
from nearlabel.labels.scores import LabelScores, RankedLabels
from nearlabel.methods.explaining import NeighborClassifier
from nearlabel.methods.fitting import NO_ROWS
from nearlabel.methods.storing import stored_totals

_ESTIMATES = ("map", "mle")


@dataclass(frozen=True, eq=False)
class CalibratedRanking(RankedLabels):
    """Labels of each row in order, and where the neutral label stands among them.

    Attributes
    ----------
    labels, scores, names
        As in `RankedLabels`.
    neutral : ndarray of int, shape (n,)
        Labels that stand before the neutral one: those that are predicted.
    """

    neutral: Array


class MallowskNN(NeighborClassifier):
    """k nearest neighbors under the Mallows model of rankings [1]_.

    A label set is seen as an incomplete ranking: its labels stand before a neutral label, all
    others behind it. The neighbors' sets are drawn around one ranking of all labels, the less
    likely the more pairs they reverse. The most likely ranking sorts the labels by how many
    neighbors carry them, with the neutral label at half of the neighbors (Theorem 1); a prior of
    the labels' frequencies breaks ties (Theorem 2). What stands before the neutral label is
    predicted.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors, k of the paper. More than n - 1 are lowered to n - 1, with a warning.
    estimate : {"map", "mle"}, default="map"
        Ties by the frequency of labels in training (maximum a posteriori), or left as ties
        (maximum likelihood).
    metric : str or callable, default="euclidean"
        See `neighbor_graph`. Rescaling of features is left to a pipeline step.
    search : {"auto", "exact", "approximate"} or object, default="auto"
        A faiss index, a transformer, a function or a `Search`, too: see `neighbor_graph`.
    n_jobs : int, optional
        Threads; -1 for all cores. The result is the same.

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

    title = "Mallows kNN"

    def __init__(
        self,
        n_neighbors: int = 10,
        estimate: str = "map",
        metric: Any = "euclidean",
        search: Any = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.estimate = estimate
        self.metric = metric
        self.search = search
        self.n_jobs = n_jobs

    def calibrated_ranking(self, X: Any, top: int | None = None) -> CalibratedRanking:
        """Rank the labels of each row, with the place of the neutral label.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        top : int, optional
            How many labels; by default all.

        Returns
        -------
        CalibratedRanking
            The ranking pi that the model estimates. Labels that tie stand in the order of the
            columns.
        """
        X = self._check_queries(X)
        n, q = X.shape[0], self._labels.shape[1]
        r = q if top is None else min(q, check_integer(top, "top", low=1))
        self._check_rank_size(n, r)
        labels, best = np.empty((n, r), np.int32), np.empty((n, r))
        neutral = np.empty(n, np.int64)

        def rank(place: slice, scores: LabelScores, graph: NeighborGraph, _: Any) -> None:
            labels[place], best[place] = scores.top(r)
            neutral[place] = np.diff(self._decide(scores, graph).indptr)

        self._each_run(rank, X)
        return CalibratedRanking(labels, best, self.label_names_, neutral)

    def theta(self, X: Any) -> Floats:
        """How closely the neighbors of each row agree: the spread that suits their ranking best.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)

        Returns
        -------
        ndarray of float, shape (n,)
            The maximum likelihood estimate of theta given the ranking: 0 where the neighbors agree
            no better than by chance, infinite where all carry the same labels. It never changes the
            order.
        """
        X = self._check_queries(X)
        theta = np.empty(X.shape[0])
        for start, near, _ in self._neighbor_blocks(X):
            for place, graph in blocks_of_votes(near, self._labels):
                theta[start + place.start : start + place.stop] = self._theta(graph)
        return theta

    def _theta(self, graph: NeighborGraph) -> Floats:
        sizes = np.diff(self._labels.indptr)[graph.indices].astype(np.int64)
        pairs = reversed_pairs(neighbor_counts(graph, self._labels), sizes)
        return dispersion(pairs, sizes, self._labels.shape[1])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.estimate, "estimate", _ESTIMATES)

    def _training_rows(self, n: int) -> Array:
        return NO_ROWS

    def _learn(
        self, graph: NeighborGraph, Y: Csr, X: Any, rows: Array, progress: Progress | None
    ) -> None:
        self._take_up(self.estimate, label_totals(Y))

    def _take_up(self, estimate: str, totals: Array) -> None:
        self._estimate, self._totals = estimate, totals
        k = self.n_neighbors_
        # The prior g of Theorem 2, kept inside (0, 1): less than the difference of one count.
        self._prior = (totals + 1) / (self._labels.shape[0] + 2)
        defaults = self._prior / (k + 1) if estimate == "map" else np.zeros(len(totals))
        self._defaults = DefaultScores(defaults[None])

    def _learned(self) -> dict[str, Any]:
        return {"estimate": self._estimate, "totals": self._totals}

    def _recall(self, learned: Mapping[str, Any]) -> None:
        estimate = check_choice(learned["estimate"], "estimate", _ESTIMATES)
        self._take_up(estimate, stored_totals(learned, self._labels))

    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        counts, k = neighbor_counts(graph, self._labels), graph.k
        if self._estimate == "map":
            values = (counts.data + self._prior[counts.indices]) / (k + 1)
        else:
            values = counts.data / k
        return LabelScores(with_data(counts, values), self._defaults, label_names=self.label_names_)

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        if self._estimate == "mle":
            return self._scores(graph, X)
        n, k = self._labels.shape[0], graph.k
        both = counts_and_own(graph, self._labels, rows)
        carried, count = np.divmod(both.data, k + 1)
        prior = (self._totals[both.indices] - carried + 1) / (n + 1)
        touched, defaults = (count + prior) / (k + 1), (self._totals + 1) / (n + 1) / (k + 1)
        return LabelScores(with_data(both, touched), defaults, label_names=self.label_names_)

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        # c > k/2: the paper leaves open what a label at c = k/2 is; it is not predicted.
        k = self.n_neighbors_
        if self._estimate == "mle":
            return labels_from(scores, 0.5, strict=True)
        return labels_from(scores, (k // 2 + 1) / (k + 1))

    def _probabilities(self, scores: Floats) -> Floats:
        k = self.n_neighbors_
        return (
            scores if self._estimate == "map" else np.asarray((k * scores + self._prior) / (k + 1))
        )

    def _terms(self, label: int, graph: NeighborGraph, X: Any) -> Mapping[str, float]:
        count = int(np.sum(self._labels[graph.indices[0]].indices == label))
        return {
            "count": count,
            "share": count / graph.k,
            "prior": float(self._prior[label]),
            "theta": float(self._theta(graph)[0]),
        }
