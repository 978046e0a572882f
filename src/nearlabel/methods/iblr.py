"""IBLR-ML and IBLR-ML+."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from nearlabel.common.arrays import Array, Csr, Matrix
from nearlabel.common.validation import check_dense_size, check_flag, check_n_jobs, check_real
from nearlabel.formulas.regressions import NeighborRegressions
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import vote_shares
from nearlabel.labels.scores import DenseScores, LabelScores
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fields import Reals
from nearlabel.methods.fitted_model import Needs, Training


@dataclass(repr=False, eq=False)
class IBLR(NeighborClassifier):
    """Instance-based learning and logistic regression combined [1]_.

    The labels of a row's neighbors become its features: omega_a is the share of the k neighbors
    with label a. For each label l, a logistic regression on them learns how strongly neighbors with
    any label a, l itself or another, are evidence for or against l. Each training row is left out
    of its own neighbors. A label is predicted if its probability is at least 1/2.

    Parameters
    ----------
    keep_features : bool, default=False
        Whether the regressions also use the features of the row: IBLR-ML+ of the paper. Such a
        model needs vectors, not only a graph.
    ridge : float, default=1e-8
        Penalty on the squared weights of the standardized inputs. With the default, weights are
        essentially maximum likelihood estimates; these do not exist if a label is perfectly
        separable, and only the penalty keeps its weights finite. A greater penalty, such as 1,
        protects rare labels from overfitting.
    n_neighbors, metric, search, n_jobs
        As in `MLkNN`.

    Attributes
    ----------
    label_weights_ : ndarray of float, shape (q, q)
        alpha of the paper: row l has the weights of the shares of all labels among the neighbors in
        the log odds of label l.
    n_neighbors_, classes_, label_names_, n_features_in_, search_recall_
        As in `MLkNN`.

    Notes
    -----
    Every label has a weight for every other, and every row a score for every label: memory grows
    with the square of the number of labels. Sizes that do not fit into memory raise an error before
    any search. Leave-one-out scores of all training rows correct the weights for each row's own
    contribution.

    References
    ----------
    .. [1] W. Cheng and E. Hüllermeier, "Combining instance-based learning and logistic regression
       for multilabel classification", Machine Learning 76(2-3), 2009.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    >>> model = nl.IBLR(n_neighbors=3, ridge=1.0).fit(X, y)
    >>> model.predict([[2.2, 0.4]])
    array([[1, 1, 0, 1]])
    >>> model.label_scores([[2.2, 0.4]]).toarray().round(6)
    array([[0.725373, 0.53669 , 0.      , 1.      ]])
    """

    keep_features: bool = False
    ridge: float = 1e-8

    title = "IBLR-ML"
    needs = Needs(vectors="keep_features", dense_scores=True, counts=True)
    stored = (
        Reals("label_weights", "label_weights_", "qq", transposed=True),
        Reals("intercepts", "_intercepts", "q", low=-np.inf, high=np.inf),
        Reals("feature_weights", "_feature_weights", "dq", optional="feature_weights"),
        Reals("center", "_center", "d", optional="feature_weights"),
        Reals(
            "scale", "_scale", "d", low=np.nextafter(0, 1), high=np.inf, optional="feature_weights"
        ),
    )

    def _check_parameters(self) -> None:
        check_flag(self.keep_features, "keep_features")
        check_real(self.ridge, "ridge", low=1e-10, high=1e10)

    def _rows_to_learn_from(self, Y: Csr, X: Matrix) -> None:
        n, q = Y.shape
        inputs = q + (X.shape[1] if self.keep_features else 0)
        for what, rows in (("inputs", n), ("weights", q)):
            check_dense_size(
                f"the {what} of IBLR's regressions", (rows, inputs), 8, "fewer labels, or MLkNN"
            )

    def _learn(self, seen: Training) -> None:
        omega, X = vote_shares(seen.graph, seen.Y), seen.X if self.keep_features else None
        regressions = NeighborRegressions.fitted(
            omega, X, seen.Y, float(self.ridge), seen.n_jobs, seen.progress
        )
        self.label_weights_, self._intercepts, self._feature_weights = regressions[:3]
        self._center, self._scale = regressions[3:]

    @property
    def _regressions(self) -> NeighborRegressions:
        features = self._feature_weights, self._center, self._scale
        return NeighborRegressions(self.label_weights_, self._intercepts, *features)

    def _scores(self, graph: NeighborGraph, X: Matrix) -> LabelScores:
        return DenseScores(expit(self._regressions.log_odds(vote_shares(graph, self._labels), X)))

    def _left_out_scores(self, graph: NeighborGraph, X: Matrix, rows: Array) -> LabelScores:
        places, first, which = np.unique(rows, return_index=True, return_inverse=True)
        if not np.array_equal(places, self.items_.places):
            return self._scores(graph, X)  # a row's influence depends on all the others
        omega, n_jobs = vote_shares(graph.take(first), self._labels), check_n_jobs(self.n_jobs)
        log_odds = self._regressions.left_out_log_odds(
            omega, X if X is None else X[first], self._labels[places], float(self.ridge), n_jobs
        )
        return DenseScores(expit(log_odds[which]))

    def _terms(self, label: int, count: int, graph: NeighborGraph, X: Matrix) -> dict[str, float]:
        return self._regressions.parts(label, vote_shares(graph, self._labels), X)
