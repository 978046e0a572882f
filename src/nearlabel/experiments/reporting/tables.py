"""Published tables beside ours as plain data: for the pages of a report, and for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from nearlabel.experiments.papers.plans import SHORT_NAMES, Experiment, tables_in_words
from nearlabel.experiments.papers.reproduction import ABSENT
from nearlabel.experiments.papers.verdicts import VERDICTS, rounded
from nearlabel.experiments.reporting.names import NO_NUMBER, metric_head, metric_title, paper_title

Record = Mapping[str, Any]
MARKS = {"digits": "=", "within std": "~", "off": "!", "not run": "·"}
MEANINGS = {
    "digits": "equal to the printed digit",
    "within std": "within one published standard deviation, or 0.005 where none is printed "
    "(coverage: 0.05 labels)",
    "off": "further away",
    "not run": "the reason is below the table",
}
DOUBT = "?"  # the mark of a published number that cannot be right, or hardly
DOUBT_MEANING = "the published number cannot be right, or hardly; the reason is below the table"
_UNTOLD = ("random_state", "groups", "rows")  # parameters that say nothing to readers
_MANY_NAMES, _SHORT_LIST = 4, 5


def verdict_counts(records: Sequence[Record]) -> list[dict[str, Any]]:
    """How many cells of each paper have which verdict, and of all."""
    counts = Counter((record["paper"], record["verdict"]) for record in records)
    rows = [
        {
            "paper": paper,
            "title": paper_title(paper),
            "counts": [counts[paper, verdict] for verdict in VERDICTS],
        }
        for paper in dict.fromkeys(record["paper"] for record in records)
    ]
    if len(rows) > 1:
        sums = [sum(column) for column in zip(*(row["counts"] for row in rows), strict=True)]
        rows.append({"paper": "", "title": "all", "counts": sums})
    return rows


def table_blocks(
    records: Sequence[Record], experiments: Iterable[Experiment]
) -> list[dict[str, Any]]:
    """The tables in the order of the papers; those with the same rows as one.

    Returns
    -------
    list of dict
        `paper`, `heading`, `setting`; `columns` and `short_columns`, the heads; `rows` with
        `dataset`, `algorithm`, `parameters` and `cells`, a cell or None for each column;
        `agreement`, a sentence; `reasons` and `doubts`, what is to be said of which cells. A cell
        has `published` and `ours` as texts, `verdict`, `kind` for a style sheet, `mark`, `reason`,
        and `doubt`: the mark of a doubtful number, or nothing.
    """
    told = {(one.paper, table): one.told for one in experiments for table in one.tables}
    rows = _rows(records)
    return [
        {
            "paper": paper,
            "heading": tables_in_words(tables),
            "setting": told.get((paper, tables[0]), ""),
            **_block(list(some)),
        }
        for (paper, tables), some in groupby(rows, key=_tables_of)
    ]


def _rows(records: Sequence[Record]) -> list[list[Record]]:
    """Records that stand in one row: a data set, an algorithm and its parameters.

    A row goes on from table to table where each has another metric, as Tables 10 to 14 of the 2007
    paper have; a column that it has already begins a new one.
    """
    rows: list[list[Record]] = []
    latest: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        place = tuple(str(record[name]) for name in ("paper", "dataset", "algorithm"))
        key = *place, str(_row_parameters(record))
        if key not in latest or any(_column(one) == _column(record) for one in latest[key]):
            latest[key] = []
            rows.append(latest[key])
        latest[key].append(record)
    return rows


def _column(record: Record) -> str:
    """The metric; of counts of a label, the label."""
    column: str = record["parameters"].get("label", record["metric"])
    return column


def _row_parameters(record: Record) -> dict[str, Any]:
    """What tells a row from others of its algorithm."""
    told = {key: value for key, value in record["parameters"].items() if key != "label"}
    return told if _column(record) == record["metric"] else {**told, "rows": record["metric"]}


def _tables_of(row: list[Record]) -> tuple[str, tuple[str, ...]]:
    return row[0]["paper"], tuple(dict.fromkeys(record["table"] for record in row))


def _block(rows: list[list[Record]]) -> dict[str, Any]:
    records = [record for row in rows for record in row]
    columns = list(dict.fromkeys(map(_column, records)))
    ran = [record for record in records if record["ours"] is not None]
    agree = sum(record["verdict"] in ("digits", "within std") for record in ran)
    return {
        "columns": [metric_head(column) for column in columns],
        "short_columns": [metric_head(column, short=True) for column in columns],
        "rows": [_row(row, columns) for row in rows],
        "agreement": f"{agree} of {len(ran)} cells that were run agree" if ran else "",
        "reasons": [
            reason for verdict in ("off", "not run") for reason in _reasons(verdict, records)
        ],
        "doubts": _doubts(records),
    }


def _row(row: list[Record], columns: list[str]) -> dict[str, Any]:
    cells = {_column(record): _cell(record) for record in row}
    return {
        "dataset": row[0]["dataset"],
        "algorithm": row[0]["algorithm"],
        "parameters": _parameters_in_words(row[0]),
        "cells": [cells.get(column) for column in columns],
    }


def _parameters_in_words(record: Record) -> str:
    told = _row_parameters(record)
    if "cluster" in told:
        which = "with" if record["metric"] == "count_with_label" else "without"
        return f"cluster {told['cluster']}, {which}"
    return ", ".join(
        f"{SHORT_NAMES.get(key, key)} = " + (f"{value:.4g}" if key == "rate" else str(value))
        for key, value in told.items()
        if key not in _UNTOLD
    )


def _cell(record: Record) -> dict[str, Any]:
    """Published and ours with the digits that were printed, and the mark of the verdict."""
    printed = record["printed"] or ""
    decimals = len(printed.partition(".")[2])
    ours = NO_NUMBER if record["ours"] is None else str(rounded(record["ours"], printed))
    return {
        "published": (printed or NO_NUMBER) + _deviation(record["std"], decimals),
        "ours": ours + _deviation(record["ours_std"], decimals),
        "verdict": record["verdict"],
        "kind": record["verdict"].replace(" ", "-"),
        "mark": MARKS[record["verdict"]],
        "reason": record["reason"] or "",
        "doubt": DOUBT if record["doubt"] else "",
    }


def _deviation(std: float | None, decimals: int) -> str:
    return "" if std is None else f" ± {std:.{decimals}f}"


def _reasons(verdict: str, records: list[Record]) -> list[dict[str, str]]:
    """Why cells have a verdict: those with the same reason together."""
    found = [record for record in records if record["verdict"] == verdict]
    absent = [record for record in found if record["reason"].startswith(ABSENT)]
    groups = {_absent_names(absent): absent} if absent else {}
    for record in found:
        if not record["reason"].startswith(ABSENT):
            groups.setdefault(record["reason"], []).append(record)
    return [
        {
            "verdict": verdict,
            "mark": MARKS[verdict],
            "cells": _cells_in_words(cells),
            "reason": reason,
        }
        for reason, cells in groups.items()
    ]


def _absent_names(records: list[Record]) -> str:
    """One reason for all cells whose data are not there."""
    listed = (record["reason"].removeprefix(ABSENT).split(", ") for record in records)
    return ABSENT + ", ".join(dict.fromkeys(name for names in listed for name in names))


def _doubts(records: list[Record]) -> list[dict[str, str]]:
    """Why published numbers cannot be right, or hardly."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record["doubt"]:
            groups.setdefault(record["doubt"], []).append(record)
    return [
        {
            "mark": DOUBT,
            "cells": _cells_in_words(cells),
            "printed": ", ".join(dict.fromkeys(record["printed"] for record in cells)),
            "reason": reason,
        }
        for reason, cells in groups.items()
    ]


def _cells_in_words(cells: list[Record]) -> str:
    """Algorithms, data sets and metrics of some cells; what is many is counted."""
    parts = []
    for key, many in (("algorithm", "algorithms"), ("dataset", "data sets"), ("metric", "metrics")):
        names = list(dict.fromkeys(str(record[key]) for record in cells))
        names = [metric_title(name) for name in names] if key == "metric" else names
        parts.append(", ".join(names) if len(names) <= _MANY_NAMES else f"{len(names)} {many}")
    several = "" if len(cells) == 1 else f" ({len(cells)} cells)"
    return " · ".join(parts) + several


def setting_in_words(setting: Mapping[str, Any]) -> str:
    """The setting of a series on one line; a long list by its ends."""

    def told(value: Any) -> str:
        if isinstance(value, list):
            ends = f"{told(value[0])} … {told(value[-1])}"
            return ends if len(value) > _SHORT_LIST else ", ".join(map(told, value))
        return f"{value:g}" if isinstance(value, float) else str(value)

    return "; ".join(f"{key} {told(value)}" for key, value in setting.items())
