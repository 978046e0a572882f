"""Published tables beside ours as texts: for the pages of a report, and for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from nearlabel.baselines.algorithm_registry import BASELINES
from nearlabel.experiments.papers.printed_tables import papers, tables_in_words
from nearlabel.experiments.papers.table_experiments import SHORT_NAMES, table_setups
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.papers.verdicts import Reason, Verdict, rounded
from nearlabel.experiments.reporting.names import NO_NUMBER, metric_head, metric_title

DOUBT = "?"  # marks a published number that cannot be right, or hardly
LEGEND = (
    *(f"{verdict.mark} {verdict}: {verdict.meaning}" for verdict in Verdict),
    f"{DOUBT} doubtful: the published number cannot be right, or hardly; the reason is below the "
    "table",
)


class TableRow(NamedTuple):
    """A row of a table: a cell, or None, for each column."""

    dataset: str
    algorithm: str
    parameters: str
    cells: list[ComparedCell | None]

    @property
    def was_run(self) -> bool:
        """Whether any of its cells has a number of ours."""
        return any(cell is not None and cell.verdict is not Verdict.NOT_RUN for cell in self.cells)


class TableBlock(NamedTuple):
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
    counts = Counter((each.cell.paper, each.verdict) for each in cells)
    rows = {
        papers()[paper].title: [counts[paper, verdict] for verdict in Verdict]
        for paper in dict.fromkeys(each.cell.paper for each in cells)
    }
    if len(rows) > 1:
        rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    return rows


def table_blocks(cells: Sequence[ComparedCell]) -> list[TableBlock]:
    """The tables in the order of the papers; those with the same rows as one.

    A row goes on from table to table where each has another metric, as Tables 10 to 14 of Zhang and
    Zhou (2007) have; a column that it has already begins a new row.
    """
    rows: list[dict[str, ComparedCell]] = []  # by column
    latest: dict[tuple[str, ...], dict[str, ComparedCell]] = {}
    for each in cells:
        cell = each.cell
        column = str(cell.parameters.get("label", cell.metric))  # for counts of a label, the label
        key = (cell.paper, cell.dataset, cell.algorithm, _parameters_in_words(each))
        if column in latest.setdefault(key, {}) or not latest[key]:
            latest[key] = {}
            rows.append(latest[key])
        latest[key][column] = each

    def tables_of(row: dict[str, ComparedCell]) -> tuple[str, tuple[str, ...]]:
        of_row = [each.cell for each in row.values()]
        return of_row[0].paper, tuple(dict.fromkeys(cell.table for cell in of_row))

    return [
        _block(paper, tables, list(of_tables))
        for (paper, tables), of_tables in groupby(rows, key=tables_of)
    ]


def _block(paper: str, tables: tuple[str, ...], rows: list[dict[str, ComparedCell]]) -> TableBlock:
    cells = [each for row in rows for each in row.values()]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table_rows = []
    for row in rows:
        first = next(iter(row.values()))
        place, parameters = first.cell, _parameters_in_words(first)
        in_columns = [row.get(column) for column in columns]
        table_rows.append(TableRow(place.dataset, place.algorithm, parameters, in_columns))
    setup = next(
        (each for each in table_setups() if each.paper == paper and tables[0] in each.tables), None
    )
    ran = [each for each in cells if each.verdict not in (Verdict.NOT_RUN, Verdict.NEW)]
    agree = sum(each.verdict.agrees for each in ran)
    better = sum(each.verdict is Verdict.BETTER for each in ran)
    agreement = f"{agree} of {len(ran)} cells that were run agree" if ran else ""
    if better:
        others = f", {agree} agree" if agree else ""
        agreement = f"{better} of {len(ran)} cells that were run are better than printed{others}"
    return TableBlock(
        paper,
        tables_in_words(tables),
        "" if setup is None else setup.description,
        [metric_head(column) for column in columns],
        [metric_head(column, short=True) for column in columns],
        table_rows,
        agreement,
        [*_notes(Verdict.OFF, cells), *_notes(Verdict.NOT_RUN, cells), *_doubts(cells)],
    )


def _parameters_in_words(compared: ComparedCell) -> str:
    """Our parameters, or those that the paper prints where nothing was run.

    Those of baselines are the same in all tables of a paper, and are not repeated.
    """
    if compared.experiment is not None and compared.experiment.estimator in BASELINES:
        return ""
    printed, ours = compared.cell.parameters, compared.parameters
    if "cluster" in printed:
        which = "with" if compared.cell.metric == "count_with_label" else "without"
        return f"cluster {printed['cluster']}, {which}"
    shown = {key: ours[key] for key in ("n_neighbors", "n_clusters", "rate") if key in ours}
    numbers = {key: value for key, value in shown.items() if not isinstance(value, str)}
    return ", ".join(
        f"{SHORT_NAMES.get(key, key)} = {f'{value:.4g}' if isinstance(value, float) else value}"
        for key, value in (numbers or printed).items()
    )


def published_text(compared: ComparedCell) -> str:
    """The published number of a cell, with its standard deviation."""
    cell = compared.cell
    return (cell.printed or NO_NUMBER) + (f" ± {cell.std}" if cell.std else "")


def ours_text(compared: ComparedCell) -> str:
    """Our number with as many digits as were printed, or three."""
    printed = compared.cell.printed or "0.000"
    ours = NO_NUMBER if compared.ours is None else str(rounded(compared.ours, printed))
    if compared.ours_std is not None:
        ours += f" ± {compared.ours_std:.{len(printed.partition('.')[2])}f}"
    return ours


def _notes(verdict: Verdict, cells: list[ComparedCell]) -> list[str]:
    """Why cells have a verdict: those with the same reason together, data that are absent first."""
    groups: dict[str, list[ComparedCell]] = {}
    absent: dict[str, None] = {}
    for each in cells:
        if each.verdict is verdict and each.reason is not None:
            groups.setdefault("" if each.reason.absent else each.reason.text, []).append(each)
            absent |= dict.fromkeys(each.reason.absent)
    return [
        f"{verdict.mark} {verdict}, {_cells_in_words(groups[text])}: "
        f"{text or Reason.no_data(tuple(absent)).text}"
        for text in sorted(groups, key=bool)
    ]


def _doubts(cells: list[ComparedCell]) -> list[str]:
    """Why published numbers cannot be right, or hardly."""
    groups: dict[str, list[ComparedCell]] = {}
    for each in cells:
        if each.cell.doubt:
            groups.setdefault(each.cell.doubt, []).append(each)
    return [
        f"{DOUBT} doubtful, {_cells_in_words(group)}, "
        f"printed {', '.join(dict.fromkeys(str(each.cell.printed) for each in group))}: {reason}"
        for reason, group in groups.items()
    ]


def _cells_in_words(cells: list[ComparedCell]) -> str:
    """Algorithms, data sets and metrics of cells; where there are many, their number."""
    parts = []
    for key, many in (("algorithm", "algorithms"), ("dataset", "data sets"), ("metric", "metrics")):
        names = list(dict.fromkeys(getattr(each.cell, key) for each in cells))
        names = [metric_title(name) for name in names] if key == "metric" else names
        parts.append(", ".join(names) if len(names) <= 4 else f"{len(names)} {many}")
    several = "" if len(cells) == 1 else f" ({len(cells)} cells)"
    return " · ".join(parts) + several
