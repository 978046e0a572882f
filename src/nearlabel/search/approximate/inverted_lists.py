"""Approximate search by inverted lists, with a given recall.

Rows are divided into lists of near rows (`partition.py`). A query is compared with the rows of the
lists whose centers are near it, its probes (`probes.py`); among these its neighbors are exact, by
canonical distances. Queries near each other are searched together: one matrix product per list
serves all queries that probe it.

How many probes are needed is measured, not guessed: on some rows whose exact neighbors are
computed. The recall that a graph reports is measured on other such rows, in the final graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Matrix, Tree
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.threads import ForkSafeLock, one_blas_thread
from nearlabel.common.validation import check_choice, check_integer, check_real
from nearlabel.graph import NeighborGraph, Recall, recall_of
from nearlabel.search.approximate.partition import Lists, nearest_centers
from nearlabel.search.approximate.probe_counts import MeasuredPlan, make_plan
from nearlabel.search.approximate.probing import ListedRows, QueryPlan
from nearlabel.search.approximate.stored_lists import (
    listed_from,
    listed_tree,
    plan_trees,
    plans_from,
)
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.equal_rows import without_copies
from nearlabel.search.exact.index import ExactSearch, exact_index, matching
from nearlabel.search.exact.row_arithmetic import METRICS, as_float, chunks, float_kind
from nearlabel.search.interfaces import Index, Reached
from nearlabel.search.reordered_rows import ReorderedRows, ordered_rows

_SMALL, _LARGE = 1e-32, 1e38  # largest distances that leave room for smaller ones in float32
_FEWEST = 2**15  # minimum number of rows: exact search is faster for fewer
_NEIGHBORS_A_PLAN = 8  # plans are made for multiples of this number of neighbors
# benchmarks/living_models.py measures them.
_MOST_BESIDE = 2**14  # rows searched exactly beside the lists before they join them,
_SHARE_BESIDE = 1 / 64  # or this share of the rows in the lists
_SHARE_PLANNED = 1 / 10  # of the rows may have changed since probes were chosen


class ListIndex(Index):
    """Base rows in lists, which are built when the first graph is requested.

    Parameters
    ----------
    vectors : ndarray or ReorderedRows, shape (n, d)
    metric : str
    recall : float
        The requested recall.
    seed : int
    """

    def __init__(
        self, vectors: Matrix | ReorderedRows, metric: str, recall: float, seed: int
    ) -> None:
        self.vectors, self._metric = vectors, metric
        self._recall, self._seed = recall, seed
        self._listed: ListedRows | None = None
        self._plans: dict[int, QueryPlan] = {}
        self._changed = 0  # rows added or removed since plans were made
        self._lock = ForkSafeLock()

    def __reduce__(self) -> tuple[Callable[..., ListIndex], tuple[object, ...]]:
        if isinstance(self.vectors, ReorderedRows):
            rows = np.array(self.vectors.rows[:])
            return ListIndex.from_tree, (self._tree(), rows, self._metric)
        # What was prepared is cheaper to prepare again than to store.
        return ListIndex, (self.vectors, self._metric, self._recall, self._seed)

    def graph(
        self,
        k: int,
        queries: Matrix | None = None,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find as many of the k nearest base rows of each query as the recall requires."""
        if queries is None:
            with one_blas_thread:
                return self._among(k, n_jobs, progress)
        listed, plan = self.ready(planned_for or k, n_jobs)
        return listed.answer(np.asarray(matching(queries, listed.rows)), k, plan, n_jobs, progress)

    def nearest_and_reached(
        self,
        queries: Matrix,
        k: int,
        limits: Array,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> tuple[NeighborGraph, Reached]:
        """Find the neighbors of queries, and the rows of their lists that are near to them.

        A row is near if its limit, (n,) in float32, is above the distance in float32.
        """
        listed, plan = self.ready(planned_for or k, n_jobs)
        queries = np.asarray(matching(queries, listed.rows))
        return listed.answer_and_reached(queries, k, plan, limits, n_jobs, progress)

    def recall(self, k: int, *, n_jobs: int = 1) -> Recall | None:
        """The recall of queries for k neighbors, measured with the plan for them."""
        return self.ready(k, n_jobs)[1].recall

    def renewal(self, added: int, removed: int) -> Callable[[Matrix, Array], Index] | None:
        """Many new rows join the lists of their nearest centers, many old ones leave them."""
        n = len(self.vectors)
        is_due = added > max(_MOST_BESIDE, _SHARE_BESIDE * n) or removed > _SHARE_PLANNED * n
        return self._joined if is_due else None

    def _joined(self, vectors: Matrix, numbers: Array) -> ListIndex:
        """The index of other rows in these lists; `numbers` has those of them that it has.

        The plans are made again if too many rows have changed since.
        """
        other = ListIndex(vectors, self._metric, self._recall, self._seed)
        listed = self._listed
        if listed is None:
            return other
        is_new = numbers < 0
        homes = listed.lists.homes()[numbers]
        homes[is_new] = nearest_centers(vectors[is_new], listed.lists.centers, self._metric, 1)
        lists = Lists.of(listed.lists.centers, homes)
        rows = ordered_rows(vectors, lists.order, float_kind(vectors))
        other._listed = ListedRows(lists, rows, self._metric)
        left = len(numbers) - np.count_nonzero(is_new)
        other._changed = self._changed + len(self.vectors) + len(numbers) - 2 * int(left)
        if other._changed > _SHARE_PLANNED * len(numbers):
            other._changed = 0
            for k in self._plans:
                other.ready(k, 1)
        else:  # without the rows on which they were measured, which have other places
            plans = self._plans.items()
            other._plans = {k: QueryPlan(plan.probes, plan.recall) for k, plan in plans}
        return other

    def stored(self) -> tuple[Tree, Array] | None:
        """What a file stores, and the given rows in the order of the lists.

        None if these have not been built.
        """
        tree = self._tree()
        if tree is None or self._listed is None:
            return None
        if isinstance(self.vectors, ReorderedRows):
            return tree, self.vectors.rows
        if self._listed.rows.dtype == self.vectors.dtype:
            return tree, self._listed.rows
        return tree, ordered_rows(self.vectors, self._listed.lists.order, self.vectors.dtype)

    def _tree(self) -> Tree | None:
        """What a file stores in addition to the rows; None if no lists have been built."""
        with self._lock.held():
            if self._listed is None:
                return None
            how = {"recall": self._recall, "seed": self._seed, "plans": plan_trees(self._plans)}
            return {"search": "approximate", **how, **listed_tree(self._listed)}

    @classmethod
    def from_tree(cls, tree: Tree, rows: Array, metric: str) -> ListIndex:
        """The index of a file; its rows are checked when their lists are first searched."""
        check_choice(tree["search"], "search", ("auto", "approximate"))
        recall = check_real(tree["recall"], "recall", low=0, high=1)
        seed = check_integer(tree["seed"], "seed", low=0)
        listed = listed_from(tree, rows, metric)
        vectors = ReorderedRows(rows, listed.lists.order)
        index = cls(vectors, metric, recall, seed)
        index._listed = listed
        index._plans = plans_from(tree["plans"], listed)
        return index

    def ready(
        self, k: int, n_jobs: int, kind: type[QueryPlan] = QueryPlan
    ) -> tuple[ListedRows, QueryPlan]:
        """The lists and a plan for k neighbors, made on first use."""
        planned = planned_neighbors(k, len(self.vectors))
        with self._lock.held():
            listed, plans = self._listed, self._plans
            if listed is None or not isinstance(plans.get(planned), kind):
                with one_blas_thread:
                    if listed is None:
                        how = self.vectors, self._metric, self._seed, n_jobs
                        self._listed = listed = ListedRows.divided(*how)
                    plan = make_plan(listed, planned, self._recall, self._seed, n_jobs)
                plans.setdefault(planned, plan)
                return listed, plan
            return listed, plans[planned]

    def _among(self, k: int, n_jobs: int, progress: Progress | None) -> NeighborGraph:
        """The graph of the base rows; repeated with more probes if its recall is too low."""
        n = self.vectors.shape[0]
        stages = Stages(progress, n)
        building, searching = stages.next(n // 4), stages.next(n - n // 4 - 1)
        if building is not None:
            building(0, 1)
        listed, plan = self.ready(k, n_jobs, MeasuredPlan)
        assert isinstance(plan, MeasuredPlan)
        if building is not None:
            building(1, 1)
        count = len(listed.lists)
        probes = plan.probes.at_least(listed.least_probes(k + 1))
        numbers = listed.lists.order[plan.rows]
        while True:
            graph = listed.among(k, probes, n_jobs, searching)
            recall = recall_of(graph.distances[numbers], plan.exact.head(k))
            if recall.value >= self._recall or probes.most == count:
                break
            del graph
            probes = probes.more(count)
            searching = None  # progress does not restart
        if progress is not None:
            progress(n, n)
        graph.recall = recall
        return graph


def planned_neighbors(k: int, n: int) -> int:
    """The number of neighbors, of n rows, that a plan for k is made for."""
    return min(-(-k // _NEIGHBORS_A_PLAN) * _NEIGHBORS_A_PLAN, n - 1)


@dataclass(frozen=True)
class InvertedLists:
    """Search that compares a query with a part of the base rows, those of the nearest lists.

    The size of this part is measured, so that the graph reaches the requested recall; a graph
    reports its own. For 32,768 or more dense rows and the metrics euclidean, sqeuclidean, cosine
    and manhattan; anything else is searched exactly, and so are rows whose distances exceed the
    range of float32, in which a graph stores them. If many rows are equal, one of each is searched,
    and recall refers to the distinct rows.

    Parameters
    ----------
    recall : float, default=0.99
        The minimum share of the k nearest rows to find, on average. At 1 all lists are searched.
    random_state : int, default=0
        Seed of the lists and of the rows on which recall is measured. The same seed gives the same
        graph, regardless of the number of threads.

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

    def build(self, vectors: Matrix, metric: Metric = "euclidean") -> Index:
        """Prepare base rows for searches."""
        recall = check_real(self.recall, "recall", low=0, high=1)
        seed = check_integer(self.random_state, "random_state", low=0)
        if not reads(vectors, metric):
            return ExactSearch().build(vectors, metric)
        build = partial(_lists_or_all, metric=str(metric), recall=recall, seed=seed)
        return without_copies(vectors, metric, build)


def _lists_or_all(vectors: Matrix, metric: str, recall: float, seed: int) -> Index:
    """Distinct rows in lists, if they are not too few by now."""
    if reads(vectors, metric):
        return ListIndex(vectors, metric, recall, seed)
    return exact_index(vectors, metric)


def reads(vectors: Matrix, metric: Metric) -> bool:
    """Whether these rows can be searched by lists, and whether that pays."""
    if not takes(vectors, metric) or metric == "cosine":
        return takes(vectors, metric)
    ends = [(rows.min(axis=0), rows.max(axis=0)) for _, rows in chunks(vectors, vectors.shape[1])]
    low, high = (as_float(np.array(of_blocks)) for of_blocks in zip(*ends, strict=True))
    return fits_float32(low.min(axis=0), high.max(axis=0), metric)


def takes(vectors: Matrix, metric: Metric) -> bool:
    """Whether lists of rows of that shape pay, if float32 can represent their distances."""
    known = isinstance(metric, str) and metric in METRICS
    return known and not sparse.issparse(vectors) and _FEWEST <= vectors.shape[0] < 2**31


def fits_float32(low: Array, high: Array, metric: Metric) -> bool:
    """Whether float32 holds the distances of rows, the largest and most of the small ones.

    The rows have features from `low` to `high`, (d,) each.
    """
    d = len(low)
    with np.errstate(over="ignore"):
        reach = np.max(high - low)
        reach = reach * reach if metric == "sqeuclidean" else reach
        return bool(reach == 0 or (reach >= _SMALL and d * reach <= _LARGE))
