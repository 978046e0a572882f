"""One unit of an experiment, run: parameters chosen where they are not told, then measured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nearlabel.algorithms import ALGORITHMS
from nearlabel.arrays import Array
from nearlabel.datasets import Dataset
from nearlabel.experiments.plans import Unit
from nearlabel.experiments.protocols import evaluate_splits, splits
from nearlabel.experiments.scaling import scaler

METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
KNOWN_TEST_ROWS = "known test rows"  # the split of a data set of which only the test part is known


def run_unit(
    unit: Unit,
    data: Dataset,
    *,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run a unit; what is to be stored of it.

    Parameters
    ----------
    unit : Unit
    data : Dataset
    n_jobs : int, optional
        Threads of the search.
    progress : callable, optional
        See `evaluate_splits`.

    Returns
    -------
    dict
        `setting`, `seconds` of processor time, and `runs`: for each set of parameters these and
        `metrics`, each a list with a value a split, None where it is not defined.
    """
    start, setting = time.process_time(), unit.setting
    if setting["rows"] == "several labels":
        data = data.rows(np.diff(data.Y.indptr) > 1)
    parts = _parts(data, setting)
    shared = {"n_jobs": n_jobs}
    sets = setting["parameters"]
    if "grid" in setting:
        sets = [_chosen(data, parts[0][0], setting, sets[0], shared)]
    models = [_estimator(setting, {**shared, **one}) for one in sets]
    found = evaluate_splits(
        data,
        models,
        parts,
        scale=setting["scale"],
        convention=setting["convention"],
        progress=progress,
    )
    labels = data.Y.shape[1]
    runs = [
        {
            "parameters": parameters,
            "metrics": {
                metric: [_value(one.metrics[metric], metric, setting, labels) for one in of_model]
                for metric in METRICS
            },
        }
        for parameters, of_model in zip(sets, found, strict=True)
    ]
    return {"setting": setting, "seconds": round(time.process_time() - start, 2), "runs": runs}


def _parts(data: Dataset, setting: dict[str, Any]) -> Any:
    if setting["split"] != KNOWN_TEST_ROWS:
        return splits(data, setting["split"], seed=setting["seed"])
    if "part" not in data.extra:
        raise ValueError("this data set does not tell which of its rows are test rows")
    is_test = data.extra["part"] == 1
    return [(np.flatnonzero(~is_test), np.flatnonzero(is_test))]


def _estimator(setting: dict[str, Any], parameters: dict[str, Any]) -> Any:
    return ALGORITHMS[setting["estimator"]](**parameters)


def _chosen(
    data: Dataset,
    train: Array,
    setting: dict[str, Any],
    fixed: dict[str, Any],
    shared: dict[str, Any],
) -> dict[str, Any]:
    """The parameters that are best by leave-one-out, on the rows that are learned from alone."""
    from nearlabel.experiments.tuning import GraphSearchCV
    from nearlabel.metrics import scorer

    X, transformer = data.X[train], scaler(setting["scale"], data.X[train])
    if transformer is not None:
        X = transformer.fit_transform(X)
    search = GraphSearchCV(
        _estimator(setting, {**shared, **fixed}),
        setting["grid"],
        scoring=scorer(setting["select"], convention=setting["convention"]),
        cv="loo",
        refit=False,
    )
    search.fit(X, data.Y[train])
    return {**fixed, **search.best_params_}


def _value(value: float, metric: str, setting: dict[str, Any], labels: int) -> float | None:
    if not math.isfinite(value):
        return None
    return value / labels if metric == "coverage" and setting["coverage"] == "share" else value
