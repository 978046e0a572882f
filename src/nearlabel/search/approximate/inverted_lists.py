"""Approximate search by inverted lists, as exact as asked for.

Rows are divided into lists of near rows (`partition.py`). A query is compared with the rows of the
lists whose centers are nearest to it, its probes; among these its neighbors are exact, by canonical
distances. Queries that are near each other are searched together: for each list, all that probe it
in one product.

Among the rows themselves, a last pass looks at the neighbors of each row's first neighbors. It
finds most of what the probes have missed, for a small part of their time.

How many probes are needed is measured, not guessed: on some rows whose exact neighbors are
searched. What is told of a graph is the recall of other such rows, in the graph as it is.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.threads import ForkSafeLock, one_blas_thread
from nearlabel.common.validation import check_integer, check_real
from nearlabel.graph import NeighborGraph
from nearlabel.search.approximate.probe_counts import Plan, among_rows, make_plan, more_probes
from nearlabel.search.approximate.probing import ListedRows
from nearlabel.search.approximate.recall import recall_of
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.equal_rows import EqualRowsIndex, equal_rows
from nearlabel.search.exact.index import ExactSearch, matching
from nearlabel.search.exact.row_arithmetic import as_float, chunks
from nearlabel.search.interfaces import Index

METRICS = ("euclidean", "sqeuclidean", "cosine", "manhattan")
_SMALL, _LARGE = 1e-32, 1e38  # largest distances that leave float32 room for smaller ones
_FEWEST = 2**15  # rows from which on lists are worth while: fewer are faster searched exactly
_FEW_QUERIES = 256  # BLAS takes one thread for their products anyway
_NEIGHBORS_A_PLAN = 8  # plans are made for multiples of so many neighbors


@dataclass(frozen=True)
class InvertedLists:
    """Search that compares a query with a part of the base rows, those of the nearest lists.

    How large a part is measured, so that the graph has the recall that is asked for; a graph says
    how much it has. For dense rows, 32,768 or more, and the metrics euclidean, sqeuclidean, cosine
    and manhattan; others are searched exactly, and so are rows whose distances are out of the range
    of float32, in which a graph tells them. Of equal rows one is searched; where these are many,
    recall is that of the distinct rows.

    Parameters
    ----------
    recall : float, default=0.99
        The share of the k nearest rows that is to be found, at least, on average. At 1 all lists
        are searched.
    random_state : int, default=0
        Seed of the lists and of the rows that recall is measured on. The same seed gives the same
        graph, whatever the number of threads.

    Examples
    --------
    >>> import nearlabel as nl
    >>> data = nl.datasets.make_local_labels(33_000, 10, 10)
    >>> graph = nl.neighbor_graph(data.X, k=10, search=nl.InvertedLists(recall=0.9))
    >>> graph.recall.value >= 0.9, graph.recall.rows
    (True, 512)
    """

    recall: float = 0.99
    random_state: int = 0

    def build(self, vectors: Any, metric: Metric = "euclidean") -> Index:
        """Prepare base rows for searches."""
        recall = check_real(self.recall, "recall", low=0, high=1)
        seed = check_integer(self.random_state, "random_state", low=0)
        if not reads(vectors, metric):
            return ExactSearch().build(vectors, metric)
        rows = equal_rows(vectors)
        if rows is not None:
            distinct = rows.distinct(vectors)
            return EqualRowsIndex(rows, distinct, metric, self.build(distinct, metric))
        return ListIndex(vectors, str(metric), recall, seed)


def reads(vectors: Any, metric: Metric) -> bool:
    """Whether lists of these rows can be made, and are worth while."""
    known = isinstance(metric, str) and metric in METRICS
    fits = not sparse.issparse(vectors) and _FEWEST <= vectors.shape[0] < 2**31
    return known and fits and (metric == "cosine" or _is_ordinary(vectors, metric))


def _is_ordinary(vectors: Array, metric: Metric) -> bool:
    """Whether float32 holds the distances of these rows, the largest and most of the small ones."""
    d = vectors.shape[1]
    ends = [(rows.min(axis=0), rows.max(axis=0)) for _, rows in chunks(vectors, d)]
    low, high = (as_float(np.array(some)) for some in zip(*ends, strict=True))
    low, high = low.min(axis=0), high.max(axis=0)
    with np.errstate(over="ignore"):
        reach = np.max(high - low)
        reach = reach * reach if metric == "sqeuclidean" else reach
        return bool(reach == 0 or (reach >= _SMALL and d * reach <= _LARGE))


class ListIndex:
    """Base rows in lists; these are made when the first graph is asked for."""

    def __init__(self, vectors: Any, metric: str, recall: float, seed: int) -> None:
        self._vectors, self._metric = vectors, metric
        self._recall, self._seed = recall, seed
        self._listed: ListedRows | None = None
        self._plans: dict[int, Plan] = {}
        self._lock = ForkSafeLock()

    def __reduce__(self) -> Any:  # what was prepared is cheaper to prepare again than to store
        return ListIndex, (self._vectors, self._metric, self._recall, self._seed)

    def graph(
        self, k: int, queries: Any = None, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """Find as many of the k nearest base rows of each query as `recall` asks for."""
        if queries is None:
            with one_blas_thread:
                return self._among(k, n_jobs, progress)
        return self._nearest(np.asarray(matching(queries, self._vectors)), k, n_jobs, progress)

    def _ready(self, k: int, n_jobs: int) -> tuple[ListedRows, Plan]:
        """The lists and a plan for k neighbors, made by the first who asks."""
        planned = min(-(-k // _NEIGHBORS_A_PLAN) * _NEIGHBORS_A_PLAN, self._vectors.shape[0] - 1)
        with self._lock.held():
            if planned not in self._plans:
                with one_blas_thread:
                    if self._listed is None:
                        self._listed = ListedRows(self._vectors, self._metric, self._seed, n_jobs)
                    self._plans[planned] = make_plan(
                        self._listed, planned, self._recall, self._seed, n_jobs
                    )
            assert self._listed is not None
            return self._listed, self._plans[planned]

    def _among(self, k: int, n_jobs: int, progress: Progress | None) -> NeighborGraph:
        """The graph of the base rows; with more probes where recall is not what it should be."""
        n = self._vectors.shape[0]
        stages = Stages(progress, n)
        made, *searched = stages.next(n // 4), stages.next(n // 2), stages.next(n // 8)
        if made is not None:
            made(0, 1)
        listed, plan = self._ready(k, n_jobs)
        if made is not None:
            made(1, 1)
        count = len(listed.lists)
        probes, through = among_rows(listed, plan, self._recall, n_jobs)
        probes = max(probes, listed.least_probes(k + 1))
        numbers = listed.lists.order[plan.measured.rows]
        while True:
            found = listed.among(k, probes, through, n_jobs, searched)
            recall = recall_of(found.distances[numbers], plan.measured.exact.head(k))
            if recall.value >= self._recall or probes == count:
                break
            del found
            probes = more_probes(probes, count)
            searched = [None, None]  # progress does not restart
        if progress is not None:
            progress(n, n)
        found.recall = recall
        return found

    def _nearest(
        self, queries: Array, k: int, n_jobs: int, progress: Progress | None
    ) -> NeighborGraph:
        """The graph of queries."""
        listed, plan = self._ready(k, n_jobs)
        with nullcontext() if len(queries) <= _FEW_QUERIES else one_blas_thread:
            found = listed.nearest(queries, k, plan.probes, n_jobs, progress)
        numbers = listed.lists.order[found.indices]
        fits = found.distances.max() <= np.finfo(np.float32).max  # queries may be anywhere
        distances = found.distances.astype(np.float32 if fits else np.float64)
        order = np.lexsort((numbers, distances), axis=1)
        return NeighborGraph.unchecked(
            np.take_along_axis(numbers, order, axis=1),
            np.take_along_axis(distances, order, axis=1),
            len(listed),
            plan.recall,
        )
