"""How well calibrated are the probabilities? Needs the data folder."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from measuring import report
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.experiments import splits
from nearlabel.labels.calibration import calibration
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.answers import chances
from nearlabel.methods.calibrated import CalibratedMethod
from nearlabel.methods.label_forms import beside_half
from nearlabel.methods.registry import METHODS, estimator

QUESTION = (
    "Expected calibration error of probabilities: their distance from the share of correct labels, "
    "in ten bins over all rows and labels of the official test rows, or of a third of the rows; "
    "min-max features, k = 10. For methods that learn probabilities from leave-one-out scores, "
    "also before calibration, and without the adjustment to predict; and maps that were tried for "
    "BalancedkNN, on leave-one-out scores of training rows in five folds"
)
SETS = ("emotions", "scene", "yeast", "image")
K = 10
TOLD, BEFORE, UNDECIDED = "predict_proba", "before calibration", "whatever predict decides"
BY_SKLEARN = "by CalibratedClassifierCV"
ONE_MAP, BY_CUT = "of the score", "of score / (score + cut)"
BY_LABEL = "of the score, for each label"


def models() -> dict[str, Any]:
    """All methods, one with a threshold per label, and the blend."""
    found = {method: estimator(method, K, random_state=0) for method in METHODS}
    found["LabelThresholds(MLkNN)"] = nl.LabelThresholds(nl.MLkNN(K))
    return {**found, "BlendedNeighbors": nl.BlendedNeighbors()}


def told_by(model: Any, queries: Any) -> dict[str, Any]:
    """The probabilities of a fitted model; for some methods also the uncalibrated ones."""
    told = {TOLD: model.predict_proba(queries)}
    if isinstance(model, CalibratedMethod):
        scores = model.label_scores(queries)
        told[BEFORE] = model._uncalibrated(scores.toarray(), np.arange(scores.shape[1]))
        told[UNDECIDED] = chances(model, scores)
    return told


def by_sklearn(X: Any, Y: Any, queries: Any) -> Any:
    """Calibrated probabilities of MLCWkNN, fitted for each label and fold."""
    one = CalibratedClassifierCV(nl.MLCWkNN(K), method="isotonic", ensemble=False)
    found = MultiOutputClassifier(one).fit(X, Y).predict_proba(queries)
    return np.column_stack([label[:, 1] for label in found])


def parts(name: str) -> tuple[Any, Any]:
    """Training and test rows of a data set."""
    data = nl.datasets.load(name)
    [part] = splits(data, "holdout" if data.train is None else "official")
    return data.rows(part.train), data.rows(part.test)


def measured(data: str, train: Any, test: Any) -> Iterator[dict[str, Any]]:
    """The errors on one data set, with bins for methods before and after calibration."""
    scaler = MinMaxScaler().fit(train.X)
    X, queries = scaler.transform(train.X), scaler.transform(test.X)
    for method, model in models().items():
        told = told_by(model.fit(X, train.Y), queries)
        if method == "MLCWkNN":
            told[BY_SKLEARN] = by_sklearn(X, train.Y.toarray(), queries)
        for which, probabilities in told.items():
            error = nl.metrics.calibration_error(test.Y, probabilities)
            row = {"data": data, "method": method, "probabilities": which, "error": round(error, 4)}
            if BEFORE in told:
                pairs, *means = nl.metrics.reliability(test.Y, probabilities)
                row["pairs"] = pairs.tolist()
                row["mean_probability"], row["share"] = ([*map(_shown, part)] for part in means)
            yield row
        if isinstance(model, nl.BalancedkNN):
            yield from maps_tried(data, model, train.Y)


def maps_tried(data: str, model: Any, Y: Any) -> Iterator[dict[str, Any]]:
    """The quality of maps from scores to probabilities on rows not used to learn them."""
    scores = model.left_out_scores().toarray()
    shares = model._uncalibrated(scores, np.arange(scores.shape[1]))
    every = np.arange(scores.shape[1])
    tried = {ONE_MAP: (scores, [every]), BY_CUT: (shares, [every])}
    tried[BY_LABEL] = scores, [*every[:, None]]
    for name, (values, labels) in tried.items():
        told = np.empty(values.shape)
        for known, others in KFold(5, shuffle=True, random_state=0).split(values):
            for some in labels:
                given = LabelScores.from_dense(values[np.ix_(known, some)])
                learned = calibration(given, Y[known][:, some])
                told[np.ix_(others, some)] = learned.of(values[np.ix_(others, some)])
        squared = float(np.mean((told - Y.toarray()) ** 2))
        error = nl.metrics.calibration_error(Y, told)
        decided = nl.metrics.calibration_error(Y, beside_half(told, scores >= model.cuts_))
        found = {"error": error, "squared_error": squared, "error_beside_decisions": decided}
        yield {"data": data, "map": name, **{key: round(found[key], 4) for key in found}}


def _shown(mean: float) -> float | None:
    """None if a bin is empty."""
    return round(float(mean), 4) if mean == mean else None


def main() -> None:
    warnings.simplefilter("ignore")
    try:
        rows = [row for name in SETS for row in measured(name, *parts(name))]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
