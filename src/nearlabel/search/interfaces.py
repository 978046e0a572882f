"""The interfaces of a search and an index, all that the methods know of them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from nearlabel.common.progress import Progress
from nearlabel.graph import NeighborGraph
from nearlabel.search.exact.distances import Metric


class Index(Protocol):
    """Base rows ready to be searched, as returned by the `build` of a `Search`.

    A model keeps its index and queries it repeatedly, also from several threads at once; it is
    pickled with the model. `neighbor_graph` queries it once.
    """

    def graph(
        self, k: int, queries: Any = None, *, n_jobs: int = 1, progress: Progress | None = None
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


@runtime_checkable
class Search(Protocol):
    """A way to search, passed as ``search=`` to an estimator or to `neighbor_graph`.

    If plain arrays are enough, use a function. An object with `build` can prepare the rows once,
    and is trusted to return everything that `Index.graph` specifies.
    """

    def build(self, vectors: Any, metric: Metric = "euclidean") -> Index:
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
        """
