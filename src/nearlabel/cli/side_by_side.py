"""Published tables in the terminal, with our numbers below theirs."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING, Any

from nearlabel.cli.output import WIDTH, say

if TYPE_CHECKING:
    from nearlabel.experiments.papers.plans import Experiment

Record = dict[str, Any]
_MARKS = {"digits": "=", "within std": "~", "off": "!"}
# Names in heads and rows of a few characters.
_SHORT = {
    "hamming_loss": "hamming ↓",
    "one_error": "one err ↓",
    "coverage": "coverage ↓",
    "ranking_loss": "ranking ↓",
    "average_precision": "av prec ↑",
}
_PARAMETERS = {"n_neighbors": "k", "n_clusters": "m"}


def say_side_by_side(records: list[Record], experiments: list[Experiment]) -> None:
    """Print published tables, our numbers below each row, and why some are off or missing."""
    for (paper, tables), rows in groupby(_rows(records), key=_place):
        _say_table(paper, tables, list(rows), experiments)


def say_folded(text: str) -> None:
    """Print a text for people in lines of 80 characters."""
    say(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def _rows(records: list[Record]) -> list[list[Record]]:
    """Records that stand in one row: of a table, or of several that have a metric each."""

    def row_of(record: Record) -> tuple[str, ...]:
        told = {key: one for key, one in record["parameters"].items() if key != "label"}
        row = (record["paper"], record["dataset"], record["algorithm"], str(told))
        # A table of counts has a label a column, other tables have a metric.
        return row if _column(record) == record["metric"] else (*row, record["metric"])

    return [list(row) for _, row in groupby(records, key=row_of)]


def _place(row: list[Record]) -> tuple[str, tuple[str, ...]]:
    return row[0]["paper"], tuple(dict.fromkeys(record["table"] for record in row))


def _say_table(
    paper: str, tables: tuple[str, ...], rows: list[list[Record]], experiments: list[Experiment]
) -> None:
    """Print a table, or several with the same rows, as one."""
    say(f"{paper} Table{'s' if len(tables) > 1 else ''} {', '.join(tables)}")
    for experiment in experiments:
        if experiment.paper == paper and tables[0] in experiment.tables:
            say_folded(experiment.told)
    columns = list(dict.fromkeys(_column(record) for row in rows for record in row))
    lines = []
    for row in rows:
        if any(record["ours"] is not None for record in row):
            cells = {_column(record): record for record in row}
            lines.append((row[0]["dataset"], *(_published(cells.get(one)) for one in columns)))
            lines.append((_title(row[0]), *(_ours(cells.get(one)) for one in columns)))
    if lines:
        say()
        _say_pairs(["", *(_SHORT.get(name, name) for name in columns)], lines)
    records = [record for row in rows for record in row]
    ran = [record for record in records if record["ours"] is not None]
    off = [record for record in ran if record["verdict"] == "off"]
    if ran:
        say(f"{len(ran) - len(off)} of {_counted(ran)} agree")
    _say_reasons("off", off)
    _say_reasons("not run", [record for record in records if record["ours"] is None])
    say()


def _say_pairs(head: list[str], lines: list[tuple[str, ...]]) -> None:
    """Print lines of numbers in 80 columns: a table with less between its columns than others."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else 1
    for line in (head, *lines):
        first, *numbers = (
            one.rjust(width) if place else one.ljust(width)
            for place, (one, width) in enumerate(zip(line, widths, strict=True))
        )
        say((" " * gap).join([first, *numbers]).rstrip())


def _published(record: Record | None) -> str:
    if record is None or record["printed"] is None:
        return ""
    std = "" if record["std"] is None else f"±{record['std']:.{_decimals(record)}f}"
    return f"{record['printed']}{std} "


def _ours(record: Record | None) -> str:
    from nearlabel.experiments.papers.verdicts import rounded

    if record is None or record["ours"] is None:
        return ""
    std = "" if record["ours_std"] is None else f"±{record['ours_std']:.{_decimals(record)}f}"
    return f"{rounded(record['ours'], record['printed'])}{std}{_MARKS[record['verdict']]}"


def _decimals(record: Record) -> int:
    return len(record["printed"].partition(".")[2])


def _column(record: Record) -> str:
    column: str = record["parameters"].get("label", record["metric"])
    return column


def _title(record: Record) -> str:
    """The algorithm with its parameters, or the cluster and whose counts it tells."""
    if "cluster" in record["parameters"]:
        which = "with" if record["metric"] == "count_with_label" else "without"
        return f"  cluster {record['parameters']['cluster']}, {which}"
    told = record["parameters"]
    pairs = [f"{short}={told[name]}" for name, short in _PARAMETERS.items() if name in told]
    return f"  {' '.join([record['algorithm'], *pairs])}"


def _say_reasons(what: str, records: list[Record]) -> None:
    """Tell which cells have which reason, those with the same one together."""
    from nearlabel.experiments.papers.reproduction import ABSENT

    absent = [record for record in records if record["reason"].startswith(ABSENT)]
    if absent:
        names = (record["reason"].removeprefix(ABSENT).split(", ") for record in absent)
        listed = ", ".join(dict.fromkeys(name for some in names for name in some))
        say_folded(f"{what}, {_counted(absent)}: {ABSENT}{listed}")
    others = [record for record in records if record not in absent]
    for reason in dict.fromkeys(record["reason"] for record in others):
        cells = [record for record in others if record["reason"] == reason]
        say_folded(f"{what}, {_listed(cells)}: {reason}")


def _listed(cells: list[Record]) -> str:
    """The cells of a reason, by what they have in common."""
    names = {
        key: list(dict.fromkeys(record[key] for record in cells))
        for key in ("algorithm", "dataset", "metric")
    }
    several = [key for key, some in names.items() if len(some) <= 3] or ["algorithm"]
    told = " ".join("/".join(names[key]) for key in several)
    return f"{told} ({_counted(cells)})"


def _counted(cells: list[Record]) -> str:
    return f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
