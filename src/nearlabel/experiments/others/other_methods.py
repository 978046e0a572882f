"""The learners of other libraries, and the parameters tried for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from nearlabel.common.arrays import Csr, Matrix, Tree
from nearlabel.experiments.others.other_estimators import (
    ConstantToo,
    LabelForest,
    LabelPowerset,
    MachinePerLabel,
)
from nearlabel.features.scales import scaler

_TREES = 300
_COSTS = (0.1, 1, 10)


class LearnerCandidate(NamedTuple):
    """An unfitted estimator, and the parameters in which it differs from the others."""

    parameters: Tree
    estimator: BaseEstimator


class OtherMethod(NamedTuple):
    """A learner of another library: its name in tables, and the candidates for (X, Y, seed)."""

    title: str
    candidates: Callable[[Matrix, Csr, int], list[LearnerCandidate]]
    package: str = "scikit-learn"


def in_scales(
    X: Matrix, make: Callable[..., BaseEstimator], **grid: Sequence[object]
) -> list[LearnerCandidate]:
    """Candidates for all parameters of a grid, with each scaling of the features that suits X."""
    scales: tuple[str, ...] = ("standard", "rank")
    if not isinstance(X, np.ndarray):
        scales = ("none",) if X.nnz and X.data.min() < 0 else ("none", "tfidf")
    candidates = []
    for scale, values in product(scales, product(*grid.values())):
        parameters = dict(zip(grid, values, strict=True))
        step, model = scaler(scale, X), make(**parameters)
        whole = model if step is None else make_pipeline(step, model)
        candidates.append(LearnerCandidate({"scale": scale, **parameters}, whole))
    return candidates


def _logistic(X: Matrix, cost: float, seed: int) -> BaseEstimator:
    solver = "liblinear"
    if not sparse.issparse(X) and X.shape[1] <= 1_000:  # a dense Hessian is fast
        solver = "newton-cholesky"
    return LogisticRegression(C=cost, solver=solver, random_state=seed, max_iter=1000)


def _one_per_label(X: Matrix, Y: Csr, seed: int) -> list[LearnerCandidate]:
    return in_scales(X, lambda C: OneVsRestClassifier(_logistic(X, C, seed)), C=_COSTS)


def _chains(X: Matrix, Y: Csr, seed: int) -> list[LearnerCandidate]:
    def make(C: float) -> BaseEstimator:
        base = ConstantToo(_logistic(X, C, seed))
        return ClassifierChain(base, order="random", random_state=seed)

    return in_scales(X, make, C=_COSTS)


def _powersets(X: Matrix, Y: Csr, seed: int) -> list[LearnerCandidate]:
    return in_scales(X, lambda C: LabelPowerset(LogisticRegression(C=C, max_iter=200)), C=_COSTS)


def _vector_machines(X: Matrix, Y: Csr, seed: int) -> list[LearnerCandidate]:
    """Linear SVMs for sparse features, and SVMs with an RBF kernel for dense ones."""
    if sparse.issparse(X):
        return in_scales(X, lambda C: MachinePerLabel(LinearSVC(C=C, random_state=seed)), C=_COSTS)
    return in_scales(X, lambda C: MachinePerLabel(SVC(C=C, cache_size=500)), C=(1, 10))


def _forests(kind: str, X: Matrix, Y: Csr, seed: int) -> list[LearnerCandidate]:
    """Trees do not need scaled features."""
    from sklearn import ensemble

    few = Y.shape[1] <= 100  # leaves of one row are affordable: each leaf stores all labels
    how = {"n_estimators": _TREES if few else _TREES // 3, "random_state": seed}
    candidates = []
    for least, share in product((1, 3) if few else (5,), ("sqrt", 0.2)):
        forest = getattr(ensemble, kind)(min_samples_leaf=least, max_features=share, **how)
        tried = {"leaf": least, "features": share}
        candidates.append(LearnerCandidate(tried, LabelForest(forest)))
    return candidates


def _networks(X: Matrix, Y: Csr, seed: int) -> list[LearnerCandidate]:
    from sklearn.neural_network import MLPClassifier

    def make(alpha: float, epochs: int) -> BaseEstimator:
        how = {"hidden_layer_sizes": (256,), "random_state": seed, "n_iter_no_change": epochs}
        return MLPClassifier(alpha=alpha, max_iter=epochs, **how)

    return in_scales(X, make, alpha=(1e-4, 1.0), epochs=(20, 100))


def _neighbors(X: Matrix, Y: Csr, seed: int) -> list[LearnerCandidate]:
    most = max(1, X.shape[0] // 2)
    counts = sorted({min(k, most) for k in (5, 10, 20, 40)})
    return in_scales(X, lambda k: KNeighborsClassifier(k, weights="distance"), k=counts)


OTHERS = {
    "BinaryRelevance": OtherMethod("BR, logistic regression", _one_per_label),
    "ClassifierChain": OtherMethod("classifier chain", _chains),
    "LabelPowerset": OtherMethod("label powerset", _powersets),
    "SVM": OtherMethod("SVM", _vector_machines),
    "RandomForest": OtherMethod("random forest", partial(_forests, "RandomForestRegressor")),
    "ExtraTrees": OtherMethod("extra trees", partial(_forests, "ExtraTreesRegressor")),
    "MLP": OtherMethod("MLP", _networks),
    "KNeighbors": OtherMethod("kNN, scikit-learn", _neighbors),
}
