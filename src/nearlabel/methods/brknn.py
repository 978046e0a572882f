"""BRkNN, with its two ways to extend label sets, and with weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import neighbor_shares, vote_shares
from nearlabel.labels.decisions import best_labels
from nearlabel.labels.scores import LabelScores, labels_from
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fields import Choice


@dataclass(repr=False, eq=False)
class BRkNN(NeighborClassifier):
    """Binary relevance by k nearest neighbors: labels are scored by their share of votes [1]_.

    Nothing is learned: each of the k neighbors of a query votes for its labels. A label is
    predicted if it gets more than half of the votes.

    Parameters
    ----------
    weights : {"uniform", "distance"}, default="uniform"
        Each neighbor votes with weight 1, or with 1 / distance (BRkNN-w [2]_). If there are
        neighbors at distance 0, only these vote.
    fill : {None, "top", "cardinality"}, default=None
        What to do about label sets, which are often empty: nothing; predict the best label if the
        set is empty (BRkNN-a); or predict the b best labels, where b is the mean number of labels
        of the neighbors, halves rounded up (BRkNN-b). Of labels with equal shares the more frequent
        one is better, then the lower column.
    n_neighbors, metric, search, n_jobs
        As in `MLkNN`.

    Attributes
    ----------
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in `MLkNN`.

    Notes
    -----
    `predict_proba` is (c + 1/n) / (k + 2/n) for c of k votes, and close to 1/2 where `fill` decides
    otherwise. With a single label, `fill` has no effect.

    References
    ----------
    .. [1] E. Spyromitros, G. Tsoumakas and I. Vlahavas, "An empirical study of lazy multilabel
       classification algorithms", SETN 2008.
    .. [2] The weighted form is a baseline of the 2017 paper on positive-sample label ranking: see
       `PositivekNN`.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.BRkNN(n_neighbors=3, weights="distance").fit(X, y)
    >>> model.label_scores([[2.2, 0.4]]).toarray().round(6)
    array([[0.709146, 0.743784, 0.      , 1.      ]])
    """

    weights: str = "uniform"
    fill: str | None = None

    title = "BRkNN"
    settings = (
        Choice("weights", "_weights", ("uniform", "distance")),
        Choice("fill", "_fill", (None, "top", "cardinality")),
    )

    def _scores(self, graph: NeighborGraph, X: Matrix) -> LabelScores:
        if self._weights == "uniform":
            return LabelScores.of(vote_shares(graph, self._labels))
        weights = inverse_distances(graph.distances)
        return LabelScores.of(neighbor_shares(graph, self._labels, weights))

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        decided = labels_from(scores, 0.5, strict=True)
        if self._fill is None or self._labels.shape[1] == 1:  # an empty set is the other class
            return decided
        if self._fill == "top":
            how_many = (np.diff(decided.indptr) == 0).astype(np.int64)
            return decided + best_labels(scores, how_many, self._totals)
        cardinality = np.diff(self._labels.indptr)[graph.indices].sum(axis=1)
        return best_labels(scores, (2 * cardinality + graph.k) // (2 * graph.k), self._totals)

    def _probabilities(self, scores: Floats, label: Array) -> Floats:
        n, k = len(self.items_), self.n_neighbors_
        # (c + 1/n) / (k + 2/n), written so that half of the votes give exactly 1/2.
        return np.asarray(0.5 + k * (scores - 0.5) / (k + 2 / n))

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        return {"share": float(self._scores(graph, X).at(np.array([0]), np.array([label]))[0])}


def inverse_distances(distances: Floats) -> Floats:
    """The neighbors' shares of the votes, by 1 / distance; shape (n, k), each row sums to 1.

    Neighbors at distance 0, if any, share all votes equally.
    """
    nearest = distances[:, :1]
    # Relative to the nearest, so that nothing overflows.
    votes = np.divide(nearest, distances, where=distances > 0, out=np.ones(distances.shape))
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))
