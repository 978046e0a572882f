"""The tests of significance of a report as plain data: orders of algorithms, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from nearlabel.experiments.papers import published
from nearlabel.experiments.papers.comparisons import Comparison, Source
from nearlabel.experiments.reporting.tables import NO_NUMBER, metric_head, paper_title
from nearlabel.experiments.significance.orders import PartialOrder, partial_order, total_order
from nearlabel.experiments.significance.pairs import Pair

_LEAST_GAIN = 0.00005  # that is told
_NO_TEST = {"outcome": NO_NUMBER, "gain": NO_NUMBER, "p_value": NO_NUMBER, "side": ""}


def order_views() -> list[dict[str, Any]]:
    """The relations and total orders that the 2007 paper prints, and what its cells give."""
    return [_order_view(table) for table in published.relations()]


def _order_view(table: published.Relations) -> dict[str, Any]:
    names = tuple(sorted(table.score, key=list(table.score).index))
    from_cells = _orders_of_cells(table, names)
    return {
        "heading": f"Table {table.table} ({table.dataset})",
        "total": str(total_order(table.relations, names)),
        "total_of_cells": str(
            total_order({m: order.relations for m, order in from_cells.items()}, names)
        )
        if from_cells
        else "",
        "rows": [
            {
                "metric": metric_head(metric),
                "printed": ", ".join(f"{a} > {b}" for a, b in pairs) or "none",
                "of_cells": str(from_cells[metric]) if from_cells else "",
            }
            for metric, pairs in table.relations.items()
        ],
    }


def _orders_of_cells(table: published.Relations, names: Sequence[str]) -> dict[str, PartialOrder]:
    """Relations from printed cells: only where data sets are the rows, since folds are not told."""
    cells = {
        (cell.metric, cell.dataset, cell.algorithm): cell.published
        for cell in published.cells()
        if cell.paper == "000" and cell.table in table.cells
    }
    datasets = [
        name
        for name in dict.fromkeys(dataset for _, dataset, _ in cells)
        if not name.endswith("_average")
    ]
    if len(datasets) < 2:
        return {}
    return {
        metric: partial_order(
            [[_float(cells[metric, dataset, name]) for name in names] for dataset in datasets],
            names,
            metric,
        )
        for metric in table.relations
    }


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def comparison_views(found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Comparisons by experiment: the method of the paper against each other one, and all ranks."""
    return [
        _comparison_view(title, list(some))
        for title, some in groupby(found, key=lambda one: one.title)
    ]


def _comparison_view(title: str, found: list[Comparison]) -> dict[str, Any]:
    first, paper = found[0], title[:3]
    own = next(
        (name for name in first.algorithms if name == published.papers()[paper].method),
        first.algorithms[0],
    )
    sources = list(dict.fromkeys(one.source for one in found))
    by_metric = {(one.metric, one.source): one for one in found}
    metrics = list(dict.fromkeys(one.metric for one in found))
    pairs = []
    for other in (name for name in first.algorithms if name != own):
        tests = {
            key: _test(one.pairs[own, other], one.pairs[other, own])
            for key, one in by_metric.items()
            if (own, other) in one.pairs
        }
        pairs.append(
            {
                "heading": f"{own} against {other}",
                "claims": [_claim(own, other, source, tests) for source in sources],
                "rows": [
                    {
                        "metric": metric_head(metric),
                        "tests": [tests.get((metric, source), _NO_TEST) for source in sources],
                    }
                    for metric in metrics
                ],
            }
        )
    return {
        "heading": f"{paper_title(paper)}: {title[4:]}",
        "datasets": ", ".join(first.datasets),
        "sources": sources,
        "pairs": pairs,
        "ranks": [
            {
                "metric": metric_head(one.metric),
                "source": one.source,
                "p_value": p_text(one.friedman.f_p_value),
                "ranks": ", ".join(
                    f"{name} {rank:.2f}"
                    for rank, name in sorted(
                        zip(one.friedman.mean_ranks, one.algorithms, strict=True)
                    )
                ),
            }
            for one in found
            if one.friedman is not None
        ],
    }


def _test(pair: Pair, from_the_other_side: Pair) -> dict[str, str]:
    worse = "worse" if from_the_other_side.is_better() else ""
    return {
        "outcome": f"{pair.wins} / {pair.ties} / {pair.losses}",
        "gain": "0" if abs(pair.gain) < _LEAST_GAIN else f"{pair.gain:+.4f}",
        "p_value": p_text(pair.p_value),
        "side": "better" if pair.is_better() else worse,
    }


def _claim(
    own: str, other: str, source: Source, tests: Mapping[tuple[str, Source], Mapping[str, str]]
) -> str:
    """In how many metrics the paper's method is significantly better, in words."""
    sides = [test["side"] for (_, of), test in tests.items() if of == source]
    numbers = "the published numbers" if source == "published" else "our numbers"
    return (
        f"By {numbers}, {own} is significantly better than {other} in {sides.count('better')} of "
        f"{len(sides)} metrics, and significantly worse in {sides.count('worse')}."
    )


def p_text(p_value: float | None) -> str:
    """A p-value with three decimals; small ones as such."""
    if p_value is None:
        return NO_NUMBER
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
