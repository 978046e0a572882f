"""The default search, chosen by the size of the data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress
from nearlabel.common.threads import ForkSafeLock
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.search.approximate.inverted_lists import InvertedLists, reads
from nearlabel.search.approximate.list_index import ListIndex, TailIndex
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.index import ExactSearch
from nearlabel.search.exact.reordered_rows import ReorderedRows
from nearlabel.search.interfaces import Index
from nearlabel.search.living.arrivals import Reached

MOST_WORK = 10**13  # rows x rows x features: exact search up to this
_FEWEST_ROWS_A_NEIGHBOR = 32  # lists only help if neighbors are a small part of the rows
_FEWEST_FEATURES = 7  # with fewer, the k-d tree is fast for any number of rows


def takes_lists(vectors: Any, k: int) -> bool:
    """Whether k neighbors among these rows are searched by lists."""
    n, d = vectors.shape
    is_long = n * n * d > MOST_WORK and d >= _FEWEST_FEATURES
    return bool(is_long and n >= _FEWEST_ROWS_A_NEIGHBOR * k)


@dataclass(frozen=True)
class AutoSearch:
    """Exact search, or inverted lists if that would take too long.

    The choice depends only on the numbers of rows, features and neighbors, never on the machine.
    What `InvertedLists` does not support is searched exactly.
    """

    def build(self, vectors: Any, metric: Metric = "euclidean") -> Index:
        """Prepare base rows for searches."""
        if takes_lists(vectors, 1) and reads(vectors, metric):
            return AutoIndex(vectors, metric)
        return ExactSearch().build(vectors, metric)


class AutoIndex:
    """Many base rows, searched either way; each index is built when needed.

    Parameters
    ----------
    vectors : ndarray or ReorderedRows, shape (n, d)
    metric : str
    behind : AutoIndex, optional
        The index that the rows are added to, if any: they are searched like its rows.
    """

    def __init__(self, vectors: Any, metric: Metric, behind: AutoIndex | None = None) -> None:
        self.vectors, self._metric, self._behind = vectors, metric, behind
        self._made: dict[Any, Index] = {}
        self._lock = ForkSafeLock()

    def __reduce__(self) -> Any:
        if isinstance(self.vectors, ReorderedRows):
            return AutoIndex._from_tree, self._made[InvertedLists()].__reduce__()[1]
        return AutoIndex, (self.vectors, self._metric, self._behind)

    def graph(
        self,
        k: int,
        queries: Any = None,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find the k nearest base rows of each query; see `InvertedLists`."""
        index: Any = self._index(planned_for or k, n_jobs)
        how: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
        if isinstance(index, ListIndex | TailIndex):
            how["planned_for"] = planned_for
        found: NeighborGraph = index.graph(k, queries, **how)
        return found

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
        """Find the k nearest base rows of each query, and rows with a query within their limit."""
        index: Any = self._index(planned_for or k, n_jobs)
        how: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
        if isinstance(index, ListIndex | TailIndex):
            how["planned_for"] = planned_for
        both: tuple[NeighborGraph, Reached] = index.nearest_and_reached(queries, k, limits, **how)
        return both

    def probes(self, k: int, *, n_jobs: int = 1) -> Probes | None:
        """The lists probed for k neighbors; None without lists."""
        index = self._index(k, n_jobs)
        return index.probes(k, n_jobs=n_jobs) if isinstance(index, ListIndex) else None

    def with_probes(self, k: int, probes: Probes, recall: Recall | None) -> AutoIndex:
        """The same index with other probes for k neighbors."""
        lists = self._index(k, 1)
        assert isinstance(lists, ListIndex)
        return self._like(lists.with_probes(k, probes, recall), None)

    def tail(self, vectors: Any, *, n_jobs: int = 1) -> AutoIndex:  # noqa: ARG002
        """An index of further rows, in the lists of this one if it has any; built when used."""
        return AutoIndex(vectors, self._metric, behind=self)

    def behind(self, index: AutoIndex) -> AutoIndex:
        """The same rows behind an index with the same lists and other probes."""
        lists, its = self._made.get(InvertedLists()), index._made.get(InvertedLists())
        if isinstance(lists, TailIndex) and isinstance(its, ListIndex):
            return self._like(lists.behind(its), index)
        return AutoIndex(self.vectors, self._metric, behind=index)

    def _like(self, lists: Index, behind: AutoIndex | None) -> AutoIndex:
        other = AutoIndex(self.vectors, self._metric, behind)
        other._made = {**self._made, InvertedLists(): lists}
        return other

    def stored_rows(self) -> Any:
        """See `ListIndex.stored_rows`."""
        lists = self._made[InvertedLists()]
        assert isinstance(lists, ListIndex)
        return lists.stored_rows()

    def check_rows(self) -> None:
        """See `ListIndex.check_rows`."""
        lists = self._made.get(InvertedLists())
        if isinstance(lists, ListIndex):
            lists.check_rows()

    def _tree(self) -> dict[str, Any] | None:
        """What a file stores of the lists; None if none have been built."""
        lists = self._made.get(InvertedLists())
        tree = lists._tree() if isinstance(lists, ListIndex) else None
        return None if tree is None else {**tree, "search": "auto"}

    @classmethod
    def _from_tree(cls, tree: Mapping[str, Any], rows: Any, metric: str) -> AutoIndex:
        """The index of a file; see `ListIndex._from_tree`."""
        lists = ListIndex._from_tree(tree, rows, metric)
        index = cls(lists.vectors, metric)
        index._made[InvertedLists()] = lists
        return index

    def _index(self, k: int, n_jobs: int) -> Index:
        """The search for k neighbors, prepared on first use."""
        whole = self if self._behind is None else self._behind
        by_lists = takes_lists(whole.vectors, k)
        search = InvertedLists() if by_lists else ExactSearch()
        base = whole._index(k, n_jobs) if by_lists and whole is not self else None
        with self._lock.held():
            if search not in self._made:
                if isinstance(base, ListIndex):
                    self._made[search] = base.tail(self.vectors, n_jobs=n_jobs)
                else:
                    vectors = self.vectors
                    vectors = np.asarray(vectors) if isinstance(vectors, ReorderedRows) else vectors
                    self._made[search] = search.build(vectors, self._metric)
            return self._made[search]


def index_from(tree: Mapping[str, Any], rows: Any, metric: str) -> AutoIndex | ListIndex:
    """The index of a file, from its `_tree` and its `stored_rows`."""
    kinds: dict[str, Any] = {"auto": AutoIndex, "approximate": ListIndex}
    index: AutoIndex | ListIndex = kinds[tree["search"]]._from_tree(tree, rows, metric)
    return index
