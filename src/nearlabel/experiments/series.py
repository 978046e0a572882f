"""The papers' figures as experiments: each gives its points as plain data, and one graph serves it.

The texts of the papers have lost the values of their figures, so shapes are what can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearlabel.algorithms import ALGORITHMS
from nearlabel.datasets import Dataset, load
from nearlabel.experiments.evaluation import evaluate_splits
from nearlabel.experiments.protocols import Part, splits
from nearlabel.search import neighbor_graph
from nearlabel.texts import one_line

_TOLD = ("name", "paper", "figure", "title", "label", "caption", "dataset")
Progress = Callable[[int, int], None]
_TITLES = {
    "MLkNN": "ML-kNN",
    "DMLkNN": "DML-kNN",
    "MallowskNN": "Mallows",
    "PositivekNN": "PositivekNN",
    "BRkNN": "BRkNN",
}


@dataclass(frozen=True)
class Series:
    """A figure that can be measured, on one data set.

    Attributes
    ----------
    name : str
        Short, for files and for looking it up.
    paper, figure : str
        The number of the paper, and of its figure; empty where it is none of theirs.
    title, label, caption : str
        `label` is short: it stands above a picture, and tells the data set.
    dataset : str
    setting : mapping
        All that decides its points beside the data and the code, as JSON can hold it.
    """

    name: str
    paper: str
    figure: str
    title: str
    label: str
    caption: str
    dataset: str
    setting: Mapping[str, Any]
    _points: Callable[[Dataset, Mapping[str, Any], Progress | None], dict[str, Any]] = field(
        repr=False, compare=False
    )

    def measure(self, data: Dataset, progress: Progress | None = None) -> dict[str, Any]:
        """Measure it.

        Returns
        -------
        dict
            What `Series` has, and `x`, `x_label`, `log_x`, `shaded` (a part of x, or None),
            `panels`, `seconds` and `reason` (None). A panel is a picture: `metric` or "seconds",
            `curves` with a value a point of x for each method, `lines` with one value for those
            that do not have the parameter, and `spread` with the least and the greatest values
            over seeds.
        """
        start = time.perf_counter()
        points = self._points(data, self.setting, progress)
        seconds = round(time.perf_counter() - start, 2)
        return {**self._told(), **points, "seconds": seconds, "reason": None}

    def without_points(self, reason: str) -> dict[str, Any]:
        """What is told of it where it cannot be measured."""
        nothing = {"x": [], "x_label": "", "log_x": False, "shaded": None, "panels": []}
        return {**self._told(), **nothing, "seconds": 0.0, "reason": one_line(reason)}

    def _told(self) -> dict[str, Any]:
        return {**{key: getattr(self, key) for key in _TOLD}, "setting": dict(self.setting)}


def measured(
    series: Series,
    *,
    read: Callable[[str], Dataset] = load,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure a series on the data of the data folder; a reason where they are not there."""
    try:
        data = read(series.dataset)
    except FileNotFoundError as error:
        return series.without_points(str(error))
    return series.measure(data, progress)


def all_series() -> dict[str, Series]:
    """All series by name."""
    found = [_run_time(), *_cluster_series(), _rate(), *_neighbor_series()]
    return {series.name: series for series in found}


def _run_time() -> Series:
    """Figure 1 of the 2009 paper; it does not tell its sizes."""
    return Series(
        name="run_time",
        paper="002",
        figure="1",
        title="Run time against the number of items",
        label="image135, ten folds, k = 10",
        caption="Ten folds of random parts of the images: learning, scoring and deciding, with the "
        "search and without it. Mallows learns without a search of its own.",
        dataset="image135",
        setting={
            "methods": ["MLkNN", "MallowskNN"],
            "k": 10,
            "sizes": list(range(200, 2001, 200)),
            "folds": 10,
            "repeats": 3,
            "scale": "none",
            "seed": 0,
        },
        _points=_run_time_points,
    )


def _run_time_points(
    data: Dataset, setting: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    order = np.random.default_rng(setting["seed"]).permutation(len(data))
    sizes = [size for size in setting["sizes"] if size <= len(data)]
    names = [_TITLES[name] for name in setting["methods"]]
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
    k, methods = setting["k"], [ALGORITHMS[name] for name in setting["methods"]]
    seconds = np.zeros((2, len(methods)))
    for part in splits(data, f"cv{setting['folds']}", seed=setting["seed"]):
        X, Y, new = data.X[part.train], data.Y[part.train], data.X[part.test]
        graph = neighbor_graph(X, k)
        for place, method in enumerate(methods):
            start = time.process_time()
            model = method(n_neighbors=k).fit(X, Y)
            queries = neighbor_graph(X, k, new)
            model.predict_from_graph(queries, scores=model.scores_from_graph(queries))
            searched = time.process_time()
            model = method(n_neighbors=k).fit_graph(graph, Y)
            model.predict_from_graph(queries, scores=model.scores_from_graph(queries))
            seconds[:, place] += searched - start, time.process_time() - searched
    return seconds.ravel().tolist()


# Figures 1 and 2 of the 2018 paper. Of the first, only the k of emotions and birds can be read;
# those of scene and yeast fit its Table 3.
_CLUSTERED = {
    "1": {"emotions": 9, "birds": 2, "enron": 10, "scene": 9, "yeast": 10, "slashdot": 10},
    "2": {
        "bibtex": 10,
        "corel5k": 15,
        "corel16k001": 15,
        "corel16k002": 15,
        "corel16k003": 15,
        "ohsumed": 10,
    },
}


def _cluster_series() -> list[Series]:
    return [
        Series(
            name=f"clusters_{dataset}",
            paper="003",
            figure=figure,
            title="Average precision against the number of clusters",
            label=f"{dataset}, k = {k}",
            caption="LAML-kNN, mean of several starts of k-means and their span; the line is "
            "ML-kNN, which is LAML-kNN with one cluster.",
            dataset=dataset,
            setting={
                "k": k,
                "clusters": list(range(1, 11)),
                "seeds": 5 if figure == "1" else 2,
                "split": "official",
                "scale": "none" if dataset == "scene" else "minmax",
                "convention": "mulan",
            },
            _points=_cluster_points,
        )
        for figure, sets in _CLUSTERED.items()
        for dataset, k in sets.items()
    ]


def _cluster_points(
    data: Dataset, setting: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    k, clusters, metric = setting["k"], setting["clusters"], "average_precision"
    seeds = range(setting["seeds"])
    models = [
        ALGORITHMS["MLkNN"](n_neighbors=k),
        *(
            ALGORITHMS["LAMLkNN"](n_neighbors=k, n_clusters=m, random_state=seed)
            for m in clusters
            for seed in seeds
        ),
    ]
    line, *values = (one[metric] for one in _metrics(data, models, setting, progress))
    table = np.reshape(values, (len(clusters), len(seeds)))
    panel = {
        "metric": metric,
        "curves": {"LAML-kNN": table.mean(axis=1).tolist()},
        "lines": {"ML-kNN": line},
        "spread": {"LAML-kNN": [table.min(axis=1).tolist(), table.max(axis=1).tolist()]},
    }
    return _plot(clusters, "clusters m", [panel])


def _rate() -> Series:
    """Figure 1 of the 2017 paper, which shows z from 0.01 to 1."""
    return Series(
        name="rate",
        paper="004",
        figure="1",
        title="Ranking loss against the rate",
        label="yeast, k = 40",
        caption="The formula is printed with exp(-z d); the curve that is described, which settles "
        "at the value of BRkNN as z grows, is that of exp(-d / z).",
        dataset="yeast",
        setting={
            "k": 40,
            "rates": [float(f"{z:.4g}") for z in np.geomspace(0.01, 100, 41)],
            "shown": [0.01, 1.0],
            "split": "official",
            "scale": "minmax",
            "convention": "mulan",
        },
        _points=_rate_points,
    )


def _rate_points(
    data: Dataset, setting: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    k, rates, metric = setting["k"], setting["rates"], "ranking_loss"
    readings = {"exp(-z d)": rates, "exp(-d / z)": [1 / z for z in rates]}
    models = [
        ALGORITHMS["PositivekNN"](n_neighbors=k, rate=z) for zs in readings.values() for z in zs
    ]
    models.append(ALGORITHMS["BRkNN"](n_neighbors=k))
    *values, votes = (one[metric] for one in _metrics(data, models, setting, progress))
    curves = np.reshape(values, (len(readings), len(rates))).tolist()
    panel = {
        "metric": metric,
        "curves": dict(zip(readings, curves, strict=True)),
        "lines": {"BRkNN": votes},
        "spread": {},
    }
    return _plot(rates, "rate z", [panel], log_x=True, shaded=setting["shown"])


def _neighbor_series() -> list[Series]:
    """The ranking metrics against k: none of the papers' figures, but what they choose k by."""
    return [
        Series(
            name=f"neighbors_{dataset}",
            paper="",
            figure="",
            title="Ranking metrics against the number of neighbors",
            label=dataset,
            caption="Every k from one search, on the test rows; choosing k by them, as some of the "
            "papers did, flatters a method. What is far from the best is not in the picture. BRkNN "
            "has many ties at small k, which count as errors, but not for one-error.",
            dataset=dataset,
            setting={
                "methods": list(_TITLES),
                "k": list(range(1, 51)),
                "split": "official",
                "scale": "minmax",
                "convention": "paper",
                "seed": 0,
            },
            _points=_neighbor_points,
        )
        for dataset in ("emotions", "scene", "yeast")
    ]


def _neighbor_points(
    data: Dataset, setting: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    methods, neighbors = setting["methods"], setting["k"]
    models = []
    for name in methods:
        seeded = {"random_state": setting["seed"]} if name == "PositivekNN" else {}
        models += [ALGORITHMS[name](n_neighbors=k, **seeded) for k in neighbors]
    found = iter(_metrics(data, models, setting, progress))
    of_method = {_TITLES[name]: [next(found) for _ in neighbors] for name in methods}
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
    data: Dataset, models: list[Any], setting: Mapping[str, Any], progress: Progress | None
) -> list[dict[str, float]]:
    """Metrics of each model on the data set's own split: one search for all."""
    found = evaluate_splits(
        data,
        models,
        _own_split(data),
        scale=setting["scale"],
        convention=setting["convention"],
        progress=progress,
    )
    return [result.metrics for [result] in found]


def _own_split(data: Dataset) -> list[Part]:
    """The official split; of data whose test rows alone are known, these and all others."""
    if data.train is None and "part" in data.extra:
        is_test = data.extra["part"] == 1
        return [Part(np.flatnonzero(~is_test), np.flatnonzero(is_test))]
    return splits(data, "official")


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
