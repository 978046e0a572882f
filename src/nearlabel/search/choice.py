"""Which search is taken where none is asked for: by the size of the data alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nearlabel.graph import NeighborGraph
from nearlabel.search.distances import Metric
from nearlabel.search.exact import ExactIndex, ExactSearch
from nearlabel.search.lists import InvertedLists, reads
from nearlabel.search.threads import Progress

MOST_WORK = 10**13  # rows x rows x features up to which the search is exact: minutes on two cores
_FEWEST_ROWS_A_NEIGHBOR = 32  # lists help only where neighbors are a small part of the rows


def takes_lists(vectors: Any, k: int) -> bool:
    """Whether k neighbors among these rows are searched by lists."""
    n, d = vectors.shape
    return bool(n * n * d > MOST_WORK and n >= _FEWEST_ROWS_A_NEIGHBOR * k)


@dataclass(frozen=True)
class AutoSearch:
    """Exact search, or inverted lists where that would take too long.

    What is taken depends on the numbers of rows, features and neighbors alone, never on the
    machine. Sparse rows and metrics that have no lists are searched exactly.
    """

    def build(self, vectors: Any, metric: Metric = "euclidean") -> ExactIndex | AutoIndex:
        """Prepare base rows for searches."""
        if reads(vectors, metric) and takes_lists(vectors, 1):
            return AutoIndex(vectors, metric)
        return ExactSearch().build(vectors, metric)


class AutoIndex:
    """Many base rows, ready for both searches; each is prepared when it is needed."""

    def __init__(self, vectors: Any, metric: Metric) -> None:
        self._vectors, self._metric = vectors, metric

    def __reduce__(self) -> Any:
        return AutoIndex, (self._vectors, self._metric)

    @cached_property
    def _exact(self) -> Any:
        return ExactSearch().build(self._vectors, self._metric)

    @cached_property
    def _lists(self) -> Any:
        return InvertedLists().build(self._vectors, self._metric)

    def graph(
        self,
        k: int,
        queries: Any = None,
        *,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find the k nearest base rows of each query; see `InvertedLists`."""
        index = self._lists if takes_lists(self._vectors, k) else self._exact
        found: NeighborGraph = index.graph(k, queries, n_jobs=n_jobs, progress=progress)
        return found
