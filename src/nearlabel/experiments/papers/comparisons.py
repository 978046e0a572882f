"""Algorithms compared over the data sets of a paper: by the published numbers, and by ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

from nearlabel.experiments.papers.plans import Experiment
from nearlabel.experiments.significance.mean_ranks import Friedman, Nemenyi, friedman, nemenyi
from nearlabel.experiments.significance.pairs import LEVEL, Pair, wilcoxon
from nearlabel.metrics import METRICS

Source = Literal["published", "ours"]
FEWEST = 6  # data sets: with five, the least p-value of Wilcoxon's test is 0.0625


@dataclass(frozen=True)
class Comparison:
    """Algorithms by one metric over several data sets.

    Attributes
    ----------
    paper : str
    tables : tuple of str
    caution : str
        What is to be said beside it; may be empty.
    source : {"published", "ours"}
    metric : str
    datasets, algorithms : tuple of str
        Those for which every number is there.
    friedman : Friedman or None
        For three algorithms and more.
    nemenyi : Nemenyi or None
        Where Friedman's test finds a difference.
    pairs : dict of (str, str) to Pair
        Wilcoxon's test of each pair, seen from either side. Empty where there are too few data
        sets for any test.
    """

    paper: str
    tables: tuple[str, ...]
    caution: str
    source: Source
    metric: str
    datasets: tuple[str, ...]
    algorithms: tuple[str, ...]
    friedman: Friedman | None
    nemenyi: Nemenyi | None
    pairs: dict[tuple[str, str], Pair]

    @property
    def has_enough(self) -> bool:
        """Whether there are enough data sets for a test."""
        return len(self.datasets) >= FEWEST


def comparisons(
    records: Sequence[Mapping[str, Any]], experiments: Iterable[Experiment]
) -> list[Comparison]:
    """Compare the algorithms of each experiment on several data sets, by each metric.

    Nothing is tested where fewer than six data sets have all numbers.

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
        if len(one.datasets) == 1:
            continue
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
    if len(table.algorithms) < 2:
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
    differ = ranks = None
    pairs = {}
    if len(values) >= FEWEST:
        columns = dict(zip(names, zip(*values, strict=True), strict=True))
        pairs = {
            (a, b): wilcoxon(columns[a], columns[b], loss=loss) for a, b in permutations(names, 2)
        }
        if len(names) > 2:
            differ = friedman(values, names, loss=loss)
            if differ.f_p_value < LEVEL:
                ranks = nemenyi(values, names, loss=loss)
    return Comparison(
        experiment.paper,
        experiment.tables,
        experiment.caution,
        source,
        metric,
        table.datasets,
        names,
        differ,
        ranks,
        pairs,
    )
