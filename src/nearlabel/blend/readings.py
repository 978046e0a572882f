"""The readings of a blend: methods on a graph, ridge regressions and other classifiers.

A reading gives the columns of (row, label) pairs that a blend learns weights for: one or more
numbers that say how likely the row has the label. It scores training rows as if they were new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator, clone

from nearlabel.blend.evidence import Pairs, bounded_log_odds, share_log_odds
from nearlabel.blend.label_space import LabelSpace
from nearlabel.blend.pooled_logistic import FOLDS
from nearlabel.blend.ridge_scores import RidgeWeights
from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.common.messages import one_line
from nearlabel.graph import NeighborGraph
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.items import Items
from nearlabel.metrics.scorers import estimator_scores


class LeftOut(NamedTuple):
    """Training rows that are scored as if they were new.

    Attributes
    ----------
    places : ndarray of int
        Their positions among the plain items.
    rows : ndarray of int
        Their numbers among the learned rows, which have no gaps.
    own : csr_array
        Their labels.
    near : NeighborGraph or None
        Their neighbors among the learned rows; searched if None.
    """

    places: Array
    rows: Array
    own: Csr
    near: NeighborGraph | None = None


class ScoredRows(NamedTuple):
    """Rows that are scored, new ones or training rows, with their neighbors among the vectors."""

    graph: NeighborGraph
    X: Matrix
    left_out: LeftOut | None = None


class BlendReading(Protocol):
    """What adds columns to a blend."""

    @property
    def names(self) -> list[str]:
        """The names of its columns."""

    def columns(self, rows: ScoredRows, pairs: Pairs, frequency: Floats) -> list[Floats]:
        """Its columns for pairs, each of shape (p,), given the log odds of the labels."""


@dataclass(eq=False)
class MethodReadings:
    """Methods that read one graph: that of the vectors, or that of a learned distance.

    Attributes
    ----------
    methods : list of estimators
    items : Items
        The training items of the graph: of learned rows, each left out.
    space : LabelSpace or None
        The transformer that makes learned rows.
    """

    methods: list[NeighborClassifier]
    items: Items
    space: LabelSpace | None = None

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        names = numbered([f"{method.title} (k = {method.n_neighbors_})" for method in self.methods])
        return names if self.space is None else [f"learned {name}" for name in names]

    def in_graph(self, rows: ScoredRows) -> ScoredRows:
        """The rows as the methods see them: their vectors and neighbors in this graph."""
        if self.space is None:
            return rows
        left_out, k = rows.left_out, max(method.n_neighbors_ for method in self.methods)
        if left_out is None:
            Z = self.space.transform(rows.X)
            return ScoredRows(self.items.neighbors(Z, k), Z)
        assert self.items.store is not None
        among, near = left_out.rows, left_out.near
        near = self.items.left_out_neighbors(among, k) if near is None else near
        Z = self.items.store.take(among)
        return ScoredRows(near, Z, LeftOut(among, among, left_out.own))

    def columns(self, rows: ScoredRows, pairs: Pairs, frequency: Floats) -> list[Floats]:
        """A column per method for pairs of rows in the graph."""
        columns = []
        for method in self.methods:
            graph = rows.graph.head(method.n_neighbors_)
            if rows.left_out is None:
                scores = method._scores(graph, rows.X)
            else:
                scores = method._left_out_scores(graph, rows.X, rows.left_out.places)
            chance = np.asarray(method._uncalibrated(pairs.of(scores), pairs.label), np.float64)
            if method.needs.counts:  # methods with tables have smoothed probabilities
                columns.append(bounded_log_odds(chance))
            else:
                columns.append(share_log_odds(chance, frequency))
        return columns


@dataclass(eq=False)
class RidgeReading:
    """A ridge regression: its scores, their roots, and their log odds if requested.

    Roots separate small scores. With many labels, nearly all scores are close to 0, and weights
    that suit them rank the greatest too low: compared with the log odds of the methods, roots grow
    too slowly.
    """

    kernel: str
    weights: RidgeWeights
    log_odds: bool

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        name = f"{self.kernel} ridge"
        return [name, f"root of {name}", *([f"log odds of {name}"] if self.log_odds else [])]

    def columns(self, rows: ScoredRows, pairs: Pairs, frequency: Floats) -> list[Floats]:
        """Its columns for pairs."""
        if rows.left_out is None:
            scores = self.weights.scores(rows.X)
        else:
            scores = self.weights.left_out_scores(rows.X, rows.left_out.rows, rows.left_out.own)
        values = pairs.of(scores)
        columns = [np.clip(values, -1, 2), np.sqrt(np.clip(values, 0, 2))]
        if self.log_odds:
            columns.append(np.asarray(logit(np.clip(values, 1e-4, 0.99))))
        return columns


@dataclass(eq=False)
class OtherReading:
    """A scikit-learn classifier fitted to all rows, and its out-of-fold scores.

    Attributes
    ----------
    name : str
    model : estimator
        For new rows.
    left_out : ndarray of float32, shape (n, q)
        Scores of row i by a classifier fitted to the other folds: row i is in the fold i modulo
        their number, as in `CrossFitted`.
    """

    name: str
    model: BaseEstimator
    left_out: Floats

    @classmethod
    def fit(cls, estimator: BaseEstimator, X: Matrix, Y: Csr) -> Self:
        """Fit to all rows, and for each fold to all rows of the others."""
        # scikit-learn counts labels in this type, which int8 would overflow
        labels = Y.toarray().astype(np.int64)
        left_out = np.empty(labels.shape, np.float32)
        fold = np.arange(len(labels)) % FOLDS
        for number in np.unique(fold):
            is_held = fold == number
            model = _fitted(estimator, X[~is_held], labels[~is_held])
            left_out[is_held] = _scores(model, X[is_held], labels.shape[1])
        return cls(_name(estimator), _fitted(estimator, X, labels), left_out)

    @property
    def names(self) -> list[str]:
        """The name of its column."""
        return [self.name]

    def scores(self, X: Matrix) -> Floats:
        """Scores of new rows, shape (m, q)."""
        return _scores(self.model, X, self.left_out.shape[1])

    def columns(self, rows: ScoredRows, pairs: Pairs, frequency: Floats) -> list[Floats]:
        """Its column for pairs: log odds of probabilities, or decision values as they are."""
        left_out = rows.left_out
        scores = self.scores(rows.X) if left_out is None else self.left_out[left_out.rows]
        values = scores[pairs.row, pairs.label]
        if not hasattr(self.model, "predict_proba"):
            return [np.asarray(values, np.float64)]
        return [share_log_odds(np.clip(values, 0, 1), frequency)]


def numbered(names: list[str]) -> list[str]:
    """The names, made unique."""
    return [
        f"{name} ({names[:place].count(name) + 1})" if name in names[:place] else name
        for place, name in enumerate(names)
    ]


def check_others(others: Sequence[BaseEstimator] | None) -> list[BaseEstimator]:
    """Unfitted classifiers, or a TypeError."""
    if others is None:
        return []
    if not isinstance(others, list | tuple):
        raise TypeError(f"others must be a list of scikit-learn classifiers; got {others!r}")
    for estimator in others:
        scores = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
        if isinstance(estimator, type) or not (hasattr(estimator, "fit") and scores):
            raise TypeError(
                "others must be scikit-learn classifiers with predict_proba or "
                f"decision_function, such as RandomForestClassifier(); got {estimator!r}"
            )
    return list(others)


def _fitted(estimator: BaseEstimator, X: Matrix, labels: Array) -> BaseEstimator:
    try:
        return clone(estimator).fit(X, labels)
    except (ValueError, TypeError) as error:
        why = one_line(str(error))
        raise ValueError(
            f"others: {_name(estimator)} cannot be fitted to {labels.shape[1]} labels: {why}; "
            "wrap a classifier for a single label in OneVsRestClassifier(…)"
        ) from error


def _scores(model: BaseEstimator, X: Matrix, q: int) -> Floats:
    try:
        scores = estimator_scores(model, X)
    except (ValueError, TypeError) as error:
        raise ValueError(f"others: {_name(model)}: {one_line(str(error))}") from error
    scores = np.asarray(scores.toarray() if hasattr(scores, "toarray") else scores, np.float64)
    if q == 1 and scores.shape == (X.shape[0], 2):  # the two classes of a single label
        scores = scores[:, 1:]
    if scores.shape != (X.shape[0], q) or not np.isfinite(scores).all():
        raise ValueError(
            f"others: {_name(model)} must return one finite score for each of {q} labels; "
            f"got shape {scores.shape}"
        )
    return scores


def _name(estimator: BaseEstimator) -> str:
    """The class name, for a pipeline that of its last step; for a wrapper with what it wraps."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    wrapped = last.get_params(deep=False).get("estimator") if hasattr(last, "get_params") else None
    name = type(last).__name__
    return name if wrapped is None else f"{name} of {type(wrapped).__name__}"
