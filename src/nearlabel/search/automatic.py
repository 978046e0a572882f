"""Which search is taken where none is asked for: by the size of the data alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nearlabel.common.progress import Progress
from nearlabel.common.threads import ForkSafeLock
from nearlabel.graph import NeighborGraph
from nearlabel.search.approximate.inverted_lists import InvertedLists, reads
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.index import ExactSearch
from nearlabel.search.interfaces import Index

MOST_WORK = 10**13  # rows x rows x features up to which the search is exact
_FEWEST_ROWS_A_NEIGHBOR = 32  # lists help only where neighbors are a small part of the rows
_FEWEST_FEATURES = 7  # of fewer, the tree of the exact search is fast for any number of rows


def takes_lists(vectors: Any, k: int) -> bool:
    """Whether k neighbors among these rows are searched by lists."""
    n, d = vectors.shape
    is_long = n * n * d > MOST_WORK and d >= _FEWEST_FEATURES
    return bool(is_long and n >= _FEWEST_ROWS_A_NEIGHBOR * k)


@dataclass(frozen=True)
class AutoSearch:
    """Exact search, or inverted lists where that would take too long.

    What is taken depends on the numbers of rows, features and neighbors alone, never on the
    machine. What `InvertedLists` cannot read is searched exactly.
    """

    def build(self, vectors: Any, metric: Metric = "euclidean") -> Index:
        """Prepare base rows for searches."""
        if takes_lists(vectors, 1) and reads(vectors, metric):
            return AutoIndex(vectors, metric)
        return ExactSearch().build(vectors, metric)


class AutoIndex:
    """Many base rows, ready for both searches; each is prepared when it is needed."""

    def __init__(self, vectors: Any, metric: Metric) -> None:
        self._vectors, self._metric = vectors, metric
        self._made: dict[Any, Index] = {}
        self._lock = ForkSafeLock()

    def __reduce__(self) -> Any:
        return AutoIndex, (self._vectors, self._metric)

    def graph(
        self, k: int, queries: Any = None, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """Find the k nearest base rows of each query; see `InvertedLists`."""
        search = InvertedLists() if takes_lists(self._vectors, k) else ExactSearch()
        with self._lock.held():
            if search not in self._made:
                self._made[search] = search.build(self._vectors, self._metric)
            index = self._made[search]
        return index.graph(k, queries, n_jobs=n_jobs, progress=progress)
