"""The points of the papers' figures, measured: one graph serves all points of a plot."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearlabel.baselines.algorithm_registry import title
from nearlabel.common.arrays import Floats
from nearlabel.datasets import Dataset
from nearlabel.experiments.evaluation import evaluate_splits
from nearlabel.experiments.folds import Model
from nearlabel.experiments.papers.experiment_runs import PreparedData, Values
from nearlabel.experiments.protocols import splits
from nearlabel.methods.registry import method
from nearlabel.search import Progress, neighbor_graph


@dataclass(frozen=True)
class Panel:
    """One picture: a metric, or "seconds", against the x axis of its plot.

    Each method has a curve with a value per point of x, or a line where it does not have the
    parameter on the x axis. `spread` has the smallest and the greatest values over seeds.
    """

    metric: str
    curves: Mapping[str, Values]
    lines: Mapping[str, float | None] = field(default_factory=dict)
    spread: Mapping[str, Sequence[Values]] = field(default_factory=dict)

    @property
    def has_points(self) -> bool:
        """Whether there is anything to show."""
        return any(value is not None for curve in self.curves.values() for value in curve)


@dataclass(frozen=True)
class Plot:
    """Pictures with one x axis; `shaded` is the part of it that the paper shows, or None."""

    x: Sequence[float]
    x_label: str
    panels: Sequence[Panel]
    log_x: bool = False
    shaded: Sequence[float] | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Plot:
        """A plot of which ``dataclasses.asdict`` was stored."""
        return cls(**{**stored, "panels": [Panel(**panel) for panel in stored["panels"]]})


def run_time_plot(
    ready: PreparedData,
    progress: Progress | None,
    *,
    methods: Sequence[str],
    k: int,
    sizes: Sequence[int],
    folds: int,
    repeats: int,
    seed: int,
) -> Plot:
    """Seconds of all folds against the number of rows, for each method."""
    data = ready.data
    order = np.random.default_rng(seed).permutation(len(data))
    sizes = [size for size in sizes if size <= len(data)]
    names = [title(name) for name in methods]
    curves: dict[str, list[float | None]] = {
        f"{name}, {kind}": [] for kind in ("with the search", "without") for name in names
    }
    for place, size in enumerate(sizes):
        sample = data.rows(np.sort(order[:size]))
        runs = [_fold_seconds(sample, methods, k, folds, seed) for _ in range(repeats)]
        # The least of several runs: what else the machine did only ever adds.
        for curve, seconds in zip(curves.values(), np.min(runs, axis=0), strict=True):
            curve.append(round(float(seconds), 5))
        if progress is not None:
            progress(place + 1, len(sizes))
    return Plot(sizes, "items n", [Panel("seconds", curves)], log_x=True)


def _fold_seconds(
    data: Dataset, methods: Sequence[str], k: int, folds: int, seed: int
) -> list[float]:
    """Processor time of all folds: of each method with the search, then of each without it."""
    seconds = np.zeros((2, len(methods)))
    for part in splits(data, f"cv{folds}", seed=seed):
        X, Y, new = data.X[part.train], data.Y[part.train], data.X[part.test]
        graph = neighbor_graph(X, k)
        for place, name in enumerate(methods):
            start = time.process_time()
            model = method(name)(n_neighbors=k).fit(X, Y)
            queries = neighbor_graph(X, k, new)
            model.predict_from_graph(queries, scores=model.scores_from_graph(queries))
            searched = time.process_time()
            model = method(name)(n_neighbors=k).fit_graph(graph, Y)
            model.predict_from_graph(queries, scores=model.scores_from_graph(queries))
            seconds[:, place] += searched - start, time.process_time() - searched
    return seconds.ravel().tolist()


def cluster_plot(
    ready: PreparedData,
    progress: Progress | None,
    *,
    clusters: Sequence[int],
    seeds: int,
    k: int,
    smoothing: float,
    convention: str,
) -> Plot:
    """Average precision against the number of clusters, over several starts of k-means."""
    metric, shared = "average_precision", {"n_neighbors": k, "smoothing": smoothing}
    models = [
        method("LAMLkNN")(**shared, n_clusters=m, random_state=seed)
        for m in clusters
        for seed in range(seeds)
    ]
    models.append(method("MLkNN")(**shared))
    results = _metrics(ready, models, convention, progress)
    *values, line = (metrics[metric] for metrics in results)
    table = np.reshape(values, (len(clusters), seeds))
    panel = Panel(
        metric,
        {"LAML-kNN": _defined(table.mean(axis=1))},
        {"ML-kNN": _defined([line])[0]},
        {"LAML-kNN": [_defined(table.min(axis=1)), _defined(table.max(axis=1))]},
    )
    return Plot(clusters, "clusters m", [panel])


def rate_plot(
    ready: PreparedData,
    progress: Progress | None,
    *,
    rates: Sequence[float],
    shown: Sequence[float],
    k: int,
    convention: str,
) -> Plot:
    """Ranking loss against the rate, for both readings of the formula."""
    metric = "ranking_loss"
    readings = {"exp(-z d)": rates, "exp(-d / z)": [1 / z for z in rates]}
    positive = method("PositivekNN")
    models = [positive(n_neighbors=k, rate=z) for zs in readings.values() for z in zs]
    models.append(method("BRkNN")(n_neighbors=k))
    results = _metrics(ready, models, convention, progress)
    *values, votes = (metrics[metric] for metrics in results)
    curves = map(_defined, np.reshape(values, (len(readings), len(rates))))
    panel = Panel(metric, dict(zip(readings, curves, strict=True)), {"BRkNN": _defined([votes])[0]})
    return Plot(rates, "rate z", [panel], log_x=True, shaded=shown)


def neighbor_plot(
    ready: PreparedData,
    progress: Progress | None,
    *,
    methods: Sequence[str],
    greatest_k: int,
    convention: str,
    seed: int,
) -> Plot:
    """The ranking metrics against the number of neighbors, for each method."""
    neighbors = range(1, greatest_k + 1)
    models = []
    for name in methods:
        seeded = {"random_state": seed} if name == "PositivekNN" else {}
        models += [method(name)(n_neighbors=k, **seeded) for k in neighbors]
    results = iter(_metrics(ready, models, convention, progress))
    of_method = {title(name): [next(results) for _ in neighbors] for name in methods}
    panels = [
        Panel(
            metric,
            {name: _defined(each[metric] for each in column) for name, column in of_method.items()},
        )
        for metric in ("ranking_loss", "average_precision", "coverage", "one_error")
    ]
    return Plot(list(neighbors), "neighbors k", panels)


def _metrics(
    ready: PreparedData, models: list[Model], convention: str, progress: Progress | None
) -> list[dict[str, float]]:
    """Metrics of each model on one split: one search for all."""
    results = evaluate_splits(
        ready.data,
        models,
        ready.parts,
        scale=ready.scale,
        convention=convention,
        progress=progress,
    )
    return [result.metrics for [result] in results]


def _defined(values: Iterable[float] | Floats) -> list[float | None]:
    """Values with None where a number is not defined."""
    return [float(value) if math.isfinite(value) else None for value in values]


PLOTS: dict[str, Callable[..., Plot]] = {
    "run_time": run_time_plot,
    "clusters": cluster_plot,
    "rate": rate_plot,
    "neighbors": neighbor_plot,
}
