"""How many lists a search must probe: tried out on rows whose exact neighbors are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearlabel.arrays import Array, Floats
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.search.probing import ListedRows
from nearlabel.search.recall import ROWS_MEASURED, recall_of, recall_of_shares

_THROUGH = 20  # first neighbors whose neighbors are looked at
_PASS_COST = 2  # of looking at a neighbor's neighbor, in rows of lists
_ROWS_TUNED = ROWS_MEASURED // 2  # on which the number of probes is chosen
_STEP = 1.2  # from one number of probes to the next that is tried


@dataclass(frozen=True)
class Plan:
    """What is known of the searches for k neighbors.

    Attributes
    ----------
    among : int
        Probes for the base rows themselves.
    through : int
        After them the neighbors of so many neighbors are looked at; 0 where more probes cost less.
    alone : int
        Probes for queries, which have no such pass.
    recall : Recall
        Of queries.
    measured : ndarray of int
        Places of the rows that recall is measured on. The probes were not chosen on these.
    exact : NeighborGraph
        Their neighbors, by place.
    """

    among: int
    through: int
    alone: int
    recall: Recall
    measured: Array
    exact: NeighborGraph


def more_probes(probes: int, count: int) -> int:
    """The next number of probes to be tried, of so many lists."""
    return min(count, max(probes + 1, round(_STEP * probes)))


def make_plan(listed: ListedRows, k: int, recall: float, seed: int, n_jobs: int) -> Plan:
    """How many probes searches for k neighbors need to reach a recall."""
    n, count = len(listed), len(listed.lists)
    random = np.random.default_rng([seed, 1])
    chosen = random.choice(n, min(n, _ROWS_TUNED + ROWS_MEASURED), replace=False)
    tuned, measured = np.split(chosen, [len(chosen) // 3])
    exact = listed.left_out(chosen, k, count, n_jobs)
    ranks = _ranks(listed, chosen, exact)
    tuning, measuring = ranks[: len(tuned)], ranks[len(tuned) :]
    tried = [listed.least_probes(k + 1)]
    while tried[-1] < count:
        tried.append(more_probes(tried[-1], count))

    def shares_alone(probes: int) -> Floats:
        return np.asarray(np.mean(tuning < probes, axis=1))

    def shares_among(probes: int) -> Floats:
        return _shares_with_pass(listed, tuned, exact.indices[: len(tuned)], probes, n_jobs)

    alone = _fewest(tried, shares_alone, recall, errors=1)
    while np.mean(measuring < alone) < recall:
        alone = more_probes(alone, count)
    # A graph that falls short is searched again, which costs more than to be on the safe side.
    up_to = tried[: tried.index(alone) + 1]
    among, through = _fewest(up_to, shares_among, recall, errors=2), _THROUGH
    if (alone - among) * n / count < _PASS_COST * min(_THROUGH, k) * k:
        among, through = alone, 0
    known = exact.take(np.arange(len(tuned), len(chosen)))
    # By distance, as recall is told: ranks count a row at the same distance as missed.
    found = listed.left_out(measured, k, alone, n_jobs)
    recall_alone = recall_of(found.distances, known, "base")
    return Plan(among, through, alone, recall_alone, measured, known)


def _fewest(
    tried: list[int], shares: Callable[[int], Floats], wanted: float, *, errors: int
) -> int:
    """The fewest probes whose recall is as wanted, with some standard errors to be safe."""
    low, high = 0, len(tried) - 1
    if wanted == 1:  # no sample can tell that nothing was missed
        low = high
    while low < high:
        middle = (low + high) // 2
        recall = recall_of_shares(shares(tried[middle]), 1)
        if recall.value - errors * recall.standard_error >= wanted:
            high = middle
        else:
            low = middle + 1
    return tried[high]


def _ranks(listed: ListedRows, places: Array, exact: NeighborGraph) -> Array:
    """Which of a row's nearest lists each of its neighbors is in: 0 for the nearest list."""
    count = len(listed.lists)
    near = listed.nearest_lists(listed.rows[places], count)
    rank = np.empty_like(near)
    np.put_along_axis(rank, near, np.arange(count, dtype=near.dtype)[None], axis=1)
    home = np.searchsorted(listed.lists.starts, exact.indices, side="right") - 1
    return np.take_along_axis(rank, home, axis=1)


def _shares_with_pass(
    listed: ListedRows, places: Array, exact: Array, probes: int, n_jobs: int
) -> Floats:
    """Shares of the exact neighbors of some rows that are found by probes and a pass after them."""
    k, n = exact.shape[1], len(listed)
    own = listed.left_out(places, k, probes, n_jobs).indices
    first = own[:, : min(_THROUGH, k)]
    between, at = np.unique(first, return_inverse=True)
    theirs = listed.left_out(between, k, probes, n_jobs).indices
    seen = np.hstack([own, theirs[at.reshape(first.shape)].reshape(len(own), -1)])
    row = np.arange(len(own), dtype=np.int64)[:, None] * n
    return np.asarray(np.isin(row + exact, row + seen).mean(axis=1))
