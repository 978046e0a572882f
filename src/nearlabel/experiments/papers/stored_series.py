"""The papers' figures, measured once and kept as the results of tables are."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from nearlabel.datasets import load
from nearlabel.experiments.papers.result_store import (
    ResultStore,
    data_key,
    default_folder,
    result_key,
)
from nearlabel.experiments.papers.series import Progress, Series, all_series
from nearlabel.texts import one_line

_STEPS = 1000  # of a series, for progress


def stored_series(
    papers: Collection[str] = (),
    *,
    results: str | Path | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Measure the series that have no result yet, and read the others.

    Parameters
    ----------
    papers : collection of str, default=()
        Papers whose figures are wanted. By default those of all papers, and what no paper shows.
    results : path, optional
        The folder of results; by default in the user's cache.
    progress : callable, optional
        Called with (steps done, steps in all).

    Returns
    -------
    list of dict
        See `Series.measure`; those whose data are not in the data folder have a `reason` instead.
    """
    store = ResultStore(default_folder() if results is None else results)
    wanted = [one for one in all_series().values() if not papers or one.paper in papers]
    found = []
    for place, series in enumerate(wanted):

        def tell(done: int, total: int, place: int = place) -> None:
            if progress is not None:
                step = _STEPS * place + _STEPS * done // max(total, 1)
                progress(step, _STEPS * len(wanted))

        found.append(_one(series, store, tell))
    return found


def _one(series: Series, store: ResultStore, tell: Progress) -> dict[str, Any]:
    data = data_key(series.dataset)
    if data is None:
        return series.without_points(f"not in the data folder: {series.dataset}")
    key = result_key({"series": series.name, **series.setting}, data)
    known = store.get(key)
    if known is not None:
        return known
    try:
        points = series.measure(load(series.dataset), tell)
    except (ValueError, MemoryError, OSError) as error:
        # Other data of that name, or data that this machine cannot hold.
        return series.without_points(one_line(str(error)))
    store.add(key, points)
    return points
