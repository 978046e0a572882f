"""Estimators for multi-label learners that other libraries lack or provide in another form.

Most have `predict_proba`, shape (n, q); all have `predict`.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier

from nearlabel.common.arrays import Array, Csr, Floats, Matrix


class _ByProbability(ClassifierMixin, BaseEstimator):
    """A learner that predicts labels with a probability, or a score like it, of at least 1/2."""

    @abstractmethod
    def predict_proba(self, X: Matrix) -> Floats:
        """Scores of all labels: probabilities, or values on the same scale."""

    def predict(self, X: Matrix) -> Array:
        """Labels with a score of at least 1/2."""
        return (self.predict_proba(X) >= 0.5).astype(np.int8)


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


class LabelForest(_ByProbability):
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


class _LabelSearch(_ByProbability):
    """A tree of labels, searched for the best labels of a row."""

    labels_: int

    @abstractmethod
    def best_labels(self, X: Matrix, top: int) -> Csr:
        """The scores of the `top` best labels of each row."""

    def predict_proba(self, X: Matrix) -> Floats:
        """Scores of all labels: probabilities, or values on the same scale."""
        return np.asarray(self.best_labels(X, self.labels_).toarray(), np.float64)


class LabelTree(_LabelSearch):
    """Probabilistic label trees of napkinXC."""

    def __init__(self, cost: float = 10.0, random_state: int = 0) -> None:
        self.cost = cost
        self.random_state = random_state

    def fit(self, X: Matrix, Y: Matrix) -> Self:
        """Fit the tree; its temporary folder is deleted with this estimator."""
        from napkinxc.models import PLT

        self.folder_ = tempfile.TemporaryDirectory(prefix="nearlabel-napkinxc-")
        how = {"liblinear_c": self.cost, "seed": self.random_state, "threads": 1}
        self.tree_ = PLT(self.folder_.name, **how)
        self.labels_ = Y.shape[1]
        self.tree_.fit(_csr(X), _csr(Y))
        return self

    def best_labels(self, X: Matrix, top: int) -> Csr:
        """The scores of the `top` best labels of each row."""
        best = self.tree_.predict_proba(_csr(X), top_k=top)
        ends = np.cumsum([0, *map(len, best)])
        pairs = [pair for row in best for pair in row]
        label = np.array([label for label, _ in pairs], np.int64)
        chance = np.array([chance for _, chance in pairs], np.float64)
        return sparse.csr_array((chance, label, ends), shape=(X.shape[0], self.labels_))


class RankedTree(_LabelSearch):
    """XR-Linear of PECOS."""

    def __init__(self, cost: float = 1.0, random_state: int = 0) -> None:
        self.cost = cost
        self.random_state = random_state

    def fit(self, X: Matrix, Y: Matrix) -> Self:
        """Build a tree of labels, and fit a classifier at each of its nodes."""
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        vectors, labels = _csr(X), _csr(Y)
        self.labels_ = labels.shape[1]
        label_vectors = LabelEmbeddingFactory.create(labels, vectors, method="pifa")
        tree = Indexer.gen(label_vectors, seed=self.random_state, threads=1)
        how = {"C": tree, "Cp": self.cost, "Cn": self.cost, "threads": 1}
        self.model_ = XLinearModel.train(vectors, labels.tocsc(), **how)
        return self

    def best_labels(self, X: Matrix, top: int) -> Csr:
        """The scores of the `top` best labels of each row."""
        how = {"only_topk": top, "beam_size": top, "threads": 1}
        return sparse.csr_array(self.model_.predict(_csr(X), **how))


def _csr(X: Matrix) -> sparse.csr_matrix:
    """Convert to the matrix type that these libraries accept."""
    matrix = sparse.csr_matrix(X).astype(np.float32)
    matrix.sort_indices()
    return matrix
