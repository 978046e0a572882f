"""What a search and an index are: all that the methods know of them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from nearlabel.common.progress import Progress
from nearlabel.graph import NeighborGraph
from nearlabel.search.exact.distances import Metric


class Index(Protocol):
    """Base rows that are ready to be searched: what the `build` of a `Search` gives.

    A model keeps its index and asks it again and again, from several threads at once, too; it is
    pickled with the model. `neighbor_graph` asks it once.
    """

    def graph(
        self, k: int, queries: Any = None, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """Find the k nearest base rows of each query.

        Parameters
        ----------
        k : int
            Neighbors of each row: from 1 to the number n of base rows, without queries to n - 1.
        queries : ndarray or csr_array, shape (m, d), optional
            Checked rows, not always in the form, dense or CSR, of the base rows. Without them each
            base row is searched among the others: it is left out by its number, not by its
            distance, so that an equal row stays its neighbor.
        n_jobs : int, default=1
            Threads. The result must not depend on it.
        progress : callable, optional
            To be called with (rows done, rows in all) now and then, and at the end.

        Returns
        -------
        NeighborGraph
            Exactly k neighbors of each row, sorted by (distance, index), over n base rows. Made by
            ``NeighborGraph(indices, distances, n_base=n)`` it is checked; a search that is not
            exact says how much it finds by ``recall=``, if it knows.
        """


@runtime_checkable
class Search(Protocol):
    """A way to search, given as the ``search=`` of an estimator or of `neighbor_graph`.

    For what answers in plain arrays a function is enough. An object with `build` can prepare the
    rows once, and is trusted with the whole of what `Index.graph` asks for.
    """

    def build(self, vectors: Any, metric: Metric = "euclidean") -> Index:
        """Prepare base rows for searches.

        Parameters
        ----------
        vectors : ndarray or csr_array, shape (n, d)
            Checked rows, finite, of any numeric type; a memory map stays one. Not to be written to.
        metric : str or callable, default="euclidean"
            As in `neighbor_graph`, but not "precomputed", for which nothing is searched. A metric
            that the search does not have must be refused.

        Returns
        -------
        Index
        """
