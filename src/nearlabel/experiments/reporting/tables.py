"""Published tables beside ours as texts: for the pages of a report, and for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from nearlabel.baselines.algorithm_registry import BASELINES
from nearlabel.experiments.papers.printed_tables import papers, tables_in_words
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.papers.table_setups import SHORT_NAMES, table_setups
from nearlabel.experiments.papers.verdicts import Reason, Verdict, rounded
from nearlabel.experiments.reporting.names import NO_NUMBER, metric_head, metric_title

DOUBT = "?"  # marks a published number that cannot be right, or hardly
LEGEND = (
    *(f"{verdict.mark} {verdict}: {verdict.meaning}" for verdict in Verdict),
    f"{DOUBT} doubtful: the published number cannot be right, or hardly; the reason is below the "
    "table",
)
_SHOWN = ("n_neighbors", "n_clusters", "rate")  # of our parameters
_MANY_NAMES, _SHORT_LIST = 4, 5
_DIGITS = "0.000"  # of our numbers where none is printed


@dataclass(frozen=True)
class TableRow:
    """A row of a table: a cell, or None, for each column."""

    dataset: str
    algorithm: str
    parameters: str
    cells: list[ComparedCell | None]

    @property
    def was_run(self) -> bool:
        """Whether any of its cells has a number of ours."""
        return any(cell is not None and cell.verdict is not Verdict.NOT_RUN for cell in self.cells)


@dataclass(frozen=True)
class TableBlock:
    """Tables that have the same rows, as one table.

    `heading` names the tables, `description` says how our numbers are made, and `notes` why cells
    are off, not run or doubtful; `agreement` is empty where nothing was run.
    """

    paper: str
    heading: str
    description: str
    columns: list[str]
    short_columns: list[str]
    rows: list[TableRow]
    agreement: str
    notes: list[str]


def verdict_counts(cells: Sequence[ComparedCell]) -> dict[str, list[int]]:
    """How many cells of each paper, by its title, have which verdict; and of all papers."""
    counts = Counter((one.cell.paper, one.verdict) for one in cells)
    rows = {
        papers()[paper].title: [counts[paper, verdict] for verdict in Verdict]
        for paper in dict.fromkeys(one.cell.paper for one in cells)
    }
    if len(rows) > 1:
        rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    return rows


def table_blocks(cells: Sequence[ComparedCell]) -> list[TableBlock]:
    """The tables in the order of the papers; those with the same rows as one."""
    described = {
        (setup.paper, table): setup.description
        for setup in table_setups()
        for table in setup.tables
    }
    return [
        _block(paper, tables, described.get((paper, tables[0]), ""), list(rows))
        for (paper, tables), rows in groupby(_rows(cells), key=_tables_of)
    ]


def _rows(cells: Sequence[ComparedCell]) -> list[list[ComparedCell]]:
    """Cells that stand in one row: a data set, an algorithm and its parameters.

    A row goes on from table to table where each has another metric, as Tables 10 to 14 of Zhang and
    Zhou (2007) have; a column that it has already begins a new row.
    """
    rows: list[list[ComparedCell]] = []
    latest: dict[tuple[str, ...], list[ComparedCell]] = {}
    for one in cells:
        key = (one.cell.paper, one.cell.dataset, one.cell.algorithm, _parameters_in_words(one))
        if key not in latest or any(_column(other) == _column(one) for other in latest[key]):
            latest[key] = []
            rows.append(latest[key])
        latest[key].append(one)
    return rows


def _column(one: ComparedCell) -> str:
    """The metric; for counts of a label, the label."""
    return str(one.cell.parameters.get("label", one.cell.metric))


def _tables_of(row: list[ComparedCell]) -> tuple[str, tuple[str, ...]]:
    return row[0].cell.paper, tuple(dict.fromkeys(one.cell.table for one in row))


def _block(
    paper: str, tables: tuple[str, ...], description: str, rows: list[list[ComparedCell]]
) -> TableBlock:
    cells = [one for row in rows for one in row]
    columns = list(dict.fromkeys(map(_column, cells)))
    table_rows = []
    for row in rows:
        place, by_column = row[0].cell, {_column(one): one for one in row}
        in_columns = [by_column.get(column) for column in columns]
        parameters = _parameters_in_words(row[0])
        table_rows.append(TableRow(place.dataset, place.algorithm, parameters, in_columns))
    return TableBlock(
        paper,
        tables_in_words(tables),
        description,
        [metric_head(column) for column in columns],
        [metric_head(column, short=True) for column in columns],
        table_rows,
        _agreement(cells),
        [*_notes(Verdict.OFF, cells), *_notes(Verdict.NOT_RUN, cells), *_doubts(cells)],
    )


def _agreement(cells: list[ComparedCell]) -> str:
    """How many of the cells that were run, and can be compared, agree or are better."""
    ran = [one for one in cells if one.verdict not in (Verdict.NOT_RUN, Verdict.NEW)]
    agree = sum(one.verdict.agrees for one in ran)
    better = sum(one.verdict is Verdict.BETTER for one in ran)
    if better:
        others = f", {agree} agree" if agree else ""
        return f"{better} of {len(ran)} cells that were run are better than printed{others}"
    return f"{agree} of {len(ran)} cells that were run agree" if ran else ""


def _parameters_in_words(one: ComparedCell) -> str:
    """Our parameters, or those that the paper prints where nothing was run.

    Those of baselines are the same in all tables of a paper, and are not repeated.
    """
    if one.experiment is not None and one.experiment.estimator in BASELINES:
        return ""
    printed = one.cell.parameters
    if "cluster" in printed:
        which = "with" if one.cell.metric == "count_with_label" else "without"
        return f"cluster {printed['cluster']}, {which}"
    ours = {key: one.parameters[key] for key in _SHOWN if key in one.parameters}
    numbers = {key: value for key, value in ours.items() if not isinstance(value, str)}
    return ", ".join(
        f"{SHORT_NAMES.get(key, key)} = {f'{value:.4g}' if isinstance(value, float) else value}"
        for key, value in (numbers or printed).items()
    )


def published_text(one: ComparedCell) -> str:
    """The published number of a cell, with its standard deviation."""
    return (one.cell.printed or NO_NUMBER) + (f" ± {one.cell.std}" if one.cell.std else "")


def ours_text(one: ComparedCell) -> str:
    """Our number with as many digits as were printed."""
    printed = one.cell.printed or ""
    ours = NO_NUMBER if one.ours is None else str(rounded(one.ours, printed or _DIGITS))
    if one.ours_std is not None:
        ours += f" ± {one.ours_std:.{len((printed or _DIGITS).partition('.')[2])}f}"
    return ours


def _notes(verdict: Verdict, cells: list[ComparedCell]) -> list[str]:
    """Why cells have a verdict: those with the same reason together, data that are absent first."""
    groups: dict[str, list[ComparedCell]] = {}
    absent: dict[str, None] = {}
    for one in cells:
        if one.verdict is verdict and one.reason is not None:
            groups.setdefault("" if one.reason.absent else one.reason.text, []).append(one)
            absent |= dict.fromkeys(one.reason.absent)
    return [
        f"{verdict.mark} {verdict}, {_cells_in_words(groups[text])}: "
        f"{text or Reason.no_data(tuple(absent)).text}"
        for text in sorted(groups, key=bool)
    ]


def _doubts(cells: list[ComparedCell]) -> list[str]:
    """Why published numbers cannot be right, or hardly."""
    groups: dict[str, list[ComparedCell]] = {}
    for one in cells:
        if one.cell.doubt:
            groups.setdefault(one.cell.doubt, []).append(one)
    return [
        f"{DOUBT} doubtful, {_cells_in_words(some)}, "
        f"printed {', '.join(dict.fromkeys(str(one.cell.printed) for one in some))}: {reason}"
        for reason, some in groups.items()
    ]


def _cells_in_words(cells: list[ComparedCell]) -> str:
    """Algorithms, data sets and metrics of some cells; where there are many, their number."""
    parts = []
    for key, many in (("algorithm", "algorithms"), ("dataset", "data sets"), ("metric", "metrics")):
        names = list(dict.fromkeys(getattr(one.cell, key) for one in cells))
        names = [metric_title(name) for name in names] if key == "metric" else names
        parts.append(", ".join(names) if len(names) <= _MANY_NAMES else f"{len(names)} {many}")
    several = "" if len(cells) == 1 else f" ({len(cells)} cells)"
    return " · ".join(parts) + several


def settings_in_words(settings: Mapping[str, Any]) -> str:
    """The settings of a figure on one line; a long list by its ends."""

    def words(value: Any) -> str:
        if isinstance(value, list | tuple):
            ends = f"{words(value[0])} … {words(value[-1])}"
            return ends if len(value) > _SHORT_LIST else ", ".join(map(words, value))
        return f"{value:g}" if isinstance(value, float) else str(value)

    return "; ".join(f"{key} {words(value)}" for key, value in settings.items())
