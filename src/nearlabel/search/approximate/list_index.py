"""An index of rows in lists, and of rows that are added to these lists later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.threads import ForkSafeLock, one_blas_thread
from nearlabel.common.validation import check_integer, check_real
from nearlabel.graph import NeighborGraph, Recall, index_type
from nearlabel.search.approximate.partition import divide_by, nearest_centers
from nearlabel.search.approximate.probe_counts import Plan, among_rows, make_plan
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.approximate.probing import ListedRows, QueryPlan
from nearlabel.search.approximate.recall import recall_of
from nearlabel.search.approximate.stored_lists import (
    listed_from,
    listed_tree,
    plan_trees,
    plans_from,
)
from nearlabel.search.exact.index import matching
from nearlabel.search.exact.reordered_rows import ReorderedRows, ordered_rows
from nearlabel.search.exact.row_arithmetic import float_kind
from nearlabel.search.living.arrivals import Reached

_NEIGHBORS_A_PLAN = 8  # plans are made for multiples of this number of neighbors


class ListIndex:
    """Base rows in lists, which are built when the first graph is requested.

    Parameters
    ----------
    vectors : ndarray or ReorderedRows, shape (n, d)
    metric : str
    recall : float
        The requested recall.
    seed : int
    """

    def __init__(self, vectors: Any, metric: str, recall: float, seed: int) -> None:
        self.vectors, self._metric = vectors, metric
        self._recall, self._seed = recall, seed
        self._listed: ListedRows | None = None
        self._plans: dict[int, QueryPlan] = {}
        self._lock = ForkSafeLock()

    def __reduce__(self) -> Any:
        if isinstance(self.vectors, ReorderedRows):
            rows = np.array(self.vectors.rows[:])
            return ListIndex._from_tree, (self._tree(), rows, self._metric)
        # What was prepared is cheaper to prepare again than to store.
        return ListIndex, (self.vectors, self._metric, self._recall, self._seed)

    def graph(
        self,
        k: int,
        queries: Any = None,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find as many of the k nearest base rows of each query as `recall` requires.

        With `planned_for` below k, this holds for the first `planned_for` neighbors, which are
        those of that graph. The others, which some callers keep in reserve, are found as far as the
        same probes reach; for the rows themselves some may be missing: index -1 at infinite
        distance.
        """
        if queries is None:
            with one_blas_thread:
                return self._among(k, planned_for or k, n_jobs, progress)
        listed, plan = self._ready(planned_for or k, n_jobs)
        return listed.answer(np.asarray(matching(queries, listed.rows)), k, plan, n_jobs, progress)

    def nearest_and_reached(
        self,
        queries: Any,
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
        listed, plan = self._ready(planned_for or k, n_jobs)
        queries = np.asarray(matching(queries, listed.rows))
        return listed.answer_and_reached(queries, k, plan, limits, n_jobs, progress)

    def probes(self, k: int, *, n_jobs: int = 1) -> Probes:
        """The lists probed for k neighbors."""
        plan: QueryPlan = self._ready(k, n_jobs)[1]
        return plan.probes

    def with_probes(self, k: int, probes: Probes, recall: Recall | None) -> ListIndex:
        """The same lists with other probes for k neighbors, and the given recall."""
        other = ListIndex(self.vectors, self._metric, self._recall, self._seed)
        other._listed = self._ready(k, 1)[0]
        probes = probes.within(len(other._listed.lists))
        other._plans = {**self._plans, self._planned(k): QueryPlan(probes, recall)}
        return other

    def tail(self, vectors: Any, *, n_jobs: int = 1) -> TailIndex:
        """An index of further rows in the lists of this one."""
        return TailIndex(self, vectors, n_jobs)

    def stored_rows(self) -> Array:
        """The given rows in the order of the lists, which must have been built."""
        if isinstance(self.vectors, ReorderedRows):
            return self.vectors.rows
        assert self._listed is not None
        if self._listed.rows.dtype == self.vectors.dtype:
            return self._listed.rows
        return ordered_rows(self.vectors, self._listed.lists.order, self.vectors.dtype)

    def check_rows(self) -> None:
        """Check all rows that came from a file; a search checks only those it reads."""
        if self._listed is not None:
            self._listed.touch(np.arange(len(self._listed.lists)))

    def _tree(self) -> dict[str, Any] | None:
        """What a file stores in addition to `stored_rows`; None if no lists have been built."""
        with self._lock.held():
            if self._listed is None:
                return None
            plans = plan_trees(self._plans)
            how = {"search": "approximate", "recall": self._recall, "seed": self._seed}
            return {**how, "plans": plans, **listed_tree(self._listed)}

    def _tree_of(self, rows: Any, homes: Array) -> tuple[dict[str, Any], Array]:
        """What a file stores for other rows in these lists, and the order of these rows.

        `homes` has the list of each row, -1 if unknown.
        """
        tree = self._tree()
        assert tree is not None
        lost = np.flatnonzero(homes < 0)
        if len(lost):
            homes = homes.copy()
            homes[lost] = nearest_centers(rows, tree["centers"], self._metric, 1, lost)
        order = np.argsort(homes, kind="stable").astype(index_type(len(homes)))
        sizes = np.bincount(homes, minlength=len(tree["centers"]))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return {**tree, "order": order, "starts": starts}, order

    @classmethod
    def _from_tree(cls, tree: Mapping[str, Any], rows: Array, metric: str) -> ListIndex:
        """The index of a file; its rows are checked when their lists are first searched."""
        recall = check_real(tree["recall"], "recall", low=0, high=1)
        seed = check_integer(tree["seed"], "seed", low=0)
        listed = listed_from(tree, rows, metric)
        index = cls(ReorderedRows(rows, listed.lists.order), metric, recall, seed)
        index._listed = listed
        index._plans = plans_from(tree["plans"], listed)
        return index

    def _planned(self, k: int) -> int:
        """The number of neighbors that the plan for k covers."""
        return planned_neighbors(k, int(self.vectors.shape[0]))

    def _ready(
        self, k: int, n_jobs: int, kind: type[QueryPlan] = QueryPlan
    ) -> tuple[ListedRows, Any]:
        """The lists and a plan for k neighbors, made on first use."""
        planned = self._planned(k)
        with self._lock.held():
            listed, plan = self._made(n_jobs), self._plans.get(planned)
            if not isinstance(plan, kind):
                with one_blas_thread:
                    plan = make_plan(listed, planned, self._recall, self._seed, n_jobs)
                self._plans.setdefault(planned, plan)
            return listed, plan

    def _made(self, n_jobs: int) -> ListedRows:
        """The lists; the caller holds the lock."""
        if self._listed is None:
            with one_blas_thread:
                self._listed = ListedRows.divided(self.vectors, self._metric, self._seed, n_jobs)
        return self._listed

    def _among(
        self, k: int, planned_for: int, n_jobs: int, progress: Progress | None
    ) -> NeighborGraph:
        """The graph of the base rows; repeated with more probes if its recall is too low."""
        n = self.vectors.shape[0]
        stages = Stages(progress, n)
        made, *searched = stages.next(n // 4), stages.next(n // 2), stages.next(n // 8)
        if made is not None:
            made(0, 1)
        listed, plan = self._ready(planned_for, n_jobs, Plan)
        if made is not None:
            made(1, 1)
        count = len(listed.lists)
        probes, through = among_rows(listed, plan, self._recall, n_jobs)
        probes = probes.at_least(listed.least_probes(planned_for + 1))
        spare = min(k, listed.least_rows(probes) - 1) - planned_for
        numbers = listed.lists.order[plan.measured.rows]
        while True:
            found = listed.among(planned_for, probes, through, n_jobs, searched, spare)
            nearest = found.distances[numbers, :planned_for]
            recall = recall_of(nearest, plan.measured.exact.head(planned_for))
            if recall.value >= self._recall or probes.most == count:
                break
            del found
            probes = probes.more(count)
            searched = [None, None]  # progress does not restart
        if progress is not None:
            progress(n, n)
        found.recall = recall
        return found


def planned_neighbors(k: int, n: int) -> int:
    """The number of neighbors, of n rows, that a plan for k is made for."""
    return min(-(-k // _NEIGHBORS_A_PLAN) * _NEIGHBORS_A_PLAN, n - 1)


def homes_of(index: ListIndex | TailIndex) -> Array:
    """The list of each row, shape (n,)."""
    lists = index._listed.lists if index._listed is not None else None
    assert lists is not None
    homes = np.empty(len(lists.order), np.int64)
    homes[lists.order] = np.repeat(np.arange(len(lists)), lists.sizes)
    return homes


class TailIndex:
    """Rows that were added to the lists of an index, searched with its probes.

    If the probes of a query contain too few of them, more lists are probed.
    """

    def __init__(self, index: ListIndex, vectors: Any, n_jobs: int = 1) -> None:
        self._index, self.vectors = index, vectors
        with index._lock.held():
            centers, metric = index._made(n_jobs).lists.centers, index._metric
        with one_blas_thread:
            lists = divide_by(centers, vectors, metric, n_jobs)
            rows = ordered_rows(vectors, lists.order, float_kind(vectors))
            self._listed = ListedRows(lists, rows, metric)

    def __reduce__(self) -> Any:
        return TailIndex, (self._index, self.vectors)

    def behind(self, index: ListIndex) -> TailIndex:
        """The same rows behind an index with the same lists and other probes."""
        other = TailIndex.__new__(TailIndex)
        other._index, other.vectors, other._listed = index, self.vectors, self._listed
        return other

    def graph(
        self,
        k: int,
        queries: Any = None,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find the k nearest of these rows, as far as the probes of the whole index reach."""
        if queries is None:
            own = np.arange(len(self._listed))
            found = self.graph(k + 1, self.vectors, planned_for=k, n_jobs=n_jobs, progress=progress)
            return found.without(own)
        _, plan = self._index._ready(planned_for or k, n_jobs)
        queries = np.asarray(matching(queries, self.vectors))
        return self._listed.answer(queries, k, plan, n_jobs, progress)

    def nearest_and_reached(
        self,
        queries: Any,
        k: int,
        limits: Array,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> tuple[NeighborGraph, Reached]:
        """Find the neighbors of queries among these rows, and the rows near to them."""
        _, plan = self._index._ready(planned_for or k, n_jobs)
        queries = np.asarray(matching(queries, self.vectors))
        return self._listed.answer_and_reached(queries, k, plan, limits, n_jobs, progress)
