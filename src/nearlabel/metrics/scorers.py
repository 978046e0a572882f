"""The metrics by name: all together, and as scikit-learn scorers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Floats, LabelsLike, MatrixLike
from nearlabel.common.validation import check_choice, check_integer, label_matrix
from nearlabel.labels.scores import LabelScores, ScoresLike
from nearlabel.metrics.conventions import has_metric, rule_of
from nearlabel.metrics.ranking import Ranking, checked_ranking
from nearlabel.metrics.sets import Agreement, mean_of_defined


@dataclass(frozen=True)
class Spec:
    """How a metric is called."""

    reads: Literal["scores", "sets"]  # the ranking of the labels, or the predicted sets
    loss: bool = False  # whether smaller is better
    option: Literal["convention", "at"] | None = None  # the option that it takes
    of_rows: bool = True  # whether it is a mean over rows


METRICS = {
    "hamming_loss": Spec("sets", loss=True),
    "subset_accuracy": Spec("sets"),
    "jaccard": Spec("sets", option="convention"),
    "micro_f1": Spec("sets", option="convention", of_rows=False),
    "macro_f1": Spec("sets", option="convention", of_rows=False),
    "example_f1": Spec("sets", option="convention"),
    "one_error": Spec("scores", loss=True, option="convention"),
    "coverage": Spec("scores", loss=True, option="convention"),
    "ranking_loss": Spec("scores", loss=True, option="convention"),
    "average_precision": Spec("scores", option="convention"),
    "mean_inverse_rank": Spec("scores"),
    "success_rate": Spec("scores", option="at"),
    "precision_at": Spec("scores", option="at"),
    "macro_average_precision": Spec("scores", of_rows=False),
    "macro_auc": Spec("scores", of_rows=False),
}


def evaluate(
    Y: LabelsLike,
    scores: ScoresLike,
    predicted: LabelsLike | None = None,
    convention: str = "paper",
    *,
    at: int = 5,
) -> dict[str, float]:
    """Compute all metrics of a prediction.

    Parameters
    ----------
    Y : 0/1 matrix, shape (n, q), or tags of n rows
        True labels; tags only with `LabelScores` of labels with names.
    scores : LabelScores, array or sparse matrix with default 0, shape (n, q)
        Scores by which the labels are ranked.
    predicted : 0/1 matrix, shape (n, q), or tags of n rows, optional
        Predicted labels; without them only the ranking metrics are computed.
    convention : {"paper", "lamda", "mulan", "sklearn"}, default="paper"
        How ties and rows without labels count; see `nearlabel.metrics.conventions`.
    at : int, default=5
        Number of top-ranked labels that `success_rate` and `precision_at` consider.

    Returns
    -------
    dict of str to float
        Without metrics that the convention does not define.

    Examples
    --------
    >>> import nearlabel as nl
    >>> result = nl.metrics.evaluate([[1, 0, 1]], [[0.9, 0.8, 0.1]], [[1, 0, 0]])
    >>> result["ranking_loss"], result["coverage"], round(result["hamming_loss"], 4)
    (0.5, 2.0, 0.3333)
    """
    return _values(_given(Y, scores, predicted), convention, at)


def per_row(
    Y: LabelsLike,
    scores: ScoresLike,
    predicted: LabelsLike | None = None,
    convention: str = "paper",
    *,
    at: int = 5,
) -> dict[str, Floats]:
    """Values per row, for all metrics that are means over rows.

    A paired test takes their differences between two models, row by row; their spread gives the
    standard error of a metric.

    Parameters
    ----------
    Y, scores, predicted, convention, at
        As in `evaluate`.

    Returns
    -------
    dict of str to ndarray, shape (n,)
        nan for rows that a metric leaves out.

    Examples
    --------
    >>> import nearlabel as nl
    >>> nl.metrics.per_row([[1, 0, 1], [0, 0, 1]], [[0.9, 0.8, 0.1], [0.1, 0.2, 0.7]])["one_error"]
    array([0., 0.])
    """
    return _row_values(_given(Y, scores, predicted), convention, at)


def evaluate_and_per_row(
    Y: LabelsLike,
    scores: ScoresLike,
    predicted: LabelsLike | None = None,
    convention: str = "paper",
    *,
    at: int = 5,
) -> tuple[dict[str, float], dict[str, Floats]]:
    """The results of `evaluate` and `per_row`, ranked once."""
    given = _given(Y, scores, predicted)
    return _values(given, convention, at), _row_values(given, convention, at)


Given = dict[str, Ranking | Agreement]  # by what a metric reads


def _values(given: Given, convention: str, at: int) -> dict[str, float]:
    return {
        name: value_of(given[spec.reads], name, convention, at)
        for name, spec in METRICS.items()
        if spec.reads in given and has_metric(convention, name)
    }


def _row_values(given: Given, convention: str, at: int) -> dict[str, Floats]:
    return {
        name: _values_of(given[spec.reads], name, convention, at)
        for name, spec in METRICS.items()
        if spec.of_rows and spec.reads in given and has_metric(convention, name)
    }


def _given(Y: LabelsLike, scores: ScoresLike, predicted: LabelsLike | None) -> Given:
    names = getattr(scores, "label_names", None)
    Y = label_matrix(Y, "Y", names)
    given: Given = {"scores": checked_ranking(Y, scores)}
    if predicted is not None:
        given["sets"] = Agreement(Y, predicted, names)
    return given


def scorer(metric: str, *, convention: str = "paper", at: int = 5) -> Scorer:
    """A metric as a scikit-learn scorer: greater is better, so losses are negated.

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
    if not has_metric(convention, metric):
        rule_of(metric, convention)  # its error lists the conventions that define the metric
    return Scorer(metric, convention, check_integer(at, "at", low=1))


class Prediction(Protocol):
    """Scores of labels, and the label sets predicted from them."""

    @property
    def scores(self) -> LabelScores:
        """The scores by which labels are ranked."""

    @property
    def decided(self) -> LabelsLike:
        """The label sets."""


def measure(Y: Csr, predicted: Prediction, scorers: Mapping[str, Scorer]) -> dict[str, float]:
    """Values of several scorers, greater is better: ranked once, and predicted only if needed.

    Y is a validated label matrix of the same shape as the scores.
    """
    given: Given = {}
    values = {}
    for name, scorer in scorers.items():
        spec = METRICS[scorer.metric]
        if spec.reads == "scores" and "scores" not in given:
            given["scores"] = Ranking(Y, predicted.scores)
        elif spec.reads not in given:
            given["sets"] = Agreement(Y, predicted.decided)
        value = value_of(given[spec.reads], scorer.metric, scorer.convention, scorer.at)
        values[name] = -value if spec.loss else value
    return values


@dataclass(frozen=True)
class Scorer:
    """A scikit-learn scorer: a function of an estimator, X and the true y."""

    metric: str
    convention: str = "paper"
    at: int = 5

    def __call__(self, estimator: Any, X: MatrixLike, y: LabelsLike) -> float:
        """Score `estimator` on X and the true labels y; greater is better."""
        spec = METRICS[self.metric]
        truth = _as_matrix(estimator, y)
        if spec.reads == "sets":
            decided = _as_matrix(estimator, estimator.predict(X))
            given: Ranking | Agreement = Agreement(truth, decided)
        else:
            scores = estimator_scores(estimator, X)
            if truth is not y and isinstance(scores, np.ndarray):  # one column of two classes
                scores = scores[:, -1:]  # that of the second
            given = checked_ranking(truth, scores)
        value = value_of(given, self.metric, self.convention, self.at)
        return -value if spec.loss else value


def value_of(given: Ranking | Agreement, metric: str, convention: str, at: int = 5) -> float:
    """A metric: the mean of its values."""
    if metric == "hamming_loss" and isinstance(given, Agreement):
        return given.share_of_errors()
    return mean_of_defined(_values_of(given, metric, convention, at))


def _values_of(given: Ranking | Agreement, metric: str, convention: str, at: int) -> Floats:
    """The values whose mean is a metric, with the option that it takes."""
    option = METRICS[metric].option
    options = {option: {"convention": convention, "at": at}[option]} if option else {}
    values: Floats = getattr(given, metric)(**options)
    return values


def estimator_scores(estimator: Any, X: Any) -> LabelScores | Array:
    """Scores for ranking labels: nearlabel's, else probabilities or decision values."""
    if hasattr(estimator, "steps"):  # a pipeline: transform X, then score by the last step
        if len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    if hasattr(estimator, "label_scores"):
        scores: LabelScores = estimator.label_scores(X)
        return scores
    if not hasattr(estimator, "predict_proba"):
        return np.reshape(estimator.decision_function(X), (X.shape[0], -1))
    probabilities = estimator.predict_proba(X)
    if isinstance(probabilities, list):  # scikit-learn's multi-output form: one array per label
        columns = zip(probabilities, estimator.classes_, strict=True)
        return np.column_stack([p[:, c == 1].sum(axis=1) for p, c in columns])
    return np.asarray(probabilities)


def _as_matrix(estimator: Any, y: Any) -> LabelsLike:
    """Labels as a 0/1 matrix, if y contains tags or is one column of two classes."""
    if sparse.issparse(y) or (hasattr(y, "shape") and len(y.shape) == 2):
        return y
    model = estimator[-1] if hasattr(estimator, "steps") else estimator
    if hasattr(model, "label_matrix"):
        return model.label_matrix(y)
    if len(np.shape(y)) == 2:
        return y
    return (np.asarray(y) == estimator.classes_[1]).astype(np.int8).reshape(-1, 1)
