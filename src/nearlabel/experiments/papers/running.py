"""One unit of an experiment, run: parameters chosen where they are not told, then measured."""

from __future__ import annotations

import math
import time
from typing import Any

from nearlabel.common.arrays import Array, Csr
from nearlabel.experiments.evaluation import evaluate_splits
from nearlabel.experiments.papers.clusters import label_count_clusters
from nearlabel.experiments.papers.plans import Unit
from nearlabel.experiments.papers.preparing import Prepared
from nearlabel.experiments.papers.progress import part_of
from nearlabel.experiments.scaling import scaler
from nearlabel.experiments.tuning import GraphSearchCV
from nearlabel.methods.registry import method
from nearlabel.metrics import scorer
from nearlabel.search import Progress

METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")


def run_unit(
    unit: Unit,
    ready: Prepared,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run a unit; what is to be stored of it.

    Parameters
    ----------
    unit : Unit
    ready : Prepared
        Its data, by its setting.
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
    kind = _cluster_runs if setting["kind"] == "label clusters" else _metric_runs
    runs = kind(ready, setting, n_jobs, progress)
    return {"setting": setting, "seconds": round(time.process_time() - start, 2), "runs": runs}


def _cluster_runs(
    ready: Prepared, setting: dict[str, Any], n_jobs: int | None, progress: Progress | None
) -> list[dict[str, Any]]:
    """Means of label counts in clusters, one set of parameters after the other."""
    return [
        {
            "parameters": one,
            "metrics": label_count_clusters(ready.data, **one, n_jobs=n_jobs, progress=progress),
        }
        for one in setting["parameters"]
    ]


def _metric_runs(
    ready: Prepared, setting: dict[str, Any], n_jobs: int | None, progress: Progress | None
) -> list[dict[str, Any]]:
    """Metrics of a method on all splits, for each set of parameters."""
    (data, parts, scale), sets = ready, setting["parameters"]
    if "grid" in setting:
        train = parts[0].train
        X = _scaled(data.X, train, scale)
        sets = [_chosen(X, data.Y[train], setting, n_jobs, part_of(progress, 0, 9, 10))]
        progress = part_of(progress, 9, 10, 10)
    models = [_estimator(setting, one, n_jobs) for one in sets]
    found = evaluate_splits(
        data,
        models,
        parts,
        scale=scale,
        convention=setting["convention"],
        progress=progress,
    )
    labels = data.Y.shape[1]
    return [
        {
            "parameters": parameters,
            "metrics": {
                metric: [_value(one.metrics[metric], metric, setting, labels) for one in of_model]
                for metric in METRICS
            },
        }
        for parameters, of_model in zip(sets, found, strict=True)
    ]


def _estimator(setting: dict[str, Any], parameters: dict[str, Any], n_jobs: int | None) -> Any:
    return method(setting["estimator"])(**parameters, n_jobs=n_jobs)


def _scaled(X: Any, train: Array, scale: str) -> Any:
    """The rows that are learned from, scaled by themselves."""
    transformer = scaler(scale, X[train])
    return X[train] if transformer is None else transformer.fit_transform(X[train])


def _chosen(
    X: Any, Y: Csr, setting: dict[str, Any], n_jobs: int | None, progress: Progress | None
) -> dict[str, Any]:
    """The parameters that are best by leave-one-out, on the rows that are learned from alone."""
    (fixed,) = setting["parameters"]
    search = GraphSearchCV(
        _estimator(setting, fixed, n_jobs),
        setting["grid"],
        scoring=scorer(setting["select"], convention=setting["convention"]),
        cv="loo",
        refit=False,
    )
    search.fit(X, Y, progress=progress)
    return {**fixed, **search.best_params_}


def _value(value: float, metric: str, setting: dict[str, Any], labels: int) -> float | None:
    if not math.isfinite(value):
        return None
    return value / labels if metric == "coverage" and setting["coverage"] == "share" else value
