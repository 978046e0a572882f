"""Multi-label learners that other libraries lack, or have in another form, as estimators.

All have `predict_proba`, shape (n, q), and `predict`.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier

from nearlabel.common.arrays import Array, Csr, Floats

_FAR = 1e6  # a decision value beyond all others


class LabelPowerset(ClassifierMixin, BaseEstimator):
    """Every set of labels that occurs is one class of a classifier.

    The score of a label is the probability of all sets that have it.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn which set a row has."""
        self.sets_, which = np.unique(np.asarray(Y), axis=0, return_inverse=True)
        only = len(self.sets_) == 1
        self.estimator_ = (DummyClassifier() if only else clone(self.estimator)).fit(
            X, which.ravel()
        )
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of labels."""
        chances: Floats = self.estimator_.predict_proba(X) @ self.sets_
        return chances

    def predict(self, X: Any) -> Array:
        """The most probable set."""
        chosen: Array = self.sets_[np.argmax(self.estimator_.predict_proba(X), axis=1)]
        return chosen


class MachinePerLabel(ClassifierMixin, BaseEstimator):
    """A classifier with decision values for each label.

    A label that no row or every row carries is the least or the most likely of all. In
    `OneVsRestClassifier` its decision value is 0 or 1, which is more than most others have.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn each label."""
        columns = np.asarray(Y).T
        self.constants_ = [int(one[0]) if (one == one[0]).all() else None for one in columns]
        self.estimators_ = [
            clone(self.estimator).fit(X, one) if constant is None else None
            for one, constant in zip(columns, self.constants_, strict=True)
        ]
        return self

    def decision_function(self, X: Any) -> Floats:
        """Decision values of all labels."""
        return np.column_stack(
            [
                np.full(X.shape[0], _FAR if constant else -_FAR)
                if model is None
                else model.decision_function(X)
                for model, constant in zip(self.estimators_, self.constants_, strict=True)
            ]
        )

    def predict(self, X: Any) -> Array:
        """Labels with positive decision values."""
        return (self.decision_function(X) > 0).astype(np.int8)


class ConstantToo(ClassifierMixin, BaseEstimator):
    """A classifier of 0 and 1 that learns from one of them alone, too: then it says that one."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Self:
        """Learn, or remember the only class."""
        self.classes_, seen = np.array([0, 1]), np.unique(y)
        self.constant_ = int(seen[0]) if len(seen) == 1 else None
        if self.constant_ is None:
            self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def predict(self, X: Any) -> Array:
        """Classes."""
        return np.asarray(np.argmax(self.predict_proba(X), axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of 0 and 1."""
        if self.constant_ is not None:
            return np.eye(2)[np.full(X.shape[0], self.constant_)]
        found: Floats = self.estimator_.predict_proba(X)
        return found


class LabelForest(ClassifierMixin, BaseEstimator):
    """A forest of regression trees for 0/1 labels: its means are the probabilities of labels.

    For two classes, the variance that a regression tree lessens is half the Gini impurity of a
    classification tree: the trees are the same, and take half the room.
    """

    def __init__(self, forest: Any) -> None:
        self.forest = forest

    def fit(self, X: Any, Y: Any) -> Self:
        """Grow the trees."""
        self.forest_ = clone(self.forest).fit(X, np.asarray(Y, np.float64))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Mean shares of labels in the leaves."""
        return np.asarray(self.forest_.predict(X)).reshape(X.shape[0], -1)

    def predict(self, X: Any) -> Array:
        """Labels of probability 1/2 and more."""
        return (self.predict_proba(X) >= 0.5).astype(np.int8)


class _LabelSearch(ClassifierMixin, BaseEstimator):
    """A tree of labels, in which the best ones of a row are searched."""

    labels_: int

    @abstractmethod
    def best_labels(self, X: Any, top: int) -> Csr:
        """The scores of the `top` best labels of each row."""

    def predict_proba(self, X: Any) -> Floats:
        """Scores of all labels, which are probabilities or like them."""
        return np.asarray(self.best_labels(X, self.labels_).toarray(), np.float64)

    def predict(self, X: Any) -> Array:
        """Labels of score 1/2 and more."""
        return (self.predict_proba(X) >= 0.5).astype(np.int8)


class LabelTree(_LabelSearch):
    """Probabilistic label trees of napkinXC."""

    def __init__(self, cost: float = 10.0, random_state: int = 0) -> None:
        self.cost = cost
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn; the model is in a folder that goes with it."""
        from napkinxc.models import PLT

        self.folder_ = tempfile.TemporaryDirectory(prefix="nearlabel-napkinxc-")
        how = {"liblinear_c": self.cost, "seed": self.random_state, "threads": 1}
        self.tree_ = PLT(self.folder_.name, **how)
        self.labels_ = Y.shape[1]
        self.tree_.fit(_csr(X), _csr(Y))
        return self

    def best_labels(self, X: Any, top: int) -> Csr:
        """The scores of the `top` best labels of each row."""
        found = self.tree_.predict_proba(_csr(X), top_k=top)
        ends = np.cumsum([0, *map(len, found)])
        pairs = [pair for row in found for pair in row]
        label = np.array([label for label, _ in pairs], np.int64)
        chance = np.array([chance for _, chance in pairs], np.float64)
        return sparse.csr_array((chance, label, ends), shape=(X.shape[0], self.labels_))


class RankedTree(_LabelSearch):
    """XR-Linear of PECOS."""

    def __init__(self, cost: float = 1.0, random_state: int = 0) -> None:
        self.cost = cost
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn a tree of labels, and a classifier at each of its nodes."""
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        vectors, labels = _csr(X), _csr(Y)
        self.labels_ = labels.shape[1]
        label_vectors = LabelEmbeddingFactory.create(labels, vectors, method="pifa")
        tree = Indexer.gen(label_vectors, seed=self.random_state, threads=1)
        how = {"C": tree, "Cp": self.cost, "Cn": self.cost, "threads": 1}
        self.model_ = XLinearModel.train(vectors, labels.tocsc(), **how)
        return self

    def best_labels(self, X: Any, top: int) -> Csr:
        """The scores of the `top` best labels of each row."""
        how = {"only_topk": top, "beam_size": top, "threads": 1}
        return sparse.csr_array(self.model_.predict(_csr(X), **how))


def _csr(X: Any) -> Any:
    """The form of matrix that these libraries take."""
    matrix = sparse.csr_matrix(X).astype(np.float32)
    matrix.sort_indices()
    return matrix
