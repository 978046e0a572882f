"""The papers' figures: how each is measured, and the points that are stored once measured.

The texts of the papers have lost the values of their figures, so shapes are what can be compared.
One graph serves all points of a plot.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from nearlabel.baselines.algorithm_registry import title
from nearlabel.common.arrays import Floats, Tree
from nearlabel.common.validation import UnsuitableDataError
from nearlabel.datasets import Dataset
from nearlabel.experiments.evaluation import evaluate_splits
from nearlabel.experiments.folds import Model
from nearlabel.experiments.papers.measured_works import (
    DataSetup,
    PreparedData,
    Settings,
    Work,
    measured_works,
)
from nearlabel.experiments.papers.printed_tables import paper_id, papers, published_toml
from nearlabel.experiments.papers.table_experiments import Values, experiment, setup_of
from nearlabel.experiments.papers.verdicts import Reason
from nearlabel.experiments.protocols import splits
from nearlabel.methods.registry import method
from nearlabel.search import Progress, neighbor_graph


@dataclass(frozen=True)
class Plot:
    """One picture: a metric, or "seconds", against x.

    Each method has a curve with a value per point of x, or a line where it does not have the
    parameter on the x axis. `spread` has the smallest and the greatest values over seeds, `shaded`
    is the part of x that the paper shows, or None.
    """

    metric: str
    x: Sequence[float]
    x_label: str
    curves: Mapping[str, Values]
    lines: Mapping[str, float | None] = field(default_factory=dict)
    spread: Mapping[str, Sequence[Values]] = field(default_factory=dict)
    log_x: bool = False
    shaded: Sequence[float] | None = None

    @property
    def has_points(self) -> bool:
        """Whether there is anything to show."""
        return any(value is not None for curve in self.curves.values() for value in curve)


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
    kinds = ("with the search", "without")
    curves: dict[str, list[float | None]] = {
        f"{title(name)}, {kind}": [] for kind in kinds for name in methods
    }
    for place, size in enumerate(sizes):
        sample = data.rows(np.sort(order[:size]))
        runs = [_fold_seconds(sample, methods, k, folds, seed) for _ in range(repeats)]
        # The least of several runs: what else the machine did only ever adds.
        for curve, seconds in zip(curves.values(), np.min(runs, axis=0), strict=True):
            curve.append(round(float(seconds), 5))
        if progress is not None:
            progress(place + 1, len(sizes))
    return Plot("seconds", sizes, "items n", curves, log_x=True)


def _fold_seconds(data: Dataset, methods: Sequence[str], k: int, folds: int, seed: int) -> Floats:
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
    return seconds.ravel()


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
    adaptive = [
        method("LAMLkNN")(**shared, n_clusters=m, random_state=seed)
        for m in clusters
        for seed in range(seeds)
    ]
    models = {"LAML-kNN": adaptive, "ML-kNN": [method("MLkNN")(**shared)]}
    values = _values(metric, ready, progress, convention, models)
    table = np.reshape(values["LAML-kNN"], (-1, seeds))
    return Plot(
        metric,
        clusters,
        "clusters m",
        {"LAML-kNN": _defined(table.mean(axis=1))},
        {"ML-kNN": _defined(values["ML-kNN"])[0]},
        {"LAML-kNN": [_defined(table.min(axis=1)), _defined(table.max(axis=1))]},
    )


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
    metric, positive = "ranking_loss", method("PositivekNN")
    models: dict[str, Sequence[Model]] = {
        "exp(-z d)": [positive(n_neighbors=k, rate=z) for z in rates],
        "exp(-d / z)": [positive(n_neighbors=k, rate=1 / z) for z in rates],
        "BRkNN": [method("BRkNN")(n_neighbors=k)],
    }
    values = _values(metric, ready, progress, convention, models)
    curves = {name: _defined(values[name]) for name in models}
    line = {"BRkNN": curves.pop("BRkNN")[0]}
    return Plot(metric, rates, "rate z", curves, line, log_x=True, shaded=shown)


def _values(
    metric: str,
    ready: PreparedData,
    progress: Progress | None,
    convention: str,
    models: Mapping[str, Sequence[Model]],
) -> dict[str, list[float]]:
    """A metric of the models of each curve on one split: one search for all."""
    (data, parts, scale), every = ready, [model for each in models.values() for model in each]
    results = evaluate_splits(
        data, every, parts, scale=scale, convention=convention, progress=progress
    )
    values = (result.metrics[metric] for [result] in results)
    return {name: [next(values) for _ in each] for name, each in models.items()}


def _defined(values: Iterable[float] | Floats) -> list[float | None]:
    """Values with None where a number is not defined."""
    return [float(value) if math.isfinite(value) else None for value in values]


PLOTS: dict[str, Callable[..., Plot]] = {
    "run_time": run_time_plot,
    "clusters": cluster_plot,
    "rate": rate_plot,
}


@dataclass(frozen=True, eq=False)
class PaperFigure(Work):
    """A figure that can be measured; see ``figures.toml``.

    `label` is short: it stands above a picture, and names the data set; `kind` is a name of
    `PLOTS`; `settings` are what else decides its points beside the data and the code, as JSON can
    hold it.
    """

    name: str
    paper: str
    number: str
    title: str
    label: str
    caption: str
    kind: str
    settings: Settings

    @property
    def heading(self) -> str:
        """Its paper, number and title."""
        return f"{papers()[self.paper].title}, Fig. {self.number}: {self.title}"

    def all_settings(self) -> Settings:
        """All that decides its points beside the data and the code."""
        of_data = {key: value for key, value in asdict(self.data).items() if value}
        return {**self.settings, **of_data}

    def measured(
        self,
        ready: PreparedData,
        *,
        n_jobs: int | None = None,  # noqa: ARG002 - times are of one thread
        progress: Progress | None = None,
    ) -> Tree:
        """Its plot, as JSON can hold it."""
        plot = PLOTS[self.kind](ready, progress, **self.settings)
        if not plot.has_points:
            raise UnsuitableDataError("these data have too few rows, or no labels to measure by")
        return asdict(plot)


@dataclass(frozen=True)
class MeasuredFigure:
    """A figure and its points, or the reason why there are none."""

    figure: PaperFigure
    plot: Plot | None = None
    reason: str = ""


@cache
def paper_figures() -> Mapping[str, PaperFigure]:
    """All figures by name: one for each data set of an entry of ``figures.toml``."""
    entries = published_toml("figures.toml")["figures"]
    return {figure.name: figure for entry in entries for figure in _figures(entry)}


def _figures(entry: Tree) -> Iterator[PaperFigure]:
    for dataset, k in entry["k"].items():
        settings = {**entry["settings"], "k": k}
        if "as_in" in entry:
            setup = setup_of(entry["paper"], entry["as_in"]["table"])
            data = experiment(setup, dataset, entry["as_in"]["algorithm"]).data
            settings["convention"] = setup.convention
        else:
            data = DataSetup(scale=entry["scale"], split=entry.get("split"))
        texts = {
            key: entry[key].format(dataset=dataset, k=k)
            for key in ("name", "paper", "number", "title", "label", "caption")
        }
        yield PaperFigure(dataset, data, **texts, kind=entry["plot"], settings=settings)


def measured_figures(
    papers: Collection[str] = (),
    *,
    results: str | Path | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> list[MeasuredFigure]:
    """Measure the figures of some papers that have no result yet, and read the others.

    By default those of all papers. The options are those of `reproduce`.
    """
    chosen = set(map(paper_id, papers))
    figures = [
        figure for figure in paper_figures().values() if not chosen or figure.paper in chosen
    ]
    outcomes, _ = measured_works(figures, results, again=again, progress=progress)
    return [
        MeasuredFigure(figure, reason=outcome.text)
        if isinstance(outcome := outcomes[figure], Reason)
        else MeasuredFigure(figure, Plot(**outcome))
        for figure in figures
    ]
