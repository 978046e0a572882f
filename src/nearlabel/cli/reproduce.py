"""reproduce."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nearlabel.cli.options import Json, Several, Switch, Whole
from nearlabel.cli.output import Steps, say, say_json, say_table
from nearlabel.cli.side_by_side import say_folded, say_side_by_side
from nearlabel.cli.startup import SCALING, import_scikit_learn

if TYPE_CHECKING:
    from nearlabel.experiments.papers.comparisons import Comparison
    from nearlabel.experiments.papers.reproduction import Reproduction

_LEGEND = (
    "= equal to the printed digit, ~ within one published standard deviation (0.005 where none is "
    "printed; coverage 0.05), ! off"
)
_RIVAL = "ML-kNN"  # that every later paper compares its method with


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
    from nearlabel.experiments.papers.reproduction import reproduce as run

    if report is not None:
        _check_report(report)
    with Steps("reproducing") as progress:
        found = run(paper, table, results=results, again=again, n_jobs=jobs, progress=progress)
    if report is not None:
        _write_report(report, found, paper)
    if json:
        say_json(found.records)
        return
    say_side_by_side(found.records, found.experiments)
    _say_claims(found)
    _say_summary(found)
    if report is not None:
        say(f"wrote {report}")


def _check_report(folder: str) -> None:
    """Refuse a report that could not be written, before the work is done."""
    from nearlabel.experiments.reporting.extras import report_module

    if Path(folder).exists() and not Path(folder).is_dir():
        raise ValueError(f"--report {folder}: this is a file; give a folder")
    try:
        for name in ("jinja2", "matplotlib", "scikit_posthocs"):
            report_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None


def _write_report(folder: str, found: Reproduction, papers: tuple[str, ...]) -> None:
    from nearlabel.experiments.papers.stored_series import stored_series
    from nearlabel.experiments.reporting.report import write_report

    with Steps("measuring figures") as progress:
        series = stored_series(papers, results=found.path.parent, progress=progress)
    write_report(folder, found.records, found.experiments, series)


def _say_claims(found: Reproduction) -> None:
    """Tell whether the method of a paper is better than ML-kNN, by its numbers and by ours."""
    from nearlabel.experiments.papers.comparisons import comparisons
    from nearlabel.experiments.papers.published import papers

    compared = comparisons(found.records, found.experiments)
    for experiment in found.experiments:
        own = papers()[experiment.paper].method
        wanted = [
            one
            for one in compared
            if one.title == experiment.title and {own, _RIVAL} <= set(one.algorithms)
        ]
        if own != _RIVAL and wanted:
            _say_claim(experiment.title, own, wanted)


def _say_claim(title: str, own: str, compared: list[Comparison]) -> None:
    rows, holds = [], {}
    for one in compared:
        pair = one.pairs[own, _RIVAL]
        outcome = f"{pair.wins}-{pair.ties}-{pair.losses}"
        rows.append(
            (f"{one.metric}, {one.source}", len(one.datasets), outcome, f"{pair.p_value:.3f}")
        )
        if one.source == "ours":
            holds[one.metric] = pair.is_better()
    say(f"{title}: {own} against {_RIVAL}, Wilcoxon's signed-rank test")
    say_table(("", "data sets", "won-tied-lost", "p"), rows)
    if holds:
        better, not_better = (
            ", ".join(name for name, one in holds.items() if one is wanted) or "none"
            for wanted in (True, False)
        )
        say_folded(f"by our numbers {own} is better by: {better}; not by: {not_better}")
    say()


def _say_summary(found: Reproduction) -> None:
    from nearlabel.experiments.papers.published import papers
    from nearlabel.experiments.papers.verdicts import VERDICTS

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
    say_folded(_LEGEND)
    if found.absent:
        say_folded(
            f"{len(found.absent)} data sets are not in the data folder: set NEARLABEL_DATA to the "
            "folder that has them, NAME.npz each"
        )
    say(f"{found.measured} results measured now, {found.read} read from {found.path}")
