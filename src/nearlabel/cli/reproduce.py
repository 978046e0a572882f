"""reproduce."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.options import Jobs, Json, Switch, Texts
from nearlabel.cli.output import (
    Block,
    Paragraph,
    Table,
    column_blocks,
    render,
    steps,
    width,
)

if TYPE_CHECKING:
    from nearlabel.experiments.papers.table_reproduction import ComparedCell, Reproduction
    from nearlabel.experiments.reporting.tables import TableRow

_RIVAL = "ML-kNN"  # that every later paper compares its method with


def reproduce(
    *,
    paper: Texts = (),
    table: Texts = (),
    report: Annotated[str | None, Parameter(metavar="FOLDER")] = None,
    results: Annotated[str | None, Parameter(metavar="FOLDER")] = None,
    again: Switch = False,
    jobs: Jobs = 1,
    json: Json = False,
) -> None:
    """Reproduce published tables, and compare the results with them.

    Runs those experiments of five papers whose data are in the data folder.
    Results are stored, so that an interrupted run can be continued.

    Parameters
    ----------
    paper
        Papers: zhang-2007 (ML-KNN), zhang-2005 (ML-kNN), cheng-2009 (Mallows), wang-2018
        (LAML-kNN), zhang-2017 (positive samples); by default all.
    table
        Tables of these papers, such as 1 or II; by default all. 5-pictures, 7-pictures
        and 2-pictures are computed from pictures.
    report
        Folder for a report: a page in HTML, with figures.
    results
        Folder for the stored results; by default in the user's cache.
    again
        Run everything again and replace the stored results.
    jobs
        Number of threads; -1 for all cores.
    json
        Print JSON.

    Examples
    --------
    nearlabel reproduce
    nearlabel reproduce --paper zhang-2005 zhang-2017 --report report
    nearlabel reproduce --paper zhang-2007 --table 1 --json
    """
    from nearlabel.experiments.papers.table_reproduction import reproduce as run

    if report is not None:
        _check_report(report)
    with steps("reproducing") as progress:
        compared = run(paper, table, results=results, again=again, n_jobs=jobs, progress=progress)
    if report is not None:
        from nearlabel.experiments.reporting.report import write_report

        write_report(report, compared.cells)
    render([cell.record() for cell in compared.cells], _text(compared, report), json)


def _text(compared: Reproduction, report: str | None) -> Iterator[Block]:
    cells = compared.cells
    yield from _side_by_side(cells)
    yield from claims(cells)
    yield from _verdicts(cells)
    if compared.absent:
        yield Paragraph(
            f"{len(compared.absent)} data sets are not in the data folder: 'nearlabel datasets "
            "list --public' shows which ones 'nearlabel datasets fetch' can download; set "
            "NEARLABEL_DATA to the folder that has the others, NAME.npz each; pictures are a "
            "folder NAME with labels.csv and pictures/"
        )
    yield f"{compared.measured} results measured now, {compared.read} read from {compared.path}"
    if report is not None:
        yield f"wrote {report}"


def _check_report(folder: str) -> None:
    """Refuse a report that could not be written, before the work is done."""
    from nearlabel.experiments.reporting.drawing import report_module

    for name in ("jinja2", "matplotlib", "scikit_posthocs"):
        report_module(name)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--report {folder}: this cannot be a folder ({error.strerror})") from None


def _side_by_side(cells: list[ComparedCell]) -> Iterator[Block]:
    """Published tables, our numbers below each row, and why some are off or missing."""
    from nearlabel.experiments.papers.printed_tables import papers
    from nearlabel.experiments.reporting.tables import table_blocks

    for block in table_blocks(cells):
        yield f"{papers()[block.paper].title}, {block.heading}"
        if block.description:
            yield Paragraph(block.description)
        lines = [line for row in block.rows if row.was_run for line in _lines(row)]
        if lines:
            yield from ("", *narrow_table(["", *block.short_columns], lines))
        if block.agreement:
            yield block.agreement
        yield from map(Paragraph, block.notes)
        yield ""


def claims(cells: list[ComparedCell]) -> Iterator[Block]:
    """Whether the method of a paper is better than ML-kNN, by its numbers and by ours."""
    from nearlabel.experiments.reporting.method_differences import (
        comparison_views,
        method_comparisons,
    )

    for view in comparison_views(method_comparisons(cells)):
        if view.own == _RIVAL or _RIVAL not in view.algorithms:
            continue
        what = f"{view.own} against {_RIVAL} by Wilcoxon's signed-rank test"
        yield Paragraph(f"{view.heading}, {what}; data sets: {view.datasets}")
        rows = [
            (
                f"{metric} {source}",
                test.datasets,
                *(number.replace(" ", "") for number in (test.outcome, test.gain, test.p_value)),
                test.side,
            )
            for metric, tests in view.pairs.get(_RIVAL, {}).items()
            for source, test in zip(view.sources, tests, strict=True)
        ]
        if rows:
            yield Table(("", "sets", "won/tied/lost", "gain", "p", "at 5 %"), rows)
        yield from map(Paragraph, filter(None, (view.too_few, view.caution)))
        yield ""


def _verdicts(cells: list[ComparedCell]) -> Iterator[Block]:
    """How many cells of each paper have which verdict, and what the marks mean."""
    from nearlabel.experiments.papers.printed_tables import papers
    from nearlabel.experiments.papers.verdicts import Verdict
    from nearlabel.experiments.reporting.tables import LEGEND, verdict_counts

    ids = {paper.title: key for key, paper in papers().items()}  # shorter: there are 80 columns
    rows = [(ids.get(paper, paper), *counts) for paper, counts in verdict_counts(cells).items()]
    yield Table(("cells", *(verdict.value for verdict in Verdict)), rows)
    yield from map(Paragraph, LEGEND)


def _lines(row: TableRow) -> tuple[list[str], list[str]]:
    """The published numbers of a row, and ours below them; the marks stand below each other."""
    from nearlabel.experiments.reporting.tables import DOUBT, ours_text, published_text

    parameters = row.parameters.replace(" = ", "=").replace(",", "")
    published, ours = [row.dataset], [f"  {row.algorithm} {parameters}".rstrip()]
    for cell in row.cells:
        printed = "" if cell is None or cell.cell.is_new else published_text(cell)
        mark = "" if cell is None else DOUBT if cell.cell.doubt else " "
        published.append(printed.replace(" ", "") + mark)
        number = "" if cell is None else ours_text(cell).replace(" ", "") + cell.verdict.mark
        ours.append(number)
    return published, ours


def narrow_table(head: list[str], lines: list[list[str]]) -> Iterator[str]:
    """A table of numbers with less room between its columns than others."""
    most = width()
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= most else 1
    for block in column_blocks(widths, most, gap):
        if block[1] > 1:
            yield ""
        for line in (head, *lines):
            numbers = [line[place].rjust(widths[place]) for place in block[1:]]
            yield (" " * gap).join([line[0].ljust(widths[0]), *numbers]).rstrip()
