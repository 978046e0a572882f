"""ML-kNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nearlabel.arrays import Array, Csr, Floats, with_data
from nearlabel.base import NeighborClassifier
from nearlabel.graph import NeighborGraph
from nearlabel.places import DefaultScores
from nearlabel.scores import LabelScores
from nearlabel.statistics import label_histograms, neighbor_counts
from nearlabel.validation import check_real

_OVER_HALF = np.nextafter(0.5, 1)


class MLkNN(NeighborClassifier):
    """Multi-label k nearest neighbors by maximum a posteriori [1]_ [2]_.

    For each label the number j of a row's neighbors that carry it is evidence E_j. Its likelihood
    is counted on the training rows, each with its own neighbors and itself left out, once over the
    rows that carry the label (H_1) and once over those that do not (H_0). Bayes' rule gives the
    posterior by which labels are ranked; a label is predicted where it is at least 1/2.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors, k of the paper. More than n - 1 are lowered to n - 1, with a warning.
    smoothing : float, default=1.0
        s of the paper: rows added to every cell of the counts. With 0, evidence that was never seen
        in training leaves the prior.
    metric : str or callable, default="euclidean"
        See `neighbor_graph`. Rescaling of features is left to a pipeline step.
    search : {"auto", "exact"} or Search, default="auto"
    n_jobs : int, optional
        Threads of the search; -1 for all cores.

    Attributes
    ----------
    n_neighbors_ : int
        Neighbors in use.
    classes_ : list of q arrays [0, 1], or the array of the two classes where y was 1-d
    label_names_ : ndarray of str, shape (q,), or None
        Names of the labels, where y was a DataFrame.
    n_features_in_ : int

    References
    ----------
    .. [1] M.-L. Zhang and Z.-H. Zhou, "ML-KNN: a lazy learning approach to multi-label learning",
       Pattern Recognition 40(7), 2007.
    .. [2] M.-L. Zhang and Z.-H. Zhou, "A k-nearest neighbor based algorithm for multi-label
       classification", IEEE International Conference on Granular Computing, 2005.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.MLkNN(n_neighbors=3).fit(X, y)
    >>> model.predict([[2.2, 0.4]])
    array([[1, 0, 0, 1]])
    >>> model.predict_proba([[2.2, 0.4]]).round(6)
    array([[0.8     , 0.294118, 0.048544, 0.951456]])
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        smoothing: float = 1.0,
        metric: Any = "euclidean",
        search: Any = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing
        self.metric = metric
        self.search = search
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real(self.smoothing, "smoothing", low=0)

    def _learn(self, graph: NeighborGraph, Y: Csr, X: Any) -> None:  # noqa: ARG002
        self._seen = label_histograms(graph, Y)  # c[j], c'[j]
        q = Y.shape[1]
        absent = self._posterior(np.arange(q), np.zeros(q, np.int64))
        self._defaults = DefaultScores(absent[None, :])

    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:  # noqa: ARG002
        counts = neighbor_counts(graph, self._labels)
        touched = with_data(counts, self._posterior(counts.indices, counts.data))
        return LabelScores(touched, self._defaults, label_names=self.label_names_)

    def _probabilities(self, scores: LabelScores) -> LabelScores:
        # A posterior of exactly 1/2 is decided for the label. scikit-learn rounds it down, so it is
        # told as the next greater number.
        return scores.map(lambda posterior: np.where(posterior == 0.5, _OVER_HALF, posterior))

    def _posterior(self, label: Array, count: Array) -> Floats:
        """P(H_1 | E_j) for pairs of a label and a count j.

        The paper compares P(H_1) P(E_j | H_1) and P(H_0) P(E_j | H_0). Both are multiplied here by
        their common denominators: what remains are whole numbers for a whole s, so equal
        hypotheses tie exactly, and a tiny s does no harm.
        """
        s, k, n = self.smoothing, self.n_neighbors_, self._seen.n
        with_label, without = self._seen.at(label, count)
        n_with = self._seen.totals[label]
        n_without = n - n_with
        yes = (s + n_with) * (s + with_label) * (s * (k + 1) + n_without)
        no = (s + n_without) * (s + without) * (s * (k + 1) + n_with)
        seen = yes + no > 0
        posterior: Floats = np.divide(yes, yes + no, where=seen, out=self._prior(label))
        return posterior

    def _prior(self, label: Array) -> Floats:
        """P(H_1) of labels."""
        s = self.smoothing
        prior: Floats = (s + self._seen.totals[label]) / (2 * s + self._seen.n)
        return prior

    def _likelihoods(self, label: Array, count: Array) -> tuple[Floats, Floats]:
        """P(E_j | H_1) and P(E_j | H_0) for pairs of a label and a count j."""
        s, k, n = self.smoothing, self.n_neighbors_, self._seen.n
        n_with = self._seen.totals[label]
        likelihoods = []
        for rows, total in zip(self._seen.at(label, count), (n_with, n - n_with), strict=True):
            unknown = np.full(len(label), 1 / (k + 1))  # s = 0 and no row to count on
            denominator = s * (k + 1) + total
            known = denominator > 0
            likelihoods.append(np.divide(s + rows, denominator, where=known, out=unknown))
        return likelihoods[0], likelihoods[1]

    def _terms(self, label: int, graph: NeighborGraph, X: Any) -> Mapping[str, float]:  # noqa: ARG002
        labels = np.array([label])
        carries = self._labels[graph.indices[0]][:, labels]
        count = np.array([carries.nnz])
        with_label, without = self._likelihoods(labels, count)
        return {
            "count": int(count[0]),
            "prior": float(self._prior(labels)[0]),
            "likelihood_with": float(with_label[0]),
            "likelihood_without": float(without[0]),
        }
