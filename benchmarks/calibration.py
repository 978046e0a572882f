"""Are probabilities frequencies? Needs the data folder."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from measuring import report
from sklearn.preprocessing import MinMaxScaler

import nearlabel as nl
from nearlabel.experiments import splits
from nearlabel.methods.registry import METHODS, estimator

QUESTION = (
    "Expected calibration error of probabilities: their distance from the share of right labels, "
    "in ten bins over all rows and labels of the sets' own test rows, or of a third of the rows; "
    "features min-max, k = 10; PositivekNN also by P = 1 - exp(-S), as published"
)
SETS = ("emotions", "scene", "yeast", "image")
K, BINS = 10, 10


def bins(chances: Any, truth: Any) -> tuple[Any, Any, Any]:
    """Pairs in each bin, their mean probability and their share of right labels."""
    place = np.minimum((chances * BINS).astype(int), BINS - 1)
    count, told, right = (
        np.bincount(place, part, minlength=BINS) for part in (None, chances, truth)
    )
    several = np.maximum(count, 1)
    return count, told / several, right / several


def calibration_error(chances: Any, truth: Any) -> float:
    """The mean distance of both, by pairs."""
    count, told, right = bins(chances.ravel(), truth.ravel())
    return round(float(count @ np.abs(told - right) / count.sum()), 4)


def row_of(name: str) -> dict[str, Any]:
    data = nl.datasets.load(name)
    [part] = splits(data, "holdout" if data.train is None else "official")
    train, test = data.rows(part.train), data.rows(part.test)
    scaler = MinMaxScaler().fit(train.X)
    X, queries, truth = scaler.transform(train.X), scaler.transform(test.X), test.Y.toarray()
    row: dict[str, Any] = {"data": name}
    models = [estimator(method, K, random_state=0) for method in METHODS]
    for model in (*models, nl.BlendedNeighbors()):
        model.fit(X, train.Y.toarray())
        if isinstance(model, nl.PositivekNN):
            S = np.maximum(model.label_scores(queries).toarray(), 0)
            row["PositivekNN, as published"] = calibration_error(-np.expm1(-S), truth)
        kind = type(model).__name__
        row[kind] = calibration_error(model.predict_proba(queries), truth)
    return row


def main() -> None:
    warnings.simplefilter("ignore")
    try:
        rows = [row_of(name) for name in SETS]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
