"""reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.options import Json, Several, Switch, Whole
from nearlabel.cli.output import Steps, say, say_json
from nearlabel.cli.published_tables import say_claims, say_folded, say_side_by_side, say_summary
from nearlabel.cli.quick_imports import SCALING, import_scikit_learn

if TYPE_CHECKING:
    from nearlabel.experiments.papers.table_reproduction import Reproduction


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
    """Reproduce published tables, and compare.

    Runs every experiment of five papers whose data are in the data folder. Results are stored:
    after an interrupt the next start goes on, and a second run only reads.

    Parameters
    ----------
    paper
        Papers: zhang-2007 (ML-KNN), zhang-2005 (ML-kNN), cheng-2009 (Mallows), wang-2018
        (LAML-kNN), zhang-2017 (positive samples); by default all.
    table
        Tables of these papers, such as 1 or II; by default all.
    report
        Write a page in HTML and Markdown, with figures, to this folder.
    results
        Folder of the results; by default in the user's cache.
    again
        Measure again; the new results replace the earlier ones.
    jobs
        Threads; -1 for all cores.
    json
        Print JSON.

    Examples
    --------
    nearlabel reproduce
    nearlabel reproduce --paper zhang-2005 zhang-2017 --report report
    nearlabel reproduce --paper zhang-2007 --table 1 --json
    """
    import_scikit_learn(*SCALING)
    from nearlabel.experiments.papers.table_reproduction import reproduce as run

    if report is not None:
        _check_report(report)
    with Steps("reproducing") as progress:
        found = run(paper, table, results=results, again=again, n_jobs=jobs, progress=progress)
    if report is not None:
        _write_report(report, found, paper, again=again)
    if json:
        say_json([one.record() for one in found.cells])
        return
    say_side_by_side(found.cells)
    say_claims(found.cells)
    say_summary(found.cells)
    _say_work(found)
    if report is not None:
        say(f"wrote {report}")


def _check_report(folder: str) -> None:
    """Refuse a report that could not be written, before the work is done."""
    from nearlabel.experiments.reporting.drawing import report_module

    try:
        for name in ("jinja2", "matplotlib", "scikit_posthocs"):
            report_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--report {folder}: this cannot be a folder ({error.strerror})") from None


def _write_report(
    folder: str, found: Reproduction, papers: tuple[str, ...], *, again: bool
) -> None:
    from nearlabel.experiments.papers.paper_figures import measured_figures
    from nearlabel.experiments.reporting.report import write_report

    with Steps("measuring figures") as progress:
        figures = measured_figures(
            papers, results=found.path.parent, again=again, progress=progress
        )
    write_report(folder, found.cells, figures)


def _say_work(found: Reproduction) -> None:
    """Say what was measured, and which data are missing."""
    if found.absent:
        say_folded(
            f"{len(found.absent)} data sets are not in the data folder: set NEARLABEL_DATA to the "
            "folder that has them, NAME.npz each"
        )
    say(f"{found.measured} results measured now, {found.read} read from {found.path}")
