"""Label trees of napkinXC and PECOS, as further learners to compare with."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from importlib.metadata import PackageNotFoundError, version
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.experiments.others.other_methods import LearnerCandidate, OtherMethod, in_scales


class LabelSearch(ClassifierMixin, BaseEstimator):
    """A tree of labels, searched for the best labels of a row."""

    labels_: int

    @abstractmethod
    def best_labels(self, X: Matrix, top: int) -> Csr:
        """The scores of the `top` best labels of each row."""

    def predict_proba(self, X: Matrix) -> Floats:
        """Scores of all labels: probabilities, or values on the same scale."""
        return np.asarray(self.best_labels(X, self.labels_).toarray(), np.float64)

    def predict(self, X: Matrix) -> Array:
        """Labels with a score of at least 1/2."""
        return (self.predict_proba(X) >= 0.5).astype(np.int8)


class LabelTree(LabelSearch):
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


class RankedTree(LabelSearch):
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


def _label_trees(X: Matrix, _: Csr, seed: int) -> list[LearnerCandidate]:
    return in_scales(X, lambda C: LabelTree(C, seed), C=(1.0, 10.0))


def _ranked_trees(X: Matrix, _: Csr, seed: int) -> list[LearnerCandidate]:
    return in_scales(X, lambda C: RankedTree(C, seed), C=(1.0, 10.0))


LABEL_TREES = {
    "napkinXC": OtherMethod("napkinXC", _label_trees, "napkinxc"),
    "PECOS": OtherMethod("PECOS", _ranked_trees, "libpecos"),
}


def version_of(name: str) -> str | None:
    """The installed version of the package of a tree; None if it is not installed."""
    try:
        return version(LABEL_TREES[name].package)
    except PackageNotFoundError:
        return None
