"""The papers' figures, measured once and kept as the results of tables are."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from nearlabel.datasets import load
from nearlabel.experiments.papers.preparing import UNFIT, prepared
from nearlabel.experiments.papers.progress import part_of
from nearlabel.experiments.papers.reproduction import ABSENT
from nearlabel.experiments.papers.result_store import (
    ResultStore,
    data_key,
    default_folder,
    result_key,
)
from nearlabel.experiments.papers.series import Series, all_series
from nearlabel.search import Progress


def stored_series(
    papers: Collection[str] = (),
    *,
    results: str | Path | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Measure the series that have no result yet, and read the others.

    Parameters
    ----------
    papers : collection of str, default=()
        Papers whose figures are wanted. By default those of all papers, and what no paper shows.
    results : path, optional
        The folder of results; by default in the user's cache.
    again : bool, default=False
        Whether they are measured anew.
    progress : callable, optional
        Called with (steps done, steps in all).

    Returns
    -------
    list of dict
        See `Series.measure`; those whose data are not in the data folder have a `reason` instead.
    """
    store = ResultStore(default_folder() if results is None else results, again=again)
    wanted = [one for one in all_series().values() if not papers or one.paper in papers]
    return [
        _one(series, store, part_of(progress, place, place + 1, len(wanted)))
        for place, series in enumerate(wanted)
    ]


def _one(series: Series, store: ResultStore, tell: Progress) -> dict[str, Any]:
    data = data_key(series.dataset)
    if data is None:
        return series.without_points(f"{ABSENT}{series.dataset}")
    key = result_key({"series": series.name, **series.setting}, data)
    known = store.get(key)
    if known is not None:
        return known
    try:
        ready = prepared(load(series.dataset), series.setting)
    except UNFIT as error:
        return series.without_points(str(error))
    try:
        points = series.measure(ready, tell)
    except MemoryError as error:
        return series.without_points(str(error))
    if not _has_points(points):
        return series.without_points("these data have too few rows, or no labels to measure by")
    store.add(key, points)
    return points


def _has_points(points: dict[str, Any]) -> bool:
    """Whether every panel has something to show."""
    return all(
        any(value is not None for curve in panel["curves"].values() for value in curve)
        for panel in points["panels"]
    )
