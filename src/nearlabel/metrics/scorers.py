"""The metrics by name: all at once, and as scikit-learn scorers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.metrics.conventions import CONVENTIONS, convention_named
from nearlabel.metrics.ranking import Ranking
from nearlabel.metrics.sets import Agreement
from nearlabel.validation import check_choice

_LOSSES = ("hamming_loss", "one_error", "coverage", "ranking_loss")
_AT = ("success_rate", "precision_at")  # these look at the first labels
_BY_SCORES = (
    "one_error",
    "coverage",
    "ranking_loss",
    "average_precision",
    "mean_inverse_rank",
    *_AT,
)
_BY_SETS = (
    "hamming_loss",
    "subset_accuracy",
    "jaccard",
    "micro_f1",
    "macro_f1",
    "example_f1",
)
_WITH_CONVENTION = (*CONVENTIONS["paper"].rules, "jaccard", "micro_f1", "macro_f1", "example_f1")
METRICS = (*_BY_SETS, *_BY_SCORES)


def evaluate(
    Y: Any, scores: Any, predicted: Any = None, convention: str = "paper", *, at: int = 5
) -> dict[str, float]:
    """Compute all metrics of a prediction.

    Parameters
    ----------
    Y : 0/1 matrix, shape (n, q)
        True labels.
    scores : LabelScores, array or sparse matrix with default 0, shape (n, q)
        What the labels are ranked by.
    predicted : 0/1 matrix, shape (n, q), optional
        Decided labels; without them only the ranking metrics are computed.
    convention : {"paper", "lamda", "mulan", "sklearn"}, default="paper"
        What ties and rows without labels count; see `nearlabel.metrics.conventions`.
    at : int, default=5
        How many of the first labels `success_rate` and `precision_at` look at.

    Returns
    -------
    dict of str to float
        Metrics that the convention does not have are not in it.

    Examples
    --------
    >>> import nearlabel as nl
    >>> result = nl.metrics.evaluate([[1, 0, 1]], [[0.9, 0.8, 0.1]], [[1, 0, 0]])
    >>> result["ranking_loss"], result["coverage"], round(result["hamming_loss"], 4)
    (0.5, 2.0, 0.3333)
    """
    had = convention_named(convention).rules
    ranking = Ranking(Y, scores)
    names = [name for name in _BY_SCORES if name in had or name not in CONVENTIONS["paper"].rules]
    result = {name: _value(ranking, name, convention, at) for name in names}
    if predicted is None:
        return result
    agreement = Agreement(Y, predicted)
    return {**{name: _value(agreement, name, convention, at) for name in _BY_SETS}, **result}


def scorer(metric: str, *, convention: str = "paper", at: int = 5) -> Scorer:
    """A metric as a scikit-learn scorer, greater is better: losses are negated.

    Parameters
    ----------
    metric : str
        Name of a metric of this module.
    convention : {"paper", "lamda", "mulan", "sklearn"}, default="paper"
    at : int, default=5
        For `success_rate` and `precision_at`.

    Examples
    --------
    >>> import nearlabel as nl
    >>> from sklearn.model_selection import GridSearchCV
    >>> search = GridSearchCV(
    ...     nl.MLkNN(), {"n_neighbors": [5, 10]}, scoring=nl.metrics.scorer("ranking_loss")
    ... )
    """
    check_choice(metric, "metric", METRICS)
    convention_named(convention)
    return Scorer(metric, convention, at)


@dataclass(frozen=True)
class Scorer:
    """A scikit-learn scorer: a function of an estimator, X and the true y."""

    metric: str
    convention: str = "paper"
    at: int = 5

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Score `estimator` on X and the true labels y; greater is better."""
        if self.metric in _BY_SETS:
            given: Ranking | Agreement = Agreement(
                _as_matrix(estimator, y), _as_matrix(estimator, estimator.predict(X))
            )
        else:
            given = Ranking(_as_matrix(estimator, y), _scores_of(estimator, X))
        value = _value(given, self.metric, self.convention, self.at)
        return -value if self.metric in _LOSSES else value


def _value(given: Ranking | Agreement, metric: str, convention: str, at: int) -> float:
    arguments = [convention] if metric in _WITH_CONVENTION else [at] if metric in _AT else []
    value: float = getattr(given, metric)(*arguments)
    return value


def _scores_of(estimator: Any, X: Any) -> Any:
    """What an estimator ranks labels by; its probabilities if it has no scores of ours."""
    if hasattr(estimator, "steps"):  # a pipeline: its last step ranks what the others made of X
        if len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    if hasattr(estimator, "label_scores"):
        return estimator.label_scores(X)
    probabilities = estimator.predict_proba(X)
    if isinstance(probabilities, list):  # scikit-learn's multi-output form: (n, 2) for each label
        return np.column_stack([columns[:, 1] for columns in probabilities])
    return probabilities[:, 1:] if isinstance(estimator.classes_, np.ndarray) else probabilities


def _as_matrix(estimator: Any, y: Any) -> Any:
    """Labels as a 0/1 matrix, where y is one column of two classes."""
    if sparse.issparse(y) or len(np.shape(y)) == 2:
        return y
    return (np.asarray(y) == estimator.classes_[1]).astype(np.int8).reshape(-1, 1)
