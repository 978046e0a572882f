"""How many lists a search must probe, determined on rows with known exact neighbors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.graph import NeighborGraph
from nearlabel.search.approximate.probing import ListedRows, QueryPlan
from nearlabel.search.approximate.recall import ROWS_MEASURED, recall_of_shares

_THROUGH = 20  # first neighbors whose neighbors are examined
_PASS_COST = 2  # of examining a neighbor's neighbor, in rows of lists
_ROWS_TUNED = ROWS_MEASURED // 2  # on which the number of probes is chosen
_STEP = 1.2  # ratio between numbers of probes that are tried


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
    tried : list of int
        Smaller numbers of probes, and `probes`.
    tuned, measured : Sample
        Rows on which probes are chosen, and others on which recall is measured. If the latter fall
        short, which is rare, more probes are used.
    """

    tried: list[int]
    tuned: Sample
    measured: Sample


def more_probes(probes: int, count: int) -> int:
    """The next number of probes to try, given the number of lists."""
    return min(count, max(probes + 1, round(_STEP * probes)))


def make_plan(
    listed: ListedRows,
    k: int,
    recall: float,
    seed: int,
    n_jobs: int,
    exact_neighbors: Callable[[Array], NeighborGraph] | None = None,
) -> Plan:
    """The number of probes that queries need to reach a recall of their k neighbors.

    `exact_neighbors`, if given, finds the k nearest rows of some rows by position.
    """
    n, count = len(listed), len(listed.lists)
    random = np.random.default_rng([seed, 1])
    chosen = random.choice(n, min(n, _ROWS_TUNED + ROWS_MEASURED), replace=False)
    if exact_neighbors is None:
        exact = listed.left_out(chosen, k, count, n_jobs)
    else:
        exact = exact_neighbors(chosen)
    parts = np.split(np.arange(len(chosen)), [len(chosen) // 3])
    tuned, measured = (Sample(chosen[some], exact.take(some)) for some in parts)
    tried = [listed.least_probes(k + 1)]
    while tried[-1] < count:
        tried.append(more_probes(tried[-1], count))

    def shares(probes: int, sample: Sample = tuned) -> Floats:
        return sample.shares(listed.left_out(sample.rows, k, probes, n_jobs).distances)

    probes = _fewest(tried, shares, recall, errors=1)
    while not _suffices(found := shares(probes, measured), recall, errors=1):
        probes = more_probes(probes, count)
    told = recall_of_shares(found, k, "base")
    return Plan(probes, told, tried[: tried.index(probes) + 1], tuned, measured)


def among_rows(listed: ListedRows, plan: Plan, recall: float, n_jobs: int) -> tuple[int, int]:
    """The number of probes for the base rows themselves, and of neighbors to examine afterwards.

    The latter is 0 if examining costs more than the probes it saves.
    """
    k = plan.tuned.exact.k
    rows_a_probe = len(listed) / len(listed.lists)
    most = plan.probes - _PASS_COST * min(_THROUGH, k) * k / rows_a_probe

    def shares(probes: int) -> Floats:
        return _shares_with_pass(listed, plan.tuned, probes, n_jobs)

    tried = [probes for probes in plan.tried if probes <= most and recall < 1]
    # Repeating the search of a graph that falls short costs more than a margin.
    if not tried or not _suffices(shares(tried[-1]), recall, errors=2):
        return plan.probes, 0
    return _fewest(tried, shares, recall, errors=2), _THROUGH


def _fewest(
    tried: list[int], shares: Callable[[int], Floats], wanted: float, *, errors: int
) -> int:
    """The fewest probes with the wanted recall, plus a margin of some standard errors."""
    low, high = 0, len(tried) - 1
    if wanted == 1:  # no sample can show that nothing was missed
        low = high
    while low < high:
        middle = (low + high) // 2
        if _suffices(shares(tried[middle]), wanted, errors):
            high = middle
        else:
            low = middle + 1
    return tried[high]


def _suffices(shares: Floats, wanted: float, errors: int) -> bool:
    """Whether shares found show the wanted recall, plus a margin of some standard errors."""
    recall = recall_of_shares(shares, 1)
    return recall.value - errors * recall.standard_error >= wanted


def _shares_with_pass(listed: ListedRows, sample: Sample, probes: int, n_jobs: int) -> Floats:
    """The shares of the neighbors of some rows found by probes and the pass after them."""
    k = sample.exact.k
    own = listed.left_out(sample.rows, k, probes, n_jobs).indices
    first = own[:, : min(_THROUGH, k)]
    between, at = np.unique(first, return_inverse=True)
    theirs = listed.left_out(between, k, probes, n_jobs).indices
    seen = np.hstack([own, theirs[at.reshape(first.shape)].reshape(len(own), -1)])
    row = np.arange(len(own), dtype=np.int64)[:, None] * len(listed)
    return np.asarray(np.mean(np.isin(row + sample.exact.indices, row + seen), axis=1))
