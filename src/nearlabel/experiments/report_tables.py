"""The tables of a report as plain data: published numbers and ours, verdicts and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from nearlabel.experiments import published
from nearlabel.experiments.figures import metric_title
from nearlabel.experiments.plans import Experiment
from nearlabel.experiments.verdicts import VERDICTS
from nearlabel.metrics import METRICS

Record = Mapping[str, Any]
MARKS = {"digits": "=", "within std": "~", "off": "!", "not run": "·"}
MEANINGS = {
    "digits": "equal to the printed digit",
    "within std": "within one published standard deviation, or 0.005 where none is printed "
    "(coverage: 0.05 labels)",
    "off": "further away",
    "not run": "the reason is below the table",
}
_PARAMETERS = {"n_neighbors": "k", "n_clusters": "m", "smoothing": "s", "rate": "z"}
NO_NUMBER = "—"


def verdict_counts(records: Sequence[Record]) -> list[dict[str, Any]]:
    """How many cells of each paper have which verdict, and of all."""
    counts = Counter((record["paper"], record["verdict"]) for record in records)
    rows = [
        {
            "title": paper_title(paper),
            "counts": [counts[paper, verdict] for verdict in VERDICTS],
        }
        for paper in dict.fromkeys(record["paper"] for record in records)
    ]
    if len(rows) > 1:
        sums = [sum(column) for column in zip(*(row["counts"] for row in rows), strict=True)]
        rows.append({"title": "all", "counts": sums})
    return rows


def paper_title(paper: str) -> str:
    """A paper by its method and year."""
    told = published.papers()[paper]
    return f"{told.method} ({told.year})"


def table_blocks(
    records: Sequence[Record], experiments: Iterable[Experiment]
) -> list[dict[str, Any]]:
    """The tables in the order of the papers; those with the same rows as one."""
    told = {(one.paper, table): one.told for one in experiments for table in one.tables}
    rows = _rows(records)
    return [
        {
            "paper": paper,
            "heading": f"{'Tables' if len(tables) > 1 else 'Table'} {', '.join(tables)}",
            "setting": told.get((paper, tables[0]), ""),
            **_block(list(some)),
        }
        for (paper, tables), some in groupby(rows, key=_tables_of)
    ]


def _rows(records: Sequence[Record]) -> list[list[Record]]:
    """Records that stand in one row: a data set, an algorithm and its parameters.

    A row goes on from table to table where each has another metric, as Tables 10 to 14 of the 2007
    paper have; a metric that it has already begins a new one.
    """
    rows: list[list[Record]] = []
    latest: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        place = tuple(str(record[name]) for name in ("paper", "dataset", "algorithm"))
        key = *place, str(record.get("parameters"))
        if key not in latest or any(one["metric"] == record["metric"] for one in latest[key]):
            latest[key] = []
            rows.append(latest[key])
        latest[key].append(record)
    return rows


def _tables_of(row: list[Record]) -> tuple[str, tuple[str, ...]]:
    return row[0]["paper"], tuple(dict.fromkeys(record["table"] for record in row))


def _block(rows: list[list[Record]]) -> dict[str, Any]:
    metrics = list(dict.fromkeys(record["metric"] for row in rows for record in row))
    return {
        "metrics": [metric_head(metric) for metric in metrics],
        "rows": [_row(row, metrics) for row in rows],
        "reasons": [
            reason
            for verdict in ("off", "not run")
            for reason in _reasons(verdict, [record for row in rows for record in row])
        ],
    }


def metric_head(metric: str) -> str:
    """A metric's name, with an arrow to the better side if there is one."""
    arrow = "" if metric not in METRICS else " ↓" if METRICS[metric].loss else " ↑"
    return f"{metric_title(metric)}{arrow}"


def _row(row: list[Record], metrics: list[str]) -> dict[str, Any]:
    cells = {record["metric"]: _cell(record) for record in row}
    parameters = row[0].get("parameters") or {}
    told = [
        f"{_PARAMETERS.get(key, key)} = " + (f"{value:.4g}" if key == "rate" else str(value))
        for key, value in parameters.items()
        if key != "random_state" and not isinstance(value, list)
    ]
    return {
        "dataset": row[0]["dataset"],
        "algorithm": row[0]["algorithm"],
        "parameters": ", ".join(told),
        "cells": [cells.get(metric) for metric in metrics],
    }


def _cell(record: Record) -> dict[str, Any]:
    """Published and ours with the digits that were printed, and the mark of the verdict."""
    printed = record.get("printed")
    if printed is None and record["published"] is not None:
        printed = str(record["published"])
    decimals = len((printed or "0.0000").partition(".")[2])

    def number(value: float | None, std: float | None) -> str:
        if value is None:
            return NO_NUMBER
        return f"{value:.{decimals}f}" + ("" if std is None else f" ± {std:.{decimals}f}")

    return {
        "published": number(record["published"], record["std"]),
        "ours": number(record["ours"], record.get("ours_std")),
        "verdict": record["verdict"],
        "kind": record["verdict"].replace(" ", "-"),
        "mark": MARKS[record["verdict"]],
        "reason": record["reason"] or "",
    }


def _reasons(verdict: str, records: list[Record]) -> list[dict[str, Any]]:
    """Why cells have a verdict: those with the same reason together."""
    found = [record for record in records if record["verdict"] == verdict]
    listed = []
    for reason in dict.fromkeys(record["reason"] for record in found):
        cells = [record for record in found if record["reason"] == reason]
        listed.append(
            {
                "verdict": verdict,
                "mark": MARKS[verdict],
                "cells": _cells_in_words(cells),
                "reason": reason or "no reason is known",
            }
        )
    return listed


def _cells_in_words(cells: list[Record]) -> str:
    """Algorithms, data sets and metrics of some cells; what is many is counted."""
    parts = []
    for key, many in (("algorithm", "algorithms"), ("dataset", "data sets"), ("metric", "metrics")):
        names = list(dict.fromkeys(str(record[key]) for record in cells))
        names = [metric_title(name) for name in names] if key == "metric" else names
        parts.append(", ".join(names) if len(names) <= 4 else f"{len(names)} {many}")
    several = "" if len(cells) == 1 else f" ({len(cells)} cells)"
    return " · ".join(parts) + several


def setting_in_words(setting: Mapping[str, Any]) -> str:
    """The setting of a series on one line; a long list by its ends."""

    def told(value: Any) -> str:
        if isinstance(value, list) and len(value) > 3:
            return f"{value[0]} … {value[-1]}"
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    return "; ".join(f"{key} {told(value)}" for key, value in setting.items())
