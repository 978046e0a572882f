"""Approximate search by inverted lists, with a given recall.

Rows are divided into lists of near rows (`partition.py`). A query is compared with the rows of the
lists whose centers are near it, its probes (`probes.py`); among these its neighbors are exact, by
canonical distances. Queries near each other are searched together: one matrix product per list
serves all queries that probe it.

How many probes are needed is measured, not guessed: on some rows whose exact neighbors are
computed. The recall that a graph reports is measured on other such rows, in the final graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Matrix
from nearlabel.common.validation import check_integer, check_real
from nearlabel.search.approximate.list_index import ListIndex, takes_lists
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.equal_rows import EqualRowsIndex, equal_rows
from nearlabel.search.exact.index import ExactSearch
from nearlabel.search.exact.row_arithmetic import as_float, chunks
from nearlabel.search.interfaces import Index

METRICS = ("euclidean", "sqeuclidean", "cosine", "manhattan")
_SMALL, _LARGE = 1e-32, 1e38  # largest distances that leave room for smaller ones in float32
_FEWEST = 2**15  # minimum number of rows: exact search is faster for fewer


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
        return self._index(vectors, metric, is_auto=False)

    def _index(self, vectors: Matrix, metric: Metric, *, is_auto: bool) -> Index:
        recall = check_real(self.recall, "recall", low=0, high=1)
        seed = check_integer(self.random_state, "random_state", low=0)
        if not reads(vectors, metric):
            return ExactSearch().build(vectors, metric)
        rows = equal_rows(vectors)
        if rows is not None:
            index = self._index(rows.distinct(vectors), metric, is_auto=is_auto)
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
            return InvertedLists()._index(vectors, metric, is_auto=True)
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
    low, high = (as_float(np.array(some)) for some in zip(*ends, strict=True))
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
