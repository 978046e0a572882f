"""One graph for every subset of the rows: others are hidden in it, and short rows completed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nearlabel.common.arrays import Array, Matrix
from nearlabel.graph import NeighborGraph, index_type
from nearlabel.search.interfaces import Index


def neighbors_with_margin(k: int, n: int, hidden: int) -> int:
    """Neighbors to search among n rows so that k are left, in most rows, after hiding some.

    The number of hidden neighbors of a row is roughly binomial: the margin is four standard
    deviations.
    """
    share = min(hidden / n, 1 - 1 / n)
    return int(min(n - 1, np.ceil((k + 4 * np.sqrt(k * share)) / (1 - share)) + 1))


def restrict(
    graph: NeighborGraph,
    X: Matrix,
    keep: Array,
    k: int,
    build: Callable[[Matrix], Index],
    *,
    n_jobs: int = 1,
) -> tuple[NeighborGraph, NeighborGraph]:
    """Neighbors among some rows only, taken from the graph of all rows.

    Parameters
    ----------
    graph : NeighborGraph
        Of all n rows, each excluded from its own neighbors.
    X : ndarray or csr_array, shape (n, d)
        Vectors of the rows.
    keep : ndarray of bool, shape (n,)
        The rows that may be neighbors; they are renumbered, in their order.
    k : int
        Neighbors per row, or all that there are.
    build : callable
        Builds an `Index` of the kept vectors. Called only if hiding leaves some rows with fewer
        than k neighbors, which are then searched.
    n_jobs : int, default=1

    Returns
    -------
    kept, hidden : NeighborGraph
        Of the kept rows, each excluded from its own neighbors, and of the hidden ones. If `graph`
        is exact: bit for bit what a search of the kept rows finds. Otherwise the nearest of what it
        has found, with its recall.
    """
    number = np.full(len(graph), -1, index_type(len(graph)))
    base = np.flatnonzero(keep)
    number[base] = np.arange(len(base))
    hidden = np.flatnonzero(number < 0)
    graphs = [
        _visible(graph.take(base), number, min(k, len(base) - 1), len(base)),
        _visible(graph.take(hidden), number, min(k, len(base)), len(base)),
    ]
    index = None
    for (part, short), rows, own in zip(graphs, (base, hidden), (True, False), strict=True):
        if not len(short):
            continue
        index = build(X[base]) if index is None else index
        searched = index.graph(part.k + own, X[rows[short]], n_jobs=n_jobs)
        searched = searched.without(short) if own else searched
        # Distances stored as float64 would have ties in float32, in another order.
        kind = np.result_type(part.distances, searched.distances)
        part.distances = part.distances.astype(kind, copy=False)
        part.indices[short], part.distances[short] = searched.indices, searched.distances
    return graphs[0][0], graphs[1][0]


def _visible(
    graph: NeighborGraph, number: Array, k: int, n_base: int
) -> tuple[NeighborGraph, Array]:
    """The first k visible neighbors, and the rows with fewer, left to be filled."""
    numbered = number[graph.indices]
    indices, distances, short = first_visible(numbered, graph.distances, numbered >= 0, k)
    return NeighborGraph.unchecked(indices, distances, n_base, graph.recall), short


def first_visible(
    indices: Array, distances: Array, visible: Array, k: int
) -> tuple[Array, Array, Array]:
    """The first k visible neighbors of each row, and the rows with fewer.

    The entries of the latter are to be filled.
    """
    place = np.cumsum(visible, axis=1, dtype=np.int32)
    enough = place[:, -1] >= k
    taken = visible & (place <= k) & enough[:, None]
    shape = (len(indices), k)
    nearest, their_distances = np.zeros(shape, indices.dtype), np.zeros(shape, distances.dtype)
    nearest[enough] = indices[taken].reshape(-1, k)
    their_distances[enough] = distances[taken].reshape(-1, k)
    return nearest, their_distances, np.flatnonzero(~enough)
