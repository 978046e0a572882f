"""One unit of an experiment, run: parameters chosen where they are not told, then measured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nearlabel.algorithms import ALGORITHMS
from nearlabel.arrays import Array, Csr
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
    parts, scale = _parts(data, setting), setting["scale"]
    if "nominal" in setting:
        data, scale = _with_nominal(data, parts[0][0], setting["nominal"], scale), "none"
    shared = {"n_jobs": n_jobs}
    sets = setting["parameters"]
    if "grid" in setting:
        X = _scaled(data.X, parts[0][0], scale)
        sets = [_chosen(X, data.Y[parts[0][0]], setting, sets[0], shared)]
    models = [_estimator(setting, {**shared, **one}) for one in sets]
    found = evaluate_splits(
        data,
        models,
        parts,
        scale=scale,
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


def _scaled(X: Any, train: Array, scale: str) -> Any:
    """The rows that are learned from, scaled by themselves."""
    transformer = scaler(scale, X[train])
    return X[train] if transformer is None else transformer.fit_transform(X[train])


def _with_nominal(data: Dataset, train: Array, names: list[str], scale: str) -> Dataset:
    """The data scaled, and with nominal features that are at distance 1 where they differ.

    That is what Weka's distance, and so Mulan's, makes of them.
    """
    listed = [] if data.feature_names is None else data.feature_names.tolist()
    missing = [name for name in names if name not in listed]
    if missing:
        raise ValueError(f"this data set has no feature {missing[0]!r}")
    is_nominal = np.isin(data.feature_names, names)
    rest, transformer = data.X[:, ~is_nominal], scaler(scale, data.X[:, ~is_nominal])
    if transformer is not None:
        rest = transformer.fit(rest[train]).transform(rest)
    columns = [
        (data.X[:, place, None] == np.unique(data.X[:, place])) / np.sqrt(2)
        for place in np.flatnonzero(is_nominal)
    ]
    return replace(data, X=np.hstack([rest, *columns]), feature_names=None)


def _chosen(
    X: Any,
    Y: Csr,
    setting: dict[str, Any],
    fixed: dict[str, Any],
    shared: dict[str, Any],
) -> dict[str, Any]:
    """The parameters that are best by leave-one-out, on the rows that are learned from alone."""
    from nearlabel.experiments.tuning import GraphSearchCV
    from nearlabel.metrics import scorer

    search = GraphSearchCV(
        _estimator(setting, {**shared, **fixed}),
        setting["grid"],
        scoring=scorer(setting["select"], convention=setting["convention"]),
        cv="loo",
        refit=False,
    )
    search.fit(X, Y)
    return {**fixed, **search.best_params_}


def _value(value: float, metric: str, setting: dict[str, Any], labels: int) -> float | None:
    if not math.isfinite(value):
        return None
    return value / labels if metric == "coverage" and setting["coverage"] == "share" else value
