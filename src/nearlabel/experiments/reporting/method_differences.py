"""Whether methods differ over the data sets of a paper: tests of its numbers and ours, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, permutations
from typing import Literal, NamedTuple

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
_NUMBERS: dict[Source, str] = {"published": "the published numbers", "ours": "our numbers"}


@dataclass(frozen=True)
class MethodComparison:
    """Methods compared by one metric over several data sets.

    The data sets and algorithms are those for which every number is there. Friedman's test takes
    three algorithms, Nemenyi's is done where that finds a difference, and `pairs` are Wilcoxon's
    tests of each pair, seen from either side: none where there are too few data sets.
    """

    setup: TableSetup
    source: Source
    metric: str
    datasets: tuple[str, ...]
    algorithms: tuple[str, ...]
    friedman: Friedman | None
    nemenyi: Nemenyi | None
    pairs: Mapping[tuple[str, str], Pair]


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
    values = [[numbers[dataset, name][source] for name in names] for dataset in datasets]
    differ = ranks = None
    pairs = {}
    if len(values) >= FEWEST:
        loss = METRICS[metric].loss
        columns = dict(zip(names, zip(*values, strict=True), strict=True))
        pairs = {
            (a, b): wilcoxon(columns[a], columns[b], loss=loss) for a, b in permutations(names, 2)
        }
        if len(names) > 2:
            differ = friedman(values, names, loss=loss)
            if differ.f_p_value < LEVEL:
                ranks = nemenyi(values, names, loss=loss)
    return MethodComparison(setup, source, metric, datasets, names, differ, ranks, pairs)


class PairTest(NamedTuple):
    """Wilcoxon's test of a pair by one metric, as texts, seen from the method of the paper."""

    datasets: str = NO_NUMBER
    outcome: str = NO_NUMBER
    gain: str = NO_NUMBER
    p_value: str = NO_NUMBER
    side: str = ""


class PairView(NamedTuple):
    """The method of a paper against another one: for each metric a test per source."""

    other: str
    claims: list[str]
    tests: dict[str, list[PairTest]]


class ComparisonView(NamedTuple):
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


def comparison_views(comparisons: Sequence[MethodComparison]) -> list[ComparisonView]:
    """Comparisons by setup: the method of the paper against each other one, and all ranks."""
    by_setup = groupby(comparisons, key=lambda comparison: comparison.setup)
    return [_comparison_view(list(of_setup)) for _, of_setup in by_setup]


def _comparison_view(comparisons: list[MethodComparison]) -> ComparisonView:
    setup, algorithms = comparisons[0].setup, comparisons[0].algorithms
    method = papers()[setup.paper].method
    own = method if method in algorithms else algorithms[0]
    tested = [comparison for comparison in comparisons if comparison.pairs]
    sources = list(dict.fromkeys(comparison.source for comparison in tested))
    ranks: list[tuple[str, Source, str, str]] = []
    equal: dict[Source, list[str]] = {}
    for each in tested:
        if each.friedman is not None:
            pairs = sorted(zip(each.friedman.mean_ranks, each.friedman.algorithms, strict=True))
            listed = ", ".join(f"{name} {rank:.2f}" for rank, name in pairs)
            p_value = p_text(each.friedman.f_p_value)
            ranks.append((metric_head(each.metric), each.source, p_value, listed))
            if each.nemenyi is None:
                equal.setdefault(each.source, []).append(each.metric)
    too_few: dict[int, list[str]] = {}  # metrics by the number of their data sets
    for each in comparisons:
        metrics = [] if each.pairs else too_few.setdefault(len(each.datasets), [])
        metrics += [] if each.metric in metrics else [each.metric]
    counts = [f"{count} by {_listed(too_few[count])}" for count in sorted(too_few)]
    return ComparisonView(
        setup.title,
        ", ".join(max(comparisons, key=lambda each: len(each.datasets)).datasets),
        setup.caution,
        own,
        algorithms,
        sources,
        [
            _pair_view(own, other, tested, sources)
            for other in algorithms
            if tested and other != own
        ],
        ranks,
        " ".join(
            f"By {_NUMBERS[source]}, Friedman's test finds no difference by {_listed(metrics)}."
            for source, metrics in equal.items()
        ),
        f"Too few data sets for a test, which takes {FEWEST}: {'; '.join(counts)}."
        if counts
        else "",
    )


def _pair_view(
    own: str, other: str, tested: list[MethodComparison], sources: list[Source]
) -> PairView:
    tests: dict[str, dict[Source, PairTest]] = {each.metric: {} for each in tested}
    for each in tested:
        pair = each.pairs.get((own, other))
        if pair is not None:
            worse = "worse" if each.pairs[other, own].is_better() else ""
            tests[each.metric][each.source] = PairTest(
                str(len(each.datasets)),
                f"{pair.wins} / {pair.ties} / {pair.losses}",
                "0" if abs(pair.gain) < 0.00005 else f"{pair.gain:+.4f}",
                p_text(pair.p_value),
                "better" if pair.is_better() else worse,
            )
    words = {
        "better": "significantly better",
        "": "no significant difference",
        "worse": "significantly worse",
    }
    claims = []
    for source in sources:
        sides = {metric: of[source].side for metric, of in tests.items() if source in of}
        parts = [
            f"{words[side]} by {_listed([metric for metric in sides if sides[metric] == side])}"
            for side in words
            if side in sides.values()
        ]
        claims.append(f"By {_NUMBERS[source]}: {'; '.join(parts) or 'no test'}.")
    by_source = {
        metric_head(metric): [of.get(source, PairTest()) for source in sources]
        for metric, of in tests.items()
    }
    return PairView(other, claims, by_source)


def _listed(metrics: Sequence[str]) -> str:
    return ", ".join(map(metric_title, metrics))


class OrderView(NamedTuple):
    """A table of relations: for each metric, and for the total order, a text per source."""

    heading: str
    sources: list[str]
    rows: list[tuple[str, list[str]]]
    total: list[str]


_Relations = Mapping[str, Iterable[tuple[str, str]]]  # by metric
_Numbers = Iterable[tuple[PrintedCell, Sequence[float | None]]]  # of cells: one, or one a fold


def order_views(compared: Sequence[ComparedCell] = ()) -> list[OrderView]:
    """Relations and total orders of Zhang and Zhou (2007): printed, from its cells, and ours.

    Ours are there for the tables of which all methods were run.
    """
    # Folds are not printed, so that printed cells are compared over data sets only.
    printed: list[tuple[PrintedCell, Sequence[float | None]]] = [
        (cell, [None if cell.printed is None else float(cell.printed)]) for cell in cells()
    ]
    ours: list[tuple[PrintedCell, Sequence[float | None]]] = [
        (each.cell, each.splits or [each.ours]) for each in compared
    ]
    views = []
    for table in relations():
        by_source = {
            "as printed": table.relations,
            "from the printed cells": _tested(table, printed),
            "from our runs": _tested(table, ours, of_all=True),
        }
        by_source = {source: by_metric for source, by_metric in by_source.items() if by_metric}
        rows = []
        for metric in table.relations:
            pairs = (by_metric[metric] for by_metric in by_source.values())
            texts = [", ".join(f"{a} > {b}" for a, b in each) or "none" for each in pairs]
            rows.append((metric_head(metric), texts))
        total = [str(total_order(each, tuple(table.score))) for each in by_source.values()]
        heading = f"Table {table.table} ({table.dataset})"
        views.append(OrderView(heading, list(by_source), rows, total))
    return views


def _tested(table: Relations, numbers: _Numbers, *, of_all: bool = False) -> _Relations:
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
