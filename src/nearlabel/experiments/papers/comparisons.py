"""Algorithms compared over the data sets of a paper: by the published numbers, and by ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

from nearlabel.experiments.papers.plans import Experiment
from nearlabel.experiments.significance.mean_ranks import Friedman, Nemenyi, friedman, nemenyi
from nearlabel.experiments.significance.pairs import Pair, wilcoxon
from nearlabel.metrics import METRICS

Source = Literal["published", "ours"]
_FEWEST = 5  # data sets: with fewer, no test could find anything


@dataclass(frozen=True)
class Comparison:
    """Algorithms by one metric over several data sets.

    Attributes
    ----------
    title : str
        The paper and its tables.
    source : {"published", "ours"}
    metric : str
    datasets, algorithms : tuple of str
        Those for which every number is there.
    friedman : Friedman or None
        For three algorithms and more.
    nemenyi : Nemenyi or None
        For three algorithms and more.
    pairs : dict of (str, str) to Pair
        Wilcoxon's test of each pair, seen from either side.
    """

    title: str
    source: Source
    metric: str
    datasets: tuple[str, ...]
    algorithms: tuple[str, ...]
    friedman: Friedman | None
    nemenyi: Nemenyi | None
    pairs: dict[tuple[str, str], Pair]


def comparisons(
    records: Sequence[Mapping[str, Any]], experiments: Iterable[Experiment]
) -> list[Comparison]:
    """Compare the algorithms of each experiment by each metric, over five data sets or more.

    Parameters
    ----------
    records : sequence of mapping
        Cells with `paper`, `table`, `dataset`, `algorithm`, `metric`, `published` and `ours`, as
        `reproduction.reproduce` gives them. Our numbers and the published ones are compared on the
        data sets that have both, so that the two can be held against each other; algorithms that
        were not run are left out. Where fewer than two were run, the published numbers alone are
        compared.
    experiments : iterable of Experiment
        Their tables are taken together.
    """
    found = []
    for one in experiments:
        cells = [
            record
            for record in records
            if record["paper"] == one.paper
            and record["table"] in one.tables
            and record["dataset"] != one.average
            and record["metric"] in METRICS
        ]
        for metric in dict.fromkeys(record["metric"] for record in cells):
            found += _of_metric(one, metric, [cell for cell in cells if cell["metric"] == metric])
    return found


def _of_metric(
    experiment: Experiment, metric: str, cells: list[Mapping[str, Any]]
) -> list[Comparison]:
    sources: tuple[Source, ...] = ("published", "ours")
    table = _table(cells, sources)
    if len(table.algorithms) < 2:
        sources = ("published",)
        table = _table(cells, sources)
    if len(table.algorithms) < 2 or len(table.datasets) < _FEWEST:
        return []
    return [_comparison(experiment, source, metric, table) for source in sources]


@dataclass(frozen=True)
class _Table:
    """A complete part of a table: every algorithm has a number on every data set."""

    datasets: tuple[str, ...]
    algorithms: tuple[str, ...]
    cells: Mapping[tuple[str, str], Mapping[str, Any]]


def _table(records: Iterable[Mapping[str, Any]], sources: Sequence[Source]) -> _Table:
    """The data sets on which all algorithms that have any numbers have one."""
    cells = {
        (record["dataset"], record["algorithm"]): record
        for record in records
        if all(record[source] is not None for source in sources)
    }
    algorithms = tuple(dict.fromkeys(name for _, name in cells))
    datasets = tuple(
        dataset
        for dataset in dict.fromkeys(dataset for dataset, _ in cells)
        if all((dataset, name) in cells for name in algorithms)
    )
    return _Table(datasets, algorithms, cells)


def _comparison(experiment: Experiment, source: Source, metric: str, table: _Table) -> Comparison:
    names, loss = table.algorithms, METRICS[metric].loss
    values = [[table.cells[dataset, name][source] for name in names] for dataset in table.datasets]
    several = len(names) > 2
    columns = dict(zip(names, zip(*values, strict=True), strict=True))
    return Comparison(
        experiment.title,
        source,
        metric,
        table.datasets,
        names,
        friedman(values, names, loss=loss) if several else None,
        nemenyi(values, names, loss=loss) if several else None,
        {(a, b): wilcoxon(columns[a], columns[b], loss=loss) for a, b in permutations(names, 2)},
    )
