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

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Matrix, Tree
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.threads import ForkSafeLock, one_blas_thread
from nearlabel.common.validation import check_integer, check_real
from nearlabel.graph import NeighborGraph, Recall, index_type, recall_of
from nearlabel.search.approximate.partition import divide_by, nearest_centers
from nearlabel.search.approximate.probe_counts import MeasuredPlan, make_plan
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.approximate.probing import ListedRows, QueryPlan
from nearlabel.search.approximate.stored_lists import (
    listed_from,
    listed_tree,
    plan_trees,
    plans_from,
)
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.equal_rows import EqualRowsIndex, equal_rows
from nearlabel.search.exact.index import ExactSearch, exact_index, matching
from nearlabel.search.exact.reordered_rows import ReorderedRows, ordered_rows
from nearlabel.search.exact.row_arithmetic import METRICS, as_float, chunks, float_kind
from nearlabel.search.interfaces import Index, Reached

_SMALL, _LARGE = 1e-32, 1e38  # largest distances that leave room for smaller ones in float32
_FEWEST = 2**15  # minimum number of rows: exact search is faster for fewer
MOST_WORK = 10**13  # rows x rows x features: search="auto" is exact up to this
_FEWEST_ROWS_A_NEIGHBOR = 32  # lists only help if neighbors are a small part of the rows
_FEWEST_FEATURES = 7  # with fewer, the k-d tree is fast for any number of rows
_NEIGHBORS_A_PLAN = 8  # plans are made for multiples of this number of neighbors


def takes_lists(shape: tuple[int, ...], k: int) -> bool:
    """Whether search="auto" uses lists to find k neighbors among this many rows and features."""
    n, d = shape
    is_long = n * n * d > MOST_WORK and d >= _FEWEST_FEATURES
    return is_long and n >= _FEWEST_ROWS_A_NEIGHBOR * k


class ListIndex(Index):
    """Base rows in lists, which are built when the first graph is requested.

    Parameters
    ----------
    vectors : ndarray or ReorderedRows, shape (n, d)
    metric : str
    recall : float
        The requested recall.
    seed : int
    is_auto : bool, default=False
        Whether numbers of neighbors for which lists do not pay are searched exactly; see
        `takes_lists`.
    base : ListIndex, optional
        The index whose lists and probes these rows share, which were added to it.
    """

    def __init__(
        self,
        vectors: Matrix | ReorderedRows,
        metric: str,
        recall: float,
        seed: int,
        *,
        is_auto: bool = False,
        base: ListIndex | None = None,
    ) -> None:
        self.vectors, self._metric = vectors, metric
        self._recall, self._seed = recall, seed
        self._is_auto, self._base = is_auto, base
        self._listed: ListedRows | None = None
        self._exact: Index | None = None
        self._plans: dict[int, QueryPlan] = {}
        self._lock = ForkSafeLock()

    def __reduce__(self) -> tuple[Callable[..., ListIndex], tuple[object, ...]]:
        if isinstance(self.vectors, ReorderedRows):
            rows = np.array(self.vectors.rows[:])
            return ListIndex.from_tree, (self._tree(), rows, self._metric)
        # What was prepared is cheaper to prepare again than to store.
        how = self.vectors, self._metric, self._recall, self._seed, self._is_auto, self._base
        return _list_index, how

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
        exact = self._exactly(planned_for or k)
        if exact is not None:
            return exact.graph(k, queries, n_jobs=n_jobs, progress=progress)
        if queries is None and self._base is None:
            with one_blas_thread:
                return self._among(k, n_jobs, progress)
        if queries is None:
            graph = self.graph(k + 1, self.vectors, planned_for=k, n_jobs=n_jobs, progress=progress)
            return graph.without(np.arange(len(graph)))
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
        exact = self._exactly(planned_for or k)
        if exact is not None:
            return exact.nearest_and_reached(queries, k, limits, n_jobs=n_jobs, progress=progress)
        listed, plan = self.ready(planned_for or k, n_jobs)
        queries = np.asarray(matching(queries, listed.rows))
        return listed.answer_and_reached(queries, k, plan, limits, n_jobs, progress)

    def probes(self, k: int, *, n_jobs: int = 1) -> Probes | None:
        """The lists probed for k neighbors; None if these are searched exactly."""
        return None if self._exactly(k) is not None else self.ready(k, n_jobs)[1].probes

    def with_probes(self, k: int, probes: Probes, recall: Recall | None) -> ListIndex:
        """The same lists with other probes for k neighbors, and the given recall."""
        listed, _ = self.ready(k, 1)
        other = self._like(self._base)
        probes = probes.within(len(listed.lists))
        other._plans = {**self._plans, self._planned(k): QueryPlan(probes, recall)}
        return other

    def tail(self, vectors: Matrix) -> ListIndex:
        """An index of further rows in the lists of this one."""
        how = self._metric, self._recall, self._seed
        return ListIndex(vectors, *how, is_auto=self._is_auto, base=self)

    def behind(self, lists: Index | None) -> ListIndex:
        """The same rows as the tail of an index with the same lists and other probes."""
        assert isinstance(lists, ListIndex)
        return self._like(lists)

    @property
    def lists(self) -> ListIndex:
        """The index itself."""
        return self

    def _like(self, base: ListIndex | None) -> ListIndex:
        """The same rows and lists, without plans."""
        how = self.vectors, self._metric, self._recall, self._seed
        other = ListIndex(*how, is_auto=self._is_auto, base=base)
        other._listed, other._exact = self._listed, self._exact
        return other

    @property
    def homes(self) -> Array | None:
        """The list of each row, shape (n,); None if the lists have not been built."""
        if self._listed is None:
            return None
        lists = self._listed.lists
        homes = np.empty(len(lists.order), np.int64)
        homes[lists.order] = np.repeat(np.arange(len(lists)), lists.sizes)
        return homes

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

    def stored_with(self, rows: Array, homes: Array) -> tuple[Tree, Array] | None:
        """The same for other rows in these lists; `homes` has the list of each, -1 if unknown."""
        tree = self._tree()
        if tree is None:
            return None
        lost = np.flatnonzero(homes < 0)
        if len(lost):
            homes = homes.copy()
            homes[lost] = nearest_centers(rows, tree["centers"], self._metric, 1, lost)
        order = np.argsort(homes, kind="stable").astype(index_type(len(homes)))
        sizes = np.bincount(homes, minlength=len(tree["centers"]))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return {**tree, "order": order, "starts": starts}, rows[order]

    def _tree(self) -> Tree | None:
        """What a file stores in addition to the rows; None if no lists have been built."""
        with self._lock.held():
            if self._listed is None:
                return None
            how = {"recall": self._recall, "seed": self._seed, "plans": plan_trees(self._plans)}
            search = "auto" if self._is_auto else "approximate"
            return {"search": search, **how, **listed_tree(self._listed)}

    @classmethod
    def from_tree(cls, tree: Tree, rows: Array, metric: str) -> ListIndex:
        """The index of a file; its rows are checked when their lists are first searched."""
        is_auto = {"auto": True, "approximate": False}[tree["search"]]
        recall = check_real(tree["recall"], "recall", low=0, high=1)
        seed = check_integer(tree["seed"], "seed", low=0)
        listed = listed_from(tree, rows, metric)
        vectors = ReorderedRows(rows, listed.lists.order)
        index = cls(vectors, metric, recall, seed, is_auto=is_auto)
        index._listed = listed
        index._plans = plans_from(tree["plans"], listed)
        return index

    def _exactly(self, k: int) -> Index | None:
        """The exact index of these rows, if k neighbors are not searched by lists."""
        whole = self if self._base is None else self._base
        if not self._is_auto or takes_lists(whole.vectors.shape, k):
            return None
        with self._lock.held():
            if self._exact is None:
                in_order = isinstance(self.vectors, ReorderedRows)
                vectors = np.asarray(self.vectors) if in_order else self.vectors
                self._exact = exact_index(vectors, self._metric)
            return self._exact

    def _planned(self, k: int) -> int:
        """The number of neighbors that the plan for k covers."""
        return planned_neighbors(k, int(self.vectors.shape[0]))

    def ready(
        self, k: int, n_jobs: int, kind: type[QueryPlan] = QueryPlan
    ) -> tuple[ListedRows, QueryPlan]:
        """The lists and a plan for k neighbors, made on first use."""
        if self._base is not None:
            base, plan = self._base.ready(k, n_jobs)
            with self._lock.held():
                if self._listed is None:
                    with one_blas_thread:
                        self._listed = self._joining(base.lists.centers, n_jobs)
                return self._listed, plan
        planned = self._planned(k)
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

    def _joining(self, centers: Array, n_jobs: int) -> ListedRows:
        """These rows in the lists of given centers."""
        lists = divide_by(centers, self.vectors, self._metric, n_jobs)
        rows = ordered_rows(self.vectors, lists.order, float_kind(self.vectors))
        return ListedRows(lists, rows, self._metric)

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
        numbers = listed.lists.order[plan.measured.rows]
        while True:
            graph = listed.among(k, probes, n_jobs, searching)
            recall = recall_of(graph.distances[numbers], plan.measured.exact.head(k))
            if recall.value >= self._recall or probes.most == count:
                break
            del graph
            probes = probes.more(count)
            searching = None  # progress does not restart
        if progress is not None:
            progress(n, n)
        graph.recall = recall
        return graph


def _list_index(
    vectors: Matrix, metric: str, recall: float, seed: int, is_auto: bool, base: ListIndex | None
) -> ListIndex:
    """A copy of an index, from a pickle."""
    return ListIndex(vectors, metric, recall, seed, is_auto=is_auto, base=base)


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
        return self.index_of(vectors, metric, is_auto=False)

    def index_of(self, vectors: Matrix, metric: Metric, *, is_auto: bool) -> Index:
        """Lists, if these rows can have any; see `ListIndex` for `is_auto`."""
        recall = check_real(self.recall, "recall", low=0, high=1)
        seed = check_integer(self.random_state, "random_state", low=0)
        if not reads(vectors, metric):
            return ExactSearch().build(vectors, metric)
        rows = equal_rows(vectors)
        if rows is not None:
            index = self.index_of(rows.distinct(vectors), metric, is_auto=is_auto)
            return EqualRowsIndex(vectors, rows, metric, index)
        return ListIndex(vectors, str(metric), recall, seed, is_auto=is_auto)


@dataclass(frozen=True)
class AutoSearch:
    """Exact search, or inverted lists if that would take too long.

    The choice depends only on the numbers of rows, features and neighbors, never on the machine.
    What `InvertedLists` does not support is searched exactly.
    """

    def build(self, vectors: Matrix, metric: Metric = "euclidean") -> Index:
        """Prepare base rows for searches."""
        if takes_lists(vectors.shape, 1):
            return InvertedLists().index_of(vectors, metric, is_auto=True)
        return ExactSearch().build(vectors, metric)


def reads(vectors: Matrix, metric: Metric) -> bool:
    """Whether these rows can be searched by lists, and whether that pays."""
    return takes(vectors, metric) and (metric == "cosine" or _is_ordinary(vectors, metric))


def takes(vectors: Matrix, metric: Metric) -> bool:
    """Whether lists of rows of that shape pay, if float32 can represent their distances."""
    known = isinstance(metric, str) and metric in METRICS
    return known and not sparse.issparse(vectors) and _FEWEST <= vectors.shape[0] < 2**31


def _is_ordinary(vectors: Array, metric: Metric) -> bool:
    """Whether float32 can represent the distances of these rows, both large and small."""
    d = vectors.shape[1]
    ends = [(rows.min(axis=0), rows.max(axis=0)) for _, rows in chunks(vectors, d)]
    low, high = (as_float(np.array(of_blocks)) for of_blocks in zip(*ends, strict=True))
    return fits_float32(low.min(axis=0), high.max(axis=0), metric)


def fits_float32(low: Array, high: Array, metric: Metric) -> bool:
    """Whether float32 holds the distances of rows, the largest and most of the small ones.

    The rows have features from `low` to `high`, (d,) each.
    """
    d = len(low)
    with np.errstate(over="ignore"):
        reach = np.max(high - low)
        reach = reach * reach if metric == "sqeuclidean" else reach
        return bool(reach == 0 or (reach >= _SMALL and d * reach <= _LARGE))
