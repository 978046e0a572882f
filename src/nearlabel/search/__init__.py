"""Nearest neighbor search: a service below the methods, which never search themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Floats, Matrix, MatrixLike
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_integer, check_n_jobs, check_vectors
from nearlabel.graph import NeighborGraph, recall_of, sample_rows
from nearlabel.search.approximate.inverted_lists import InvertedLists, ListIndex
from nearlabel.search.exact.distances import Metric, check_metric, space, warn_if_slow
from nearlabel.search.exact.index import ExactIndex, ExactSearch, exact_index, matching
from nearlabel.search.exact.per_label import class_neighbors
from nearlabel.search.faiss_index import FaissIndex
from nearlabel.search.foreign import ForeignIndex, FunctionIndex, TransformerIndex, UserIndex
from nearlabel.search.interfaces import Index, Search
from nearlabel.search.living.kept_neighbors import HeadChanges, KeptNeighbors
from nearlabel.search.living.living_index import LivingIndex
from nearlabel.search.precomputed import PrecomputedIndex, given_distances
from nearlabel.search.reordered_rows import ReorderedRows
from nearlabel.search.restricted import neighbors_with_margin, restrict
from nearlabel.search.vector_store import VectorStore

__all__ = [
    "AutoSearch",
    "ExactIndex",
    "ExactSearch",
    "HeadChanges",
    "Index",
    "InvertedLists",
    "KeptNeighbors",
    "ListIndex",
    "LivingIndex",
    "Metric",
    "Progress",
    "Search",
    "VectorStore",
    "build_index",
    "check_metric",
    "check_search",
    "class_neighbors",
    "is_plugged",
    "is_precomputed",
    "neighbor_graph",
    "neighbors_with_margin",
    "pair_distances",
    "recall_of",
    "restrict",
    "sample_rows",
    "takes_lists",
]


MOST_WORK = 10**13  # rows x rows x features: search="auto" is exact up to this
_FEWEST_FEATURES = 7  # with fewer, the k-d tree is fast for any number of rows


def takes_lists(shape: tuple[int, ...]) -> bool:
    """Whether search="auto" uses lists for this many rows and features."""
    n, d = shape
    return n * n * d > MOST_WORK and d >= _FEWEST_FEATURES


@dataclass(frozen=True)
class AutoSearch:
    """Exact search, or inverted lists if that would take too long.

    The choice depends only on the numbers of rows and features, never on the machine.
    What `InvertedLists` does not support is searched exactly.
    """

    def build(self, vectors: Matrix, metric: Metric = "euclidean") -> Index:
        """Prepare base rows for searches."""
        if takes_lists(vectors.shape):
            return InvertedLists().build(vectors, metric)
        warn_if_slow(check_metric(metric))
        return exact_index(vectors, metric)


SEARCHES: dict[str, type[Search]] = {
    "auto": AutoSearch,
    "exact": ExactSearch,
    "approximate": InvertedLists,
}


@dataclass(frozen=True)
class PluggedSearch:
    """A search by an external object, wrapped in the kind of index that can query it."""

    kind: type[ForeignIndex]
    source: object

    def build(self, vectors: Matrix, metric: Metric = "euclidean") -> ForeignIndex:
        """Prepare base rows for searches."""
        return self.kind(vectors, metric, self.source)


def neighbor_graph(
    X: MatrixLike,
    k: int,
    queries: MatrixLike | None = None,
    *,
    metric: Metric = "euclidean",
    search: object = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> NeighborGraph:
    """Find the k nearest rows of X for each query.

    Exact results are exact: neighbors are ordered by (canonical float64 distance, row), regardless
    of block size, number of threads or BLAS. An approximate graph reports its `recall`.

    Parameters
    ----------
    X : array-like or sparse matrix, shape (n, d)
        Rows to search; read in blocks, so a memory map works.
    k : int
        Neighbors per row: from 1 to n, without queries to n - 1.
    queries : array-like or sparse matrix, shape (m, d), optional
        By default each row of X is searched among the others. It is excluded by its row number, so
        that an equal row remains its neighbor at distance zero.
    metric : str or callable, default="euclidean"
        "euclidean", "sqeuclidean", "cosine", "manhattan"; "chebyshev", "hamming", "jaccard" and a
        function of two rows are slower. "precomputed": X (with queries: `queries`) contains
        distances, dense or as scikit-learn's sparse graph.
    search : {"auto", "exact", "approximate"} or object, default="auto"
        "approximate" is `InvertedLists`, which finds 99 % of the neighbors and measures this
        recall. "auto" is exact up to 10**13 rows x rows x features (280,000 rows of 128 features),
        and approximate beyond. Also accepted: a faiss index, empty or filled with X; a transformer
        like scikit-learn's `KNeighborsTransformer`; a function of (X, queries, k) that returns
        (indices, distances); or a `Search`, an object with a method ``build(vectors, metric)``.
    n_jobs : int, optional
        Threads; -1 for all cores. The result does not depend on it.
    progress : callable, optional
        Called with (rows done, total rows) after each block.

    Returns
    -------
    NeighborGraph

    Examples
    --------
    >>> import nearlabel as nl
    >>> graph = nl.neighbor_graph([[0.0], [1.0], [1.0], [5.0]], k=2)
    >>> graph.indices.tolist()
    [[1, 2], [2, 0], [1, 0], [1, 2]]
    """
    vectors = check_vectors(X, "X")
    rows = None if queries is None else check_vectors(queries, "queries")
    n, d = vectors.shape
    if rows is not None and rows.shape[1] != d:
        raise ValueError(f"queries must have as many features as X, {d}; got {rows.shape[1]}")
    if rows is None and n < 2:
        raise ValueError("X has 1 sample; neighbors among its rows need at least 2")
    k = check_integer(k, "k", low=1, high=n - 1 if rows is None else n)
    index = build_index(vectors, metric, search)
    return index.graph(k, rows, n_jobs=check_n_jobs(n_jobs), progress=progress)


def build_index(vectors: Matrix, metric: Metric, search: object) -> Index:
    """An index of base rows, built by the search that `search` names or is."""
    how = check_search(search)
    if isinstance(vectors, ReorderedRows):  # of a file with lists, which are not used any more
        vectors = np.asarray(vectors)
    if not is_precomputed(metric):
        index = how.build(vectors, metric)
        return index if isinstance(index, Index) else UserIndex(vectors, metric, how, index)
    if isinstance(how, PluggedSearch):
        raise ValueError(
            "metric='precomputed' means that X contains distances, which no external search reads: "
            f"search must be 'auto' or 'exact'; got {search!r}"
        )
    return PrecomputedIndex(vectors)


def check_search(search: object) -> Search:
    """The search that `search` names or is; otherwise an error lists what is accepted."""
    if isinstance(search, str) and search in SEARCHES:
        return SEARCHES[search]()
    if not isinstance(search, type):
        # Some kinds of faiss index have a method `build` that does something else.
        if isinstance(search, Search) and not FaissIndex.recognizes(search):
            return search
        for kind in (FaissIndex, TransformerIndex, FunctionIndex):
            if kind.recognizes(search):
                return PluggedSearch(kind, search)
    raise ValueError(
        "search must be 'auto', 'exact', 'approximate', a faiss index, a transformer like "
        "scikit-learn's KNeighborsTransformer, a function of (X, queries, k) that returns "
        "(indices, distances), or an object with a method build(vectors, metric); "
        f"got {search!r}"
    )


def is_plugged(search: object) -> bool:
    """Whether a search is external and limited to a fixed number of neighbors."""
    return isinstance(check_search(search), PluggedSearch)


def pair_distances(
    vectors: Matrix, metric: Metric, queries: Matrix, query_rows: Array, base_rows: Array
) -> Floats:
    """Canonical distances of the pairs (query_rows[i], base_rows[i])."""
    if is_precomputed(metric):
        return given_distances(queries, query_rows, base_rows)
    return space(vectors, metric).distances(matching(queries, vectors), query_rows, base_rows)


def is_precomputed(metric: Metric) -> bool:
    """Whether distances are given instead of vectors."""
    return isinstance(metric, str) and metric == "precomputed"
