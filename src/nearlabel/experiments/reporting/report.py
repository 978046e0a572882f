"""Reports: one page in HTML that needs nothing beside it, and one in Markdown with its figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from os import PathLike
from pathlib import Path

from nearlabel.experiments.papers.printed_tables import PAPER_WITH_RELATIONS, papers
from nearlabel.experiments.papers.table_experiments import table_setups
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.papers.verdicts import Verdict
from nearlabel.experiments.reporting import tables
from nearlabel.experiments.reporting.drawing import encoded
from nearlabel.experiments.reporting.figures import critical_difference
from nearlabel.experiments.reporting.method_differences import (
    MethodComparison,
    comparison_views,
    method_comparisons,
    order_views,
)
from nearlabel.experiments.reporting.names import metric_title
from nearlabel.experiments.reporting.pages import Picture, html_page, markdown_page, write_page
from nearlabel.metrics import METRICS


def write_report(folder: str | PathLike[str], cells: Sequence[ComparedCell]) -> list[Path]:
    """Write ``report.html``, ``report.md`` and the pictures of the latter in ``figures``.

    Files of an earlier report are replaced, each at once; pictures of it that this one does not
    have are removed, and nothing else is. The paths of the files are returned, the pages first.
    """
    compared = method_comparisons(cells)
    ranks = _rank_pictures(compared)
    blocks_of = {
        paper: list(blocks)
        for paper, blocks in groupby(tables.table_blocks(cells), lambda block: block.paper)
    }
    has_relations = any(each.cell.paper == PAPER_WITH_RELATIONS for each in cells)
    orders = order_views(cells) if has_relations else []
    parts = {
        "orders": (orders, "Partial and total orders of Zhang and Zhou (2007)"),
        "comparisons": (compared, "Do the methods differ?"),
    }
    view = {
        "title": "Published tables of multi-label nearest neighbors, reproduced",
        "contents": {
            "summary": "Summary",
            **{key: f"{papers()[key].title}: {papers()[key].method}" for key in blocks_of},
            **{place: heading for place, (content, heading) in parts.items() if content},
        },
        "verdicts": list(Verdict),
        "tables": tables,
        "counts": tables.verdict_counts(cells),
        "papers": papers(),
        "blocks_of": blocks_of,
        "orders": orders,
        "comparisons": comparison_views(compared),
        "rank_pictures": ranks,
    }
    target = Path(folder)
    (target / "figures").mkdir(parents=True, exist_ok=True)
    files = {target / "figures" / f"{picture.name}.svg": picture.svg for picture in ranks}
    written = [write_page(path, svg) for path, svg in files.items()]
    pages = {
        "report.html": html_page("report.html.j2", view),
        "report.md": markdown_page("report.md.j2", view, "figures"),
    }
    written = [*(write_page(target / name, page) for name, page in pages.items()), *written]
    # The names of all pictures that a report may have, or had in earlier versions.
    keys = [key for paper in papers() for key in (paper, papers()[paper].number)]
    sources = ("published", "ours")
    old = {f"ranks_{key}_{metric}_{own}" for key in keys for metric in METRICS for own in sources}
    drawn = {name for setup in table_setups() for name in setup.datasets}
    names = ["rate", "run_time"]
    names += [f"{what}_{name}" for what in ("clusters", "neighbors") for name in drawn]
    old |= {f"{name}_{metric}" for name in names for metric in (*METRICS, "seconds")}
    for path in {target / "figures" / f"{name}.svg" for name in old} - files.keys():
        path.unlink(missing_ok=True)
    return written


def _rank_pictures(compared: Sequence[MethodComparison]) -> list[Picture]:
    """Comparisons in which methods differ: by our numbers, if they are there."""
    ours = {each.setup for each in compared if each.source == "ours"}
    return [
        Picture(
            f"ranks_{each.setup.paper}_{each.metric}_{each.source}",
            f"{each.setup.title}: mean ranks by {metric_title(each.metric)} over "
            f"{len(each.datasets)} data sets, "
            f"{'our' if each.source == 'ours' else 'published'} numbers",
            encoded(critical_difference(each.nemenyi, title=metric_title(each.metric)), ".svg"),
        )
        for each in compared
        if each.nemenyi is not None and (each.source == "ours" or each.setup not in ours)
    ]
