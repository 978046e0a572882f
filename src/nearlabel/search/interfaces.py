"""What callers ask of base rows: one contract, whatever searches them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypedDict, runtime_checkable

import numpy as np

from nearlabel.common.arrays import Array, Matrix, Tree, runs
from nearlabel.common.progress import Progress
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.search.budgets import ELEMENTS_AT_ONCE
from nearlabel.search.exact.distances import Metric


class Reached(NamedTuple):
    """Pairs of an old and a new row, with the new row within a limit of the old one.

    Attributes
    ----------
    row : ndarray of int
        Places of old rows.
    new : ndarray of int
        Places of new rows.
    distance : ndarray of float
        Canonical, as in a graph of the same search.
    """

    row: Array
    new: Array
    distance: Array

    @classmethod
    def joined(cls, parts: Sequence[tuple[Array, Array, Array]]) -> Reached:
        """All pairs of several parts."""
        nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        return cls(*map(np.concatenate, zip(*(parts or [nothing]), strict=True)))


class Arrivals(NamedTuple):
    """New rows: their neighbors, each excluded from its own, and the old rows they reach."""

    neighbors: NeighborGraph
    reached: Reached


class SearchOptions(TypedDict, total=False):
    """Arguments of a search that are passed on; see `Index.graph`."""

    planned_for: int | None
    n_jobs: int
    progress: Progress | None


class Index(ABC):
    """Base rows ready to be searched; immutable.

    A model keeps its index and queries it repeatedly, also from several threads at once; it is
    pickled with the model. `neighbor_graph` queries it once. Only `graph` is required: the defaults
    of the others are right for any index.

    Attributes
    ----------
    vectors : ndarray or csr_array, shape (n, d)
        The rows.
    is_exact : bool
        Whether all neighbors are found.
    """

    vectors: Matrix
    is_exact = False

    @abstractmethod
    def graph(
        self,
        k: int,
        queries: Matrix | None = None,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find the k nearest base rows of each query.

        Parameters
        ----------
        k : int
            Neighbors per row: from 1 to the number n of base rows, without queries to n - 1.
        queries : ndarray or csr_array, shape (m, d), optional
            Validated rows, not always in the form, dense or CSR, of the base rows. Without them
            each base row is searched among the others: it is excluded by its number, not by its
            distance, so that an equal row remains its neighbor.
        planned_for : int, optional
            An approximate search of queries promises its recall for this many neighbors, by default
            k. The others are found as far as the same effort reaches.
        n_jobs : int, default=1
            Threads. The result must not depend on it.
        progress : callable, optional
            To be called with (rows done, total rows) now and then, and at the end.

        Returns
        -------
        NeighborGraph
            Exactly k neighbors of each row, sorted by (distance, index), over n base rows.
            ``NeighborGraph(indices, distances, n_base=n)`` validates them; an approximate search
            reports its recall as ``recall=``, if known.
        """

    def left_out(
        self, rows: Array, k: int, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """The k nearest rows of some base rows, each excluded from its own neighbors."""
        graph = self.graph(k + 1, self.vectors[rows], n_jobs=n_jobs, progress=progress)
        return graph.without(rows)

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
        """Find the k nearest base rows of each query, and rows with a query within their limit.

        A row is within its limit, (n,), if its distance is below. By default all distances are
        searched.
        """
        graph = self.graph(k, queries, planned_for=planned_for, n_jobs=n_jobs, progress=progress)
        n, parts = len(limits), []
        for block in runs(np.full(len(graph), n), ELEMENTS_AT_ONCE):
            near = self.graph(n, queries[block], n_jobs=n_jobs)
            query, column = np.nonzero(near.distances < limits[near.indices])
            row = near.indices[query, column]
            parts.append((row, block.start + query, near.distances[query, column]))
        return graph, Reached.joined(parts)

    def renewal(
        self,
        added: int,  # noqa: ARG002
        removed: int,  # noqa: ARG002
    ) -> Callable[[Matrix, Array], Index] | None:
        """How to index all rows anew after so many were added and removed.

        By default None: further rows are searched exactly beside these, and removed ones are
        dropped from the results. Otherwise a function of the vectors of all rows, and of their
        numbers among the rows of this index, -1 for new ones.
        """
        return None

    def recall(self, k: int, *, n_jobs: int = 1) -> Recall | None:  # noqa: ARG002
        """The recall of queries for k neighbors, measured on first use; None if not measured."""
        return None

    def stored(self) -> tuple[Tree, Array] | None:
        """What a file stores of an index, and its rows in the order of the lists.

        None if the index has no lists: it is then rebuilt from the rows.
        """
        return None


@runtime_checkable
class Search(Protocol):
    """A way to search, passed as ``search=`` to an estimator or to `neighbor_graph`.

    If plain arrays are enough, use a function. An object with `build` can prepare the rows once,
    and is trusted to return everything that `Index.graph` specifies, except that it is never given
    `planned_for`, and `progress` only if the caller wants to be told.
    """

    def build(self, vectors: Matrix, metric: Metric = "euclidean") -> Index:
        """Prepare base rows for searches.

        Parameters
        ----------
        vectors : ndarray or csr_array, shape (n, d)
            Validated rows, finite, of any numeric type; a memory map stays one. Must not be written
            to.
        metric : str or callable, default="euclidean"
            As in `neighbor_graph`, but not "precomputed", for which nothing is searched.
            Unsupported metrics must be refused.

        Returns
        -------
        Index
            Or an object of any class with its method `graph`.
        """
