"""The tests of significance of a report as plain data: orders of algorithms, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from nearlabel.experiments.papers import published
from nearlabel.experiments.papers.comparisons import FEWEST, Comparison, Source
from nearlabel.experiments.papers.plans import tables_in_words
from nearlabel.experiments.reporting.names import (
    NO_NUMBER,
    metric_head,
    metric_title,
    p_text,
    paper_title,
)
from nearlabel.experiments.significance.orders import PartialOrder, partial_order, total_order

_LEAST_GAIN = 0.00005  # that is told
_NO_TEST = {
    "datasets": NO_NUMBER,
    "outcome": NO_NUMBER,
    "gain": NO_NUMBER,
    "p_value": NO_NUMBER,
    "side": "",
}
_NUMBERS: dict[Source, str] = {"published": "the published numbers", "ours": "our numbers"}
_SIDES = {
    "better": "significantly better",
    "": "no significant difference",
    "worse": "significantly worse",
}


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
    """Comparisons by experiment: the method of the paper against each other one, and all ranks.

    Returns
    -------
    list of dict
        `paper`, `own` (the method of the paper), `algorithms`, `heading`, `datasets`, `caution`,
        `sources`; `pairs` with `other`, `heading`, `claims` and `rows` of tests; `ranks`, and
        `equal`, which says by what they do not differ; `too_few`, which says what could not be
        tested. Sentences are empty where there is nothing to say.
    """
    return [
        _comparison_view(list(some))
        for _, some in groupby(found, key=lambda one: (one.paper, one.tables))
    ]


def _comparison_view(found: list[Comparison]) -> dict[str, Any]:
    first = found[0]
    method = published.papers()[first.paper].method
    own = method if method in first.algorithms else first.algorithms[0]
    tested = [one for one in found if one.has_enough]
    return {
        "paper": first.paper,
        "own": own,
        "algorithms": first.algorithms,
        "heading": f"{paper_title(first.paper)}: {tables_in_words(first.tables)}",
        "datasets": ", ".join(max(found, key=lambda one: len(one.datasets)).datasets),
        "caution": first.caution,
        "sources": list(dict.fromkeys(one.source for one in tested)),
        "pairs": [_pair_view(own, other, tested) for other in first.algorithms if other != own]
        if tested
        else [],
        "too_few": _too_few([one for one in found if not one.has_enough]),
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
        "equal": " ".join(_equal(source, tested) for source in _NUMBERS).strip(),
    }


def _pair_view(own: str, other: str, tested: list[Comparison]) -> dict[str, Any]:
    sources = list(dict.fromkeys(one.source for one in tested))
    tests = {
        (one.metric, one.source): _test(one, own, other)
        for one in tested
        if (own, other) in one.pairs
    }
    return {
        "other": other,
        "heading": f"{own} against {other}",
        "claims": [_claim(source, tests) for source in sources],
        "rows": [
            {
                "metric": metric_head(metric),
                "tests": [tests.get((metric, source), _NO_TEST) for source in sources],
            }
            for metric in dict.fromkeys(one.metric for one in tested)
        ],
    }


def _test(one: Comparison, own: str, other: str) -> dict[str, Any]:
    pair = one.pairs[own, other]
    worse = "worse" if one.pairs[other, own].is_better() else ""
    return {
        "datasets": len(one.datasets),
        "outcome": f"{pair.wins} / {pair.ties} / {pair.losses}",
        "gain": "0" if abs(pair.gain) < _LEAST_GAIN else f"{pair.gain:+.4f}",
        "p_value": p_text(pair.p_value),
        "side": "better" if pair.is_better() else worse,
    }


def _claim(source: Source, tests: Mapping[tuple[str, Source], Mapping[str, Any]]) -> str:
    """By which metrics the paper's method is better, and by which it is not, in words."""
    said = []
    for side, words in _SIDES.items():
        metrics = [
            name for (name, of), test in tests.items() if (of, test["side"]) == (source, side)
        ]
        if metrics:
            said.append(f"{words} by {_listed(metrics)}")
    return f"By {_NUMBERS[source]}: {'; '.join(said) or 'no test'}."


def _too_few(untested: list[Comparison]) -> str:
    """What could not be tested; nothing where all could."""
    counts = {one.metric: len(one.datasets) for one in untested}
    groups = [
        f"{count} by {_listed([name for name, of in counts.items() if of == count])}"
        for count in sorted(set(counts.values()))
    ]
    if not groups:
        return ""
    return f"Too few data sets for a test, which takes {FEWEST}: {'; '.join(groups)}."


def _equal(source: Source, tested: list[Comparison]) -> str:
    metrics = [
        one.metric
        for one in tested
        if one.source == source and one.friedman is not None and one.nemenyi is None
    ]
    if not metrics:
        return ""
    return f"By {_NUMBERS[source]}, Friedman's test finds no difference by {_listed(metrics)}."


def _listed(metrics: Sequence[str]) -> str:
    return ", ".join(map(metric_title, metrics))
