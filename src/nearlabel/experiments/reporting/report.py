"""The report of reproduced tables: a page in HTML that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from os import PathLike
from pathlib import Path

from nearlabel.experiments.papers.printed_tables import PAPER_WITH_RELATIONS, papers
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.papers.verdicts import Verdict
from nearlabel.experiments.reporting import tables
from nearlabel.experiments.reporting.figures import critical_difference
from nearlabel.experiments.reporting.method_differences import (
    MethodComparison,
    comparison_views,
    method_comparisons,
    order_views,
)
from nearlabel.experiments.reporting.names import metric_title
from nearlabel.experiments.reporting.pages import Picture, write_page


def write_report(folder: str | PathLike[str], cells: Sequence[ComparedCell]) -> None:
    """Write ``report.html`` into a folder, in place of an earlier one."""
    compared = method_comparisons(cells)
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
        "rank_pictures": _rank_pictures(compared),
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_page(Path(folder) / "report.html", "report.html.j2", view)


def _rank_pictures(compared: Sequence[MethodComparison]) -> list[Picture]:
    """Comparisons in which methods differ: by our numbers, if they are there."""
    ours = {each.setup for each in compared if each.source == "ours"}
    return [
        Picture(
            f"{each.setup.title}: mean ranks by {metric_title(each.metric)} over "
            f"{len(each.datasets)} data sets, "
            f"{'our' if each.source == 'ours' else 'published'} numbers",
            critical_difference(each.nemenyi, title=metric_title(each.metric)),
        )
        for each in compared
        if each.nemenyi is not None and (each.source == "ours" or each.setup not in ours)
    ]
