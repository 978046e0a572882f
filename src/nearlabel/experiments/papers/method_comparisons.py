"""Methods compared over the data sets of a paper: by the published numbers, and by ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from nearlabel.experiments.papers.table_reproduction import ComparedCell
from nearlabel.experiments.papers.table_setups import TableSetup, table_setups
from nearlabel.experiments.significance.mean_ranks import Friedman, Nemenyi, friedman, nemenyi
from nearlabel.experiments.significance.pairs import LEVEL, Pair, wilcoxon
from nearlabel.metrics import METRICS

Source = Literal["published", "ours"]
Numbers = Mapping[tuple[str, str], Mapping[Source, float]]  # by data set and algorithm
FEWEST = 6  # data sets: with five, the least p-value of Wilcoxon's test is 0.0625


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

    @property
    def has_enough(self) -> bool:
        """Whether there are enough data sets for a test."""
        return len(self.datasets) >= FEWEST


def method_comparisons(cells: Sequence[ComparedCell]) -> list[MethodComparison]:
    """Compare the methods of each setup with several data sets, by each metric.

    Our numbers and the published ones are compared on the data sets that have both, so that the
    two can be compared; algorithms that were not run are left out. Where fewer than
    two were run, the published numbers alone are compared. Nothing is tested where fewer than six
    data sets have all numbers.
    """
    found = []
    for setup in table_setups():
        if len(setup.datasets) == 1:
            continue
        of_metric: dict[str, list[ComparedCell]] = {}
        for one in cells:
            place = one.cell
            if (
                place.paper == setup.paper
                and place.table in setup.tables
                and place.dataset != setup.average
                and place.metric in METRICS
            ):
                of_metric.setdefault(place.metric, []).append(one)
        for metric, some in of_metric.items():
            for sources in (("published", "ours"), ("published",)):
                numbers = _numbers(some, sources)
                if len({algorithm for _, algorithm in numbers}) > 1:
                    found += [_compared(setup, source, metric, numbers) for source in sources]
                    break
    return found


def _numbers(cells: Iterable[ComparedCell], sources: Sequence[Source]) -> Numbers:
    """The cells that have a number of each source."""
    found: dict[tuple[str, str], dict[Source, float]] = {}
    for one in cells:
        known = {"published": one.cell.published, "ours": one.ours}
        numbers = {name: float(value) for name in sources if (value := known[name]) is not None}
        if len(numbers) == len(sources):
            found[one.cell.dataset, one.cell.algorithm] = numbers
    return found


def _compared(setup: TableSetup, source: Source, metric: str, numbers: Numbers) -> MethodComparison:
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
