"""Class-balanced k nearest neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, Matrix, runs, with_data
from nearlabel.common.validation import check_dense_size, check_integer, check_n_jobs, check_real
from nearlabel.graph import NeighborGraph, index_type
from nearlabel.labels.calibration import calibration
from nearlabel.labels.counts import label_totals
from nearlabel.labels.decisions import f1_cuts
from nearlabel.labels.scores import DenseScores, LabelScores, labels_from
from nearlabel.methods.calibrated import CalibratedMethod, StoredCalibration
from nearlabel.methods.fields import Integer, Real, Reals
from nearlabel.methods.fitted_model import NO_ROWS, Needs, Training
from nearlabel.search import class_neighbors

_MEMBERS_AT_ONCE = 2**23  # neighbors of queries in memory at a time: some 100 MB
_SCORES_AT_ONCE = 2**22  # scores of training rows in memory while cuts are learned
_CALIBRATED_SCORES = 2**20  # scores of training rows that probabilities are learned from


@dataclass(repr=False, eq=False)
class BalancedkNN(CalibratedMethod):
    """Class-balanced k nearest neighbors [1]_.

    Frequent labels have a neighbor nearly everywhere, rare ones nearly nowhere. Here every label
    contributes its own neighbors: N*(t) is the union, over all labels, of the `per_class` nearest
    rows with the label. The score of a label is the sum of exp(-d²/sigma²) over the rows of N*(t)
    with it. A label is predicted if its score reaches the label's cut, the one with the best F1 on
    the training rows, each left out of its own neighbors. `predict_proba` returns how often labels
    with such a score were right on these rows.

    Parameters
    ----------
    per_class : int, default=10
        Nearest rows per label; all rows with the label if there are fewer.
    bandwidth : "median" or float, default="median"
        sigma; by default the median distance of all neighbors of all training rows.
    metric, n_jobs
        As in `MLkNN`.

    Attributes
    ----------
    bandwidth_ : float
        sigma in use.
    cuts_ : ndarray of float, shape (q,)
        The score from which each label is predicted; infinite for a label that no row has.
    n_neighbors_ : int
        `per_class`, at most n - 1: the default of `kneighbors`. The method itself uses the nearest
        rows of each label instead.
    classes_, label_names_, n_features_in_
        As in `MLkNN`.

    Notes
    -----
    The neighbors in a graph do not include enough of each label: the model searches by itself,
    always exactly, and needs vectors in addition to a graph. N*(t) has up to q times `per_class`
    rows, so the method is not suitable for many labels; sizes that do not fit into memory raise an
    error before any search. Leave-one-out scores leave a training row out of its own neighbors;
    cuts and sigma remain those of all rows.

    References
    ----------
    .. [1] H. Wang, C. Ding and H. Huang, "Multi-label classification: inconsistency and class
       balanced k-nearest neighbor", AAAI Conference on Artificial Intelligence, 2010.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.BalancedkNN(per_class=2, bandwidth=1.0).fit(X, y)
    >>> model.label_scores([[2.2, 0.4]]).toarray().round(6)
    array([[0.208634, 0.222547, 0.      , 0.229285]])
    >>> model.predict([[2.2, 0.4]])
    array([[1, 1, 0, 1]])
    """

    per_class: int = 10
    bandwidth: float | str = "median"

    title = "BKNN"
    needs = Needs(vectors=True, graph=False, dense_scores=True)
    stored = (
        Integer("per_class", "_per_class", low=1, at_most_rows=True),
        Real("bandwidth", "bandwidth_", low=0),
        Reals("cuts", "cuts_", "q", low=0, high=np.inf),
        StoredCalibration(),
    )
    # Not parameters of this method: required by the base class, and the search of `kneighbors`.
    n_neighbors: ClassVar[Any] = property(attrgetter("per_class"))  # type: ignore[misc]
    search: ClassVar[Any] = "auto"  # type: ignore[misc]

    def _check_parameters(self) -> None:
        check_integer(self.per_class, "per_class", low=1)
        if not isinstance(self.bandwidth, str) or self.bandwidth != "median":
            check_real(self.bandwidth, "bandwidth (or 'median')", low=0)

    def _rows_to_learn_from(self, Y: Csr, X: Matrix) -> Array:
        members = _most_members(Y, min(self.per_class, Y.shape[0]))
        what = "the neighbors of BalancedkNN, the nearest rows of each label for each row,"
        shape = (Y.shape[0], members)
        # 12 bytes each: a row and its distance.
        check_dense_size(what, shape, 12, "a smaller per_class, or MLkNN")
        return NO_ROWS

    def _learn(self, seen: Training) -> None:
        Y, (n, q) = seen.Y, seen.Y.shape
        asked = self.items_.asked  # per_class may have been changed since fit
        assert asked is not None
        self._per_class = min(asked, n)
        distances = self._members(seen.X, np.arange(n))
        self.bandwidth_ = self._sigma(distances.data)
        similarities = with_data(distances, _kappa(distances.data, self.bandwidth_))
        self.cuts_ = np.empty(q)
        for labels in runs(np.full(q, n), _SCORES_AT_ONCE):
            scores = DenseScores((similarities @ Y[:, labels]).toarray())
            self.cuts_[labels] = f1_cuts(scores, Y[:, labels])
        rows = np.unique(np.linspace(0, n - 1, min(n, 1 + _CALIBRATED_SCORES // q)).astype(int))
        scores = DenseScores((similarities[rows] @ Y).toarray())
        self._calibration = calibration(scores, Y[rows])

    def _sigma(self, distances: Floats) -> float:
        if self.bandwidth != "median":
            return float(self.bandwidth)
        return float(np.median(distances)) if len(distances) else 1.0

    def _members(self, X: Matrix, left_out: Array | None = None) -> Csr:
        """N*(t) of each row t of X, with the distances; shape (m, n)."""
        return class_neighbors(
            self.items_.vectors,
            self.items_.metric,
            self.items_.alive_labels,
            self._per_class,
            X,
            left_out=left_out,
            n_jobs=check_n_jobs(self.n_jobs),
        )

    def _scores(self, graph: NeighborGraph, X: Matrix, rows: Array | None = None) -> LabelScores:
        """score_l = sum over N*(t) of kappa(d_j) y_jl; the next rows replace left-out `rows`."""
        scores = np.empty((X.shape[0], self._labels.shape[1]))
        members = _most_members(self.items_.alive_labels, self._per_class)
        for run in runs(np.full(len(scores), members + 1), _MEMBERS_AT_ONCE):
            distances = self._members(X[run], None if rows is None else rows[run])
            similarities = with_data(distances, _kappa(distances.data, self.bandwidth_))
            scores[run] = (similarities @ self._labels).toarray()
        return DenseScores(scores)

    def _left_out_scores(self, graph: NeighborGraph, X: Matrix, rows: Array) -> LabelScores:
        return self._scores(graph, X, rows)

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        return labels_from(scores, self.cuts_)

    def _uncalibrated(self, scores: Floats, label: Array) -> Floats:
        total = scores + self.cuts_[label]
        share = np.divide(scores, total, where=total > 0, out=np.full(scores.shape, 0.5))
        return np.asarray(share)

    def _voters(self, X: Matrix) -> tuple[NeighborGraph, NeighborGraph]:
        """N*(t) as a graph of one row, nearest first."""
        members = self._members(X)
        order = np.lexsort((members.indices, members.data))[None]
        n = self._labels.shape[0]
        indices = members.indices[order].astype(index_type(n))
        graph = NeighborGraph.unchecked(indices, members.data[order], n)
        return graph, graph

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        cut = float(self.cuts_[label])  # infinite if no training row has the label
        return {"bandwidth": self.bandwidth_, **({"cut": cut} if np.isfinite(cut) else {})}


def _kappa(distances: Floats, sigma: float) -> Floats:
    """exp(-d²/sigma²): 1 at distance zero, whatever sigma is."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(distances == 0, 1.0, np.exp(-np.square(distances / sigma)))


def _most_members(Y: Csr, per_class: int) -> int:
    """The greatest possible number of rows in N*(t)."""
    return int(min(Y.shape[0], np.minimum(label_totals(Y), per_class).sum()))
