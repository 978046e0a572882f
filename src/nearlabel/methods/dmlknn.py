"""DML-kNN."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_choice, check_integer, check_real
from nearlabel.formulas.bayes import posterior
from nearlabel.formulas.similar_counts import AdmissibleRows
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals, neighbor_counts
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.explaining import NeighborClassifier
from nearlabel.methods.storing import stored_totals

_DENOMINATORS = ("labels", "counts")


class DMLkNN(NeighborClassifier):
    """Dependent multi-label k nearest neighbors: the labels of a neighborhood as one [1]_ [2]_.

    As ML-kNN, but the evidence for a label is the number of neighbors with *every* label. Its
    likelihood is counted on the training rows whose neighborhoods, each row itself left out, have
    the same number of that label, and of all others a number that differs by no more than a
    tolerance. Bayes' rule gives the posterior by which labels are ranked; a label is predicted
    where it is at least 1/2.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors, k of the paper. More than n - 1 are lowered to n - 1, in all formulas, with a
        warning.
    tolerance : int, default=6
        Delta of the paper: most that the number of neighbors with another label may differ. With k
        or more all rows count, as in ML-kNN.
    smoothing : float, default=1.0
        s of the paper: rows added to every count. With 0, evidence that was never seen in training
        leaves the prior.
    denominator : {"labels", "counts"}, default="labels"
        How many times the smoothing stands in the denominators of the likelihoods: once a label, as
        in Mulan, or once a possible count, k + 1 times, as in ML-kNN.
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

    References
    ----------
    .. [1] Z. Younes, F. Abdallah and T. Denoeux, "Multi-label classification algorithm derived from
       k-nearest neighbor rule with label dependencies", European Signal Processing Conference,
       2008.
    .. [2] Z. Younes, F. Abdallah, T. Denoeux and H. Snoussi, "A dependent multilabel classification
       method derived from the k-nearest neighbor rule", EURASIP Journal on Advances in Signal
       Processing, 2011.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.DMLkNN(n_neighbors=3, tolerance=0).fit(X, y)
    >>> model.predict([[2.2, 0.4]])
    array([[1, 0, 0, 1]])
    >>> model.predict_proba([[2.2, 0.4]]).round(6)
    array([[0.75    , 0.294118, 0.106383, 0.893617]])
    """

    title = "DML-kNN"

    _dense_scores = True  # the admissible rows, and so the score of any label, are the query's own

    _learns_from_counts = True

    def __init__(
        self,
        n_neighbors: int = 10,
        tolerance: int = 6,
        smoothing: float = 1.0,
        denominator: str = "labels",
        metric: Any = "euclidean",
        search: Any = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.tolerance = tolerance
        self.smoothing = smoothing
        self.denominator = denominator
        self.metric = metric
        self.search = search
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _checked(self.tolerance, self.smoothing, self.denominator)

    def _learn(
        self, graph: NeighborGraph, Y: Csr, X: Any, rows: Array, progress: Progress | None
    ) -> None:
        self._keep(neighbor_counts(graph, Y), self.tolerance, self.smoothing, self.denominator)

    def _keep(self, C: Csr, tolerance: Any, smoothing: Any, denominator: Any) -> None:
        """Keep the training rows by their counts C_il, and how many carry each label."""
        delta, self._s, self._denominator = _checked(tolerance, smoothing, denominator)
        Y, k = self._labels, self.n_neighbors_
        self._rows = AdmissibleRows.of(C, Y, k, delta)
        self._n_with = label_totals(Y)
        # The published numbers were made with q, where ML-kNN has k + 1.
        self._cells = Y.shape[1] if self._denominator == "labels" else k + 1

    def _posterior(self, n: int, n_with: Array, V: Array, U: Array) -> Floats:
        """P(H_1 | c) where of n rows n_with carry a label, and V and U admissible ones have c_l."""
        return posterior(self._s, self._cells, n, n_with, V, U)

    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        n, n_with = self._labels.shape[0], self._n_with
        return self._scored(graph, lambda _, V, U: self._posterior(n, n_with, V, U))

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        n, n_with = self._labels.shape[0], self._n_with

        def posterior(place: slice, V: Array, U: Array) -> Floats:
            # The row is admissible for itself, with the very counts, and one of n.
            y = self._labels[rows[place]].toarray()
            return self._posterior(n - 1, n_with - y, V - y, U - (1 - y))

        return self._scored(graph, posterior)

    def _scored(
        self, graph: NeighborGraph, posterior: Callable[[slice, Array, Array], Floats]
    ) -> LabelScores:
        scores = np.empty((len(graph), self._labels.shape[1]))
        counts = neighbor_counts(graph, self._labels)
        for place, (_, V, U) in self._rows.tallies(counts):
            scores[place] = posterior(place, V, U)
        return LabelScores.from_dense(scores, self.label_names_)

    def _terms(self, label: int, graph: NeighborGraph, X: Any) -> Mapping[str, float]:
        counts = neighbor_counts(graph, self._labels)
        _, (admissible, V, U) = next(self._rows.tallies(counts))
        return {
            "count": int(counts[0, label]),
            "prior": float((self._s + self._n_with[label]) / (2 * self._s + self._labels.shape[0])),
            "admissible": int(admissible[0]),
            "with": int(V[0, label]),
            "without": int(U[0, label]),
        }

    def _learned(self) -> dict[str, Any]:
        return {
            "tolerance": self._rows.tolerance,
            "smoothing": self._s,
            "denominator": self._denominator,
            "totals": self._n_with,
            "counts": csr_tree(self._rows.counts),
        }

    def _recall(self, learned: Mapping[str, Any]) -> None:
        C = csr_from(learned["counts"], "counts")
        if C.shape != self._labels.shape:
            raise ValueError("its counts are of other labels")
        most = np.minimum(stored_totals(learned, self._labels), self.n_neighbors_)
        if C.dtype.kind != "i" or np.any((C.data < 1) | (C.data > most[C.indices])):
            raise ValueError("its counts are not those of neighbors")
        names = ("tolerance", "smoothing", "denominator")
        self._keep(C.astype(np.int32), *(learned[name] for name in names))


def _checked(tolerance: Any, smoothing: Any, denominator: Any) -> tuple[int, float, str]:
    """The parameters of the method's own."""
    # Three factors of the formula grow with s: the limit keeps their product finite.
    return (
        check_integer(tolerance, "tolerance", low=0),
        check_real(smoothing, "smoothing", low=0, high=1e99),
        check_choice(denominator, "denominator", _DENOMINATORS),
    )
