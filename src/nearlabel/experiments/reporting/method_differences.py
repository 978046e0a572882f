"""Whether methods differ over the data sets of a paper: tests of its numbers and ours, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple, Self

from nearlabel.experiments.papers.printed_tables import (
    PAPER_WITH_RELATIONS,
    PrintedCell,
    Relations,
    cells,
    papers,
    relations,
)
from nearlabel.experiments.papers.table_experiments import TableSetup, table_setups
from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.reporting.names import NO_NUMBER, metric_head, metric_title, p_text
from nearlabel.experiments.significance.mean_ranks import Friedman, Nemenyi, friedman, nemenyi
from nearlabel.experiments.significance.orders import partial_order, total_order
from nearlabel.experiments.significance.pairs import LEVEL, Pair, wilcoxon
from nearlabel.metrics import METRICS

Source = Literal["published", "ours"]
FEWEST = 6  # data sets: with five, the least p-value of Wilcoxon's test is 0.0625


@dataclass(frozen=True)
class MethodComparison:
    """Methods compared by one metric over several data sets.

    The data sets and algorithms are those for which every number is there. Friedman's test takes
    three algorithms, Nemenyi's is done where that finds a difference, and `pairs` are Wilcoxon's
    tests of the paper's `own` method against each other one. With few data sets there are none.
    """

    setup: TableSetup
    source: Source
    metric: str
    datasets: tuple[str, ...]
    algorithms: tuple[str, ...]
    own: str
    friedman: Friedman | None
    nemenyi: Nemenyi | None
    pairs: Mapping[str, Pair]


def method_comparisons(compared: Sequence[ComparedCell]) -> list[MethodComparison]:
    """Compare the methods of each setup with several data sets, by each metric.

    Our numbers and the published ones are compared on the data sets that have both, so that the
    two can be compared; algorithms that were not run are left out. Where fewer than
    two were run, the published numbers alone are compared. Nothing is tested where fewer than six
    data sets have all numbers.
    """
    comparisons = []
    for setup in table_setups():
        by_metric: dict[str, dict[tuple[str, str], dict[Source, float]]] = {}
        for each in compared if len(setup.datasets) > 1 else ():
            cell = each.cell
            in_setup = cell.paper == setup.paper and cell.table in setup.tables
            if in_setup and cell.dataset != setup.average and cell.metric in METRICS:
                numbers = by_metric.setdefault(cell.metric, {})
                own = numbers[cell.dataset, cell.algorithm] = {}
                if cell.published is not None:
                    own["published"] = float(cell.published)
                if each.ours is not None:
                    own["ours"] = each.ours
        for metric, numbers in by_metric.items():
            choices: tuple[tuple[Source, ...], ...] = (("published", "ours"), ("published",))
            for sources in choices:
                known = {at: own for at, own in numbers.items() if own.keys() >= {*sources}}
                if len({algorithm for _, algorithm in known}) > 1:
                    comparisons += [_comparison(setup, name, metric, known) for name in sources]
                    break
    return comparisons


def _comparison(
    setup: TableSetup,
    source: Source,
    metric: str,
    numbers: Mapping[tuple[str, str], Mapping[Source, float]],
) -> MethodComparison:
    """All tests of one source, on the data sets that have a number of every algorithm."""
    names = tuple(dict.fromkeys(name for _, name in numbers))
    datasets = tuple(
        dataset
        for dataset in dict.fromkeys(dataset for dataset, _ in numbers)
        if all((dataset, name) in numbers for name in names)
    )
    method = papers()[setup.paper].method
    own = method if method in names else names[0]
    values = [[numbers[dataset, name][source] for name in names] for dataset in datasets]
    differ = ranks = None
    pairs = {}
    if len(values) >= FEWEST:
        loss = METRICS[metric].loss
        columns = dict(zip(names, zip(*values, strict=True), strict=True))
        others = [name for name in names if name != own]
        pairs = {name: wilcoxon(columns[own], columns[name], loss=loss) for name in others}
        if len(names) > 2:
            differ = friedman(values, names, loss=loss)
            if differ.f_p_value < LEVEL:
                ranks = nemenyi(values, names, loss=loss)
    return MethodComparison(setup, source, metric, datasets, names, own, differ, ranks, pairs)


class PairTest(NamedTuple):
    """Wilcoxon's test of a pair by one metric, as texts, seen from the method of the paper."""

    datasets: str = NO_NUMBER
    outcome: str = NO_NUMBER
    gain: str = NO_NUMBER
    p_value: str = NO_NUMBER
    side: str = ""

    @classmethod
    def of(cls, pair: Pair, datasets: int) -> Self:
        """The texts of a test."""
        is_clear = pair.p_value is not None and pair.p_value < LEVEL
        return cls(
            str(datasets),
            f"{pair.wins} / {pair.ties} / {pair.losses}",
            "0" if abs(pair.gain) < 0.00005 else f"{pair.gain:+.4f}",
            p_text(pair.p_value),
            {1: "better", -1: "worse"}.get(pair.side, "") if is_clear else "",
        )


class ComparisonView(NamedTuple):
    """The comparisons of one setup, as texts.

    `pairs` has for each method other than the paper's `own`, and each metric, a test per source.
    `ranks` are of all methods: metric, source, p-value of Friedman's test, mean ranks. `too_few`
    says what could not be tested; it may be empty.
    """

    heading: str
    datasets: str
    caution: str
    own: str
    algorithms: tuple[str, ...]
    sources: list[Source]
    pairs: dict[str, dict[str, list[PairTest]]]
    ranks: list[tuple[str, Source, str, str]]
    too_few: str


def comparison_views(comparisons: Sequence[MethodComparison]) -> list[ComparisonView]:
    """Comparisons by setup: the method of the paper against each other one, and all ranks."""
    by_setup = groupby(comparisons, key=lambda comparison: comparison.setup)
    return [_comparison_view(setup, list(of_setup)) for setup, of_setup in by_setup]


def _comparison_view(setup: TableSetup, comparisons: list[MethodComparison]) -> ComparisonView:
    tested = [comparison for comparison in comparisons if comparison.pairs]
    sources = list(dict.fromkeys(comparison.source for comparison in tested))
    ranks: list[tuple[str, Source, str, str]] = []
    for each in tested:
        if each.friedman is not None:
            pairs = sorted(zip(each.friedman.mean_ranks, each.friedman.algorithms, strict=True))
            listed = ", ".join(f"{name} {rank:.2f}" for rank, name in pairs)
            p_value = p_text(each.friedman.f_p_value)
            ranks.append((metric_head(each.metric), each.source, p_value, listed))
    too_few: dict[int, dict[str, None]] = {}  # metrics by the number of their data sets
    for each in comparisons:
        if not each.pairs:
            too_few.setdefault(len(each.datasets), {})[metric_title(each.metric)] = None
    counts = [f"{count} by {', '.join(too_few[count])}" for count in sorted(too_few)]
    return ComparisonView(
        setup.title,
        ", ".join(max(comparisons, key=lambda each: len(each.datasets)).datasets),
        setup.caution,
        comparisons[0].own,
        comparisons[0].algorithms,
        sources,
        {
            other: _tests_by_metric(other, tested, sources)
            for other in dict.fromkeys(name for each in tested for name in each.pairs)
        },
        ranks,
        f"Too few data sets for a test, which takes {FEWEST}: {'; '.join(counts)}."
        if counts
        else "",
    )


def _tests_by_metric(
    other: str, tested: list[MethodComparison], sources: list[Source]
) -> dict[str, list[PairTest]]:
    tests: dict[str, dict[Source, PairTest]] = {}
    for each in tested:
        of_metric = tests.setdefault(metric_head(each.metric), dict.fromkeys(sources, PairTest()))
        if other in each.pairs:
            of_metric[each.source] = PairTest.of(each.pairs[other], len(each.datasets))
    return {metric: list(of_metric.values()) for metric, of_metric in tests.items()}


class OrderView(NamedTuple):
    """A table of relations: for each metric, and last for the total order, a text per source."""

    heading: str
    sources: list[str]
    rows: dict[str, list[str]]


_Numbers = Sequence[tuple[PrintedCell, Sequence[float | None]]]  # of cells: one, or one a fold


def order_views(compared: Sequence[ComparedCell] = ()) -> list[OrderView]:
    """Relations and total orders of Zhang and Zhou (2007): printed, from its cells, and ours.

    Ours are there for the tables of which all methods were run.
    """
    # Folds are not printed, so that printed cells are compared over data sets only.
    printed: _Numbers = [
        (cell, [None if cell.printed is None else float(cell.printed)]) for cell in cells()
    ]
    ours: _Numbers = [(each.cell, each.splits or [each.ours]) for each in compared]
    views = []
    for table in relations():
        by_source = {
            "as printed": table.relations,
            "from the printed cells": _tested(table, printed),
            "from our runs": _tested(table, ours, of_all=True),
        }
        by_source = {source: by_metric for source, by_metric in by_source.items() if by_metric}
        rows = {}
        for metric in table.relations:
            pairs = (by_metric[metric] for by_metric in by_source.values())
            texts = [", ".join(f"{a} > {b}" for a, b in each) or "none" for each in pairs]
            rows[metric_head(metric)] = texts
        names = tuple(table.score)
        rows["total order"] = [str(total_order(each, names)) for each in by_source.values()]
        views.append(OrderView(f"Table {table.table} ({table.dataset})", list(by_source), rows))
    return views


def _tested(
    table: Relations, numbers: _Numbers, *, of_all: bool = False
) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Relations by paired tests over folds, or over data sets where each has one number.

    None where there is one row, or with `of_all` where a method has no number by any metric.
    """
    columns: dict[tuple[str, str], list[float | None]] = {}
    for cell, values in numbers:
        of_table = cell.paper == PAPER_WITH_RELATIONS and cell.table in table.cells
        if of_table and not cell.dataset.endswith("_average"):
            columns.setdefault((cell.metric, cell.algorithm), []).extend(values)
    names, by_metric = tuple(table.score), {}
    if of_all and not {name for (_, name), own in columns.items() if None not in own} >= {*names}:
        return {}
    for metric in table.relations:
        of_metric = [columns.get((metric, name), []) for name in names]
        n = max(map(len, of_metric))
        if n < 2:
            return {}
        # What has no number, such as a metric that a paper does not print, is unmeasured.
        filled = [[None] * n if len(own) < n or None in own else own for own in of_metric]
        rows = list(zip(*filled, strict=True))
        by_metric[metric] = partial_order(rows, names, metric).relations
    return by_metric
