"""Records: a published cell and our number beside it, as JSON can hold them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from nearlabel.experiments.papers.plans import plan
from nearlabel.experiments.papers.published import Cell
from nearlabel.experiments.papers.verdicts import verdict


def not_run(cell: Cell, reason: str) -> dict[str, Any]:
    """The record of a cell for which there is no number of ours."""
    return {
        "paper": cell.paper,
        "table": cell.table,
        "dataset": cell.dataset,
        "algorithm": cell.algorithm,
        "metric": cell.metric,
        "published": None if cell.printed is None else float(cell.printed),
        "std": None if cell.std is None else float(cell.std),
        "ours": None,
        "verdict": "not run",
        "reason": reason,
        "printed": cell.printed,
        "ours_std": None,
        "parameters": dict(cell.parameters),
        "setting": None,
        "name_in_paper": cell.name_in_paper,
        "doubt": cell.doubt,
    }


def run_record(
    cell: Cell, setting: dict[str, Any], runs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The record of a cell that was run.

    Parameters
    ----------
    cell : Cell
        With a number.
    setting : dict
        How it was run.
    runs : sequence of dict
        As `run_unit` gives them: one, or one a data set for an average.
    """
    record = not_run(cell, f"{cell.metric} is not defined on these data")
    record["parameters"] = {**runs[0]["parameters"], **_cluster(cell)}
    record["setting"] = setting
    values = [value for run in runs for value in _values(run, cell)]
    numbers = [value for value in values if value is not None]
    if cell.printed is None or len(numbers) < len(values):
        return record
    record["ours"] = ours = statistics.fmean(numbers)
    if len(runs) == 1 and len(numbers) > 1:
        record["ours_std"] = statistics.stdev(numbers)
    counts_labels = cell.metric == "coverage" and setting["coverage"] == "labels"
    record["verdict"] = verdict(ours, cell.printed, cell.std, counts_labels=counts_labels)
    if record["verdict"] == "off":
        record["reason"] = plan().reason_off(cell, record["parameters"])
    else:
        record["reason"] = None
    return record


def _values(run: dict[str, Any], cell: Cell) -> list[float | None]:
    """What a run has for a cell: a value a split, or the mean of a cluster."""
    where = _cluster(cell)
    if not where:
        values: list[float | None] = run["metrics"][cell.metric]
        return values
    means = run["metrics"][f"{cell.metric} {where['label']}"]
    return [means[int(where["cluster"]) - 1]]


def _cluster(cell: Cell) -> dict[str, Any]:
    return {key: cell.parameters[key] for key in ("cluster", "label") if key in cell.parameters}
