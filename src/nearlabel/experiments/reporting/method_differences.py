"""Whether methods differ, as texts for a report: orders of algorithms, and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from nearlabel.experiments.papers.method_comparisons import FEWEST, MethodComparison, Source
from nearlabel.experiments.papers.printed_tables import (
    PAPER_WITH_RELATIONS,
    PrintedCell,
    Relations,
    cells,
    papers,
    relations,
)
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.reporting.names import NO_NUMBER, metric_head, metric_title
from nearlabel.experiments.significance.orders import partial_order, total_order

_LEAST_GAIN = 0.00005  # smaller ones are shown as 0
_NUMBERS: dict[Source, str] = {"published": "the published numbers", "ours": "our numbers"}
_SIDES = {
    "better": "significantly better",
    "": "no significant difference",
    "worse": "significantly worse",
}


@dataclass(frozen=True)
class OrderView:
    """A table of relations: for each metric, and for the total order, a text per source."""

    heading: str
    sources: list[str]
    rows: list[tuple[str, list[str]]]
    total: list[str]


def order_views(compared: Sequence[ComparedCell] = ()) -> list[OrderView]:
    """Relations and total orders of Zhang and Zhou (2007): printed, from its cells, and ours.

    Ours are there for the tables of which all methods were run.
    """
    views = []
    for table in relations():
        names, metrics = tuple(table.score), list(table.relations)
        found = {
            "as printed": table.relations,
            "from the printed cells": _of_printed_cells(table, names),
            "from our runs": _of_our_runs(table, names, compared),
        }
        found = {source: one for source, one in found.items() if one}
        rows = [
            (metric_head(metric), [_relations_text(one[metric]) for one in found.values()])
            for metric in metrics
        ]
        total = [str(total_order(one, names)) for one in found.values()]
        heading = f"Table {table.table} ({table.dataset})"
        views.append(OrderView(heading, list(found), rows, total))
    return views


def _relations_text(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{better} > {other}" for better, other in pairs) or "none"


_Relations = Mapping[str, tuple[tuple[str, str], ...]]  # by metric
_Rows = Mapping[tuple[str, str], Sequence[Any]]  # values of rows, by metric and algorithm


def _of_printed_cells(table: Relations, names: Sequence[str]) -> _Relations:
    """Relations from printed cells: only over data sets, since folds are not printed."""
    values: dict[tuple[str, str], list[Any]] = {}
    for cell in cells():
        if _is_compared(table, cell):
            values.setdefault((cell.metric, cell.algorithm), []).append(cell.published)
    return _over_rows(table, names, values)


def _of_our_runs(
    table: Relations, names: Sequence[str], compared: Sequence[ComparedCell]
) -> _Relations:
    """Relations from our numbers: over folds, or over data sets where each has one number."""
    values: dict[tuple[str, str], list[Any]] = {}
    for one in compared:
        if _is_compared(table, one.cell):
            of_cell = list(one.splits) if one.splits else [one.ours]
            values.setdefault((one.cell.metric, one.cell.algorithm), []).extend(of_cell)
    was_run = {name for (_, name), some in values.items() if None not in some}
    return _over_rows(table, names, values) if was_run.issuperset(names) else {}


def _is_compared(table: Relations, cell: PrintedCell) -> bool:
    of_table = cell.paper == PAPER_WITH_RELATIONS and cell.table in table.cells
    return of_table and not cell.dataset.endswith("_average")


def _over_rows(table: Relations, names: Sequence[str], values: _Rows) -> _Relations:
    """Relations by paired tests over rows; none where there is one row."""
    found = {}
    for metric in table.relations:
        columns = [values.get((metric, name), []) for name in names]
        n = max(map(len, columns))
        if n < 2:
            return {}
        # What has no number, such as a metric that a paper does not print, is unmeasured.
        filled = [one if len(one) == n and None not in one else [None] * n for one in columns]
        rows = list(zip(*filled, strict=True))
        found[metric] = partial_order(rows, names, metric).relations
    return found


@dataclass(frozen=True)
class PairTest:
    """Wilcoxon's test of a pair by one metric, seen from the method of the paper."""

    datasets: str = NO_NUMBER
    outcome: str = NO_NUMBER
    gain: str = NO_NUMBER
    p_value: str = NO_NUMBER
    side: str = ""


@dataclass(frozen=True)
class PairView:
    """The method of a paper against another one: for each metric a test per source."""

    other: str
    claims: list[str]
    tests: dict[str, list[PairTest]]


@dataclass(frozen=True)
class ComparisonView:
    """The comparisons of one setup, as texts.

    `own` is the method of the paper, which `pairs` compare with each other one. `ranks` are of all
    methods: metric, source, p-value of Friedman's test, mean ranks. `equal` says by which metrics
    they do not differ, `too_few` what could not be tested; both may be empty.
    """

    heading: str
    datasets: str
    caution: str
    own: str
    algorithms: tuple[str, ...]
    sources: list[Source]
    pairs: list[PairView]
    ranks: list[tuple[str, Source, str, str]]
    equal: str
    too_few: str


def comparison_views(found: Sequence[MethodComparison]) -> list[ComparisonView]:
    """Comparisons by setup: the method of the paper against each other one, and all ranks."""
    return [_comparison_view(list(some)) for _, some in groupby(found, key=lambda one: one.setup)]


def _comparison_view(found: list[MethodComparison]) -> ComparisonView:
    setup, algorithms = found[0].setup, found[0].algorithms
    method = papers()[setup.paper].method
    own = method if method in algorithms else algorithms[0]
    tested = [one for one in found if one.has_enough]
    sources = list(dict.fromkeys(one.source for one in tested))
    others = [name for name in algorithms if name != own] if tested else []
    ranks: list[tuple[str, Source, str, str]] = []
    equal: dict[Source, list[str]] = {}
    for one in tested:
        if one.friedman is not None:
            pairs = sorted(zip(one.friedman.mean_ranks, one.friedman.algorithms, strict=True))
            listed = ", ".join(f"{name} {rank:.2f}" for rank, name in pairs)
            p_value = p_text(one.friedman.f_p_value)
            ranks.append((metric_head(one.metric), one.source, p_value, listed))
            if one.nemenyi is None:
                equal.setdefault(one.source, []).append(one.metric)
    return ComparisonView(
        setup.title,
        ", ".join(max(found, key=lambda one: len(one.datasets)).datasets),
        setup.caution,
        own,
        algorithms,
        sources,
        [_pair_view(own, other, tested, sources) for other in others],
        ranks,
        " ".join(
            f"By {_NUMBERS[source]}, Friedman's test finds no difference by {_listed(metrics)}."
            for source, metrics in equal.items()
        ),
        _too_few({one.metric: len(one.datasets) for one in found if not one.has_enough}),
    )


def _pair_view(
    own: str, other: str, tested: list[MethodComparison], sources: list[Source]
) -> PairView:
    tests: dict[str, dict[Source, PairTest]] = {one.metric: {} for one in tested}
    for one in tested:
        pair = one.pairs.get((own, other))
        if pair is not None:
            worse = "worse" if one.pairs[other, own].is_better() else ""
            tests[one.metric][one.source] = PairTest(
                str(len(one.datasets)),
                f"{pair.wins} / {pair.ties} / {pair.losses}",
                "0" if abs(pair.gain) < _LEAST_GAIN else f"{pair.gain:+.4f}",
                p_text(pair.p_value),
                "better" if pair.is_better() else worse,
            )
    claims = []
    for source in sources:
        sides = {metric: of[source].side for metric, of in tests.items() if source in of}
        parts = [
            f"{words} by {_listed(metrics)}"
            for side, words in _SIDES.items()
            if (metrics := [metric for metric in sides if sides[metric] == side])
        ]
        claims.append(f"By {_NUMBERS[source]}: {'; '.join(parts) or 'no test'}.")
    return PairView(
        other,
        claims,
        {
            metric_head(metric): [of.get(source, PairTest()) for source in sources]
            for metric, of in tests.items()
        },
    )


def _too_few(counts: Mapping[str, int]) -> str:
    """What could not be tested, given the number of data sets by metric."""
    groups = [
        f"{count} by {_listed([name for name, of in counts.items() if of == count])}"
        for count in sorted(set(counts.values()))
    ]
    if not groups:
        return ""
    return f"Too few data sets for a test, which takes {FEWEST}: {'; '.join(groups)}."


def p_text(p_value: float | None) -> str:
    """A p-value with three decimals; small ones as such."""
    if p_value is None:
        return NO_NUMBER
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _listed(metrics: Sequence[str]) -> str:
    return ", ".join(map(metric_title, metrics))
