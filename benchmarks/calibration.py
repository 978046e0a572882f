"""Are probabilities frequencies? Needs the data folder."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from measuring import report
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.experiments import splits
from nearlabel.methods.answers import chances
from nearlabel.methods.calibrated import CalibratedMethod
from nearlabel.methods.registry import METHODS, estimator

QUESTION = (
    "Expected calibration error of probabilities: their distance from the share of right labels, "
    "in ten bins over all rows and labels of the sets' own test rows, or of a third of the rows; "
    "features min-max, k = 10. Methods that learn probabilities on left-out training rows also "
    "before that, and without regard to what predict decides"
)
SETS = ("emotions", "scene", "yeast", "image")
K = 10
TOLD, BEFORE, UNDECIDED = "predict_proba", "before calibration", "whatever predict decides"


def models() -> dict[str, Any]:
    """Every method, one with a cut per label, and the blend."""
    found = {method: estimator(method, K, random_state=0) for method in METHODS}
    found["LabelThresholds(MLkNN)"] = nl.LabelThresholds(nl.MLkNN(K))
    return {**found, "BlendedNeighbors": nl.BlendedNeighbors()}


def told_by(model: Any, queries: Any) -> dict[str, Any]:
    """The probabilities that a fitted model tells, and for some methods what stands behind them."""
    told = {TOLD: model.predict_proba(queries)}
    if isinstance(model, CalibratedMethod):
        scores = model.label_scores(queries)
        labels = range(scores.shape[1])
        told[BEFORE] = model._uncalibrated(scores.toarray(), [*labels])
        told[UNDECIDED] = chances(model, scores)
    return told


def measured(name: str) -> list[dict[str, Any]]:
    """The errors on one data set, with bins where there is a before and an after."""
    data = nl.datasets.load(name)
    [part] = splits(data, "holdout" if data.train is None else "official")
    train, test = data.rows(part.train), data.rows(part.test)
    scaler = MinMaxScaler().fit(train.X)
    X, queries = scaler.transform(train.X), scaler.transform(test.X)
    rows = []
    for method, model in models().items():
        told = told_by(model.fit(X, train.Y), queries)
        for which, probabilities in told.items():
            error = nl.metrics.calibration_error(test.Y, probabilities)
            row = {"data": name, "method": method, "probabilities": which, "error": round(error, 4)}
            if len(told) > 1:
                pairs, *means = nl.metrics.reliability(test.Y, probabilities)
                row["pairs"] = pairs.tolist()
                row["mean_probability"], row["share"] = ([*map(_shown, part)] for part in means)
            rows.append(row)
    return rows


def _shown(mean: float) -> float | None:
    """Nothing where a bin is empty."""
    return round(float(mean), 4) if mean == mean else None


def main() -> None:
    warnings.simplefilter("ignore")
    try:
        rows = [row for name in SETS for row in measured(name)]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
