"""The papers' figures as experiments: each gives its points as plain data, and one graph serves it.

The texts of the papers have lost the values of their figures, so shapes are what can be compared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearlabel.common.messages import one_line
from nearlabel.experiments.papers.plans import Experiment, plan, unit_of
from nearlabel.experiments.papers.preparing import Prepared
from nearlabel.experiments.papers.series_points import (
    TITLES,
    cluster_points,
    neighbor_points,
    rate_points,
    run_time_points,
)
from nearlabel.search import Progress

_TOLD = ("name", "paper", "figure", "title", "label", "caption", "dataset")


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
    _points: Callable[[Prepared, Mapping[str, Any], Progress | None], dict[str, Any]] = field(
        repr=False, compare=False
    )

    def measure(self, ready: Prepared, progress: Progress | None = None) -> dict[str, Any]:
        """Measure it.

        Parameters
        ----------
        ready : Prepared
            Its data, by its setting.
        progress : callable, optional
            Called with (steps done, steps in all).

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
        points = _plain(self._points(ready, self.setting, progress))
        seconds = round(time.perf_counter() - start, 2)
        return {**self._told(), **points, "seconds": seconds, "reason": None}

    def without_points(self, reason: str) -> dict[str, Any]:
        """What is told of it where it cannot be measured."""
        nothing = {"x": [], "x_label": "", "log_x": False, "shaded": None, "panels": []}
        return {**self._told(), **nothing, "seconds": 0.0, "reason": one_line(reason)}

    def _told(self) -> dict[str, Any]:
        return {**{key: getattr(self, key) for key in _TOLD}, "setting": dict(self.setting)}


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
        _points=run_time_points,
    )


def _as_in_table(paper: str, table: str, dataset: str, algorithm: str) -> dict[str, Any]:
    """How a table is made: its split, scaling and convention serve a figure on the same data."""
    [experiment] = (one for one in plan().experiments if _has(one, paper, table))
    setting = unit_of(experiment, dataset, algorithm).setting
    kept = ("split", "seed", "scale", "nominal", "convention")
    return {key: setting[key] for key in kept if key in setting}


def _has(experiment: Experiment, paper: str, table: str) -> bool:
    return experiment.paper == paper and table in experiment.tables


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
            caption="LAML-kNN, with the span over the seeds of k-means where there are several; "
            "the line is ML-kNN, which is LAML-kNN with one cluster.",
            dataset=dataset,
            setting={
                "k": k,
                "clusters": list(range(1, 11)),
                "seeds": 5 if figure == "1" else 1,
                **_as_in_table("003", "3", dataset, "LAML-kNN"),
            },
            _points=cluster_points,
        )
        for figure, sets in _CLUSTERED.items()
        for dataset, k in sets.items()
    ]


def _rate() -> Series:
    """Figure 1 of the 2017 paper, which shows z from 0.01 to 1."""
    return Series(
        name="rate",
        paper="004",
        figure="1",
        title="Ranking loss against the rate",
        label="yeast, k = 40",
        caption="The formula is printed with exp(-z d); the curve that is described, which settles "
        "at the value of BRkNN as z grows, is that of exp(-d / z). What it settles at is the order "
        "of BRkNN with equal votes by distance; the line of BRkNN itself, whose equal votes are "
        "ties, is a little worse.",
        dataset="yeast",
        setting={
            "k": 40,
            "rates": [float(f"{z:.4g}") for z in np.geomspace(0.01, 100, 41)],
            "shown": [0.01, 1.0],
            **_as_in_table("004", "1", "yeast", "positive-sample"),
        },
        _points=rate_points,
    )


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
                "methods": list(TITLES),
                "k": list(range(1, 51)),
                "split": "official",
                "scale": "minmax",
                "convention": "paper",
                "seed": 0,
            },
            _points=neighbor_points,
        )
        for dataset in ("emotions", "scene", "yeast")
    ]


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: None where a number is not defined."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
