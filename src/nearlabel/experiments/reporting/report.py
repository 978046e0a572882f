"""Reports: one page in HTML that needs nothing beside it, and one in Markdown with its figures."""

from __future__ import annotations

import re
from collections.abc import Sequence, Sized
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

from nearlabel.experiments.papers.paper_figures import MeasuredFigure, paper_figures
from nearlabel.experiments.papers.printed_tables import PAPER_WITH_RELATIONS, papers
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.papers.verdicts import Verdict
from nearlabel.experiments.reporting import tables
from nearlabel.experiments.reporting.drawing import encoded
from nearlabel.experiments.reporting.figures import critical_difference, plot_figures
from nearlabel.experiments.reporting.method_differences import (
    MethodComparison,
    comparison_views,
    method_comparisons,
    order_views,
)
from nearlabel.experiments.reporting.names import metric_title
from nearlabel.experiments.reporting.pages import (
    Picture,
    environment,
    html_page,
    origin,
    write_page,
)
from nearlabel.metrics import METRICS

_FIGURES = "figures"  # the folder of the pictures of the page in Markdown
_PARTS = {
    "orders": "Partial and total orders of Zhang and Zhou (2007)",
    "comparisons": "Do the methods differ?",
    "figures": "Figures",
}
_TITLE = "Published tables of multi-label nearest neighbors, reproduced"


def write_report(
    folder: str | PathLike[str],
    cells: Sequence[ComparedCell],
    figures: Sequence[MeasuredFigure] = (),
) -> list[Path]:
    """Write ``report.html``, ``report.md`` and the pictures of the latter in ``figures``.

    Files of an earlier report are replaced, each at once; pictures of it that this one does not
    have are removed, and nothing else is. The paths of the files are returned, the pages first.
    """
    compared = method_comparisons(cells)
    ranks = _rank_pictures(compared)
    groups: dict[tuple[str, str], list[tuple[MeasuredFigure, list[Picture]]]] = {}
    for one in figures:
        groups.setdefault((one.figure.heading, one.figure.caption), []).append((one, _drawn(one)))
    pictures = [*ranks, *(each for some in groups.values() for _, drawn in some for each in drawn)]
    has_relations = any(one.cell.paper == PAPER_WITH_RELATIONS for one in cells)
    blocks_of = {
        paper: list(blocks)
        for paper, blocks in groupby(tables.table_blocks(cells), lambda one: one.paper)
    }
    orders = order_views(cells) if has_relations else []
    view = {
        "title": _TITLE,
        **origin(),
        "contents": _contents(list(blocks_of), orders=orders, comparisons=compared, figures=groups),
        "verdicts": list(Verdict),
        "tables": tables,
        "counts": tables.verdict_counts(cells),
        "papers": papers(),
        "blocks_of": blocks_of,
        "orders": orders,
        "comparisons": comparison_views(compared),
        "rank_pictures": ranks,
        "figure_groups": groups,
    }
    target = Path(folder)
    (target / _FIGURES).mkdir(parents=True, exist_ok=True)
    written = [write_page(target / _FIGURES / f"{one.name}.svg", one.svg) for one in pictures]
    markdown = environment(autoescape=False, finalize=_as_markdown)
    markdown.globals["source_of"] = lambda picture: _Raw(f"{_FIGURES}/{picture.name}.svg")
    pages = {
        "report.html": html_page("report.html.j2", view),
        "report.md": markdown.get_template("report.md.j2").render(view).encode(),
    }
    told = [write_page(target / name, page) for name, page in pages.items()]
    for old in _possible_pictures() - {one.name for one in pictures}:
        (target / _FIGURES / f"{old}.svg").unlink(missing_ok=True)
    return [*told, *written]


def _contents(of_papers: Sequence[str], **parts: Sized) -> dict[str, str]:
    """The headings of a page by their places; of the parts those that have anything."""
    told = papers()
    return {
        "summary": "Summary",
        **{paper: f"{told[paper].title}: {told[paper].method}" for paper in of_papers},
        **{place: heading for place, heading in _PARTS.items() if len(parts[place])},
    }


def _possible_pictures() -> set[str]:
    """The names of all pictures that a report may have, or had when papers had numbers."""
    keys = [key for paper, told in papers().items() for key in (paper, told.number)]
    sources = ("published", "ours")
    ranks = {f"ranks_{key}_{metric}_{one}" for key in keys for metric in METRICS for one in sources}
    return ranks | {
        f"{name}_{metric}" for name in paper_figures() for metric in (*METRICS, "seconds")
    }


def _rank_pictures(compared: Sequence[MethodComparison]) -> list[Picture]:
    """Comparisons in which methods differ: by our numbers, if they are there."""
    ours = {one.setup for one in compared if one.source == "ours"}
    return [
        Picture(
            f"ranks_{one.setup.paper}_{one.metric}_{one.source}",
            f"{one.setup.title}: mean ranks by {metric_title(one.metric)} over "
            f"{len(one.datasets)} data sets, "
            f"{'our' if one.source == 'ours' else 'published'} numbers",
            encoded(critical_difference(one.nemenyi, title=metric_title(one.metric)), ".svg"),
        )
        for one in compared
        if one.nemenyi is not None and (one.source == "ours" or one.setup not in ours)
    ]


def _drawn(one: MeasuredFigure) -> list[Picture]:
    name, label = one.figure.name, one.figure.label
    if one.plot is None:
        return []
    return [
        Picture(
            f"{name}_{metric}",
            f"{metric_title(metric)} against {one.plot.x_label}, {label}",
            encoded(drawn, ".svg"),
        )
        for metric, drawn in plot_figures(one.plot, label).items()
    ]


class _Raw(str):
    """A text that is Markdown already."""


def _as_markdown(value: Any) -> Any:
    """Texts as they are read, without any mark that Markdown or HTML would take for its own."""
    if isinstance(value, str) and not isinstance(value, _Raw):
        return re.sub(r"([\\`*_\[\]<>#|~&$])", r"\\\1", re.sub(r"\s+", " ", value))
    return value
