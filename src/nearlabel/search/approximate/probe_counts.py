"""How many lists a search must probe, determined on rows with known exact neighbors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.graph import ROWS_MEASURED, NeighborGraph, recall_of_shares
from nearlabel.search.approximate.probes import Probes, more_lists
from nearlabel.search.approximate.probing import ListedRows, QueryPlan

# benchmarks/hard_clusters.py measures them.
_ROWS_TUNED = ROWS_MEASURED // 2  # on which the number of probes is chosen
_MOST_CELLS = 2**24  # neighbors of all these rows
_SHARES = 0.3, 0.6  # of the lists that a query may probe, which it usually does


@dataclass(frozen=True)
class MeasuredPlan(QueryPlan):
    """A plan that can also be checked on the graph of the base rows themselves.

    Attributes
    ----------
    rows : ndarray of int
        The rows, by place, on which recall is measured, other than those on which probes were
        chosen. If they fall short, which is rare, more probes are used.
    exact : NeighborGraph
        Their exact neighbors.
    """

    rows: Array
    exact: NeighborGraph


def make_plan(
    listed: ListedRows,
    k: int,
    recall: float,
    seed: int,
    n_jobs: int,
    exact_neighbors: Callable[[Array], NeighborGraph] | None = None,
) -> MeasuredPlan:
    """The probes that queries need to reach a recall of their k neighbors.

    `exact_neighbors`, if given, finds the k nearest rows of some rows by position.
    """
    n, count = len(listed), len(listed.lists)
    random = np.random.default_rng([seed, 1])
    rows = min(n, _ROWS_TUNED + ROWS_MEASURED, max(3, _MOST_CELLS // k))
    chosen = random.choice(n, rows, replace=False)
    if exact_neighbors is None:
        exact = listed.left_out(chosen, k, Probes.fixed(count), n_jobs)
    else:
        exact = exact_neighbors(chosen)
    tuned, measured = np.split(np.arange(len(chosen)), [len(chosen) // 3])

    @cache
    def shares(probes: Probes, *, are_measured: bool = False) -> Floats:
        part = measured if are_measured else tuned
        near = listed.left_out(chosen[part], k, probes, n_jobs)
        return np.asarray(np.mean(near.distances <= exact.distances[part, -1:], axis=1))

    rules = _rules(listed, chosen[tuned], k, shares, recall)
    enough = _fewest(rules, shares, recall)
    share_of_each = shares(rules[enough], are_measured=True)
    while not _suffices(share_of_each, recall) and enough + 1 < len(rules):
        enough += 1
        share_of_each = shares(rules[enough], are_measured=True)
    return MeasuredPlan(
        rules[enough],
        recall_of_shares(share_of_each, k, "base"),
        chosen[measured],
        exact.take(measured),
    )


def _rules(
    listed: ListedRows, rows: Array, k: int, shares: Callable[[Probes], Floats], recall: float
) -> list[Probes]:
    """Rules for the lists to probe, from the fewest to all, of the kind that costs least.

    The more clusters overlap, the more lists does a query need of those that it may probe; without
    any clusters, a number is a better rule than a margin.
    """
    count = len(listed.lists)
    numbers = [listed.least_probes(k + 1)]
    while numbers[-1] < count:
        numbers.append(more_lists(numbers[-1], count))
    distances = listed.distances_of_centers(rows)
    kinds = [
        *([Probes.adapted(most, share, distances) for most in numbers] for share in _SHARES),
        [Probes.fixed(most) for most in numbers],
    ]
    best = kinds[0]
    cost = best[_fewest(best, shares, recall)].cost
    for rules in kinds[1:]:
        cheaper = [rule for rule in rules if rule.cost < cost]
        if cheaper and _suffices(shares(cheaper[-1]), recall):
            best = rules
            cost = cheaper[_fewest(cheaper, shares, recall)].cost
    return best


def _fewest(tried: list[Probes], shares: Callable[[Probes], Floats], wanted: float) -> int:
    """The place of the fewest probes with the wanted recall and a standard error more."""
    low, high = 0, len(tried) - 1
    if wanted == 1:  # no sample can show that nothing was missed
        low = high
    while low < high:
        middle = (low + high) // 2
        if _suffices(shares(tried[middle]), wanted):
            high = middle
        else:
            low = middle + 1
    return high


def _suffices(shares: Floats, wanted: float) -> bool:
    """Whether shares found show the wanted recall, and a standard error more."""
    recall = recall_of_shares(shares, 1)
    return recall.value - recall.standard_error >= wanted
