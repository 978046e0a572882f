"""MLC-WkNN: neighbors weighted by how they reconstruct the query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.formulas.reconstruction import Reconstruction, reconstruct
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import neighbor_shares
from nearlabel.labels.scores import LabelScores, labels_from
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fitted_model import Needs


@dataclass(repr=False, eq=False)
class MLCWkNN(NeighborClassifier):
    """Multi-label k nearest neighbors, weighted by reconstruction [1]_.

    The weights of the neighbors x_j of a query t are those whose weighted average is closest to t:
    they minimize ||t - sum_j w_j x_j||^2 over w_j >= 0 with sum 1. The score of a label is the sum
    of the weights of the neighbors with it; a label is predicted if that is above 1/2.

    Weights depend on directions, not only on distances: a distant neighbor on a side without others
    may get more weight than a near one, and one behind another gets none. There is nothing to
    learn, so `fit` does not search.

    Parameters
    ----------
    n_neighbors, metric, search, n_jobs
        As in `MLkNN`. The reconstruction is Euclidean in the space of X whatever the metric, and
        needs vectors: "precomputed" is not supported.

    Attributes
    ----------
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in `MLkNN`.

    References
    ----------
    .. [1] J. Xu, "Multi-label weighted k-nearest neighbor classifier with adaptive weight
       estimation", International Conference on Neural Information Processing, 2011.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.MLCWkNN(n_neighbors=3).fit(X, y)
    >>> model.predict([[2.2, 0.4]])
    array([[1, 1, 0, 1]])
    >>> model.label_scores([[2.2, 0.4]]).toarray().round(6)
    array([[0.624454, 1.      , 0.      , 1.      ]])
    """

    title = "MLC-WkNN"
    needs = Needs(vectors=True)

    def _reconstruct(self, graph: NeighborGraph, X: Matrix) -> Reconstruction:
        rows, which = self.items_.rows_of(graph.indices)
        return reconstruct(rows, X, which)

    def _scores(self, graph: NeighborGraph, X: Matrix) -> LabelScores:
        weights = self._reconstruct(graph, X).weights
        return LabelScores.of(neighbor_shares(graph, self._labels, weights))

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        return labels_from(scores, 0.5, strict=True)

    def _probabilities(self, scores: Floats, label: Array) -> Floats:
        n = len(self.items_)
        # (w + 1/n) / (1 + 2/n), so that 1/2 stays 1/2 exactly.
        return np.asarray((n * scores + 1) / (n + 2), np.float64)

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        solution = self._reconstruct(graph, X)
        carried = self._labels[graph.indices[0]][:, [label]].toarray().ravel() == 1
        return {
            "weight": float(solution.weights[0, carried].sum()),
            "residual": float(solution.residuals[0]),
        }
