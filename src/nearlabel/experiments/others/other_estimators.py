"""Estimators for multi-label learners that scikit-learn lacks or provides in another form.

Most have `predict_proba`, shape (n, q); all have `predict`.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier

from nearlabel.common.arrays import Array, Floats, Matrix


class LabelPowerset(ClassifierMixin, BaseEstimator):
    """A multiclass classifier with one class per label set in the training data.

    The score of a label is the total probability of the sets that contain it.
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: Matrix, Y: Matrix) -> Self:
        """Learn the label set of a row."""
        self.sets_, which = np.unique(np.asarray(Y), axis=0, return_inverse=True)
        only = len(self.sets_) == 1
        self.estimator_ = (DummyClassifier() if only else clone(self.estimator)).fit(
            X, which.ravel()
        )
        return self

    def predict_proba(self, X: Matrix) -> Floats:
        """Probabilities of the labels."""
        return np.asarray(self.estimator_.predict_proba(X) @ self.sets_)

    def predict(self, X: Matrix) -> Array:
        """The most probable set."""
        return np.asarray(self.sets_[np.argmax(self.estimator_.predict_proba(X), axis=1)])


class ConstantToo(ClassifierMixin, BaseEstimator):
    """A binary classifier that also accepts a single class, and then always predicts it.

    The decision values of a label that no row or every row carries are then below or above those of
    all other labels. In `OneVsRestClassifier` they are 0 or 1, which is more than most of these.
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: Matrix, y: Array) -> Self:
        """Fit the classifier, or remember the only class."""
        self.classes_, seen = np.array([0, 1]), np.unique(y)
        self.constant_ = int(seen[0]) if len(seen) == 1 else None
        if self.constant_ is None:
            self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def predict(self, X: Matrix) -> Array:
        """Predict classes."""
        return np.asarray(np.argmax(self.predict_proba(X), axis=1))

    def predict_proba(self, X: Matrix) -> Floats:
        """Probabilities of 0 and 1."""
        if self.constant_ is not None:
            return np.asarray(np.eye(2)[np.full(X.shape[0], self.constant_)])
        return np.asarray(self.estimator_.predict_proba(X))

    def decision_function(self, X: Matrix) -> Floats:
        """Decision values; those of a single class are beyond all others."""
        if self.constant_ is not None:
            return np.full(X.shape[0], 1e6 if self.constant_ else -1e6)
        return np.asarray(self.estimator_.decision_function(X))


class MachinePerLabel(ClassifierMixin, BaseEstimator):
    """One classifier with decision values per label; a label may be constant."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: Matrix, Y: Matrix) -> Self:
        """Fit one classifier per label."""
        self.estimators_ = [ConstantToo(self.estimator).fit(X, y) for y in np.asarray(Y).T]
        return self

    def decision_function(self, X: Matrix) -> Floats:
        """Decision values of all labels."""
        return np.column_stack([model.decision_function(X) for model in self.estimators_])

    def predict(self, X: Matrix) -> Array:
        """Labels with positive decision values."""
        return (self.decision_function(X) > 0).astype(np.int8)


class LabelForest(ClassifierMixin, BaseEstimator):
    """A forest of regression trees for 0/1 labels; its means are the label probabilities.

    For two classes, the variance that a regression tree reduces is half the Gini impurity of a
    classification tree. So the trees are the same, and take half the memory.
    """

    def __init__(self, forest: BaseEstimator) -> None:
        self.forest = forest

    def fit(self, X: Matrix, Y: Matrix) -> Self:
        """Grow the trees."""
        self.forest_ = clone(self.forest).fit(X, np.asarray(Y, np.float64))
        return self

    def predict_proba(self, X: Matrix) -> Floats:
        """Mean frequencies of the labels in the leaves."""
        return np.asarray(self.forest_.predict(X)).reshape(X.shape[0], -1)

    def predict(self, X: Matrix) -> Array:
        """Labels with a frequency of at least 1/2."""
        return (self.predict_proba(X) >= 0.5).astype(np.int8)
