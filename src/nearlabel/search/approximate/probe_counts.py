"""How many lists a search must probe, determined on rows with known exact neighbors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.graph import NeighborGraph
from nearlabel.search.approximate.probes import Probes, more_lists
from nearlabel.search.approximate.probing import ListedRows, QueryPlan
from nearlabel.search.approximate.recall import ROWS_MEASURED, recall_of_shares

_THROUGH = 20  # first neighbors whose neighbors are examined
_PASS_COST = 2  # of examining a neighbor's neighbor, in rows of lists
_ROWS_TUNED = ROWS_MEASURED // 2  # on which the number of probes is chosen
_RESERVE = 8  # neighbors per further one that callers may ask for in reserve
_SHARES = 0.3, 0.6  # of the lists that a query may probe, which it usually does


@dataclass(frozen=True)
class Sample:
    """Some rows and their exact neighbors, both by place."""

    rows: Array
    exact: NeighborGraph

    def shares(self, distances: Floats) -> Floats:
        """The shares of their neighbors that are at most as far as the k-th nearest one."""
        return np.asarray(np.mean(distances <= self.exact.distances[:, -1:], axis=1))


@dataclass(frozen=True)
class Plan(QueryPlan):
    """What is known about searches for k neighbors, including those of the base rows themselves.

    Attributes
    ----------
    tried : list of Probes
        Those that probe fewer lists, and `probes`.
    tuned, measured : Sample
        Rows on which probes are chosen, and others on which recall is measured. If the latter fall
        short, which is rare, more probes are used.
    """

    tried: list[Probes]
    tuned: Sample
    measured: Sample


def make_plan(
    listed: ListedRows,
    k: int,
    recall: float,
    seed: int,
    n_jobs: int,
    exact_neighbors: Callable[[Array], NeighborGraph] | None = None,
) -> Plan:
    """The probes that queries need to reach a recall of their k neighbors.

    `exact_neighbors`, if given, finds the k nearest rows of some rows by position.
    """
    n, count = len(listed), len(listed.lists)
    random = np.random.default_rng([seed, 1])
    chosen = random.choice(n, min(n, _ROWS_TUNED + ROWS_MEASURED), replace=False)
    if exact_neighbors is None:
        exact = listed.left_out(chosen, k, Probes.fixed(count), n_jobs)
    else:
        exact = exact_neighbors(chosen)
    parts = np.split(np.arange(len(chosen)), [len(chosen) // 3])
    tuned, measured = (Sample(chosen[some], exact.take(some)) for some in parts)

    @cache
    def shares(probes: Probes, *, are_measured: bool = False) -> Floats:
        sample = measured if are_measured else tuned
        return sample.shares(listed.left_out(sample.rows, k, probes, n_jobs).distances)

    rules = _rules(listed, tuned, shares, recall)
    enough = _fewest(rules, shares, recall, errors=1)
    found = shares(rules[enough], are_measured=True)
    while not _suffices(found, recall, errors=1) and enough + 1 < len(rules):
        enough += 1
        found = shares(rules[enough], are_measured=True)
    told = recall_of_shares(found, k, "base")
    return Plan(rules[enough], told, rules[: enough + 1], tuned, measured)


def _rules(
    listed: ListedRows, tuned: Sample, shares: Callable[[Probes], Floats], recall: float
) -> list[Probes]:
    """Rules for the lists to probe, from the fewest to all, of the kind that costs least.

    The more clusters overlap, the more lists does a query need of those that it may probe; without
    any clusters, a number is a better rule than a margin.
    """
    count, k = len(listed.lists), tuned.exact.k
    numbers = [listed.least_probes(k + 1)]
    while numbers[-1] < count:
        numbers.append(more_lists(numbers[-1], count))
    distances, rows = listed.distances_of_centers(tuned.rows), k + k // _RESERVE + 4
    kinds = [
        *([Probes.adapted(most, rows, share, distances) for most in numbers] for share in _SHARES),
        [Probes.fixed(most) for most in numbers],
    ]
    best = kinds[0]
    cost = best[_fewest(best, shares, recall, errors=1)].cost
    for rules in kinds[1:]:
        cheaper = [rule for rule in rules if rule.cost < cost]
        if cheaper and _suffices(shares(cheaper[-1]), recall, errors=1):
            best = rules
            cost = cheaper[_fewest(cheaper, shares, recall, errors=1)].cost
    return best


def among_rows(listed: ListedRows, plan: Plan, recall: float, n_jobs: int) -> tuple[Probes, int]:
    """The probes of the base rows themselves, and the number of neighbors to examine afterwards.

    The latter is 0 if examining costs more than the probes it saves.
    """
    k = plan.tuned.exact.k
    rows_a_probe = len(listed) / len(listed.lists)
    most = plan.probes.cost - _PASS_COST * min(_THROUGH, k) * k / rows_a_probe

    def shares(probes: Probes) -> Floats:
        return _shares_with_pass(listed, plan.tuned, probes, n_jobs)

    tried = [probes for probes in plan.tried if probes.cost <= most and recall < 1]
    # Repeating the search of a graph that falls short costs more than a margin.
    if not tried or not _suffices(shares(tried[-1]), recall, errors=2):
        return plan.probes, 0
    return tried[_fewest(tried, shares, recall, errors=2)], _THROUGH


def _fewest(
    tried: list[Probes], shares: Callable[[Probes], Floats], wanted: float, *, errors: int
) -> int:
    """The place of the fewest probes with the wanted recall and some standard errors more."""
    low, high = 0, len(tried) - 1
    if wanted == 1:  # no sample can show that nothing was missed
        low = high
    while low < high:
        middle = (low + high) // 2
        if _suffices(shares(tried[middle]), wanted, errors):
            high = middle
        else:
            low = middle + 1
    return high


def _suffices(shares: Floats, wanted: float, errors: int) -> bool:
    """Whether shares found show the wanted recall, plus a margin of some standard errors."""
    recall = recall_of_shares(shares, 1)
    return recall.value - errors * recall.standard_error >= wanted


def _shares_with_pass(listed: ListedRows, sample: Sample, probes: Probes, n_jobs: int) -> Floats:
    """The shares of the neighbors of some rows found by probes and the pass after them."""
    k = sample.exact.k
    own = listed.left_out(sample.rows, k, probes, n_jobs).indices
    first = own[:, : min(_THROUGH, k)]
    between, at = np.unique(first, return_inverse=True)
    theirs = listed.left_out(between, k, probes, n_jobs).indices
    seen = np.hstack([own, theirs[at.reshape(first.shape)].reshape(len(own), -1)])
    rows, near = listed.rows[sample.rows], np.empty(len(own))
    for row, others in enumerate(seen):  # all at once would take much memory
        others = np.setdiff1d(others, sample.rows[row])
        distances = listed.space.distances(rows, np.full(len(others), row), others)
        near[row] = np.sum(distances <= sample.exact.distances[row, -1])
    return np.minimum(near, k) / k
