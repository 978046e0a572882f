"""scikit-learn classifiers as readings of a blend, with cross-fitted scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from nearlabel.blend.evidence import share_log_odds
from nearlabel.blend.pooled_logistic import FOLDS
from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.common.messages import one_line
from nearlabel.metrics.scorers import estimator_scores


@dataclass(eq=False)
class OtherReading:
    """A classifier fitted to all rows, and its out-of-fold scores.

    Attributes
    ----------
    name : str
        Its name.
    model : estimator
        For new rows.
    left_out : ndarray of float32, shape (n, q)
        Scores of row i by a classifier fitted to the other folds: row i is in the fold i modulo
        their number, as in `CrossFitted`.
    is_probability : bool
        Whether these are probabilities; otherwise they are decision values.
    """

    name: str
    model: Any
    left_out: Any
    is_probability: bool

    @classmethod
    def fit(cls, estimator: Any, X: Any, Y: Csr) -> Self:
        """Fit to all rows, and for each fold to all rows of the others."""
        labels = Y.toarray().astype(
            np.int64
        )  # scikit-learn counts labels in this type, which int8 would overflow
        left_out = np.empty(labels.shape, np.float32)
        fold = np.arange(len(labels)) % FOLDS
        for one in np.unique(fold):
            held = fold == one
            model = _fitted(estimator, X[~held], labels[~held])
            left_out[held] = _scores(model, X[held], labels.shape[1])
        model = _fitted(estimator, X, labels)
        return cls(_name(estimator), model, left_out, hasattr(model, "predict_proba"))

    def scores(self, X: Any) -> Floats:
        """Scores of new rows, shape (m, q)."""
        return _scores(self.model, X, self.left_out.shape[1])

    def column(self, values: Floats, frequency: Floats) -> Floats:
        """Scores of pairs as an input of the blend, given the log odds of the labels."""
        if not self.is_probability:
            return np.asarray(values, np.float64)
        return share_log_odds(np.clip(values, 0, 1), frequency)


def check_others(others: Any) -> list[Any]:
    """Unfitted classifiers, or a TypeError."""
    if others is None:
        return []
    if not isinstance(others, list | tuple):
        raise TypeError(f"others must be a list of scikit-learn classifiers; got {others!r}")
    for one in others:
        says = hasattr(one, "predict_proba") or hasattr(one, "decision_function")
        if isinstance(one, type) or not (hasattr(one, "fit") and says):
            raise TypeError(
                "others must be scikit-learn classifiers with predict_proba or "
                f"decision_function, such as RandomForestClassifier(); got {one!r}"
            )
    return list(others)


def _fitted(estimator: Any, X: Any, labels: Array) -> Any:
    try:
        return clone(estimator).fit(X, labels)
    except (ValueError, TypeError) as error:
        why = one_line(str(error))
        raise ValueError(
            f"others: {_name(estimator)} cannot be fitted to {labels.shape[1]} labels: {why}; "
            "wrap a classifier for a single label in OneVsRestClassifier(…)"
        ) from error


def _scores(model: Any, X: Any, q: int) -> Floats:
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


def _name(estimator: Any) -> str:
    """The class name, for a pipeline that of its last step; for a wrapper with what it wraps."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    wrapped = last.get_params(deep=False).get("estimator") if hasattr(last, "get_params") else None
    name = type(last).__name__
    return name if wrapped is None else f"{name} of {type(wrapped).__name__}"
