"""Approximate search by inverted lists, as exact as asked for.

Rows are divided into lists of near rows (`clusters.py`). A query is compared with the rows of the
lists whose centers are nearest to it, its probes; among these its neighbors are exact, by canonical
distances. Queries that are near each other are searched together: for each list, all that probe it
in one product.

Among the rows themselves, a last pass looks at the neighbors of each row's first neighbors. It
finds most of what the probes have missed, for a small part of their time.

How many probes are needed is measured, not guessed: on some rows whose exact neighbors are
searched. What is told of a graph is the recall of other such rows, in the graph as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.arrays import Array, Floats, runs
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.search.distances import Metric
from nearlabel.search.exact import ExactIndex, ExactSearch, matching
from nearlabel.search.probing import Found, ListedRows
from nearlabel.search.recall import ROWS_MEASURED, recall_of, recall_of_shares
from nearlabel.search.threads import Progress, one_blas_thread, run_blocks
from nearlabel.validation import check_integer, check_real

METRICS = ("euclidean", "sqeuclidean", "cosine", "manhattan")
_FEWEST = 2**15  # rows from which on lists are worth while: fewer are faster searched exactly
_QUERIES_AT_ONCE = 8192  # so many share their lists, and what is known of them stays in a cache
_THROUGH = 20  # first neighbors whose neighbors are looked at
_PASS_COST = 2  # of looking at a neighbor's neighbor, in rows of lists
_ROWS_TUNED = ROWS_MEASURED // 2  # on which the number of probes is chosen
_ROWS_A_PASS = 2048
_STEP = 1.2  # from one number of probes to the next that is tried
_NEIGHBORS_A_PLAN = 8  # plans are made for multiples of so many neighbors


@dataclass(frozen=True)
class InvertedLists:
    """Search that compares a query with a part of the base rows, those of the nearest lists.

    How large a part is measured, so that the graph has the recall that is asked for; a graph says
    how much it has. For dense rows, 32,768 or more, and the metrics euclidean, sqeuclidean, cosine
    and manhattan; others are searched exactly.

    Parameters
    ----------
    recall : float, default=0.99
        The share of the k nearest rows that is to be found, at least, on average.
    random_state : int, default=0
        Seed of the lists and of the rows that recall is measured on. The same seed gives the same
        graph, whatever the number of threads.

    Examples
    --------
    >>> import nearlabel as nl
    >>> data = nl.datasets.make_local_labels(40_000, 16, 10)
    >>> graph = nl.neighbor_graph(data.X, k=10, search=nl.InvertedLists(recall=0.9))
    >>> graph.recall.value >= 0.9, graph.recall.rows
    (True, 512)
    """

    recall: float = 0.99
    random_state: int = 0

    def build(self, vectors: Any, metric: Metric = "euclidean") -> ListIndex | ExactIndex:
        """Prepare base rows for searches."""
        recall = check_real(self.recall, "recall", low=0, high=1)
        seed = check_integer(self.random_state, "random_state", low=0)
        if not reads(vectors, metric):
            return ExactSearch().build(vectors, metric)
        return ListIndex(vectors, str(metric), recall, seed)


def reads(vectors: Any, metric: Metric) -> bool:
    """Whether lists of these rows can be made, and are worth while."""
    known = isinstance(metric, str) and metric in METRICS
    return known and not sparse.issparse(vectors) and _FEWEST <= vectors.shape[0] < 2**31


@dataclass(frozen=True)
class _Plan:
    """What is known of the searches for k neighbors, from some rows with known neighbors."""

    among: int  # probes for the base rows themselves
    through: int  # then neighbors of so many neighbors are looked at
    alone: int  # probes for queries, which have no such pass
    recall: Recall  # of queries
    measured: Array  # places of the rows that recall is measured on
    exact: NeighborGraph  # and their neighbors, by place


class ListIndex:
    """Base rows in lists; these are made when the first graph is asked for."""

    def __init__(self, vectors: Any, metric: str, recall: float, seed: int) -> None:
        self._vectors, self._metric = vectors, metric
        self._recall, self._seed = recall, seed
        self._listed: ListedRows | None = None
        self._plans: dict[int, _Plan] = {}
        self._lock = Lock()

    def __reduce__(self) -> Any:  # what was prepared is cheaper to prepare again than to store
        return ListIndex, (self._vectors, self._metric, self._recall, self._seed)

    def graph(
        self,
        k: int,
        queries: Any = None,
        *,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find as many of the k nearest base rows of each query as `recall` asks for.

        Without queries: of each base row, itself left out.
        """
        if queries is None:
            steps = _Steps(progress, self._vectors.shape[0])
            with one_blas_thread:
                found = self._among(k, n_jobs, steps)
            steps.end()
            return found
        queries = np.asarray(matching(queries, self._vectors))
        return self._nearest(*self._ready(k, n_jobs), queries, k, n_jobs, progress)

    def _ready(self, k: int, n_jobs: int) -> tuple[ListedRows, _Plan]:
        """The lists and a plan for k neighbors, made by the first who asks."""
        planned = min(-(-k // _NEIGHBORS_A_PLAN) * _NEIGHBORS_A_PLAN, self._vectors.shape[0] - 1)
        with self._lock:
            if self._listed is None or planned not in self._plans:
                with one_blas_thread:
                    if self._listed is None:
                        self._listed = ListedRows(self._vectors, self._metric, self._seed, n_jobs)
                    self._plans[planned] = self._plan(self._listed, planned, n_jobs)
            return self._listed, self._plans[planned]

    def _among(self, k: int, n_jobs: int, steps: _Steps) -> NeighborGraph:
        """The graph of the base rows; with more probes where recall is not what it should be."""
        steps.part(0, 0.25)
        listed, plan = self._ready(k, n_jobs)
        probes = max(plan.among, listed.least_probes(k + 1))
        while True:
            found = self._by_number(listed, k, probes, plan.through, n_jobs, steps)
            numbers = listed.lists.order[plan.measured]
            graph = NeighborGraph.unchecked(found.places, found.distances, len(listed))
            recall = recall_of(graph.take(numbers).distances, plan.exact.head(k))
            if recall.value >= self._recall or probes == len(listed.lists):
                graph.recall = recall
                return graph
            probes = _more(probes, len(listed.lists))

    def _by_number(
        self, listed: ListedRows, k: int, probes: int, through: int, n_jobs: int, steps: _Steps
    ) -> Found:
        """Neighbors of all base rows, by their numbers."""
        n = len(listed)
        starts = listed.lists.starts
        found = Found.room(n, k, np.float32)
        blocks = list(runs(listed.lists.sizes, _QUERIES_AT_ONCE))

        def search(block: slice) -> Any:
            lists = blocks[block.start]
            places = slice(int(starts[lists.start]), int(starts[lists.stop]))
            part = Found.room(places.stop - places.start, k)
            yield from listed.search(listed.rows[places], probes, part, places.start)
            found.places[places], found.distances[places] = part.places, part.distances

        run_blocks(search, len(blocks), 1, n_jobs, steps.part(0.25, 0.75))
        result = Found.room(n, k, np.float32)

        def look(places: slice) -> None:
            listed.look_at_neighbors(found, min(through, k), result, places)

        run_blocks(look, n, _ROWS_A_PASS, n_jobs, steps.part(0.75, 1))
        return result

    def _nearest(
        self,
        listed: ListedRows,
        plan: _Plan,
        queries: Array,
        k: int,
        n_jobs: int,
        progress: Progress | None,
    ) -> NeighborGraph:
        """The graph of queries."""
        m = len(queries)
        found = Found.room(m, k)
        probes = max(plan.alone, listed.least_probes(k))
        _find(listed, queries, probes, found, n_jobs, progress)
        numbers = listed.lists.order[found.places]
        distances = found.distances.astype(np.float32)
        order = np.lexsort((numbers, distances), axis=1)
        return NeighborGraph.unchecked(
            np.take_along_axis(numbers, order, axis=1),
            np.take_along_axis(distances, order, axis=1),
            len(listed),
            plan.recall,
        )

    def _plan(self, listed: ListedRows, k: int, n_jobs: int) -> _Plan:
        """How many probes searches for k neighbors need."""
        n, count = len(listed), len(listed.lists)
        random = np.random.default_rng([self._seed, 1])
        chosen = random.choice(n, min(n, _ROWS_TUNED + ROWS_MEASURED), replace=False)
        tuned, measured = np.split(chosen, [len(chosen) // 3])
        exact = _left_out(listed, chosen, k, count, n_jobs)
        ranks = _ranks(listed, chosen, exact)
        tuning, measuring = ranks[: len(tuned)], ranks[len(tuned) :]
        tried = [listed.least_probes(k + 1)]
        while tried[-1] < count:
            tried.append(_more(tried[-1], count))

        def alone(probes: int) -> Floats:
            return np.asarray(np.mean(tuning < probes, axis=1))

        def among(probes: int) -> Floats:
            return _shares_with_pass(listed, tuned, exact.indices[: len(tuned)], probes, n_jobs)

        for_queries = self._fewest(tried, alone, 1)
        while np.mean(measuring < for_queries) < self._recall:
            for_queries = _more(for_queries, count)
        # A graph that falls short is searched again, which costs more than to be on the safe side.
        up_to = tried[: tried.index(for_queries) + 1]
        for_rows, through = self._fewest(up_to, among, 2), _THROUGH
        if (for_queries - for_rows) * n / count < _PASS_COST * min(_THROUGH, k) * k:
            for_rows, through = for_queries, 0
        return _Plan(
            for_rows,
            through,
            for_queries,
            recall_of_shares(np.mean(measuring < for_queries, axis=1), k, "base"),
            measured,
            exact.take(np.arange(len(tuned), len(chosen))),
        )

    def _fewest(self, tried: list[int], shares: Callable[[int], Floats], errors: int) -> int:
        """The fewest probes whose recall is high enough, by some standard errors to be safe."""
        low, high = 0, len(tried) - 1
        while low < high:
            middle = (low + high) // 2
            recall = recall_of_shares(shares(tried[middle]), 1)
            if recall.value - errors * recall.standard_error >= self._recall:
                high = middle
            else:
                low = middle + 1
        return tried[high]


class _Steps:
    """Progress over the parts of a search, told in rows to whoever asks for it."""

    def __init__(self, progress: Progress | None, n: int) -> None:
        self._progress, self._n = progress, n

    def part(self, begin: float, end: float) -> Progress:
        """Progress of the part that takes about this share of the time."""

        def tell(done: int, total: int) -> None:
            if self._progress is not None:
                all_done = begin + (end - begin) * done / total
                self._progress(min(int(self._n * all_done), self._n - 1), self._n)

        tell(0, 1)
        return tell

    def end(self) -> None:
        """Tell that all is done."""
        if self._progress is not None:
            self._progress(self._n, self._n)


def _more(probes: int, count: int) -> int:
    """The next number of probes to be tried."""
    return min(count, max(probes + 1, round(_STEP * probes)))


def _find(
    listed: ListedRows,
    queries: Array,
    probes: int,
    found: Found,
    n_jobs: int,
    progress: Progress | None = None,
) -> None:
    """Write the neighbors of queries, those with the same nearest list together."""
    m = len(queries)
    step = min(_QUERIES_AT_ONCE, -(-m // n_jobs))
    order = np.arange(m)
    if step < m:
        order = np.argsort(listed.nearest_lists(queries, 1)[:, 0], kind="stable")

    def search(block: slice) -> Any:
        some = order[block]
        part = Found.room(len(some), found.places.shape[1])
        yield from listed.search(queries[some], probes, part)
        found.places[some], found.distances[some] = part.places, part.distances

    run_blocks(search, m, step, n_jobs, progress)


def _left_out(listed: ListedRows, places: Array, k: int, probes: int, n_jobs: int) -> NeighborGraph:
    """Neighbors, by place, of some rows, each left out of its own."""
    found = Found.room(len(places), k + 1)
    _find(listed, listed.rows[places], probes, found, n_jobs)
    graph = NeighborGraph.unchecked(found.places, found.distances, len(listed))
    return graph.without(places)


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
    own = _left_out(listed, places, k, probes, n_jobs).indices
    first = own[:, : min(_THROUGH, k)]
    between, at = np.unique(first, return_inverse=True)
    theirs = _left_out(listed, between, k, probes, n_jobs).indices
    seen = np.hstack([own, theirs[at.reshape(first.shape)].reshape(len(own), -1)])
    row = np.arange(len(own), dtype=np.int64)[:, None] * n
    return np.asarray(np.isin(row + exact, row + seen).mean(axis=1))
