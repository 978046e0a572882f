"""reproduce."""

from __future__ import annotations

import textwrap
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from nearlabel.cli.options import Json, Several, Switch, Whole
from nearlabel.cli.output import WIDTH, Steps, say, say_json, say_table
from nearlabel.cli.startup import SCALING, import_scikit_learn

if TYPE_CHECKING:
    from nearlabel.experiments.plans import Experiment
    from nearlabel.experiments.reproduction import Reproduction

Record = dict[str, Any]
_MARKS = {"digits": "=", "within std": "~", "off": "!"}
_LEGEND = (
    "= equal to the printed digit, ~ within one published standard deviation (0.005 where none is "
    "printed; coverage 0.05), ! off"
)
_RIVAL = "ML-kNN"  # that every later paper compares its method with
# Names in heads and rows of a few characters.
_SHORT = {
    "hamming_loss": "hamming ↓",
    "one_error": "one err ↓",
    "coverage": "coverage ↓",
    "ranking_loss": "ranking ↓",
    "average_precision": "av prec ↑",
}
_PARAMETERS = {"n_neighbors": "k", "n_clusters": "m"}


def reproduce(
    *,
    paper: Annotated[tuple[str, ...], Several, Parameter(show_default=False)] = (),
    table: Annotated[tuple[str, ...], Several, Parameter(show_default=False)] = (),
    report: str | None = None,
    results: str | None = None,
    again: Switch = False,
    jobs: Whole = 1,
    json: Json = False,
) -> None:
    """Make the published tables anew, and compare.

    Runs every experiment of five papers whose data are in the data folder. What is done is kept:
    after an interrupt the next start goes on, and a second run only reads.

    Parameters
    ----------
    paper
        Papers: 000 (ML-KNN, 2007), 001 (2005), 002 (Mallows), 003 (LAML-kNN), 004 (positive
        samples); by default all.
    table
        Tables of these papers, such as 1 or II; by default all.
    report
        Write a page in HTML and Markdown, with figures, to this folder.
    results
        Folder of the results; by default in the user's cache.
    again
        Measure all anew.
    jobs
        Threads; -1 for all cores.
    json
        Print JSON.

    Examples
    --------
    nearlabel reproduce
    nearlabel reproduce --paper 001 004 --report report
    nearlabel reproduce --paper 000 --table 1 --json
    """
    import_scikit_learn(*SCALING)
    from nearlabel.experiments.reproduction import reproduce as run

    if report is not None:
        _check_report(report)
    with Steps("reproducing") as progress:
        found = run(paper, table, results=results, again=again, n_jobs=jobs, progress=progress)
    if report is not None:
        _write_report(report, found, paper)
    if json:
        say_json(found.records)
        return
    for (number, tables), rows in groupby(_rows(found.records), key=_place):
        _say_block(number, tables, list(rows), found.experiments)
    _say_claims(found)
    _say_summary(found)
    if report is not None:
        say(f"wrote {report}")


def _check_report(folder: str) -> None:
    """Refuse a report that could not be written, before the work is done."""
    from nearlabel.experiments.extras import report_module

    if Path(folder).exists() and not Path(folder).is_dir():
        raise ValueError(f"--report {folder}: this is a file; give a folder")
    try:
        for name in ("jinja2", "matplotlib", "scikit_posthocs"):
            report_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None


def _write_report(folder: str, found: Reproduction, papers: tuple[str, ...]) -> None:
    from nearlabel.experiments.report import write_report
    from nearlabel.experiments.stored_series import stored_series

    with Steps("measuring figures") as progress:
        series = stored_series(papers, results=found.path.parent, progress=progress)
    write_report(folder, found.records, found.experiments, series)


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


def _say_block(
    paper: str, tables: tuple[str, ...], rows: list[list[Record]], experiments: list[Experiment]
) -> None:
    """Print a table, or several with the same rows, as one."""
    say(f"{paper} Table{'s' if len(tables) > 1 else ''} {', '.join(tables)}")
    for experiment in experiments:
        if experiment.paper == paper and tables[0] in experiment.tables:
            _say_folded(experiment.told)
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
    if record is None or record["ours"] is None:
        return ""
    std = "" if record["ours_std"] is None else f"±{record['ours_std']:.{_decimals(record)}f}"
    return f"{record['ours']:.{_decimals(record)}f}{std}{_MARKS[record['verdict']]}"


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
    from nearlabel.experiments.reproduction import ABSENT

    absent = [record for record in records if record["reason"].startswith(ABSENT)]
    if absent:
        names = (record["reason"].removeprefix(ABSENT).split(", ") for record in absent)
        listed = ", ".join(dict.fromkeys(name for some in names for name in some))
        _say_folded(f"{what}, {_counted(absent)}: {ABSENT}{listed}")
    others = [record for record in records if record not in absent]
    for reason in dict.fromkeys(record["reason"] for record in others):
        cells = [record for record in others if record["reason"] == reason]
        _say_folded(f"{what}, {_listed(cells)}: {reason}")


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


def _say_claims(found: Reproduction) -> None:
    """Tell whether the method of a paper is better than ML-kNN, by its numbers and by ours."""
    from nearlabel.experiments.comparisons import comparisons
    from nearlabel.experiments.published import papers

    compared = comparisons(found.records, found.experiments)
    for experiment in found.experiments:
        own = papers()[experiment.paper].method
        if own == _RIVAL:
            continue
        rows = []
        for one in compared:
            if one.title == experiment.title and {own, _RIVAL} <= set(one.algorithms):
                pair = one.pairs.get((own, _RIVAL)) or one.pairs[_RIVAL, own]
                better, worse = pair.wins, pair.losses
                if (own, _RIVAL) not in one.pairs:
                    better, worse = worse, better
                p_value = "" if pair.p_value is None else f"{pair.p_value:.3f}"
                outcome = f"{better}-{pair.ties}-{worse}"
                rows.append((f"{one.metric}, {one.source}", len(one.datasets), outcome, p_value))
        if rows:
            say(f"{experiment.title}: {own} against {_RIVAL}, Wilcoxon's signed-rank test")
            say_table(("", "data sets", "won-tied-lost", "p"), rows)
            say()


def _say_summary(found: Reproduction) -> None:
    from nearlabel.experiments.published import papers
    from nearlabel.experiments.verdicts import VERDICTS

    counts = Counter((record["paper"], record["verdict"]) for record in found.records)
    names = list(dict.fromkeys(record["paper"] for record in found.records))
    rows = [
        (
            f"{name} {papers()[name].method}, {papers()[name].year}",
            *(counts[name, v] for v in VERDICTS),
        )
        for name in names
    ]
    if len(names) > 1:
        rows.append(("all", *(sum(counts[name, v] for name in names) for v in VERDICTS)))
    say_table(("cells", *VERDICTS), rows)
    _say_folded(_LEGEND)
    if found.absent:
        _say_folded(
            f"{len(found.absent)} data sets are not in the data folder: set NEARLABEL_DATA to the "
            "folder that has them, NAME.npz each"
        )
    say(f"{found.measured} results measured now, {found.read} read from {found.path}")


def _say_folded(text: str) -> None:
    say(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
