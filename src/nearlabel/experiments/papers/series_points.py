"""The points of the papers' figures, measured: one graph serves all points of a picture.

Each function takes prepared data and the setting of a series, and gives what `Series.measure` adds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nearlabel.datasets import Dataset
from nearlabel.experiments.evaluation import evaluate_splits
from nearlabel.experiments.papers.preparing import Prepared
from nearlabel.experiments.protocols import splits
from nearlabel.methods.registry import method
from nearlabel.search import Progress, neighbor_graph

# As the command line calls them.
TITLES = {
    "MLkNN": "ML-kNN",
    "DMLkNN": "DML-kNN",
    "MallowskNN": "Mallows kNN",
    "PositivekNN": "PositivekNN",
    "BRkNN": "BRkNN",
}


def run_time_points(
    ready: Prepared, setting: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """Seconds of ten folds against the number of rows, for each method."""
    data = ready.data
    order = np.random.default_rng(setting["seed"]).permutation(len(data))
    sizes = [size for size in setting["sizes"] if size <= len(data)]
    names = [TITLES[name] for name in setting["methods"]]
    kinds = ("with the search", "without")
    curves: dict[str, list[float]] = {f"{name}, {kind}": [] for kind in kinds for name in names}
    for place, size in enumerate(sizes):
        some = data.rows(np.sort(order[:size]))
        runs = [_fold_seconds(some, setting) for _ in range(setting["repeats"])]
        # The least of several runs: what else the machine did only ever adds.
        for curve, seconds in zip(curves.values(), np.min(runs, axis=0), strict=True):
            curve.append(round(float(seconds), 5))
        if progress is not None:
            progress(place + 1, len(sizes))
    panel = {"metric": "seconds", "curves": curves, "lines": {}, "spread": {}}
    return _plot(sizes, "items n", [panel], log_x=True)


def _fold_seconds(data: Dataset, setting: Mapping[str, Any]) -> list[float]:
    """Processor time of all folds: of each method with the search, then of each without it."""
    k, methods = setting["k"], [method(name) for name in setting["methods"]]
    seconds = np.zeros((2, len(methods)))
    for part in splits(data, f"cv{setting['folds']}", seed=setting["seed"]):
        X, Y, new = data.X[part.train], data.Y[part.train], data.X[part.test]
        graph = neighbor_graph(X, k)
        for place, kind in enumerate(methods):
            start = time.process_time()
            model = kind(n_neighbors=k).fit(X, Y)
            queries = neighbor_graph(X, k, new)
            model.predict_from_graph(queries, scores=model.scores_from_graph(queries))
            searched = time.process_time()
            model = kind(n_neighbors=k).fit_graph(graph, Y)
            model.predict_from_graph(queries, scores=model.scores_from_graph(queries))
            seconds[:, place] += searched - start, time.process_time() - searched
    return seconds.ravel().tolist()


def cluster_points(
    ready: Prepared, setting: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """Average precision against the number of clusters, over several starts of k-means."""
    k, clusters, metric = setting["k"], setting["clusters"], "average_precision"
    seeds = range(setting["seeds"])
    models = [
        method("MLkNN")(n_neighbors=k),
        *(
            method("LAMLkNN")(n_neighbors=k, n_clusters=m, random_state=seed)
            for m in clusters
            for seed in seeds
        ),
    ]
    line, *values = (one[metric] for one in _metrics(ready, models, setting, progress))
    table = np.reshape(values, (len(clusters), len(seeds)))
    panel = {
        "metric": metric,
        "curves": {"LAML-kNN": table.mean(axis=1).tolist()},
        "lines": {"ML-kNN": line},
        "spread": {"LAML-kNN": [table.min(axis=1).tolist(), table.max(axis=1).tolist()]},
    }
    return _plot(clusters, "clusters m", [panel])


def rate_points(
    ready: Prepared, setting: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """Ranking loss against the rate, for both readings of the formula."""
    k, rates, metric = setting["k"], setting["rates"], "ranking_loss"
    readings = {"exp(-z d)": rates, "exp(-d / z)": [1 / z for z in rates]}
    models = [method("PositivekNN")(n_neighbors=k, rate=z) for zs in readings.values() for z in zs]
    models.append(method("BRkNN")(n_neighbors=k))
    *values, votes = (one[metric] for one in _metrics(ready, models, setting, progress))
    curves = np.reshape(values, (len(readings), len(rates))).tolist()
    panel = {
        "metric": metric,
        "curves": dict(zip(readings, curves, strict=True)),
        "lines": {"BRkNN": votes},
        "spread": {},
    }
    return _plot(rates, "rate z", [panel], log_x=True, shaded=setting["shown"])


def neighbor_points(
    ready: Prepared, setting: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """The ranking metrics against the number of neighbors, for each method."""
    methods, neighbors = setting["methods"], setting["k"]
    models = []
    for name in methods:
        seeded = {"random_state": setting["seed"]} if name == "PositivekNN" else {}
        models += [method(name)(n_neighbors=k, **seeded) for k in neighbors]
    found = iter(_metrics(ready, models, setting, progress))
    of_method = {TITLES[name]: [next(found) for _ in neighbors] for name in methods}
    panels = [
        {
            "metric": metric,
            "curves": {name: [one[metric] for one in some] for name, some in of_method.items()},
            "lines": {},
            "spread": {},
        }
        for metric in ("ranking_loss", "average_precision", "coverage", "one_error")
    ]
    return _plot(neighbors, "neighbors k", panels)


def _metrics(
    ready: Prepared, models: list[Any], setting: Mapping[str, Any], progress: Progress | None
) -> list[dict[str, float]]:
    """Metrics of each model on one split: one search for all."""
    found = evaluate_splits(
        ready.data,
        models,
        ready.parts,
        scale=ready.scale,
        convention=setting["convention"],
        progress=progress,
    )
    return [result.metrics for [result] in found]


def _plot(
    x: Sequence[float],
    x_label: str,
    panels: list[dict[str, Any]],
    *,
    log_x: bool = False,
    shaded: list[float] | None = None,
) -> dict[str, Any]:
    axes = {"x": list(x), "x_label": x_label, "log_x": log_x, "shaded": shaded}
    return {**axes, "panels": panels}
