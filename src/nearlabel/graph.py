"""The neighbor graph: the result of a search and the input of the methods."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers
from nearlabel.common.journal import save_tree
from nearlabel.common.mapped_arrays import checked
from nearlabel.common.validation import check_choice, check_integer, check_real

_MOST_ROWS = 2**48  # also the limit for sparse matrices that this package reads
_ROWS_AT_ONCE = 65536  # rows checked or converted together, so that temporaries stay small
ROWS_MEASURED = 512  # cheap compared with a search; estimates recall to about 0.001


@dataclass(frozen=True)
class Recall:
    """The share of the true neighbors that a search finds, measured on some rows.

    Decided by distance: a neighbor counts as found if it is as near as the k-th nearest row.
    So rows at equal distance may stand in for each other.
    """

    value: float  # share of the k neighbors, the mean over the rows
    standard_error: float  # of this mean
    rows: int  # how many rows, drawn at random, were compared with an exact search
    k: int  # neighbors of each row that were compared
    # The source of these rows: "graph", or "base" rows, each searched as if it were a query, in
    # place of queries, which may be few.
    sample: str = "graph"

    def __str__(self) -> str:
        rows = "rows" if self.sample == "graph" else f"{self.sample} rows"
        error = f"{self.value:.4f} ± {self.standard_error:.4f}"
        return f"{error} at k={self.k} on {self.rows} {rows}"


class NeighborGraph:
    """The k nearest base rows of each query row, nearest first.

    Rows are sorted by (distance, index); no row has a neighbor twice. A smaller k is a slice, so
    one search serves every k up to its own: see `head`.

    Parameters
    ----------
    indices : array-like of int, shape (n, k)
        Base rows, nearest first.
    distances : array-like of float, shape (n, k)
        Their distances.
    n_base : int
        Number of rows that were searched, up to 2**48.
    recall : Recall, optional
        The measured recall of an approximate search; None for an exact one.

    Examples
    --------
    >>> distances = [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0]]
    >>> graph = NeighborGraph([[1, 2], [0, 2], [1, 0]], distances, n_base=3)
    >>> graph
    NeighborGraph(n=3, k=2, n_base=3)
    >>> graph.head(1).indices.tolist()
    [[1], [0], [1]]
    """

    indices: Array
    distances: Array
    n_base: int
    recall: Recall | None

    def __init__(
        self, indices: Any, distances: Any, n_base: int, recall: Recall | None = None
    ) -> None:
        n_base = check_integer(n_base, "n_base", low=1, high=_MOST_ROWS)
        indices, distances = np.asarray(indices), np.asarray(distances)
        if indices.ndim != 2 or indices.shape != distances.shape or 0 in indices.shape:
            raise ValueError(
                "indices and distances must be 2-d, of one shape and not empty; "
                f"got shapes {indices.shape} and {distances.shape}"
            )
        if indices.dtype.kind not in "iu":
            raise TypeError(f"indices must be integers; got {indices.dtype}")
        if distances.dtype.kind not in "biuf":
            raise TypeError(f"distances must be real numbers; got {distances.dtype}")
        if distances.dtype not in (np.float32, np.float64):
            distances = distances.astype(np.float64)
        _check_rows(indices, distances, n_base)
        self.indices = indices.astype(index_type(n_base), copy=False)
        self.distances = distances
        self.n_base = n_base
        self.recall = recall

    @classmethod
    def unchecked(
        cls, indices: Array, distances: Array, n_base: int, recall: Recall | None = None
    ) -> NeighborGraph:
        """Make a graph from arrays known to be valid, without checking them."""
        graph = cls.__new__(cls)
        graph.indices, graph.distances, graph.n_base = indices, distances, n_base
        graph.recall = recall
        return graph

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file that `nearlabel.load` reads."""
        save_tree(path, self._tree())

    def _tree(self) -> dict[str, Any]:
        return {
            "class": "NeighborGraph",
            "indices": self.indices,
            "distances": self.distances,
            "n_base": self.n_base,
            **({} if self.recall is None else {"recall": asdict(self.recall)}),
        }

    @classmethod
    def _from_tree(cls, tree: Mapping[str, Any], version: int) -> NeighborGraph:  # noqa: ARG003
        recall = stored_recall(tree["recall"]) if "recall" in tree else None
        indices, distances = checked(tree["indices"]), checked(tree["distances"])
        return cls(indices, distances, tree["n_base"], recall)

    @property
    def k(self) -> int:
        """Number of neighbors in each row."""
        return int(self.indices.shape[1])

    def __len__(self) -> int:
        return int(self.indices.shape[0])

    def __repr__(self) -> str:
        recall = "" if self.recall is None else f", recall={self.recall}"
        return f"NeighborGraph(n={len(self)}, k={self.k}, n_base={self.n_base}{recall})"

    def head(self, k: int) -> NeighborGraph:
        """The graph of the k nearest neighbors only; shares memory with this one."""
        if type(k) is not int or not 0 < k <= self.k:
            k = check_integer(k, "k", low=1, high=self.k)
        return self.unchecked(self.indices[:, :k], self.distances[:, :k], self.n_base, self.recall)

    def rows(self, start: int, stop: int) -> NeighborGraph:
        """The graph of the query rows from `start` to before `stop`; shares memory with this."""
        return self.take(slice(start, stop))

    def take(self, rows: Array | slice) -> NeighborGraph:
        """The graph of some query rows, in the order given."""
        return self.unchecked(self.indices[rows], self.distances[rows], self.n_base, self.recall)

    def without(self, left_out: Array) -> NeighborGraph:
        """The graph with one neighbor less, in which row i does not have the base row left_out[i].

        A row that did not have it anyway loses its last neighbor.
        """
        kept = self.indices != left_out[:, None]
        kept[kept.all(axis=1), -1] = False
        shape = (len(self), self.k - 1)
        indices, distances = (part[kept].reshape(shape) for part in (self.indices, self.distances))
        return self.unchecked(indices, distances, self.n_base, self.recall)

    def blocks(self, size: int) -> Iterator[tuple[slice, NeighborGraph]]:
        """Yield the graph in runs of at most `size` query rows, each with its place."""
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self))), self.rows(start, start + size)

    def has_self(self) -> bool:
        """Whether some row of a square graph is its own neighbor."""
        return any(
            bool(np.any(block.indices == np.arange(place.start, place.stop)[:, None]))
            for place, block in self.blocks(_ROWS_AT_ONCE)
        )

    def to_csr(self) -> Csr:
        """The graph in scikit-learn's precomputed form.

        Returns
        -------
        csr_array of float, shape (n, n_base)
            Distances, sorted from near to far within each row; zeros are stored explicitly.
            Accepted by scikit-learn's estimators with ``metric="precomputed"``.
        """
        n, k = self.indices.shape
        indptr = np.arange(0, n * k + 1, k)
        data = self.distances.flatten(), self.indices.flatten(), indptr
        return sparse.csr_array(data, shape=(n, self.n_base))

    @classmethod
    def from_csr(
        cls, matrix: Any, k: int | None = None, *, drop_diagonal: bool | None = None
    ) -> NeighborGraph:
        """Read a graph in scikit-learn's precomputed form.

        Parameters
        ----------
        matrix : sparse matrix of float, shape (n, n_base)
            Stored entries are distances, zeros included, in any order.
        k : int, optional
            Neighbors to keep per row; by default as many as the shortest row has.
        drop_diagonal : bool, optional
            Whether entries on the diagonal are distances of rows to themselves and dropped. By
            default True for a square graph.

        Notes
        -----
        Neighbors at equal distance are sorted by row number. Which of several rows at the same
        distance are in the graph was decided when the graph was made.
        """
        if not sparse.issparse(matrix) or matrix.ndim != 2:
            raise TypeError(f"matrix must be a 2-d sparse matrix; got {type(matrix).__name__}")
        csr = sparse.csr_array(matrix)
        if drop_diagonal is None:
            drop_diagonal = csr.shape[0] == csr.shape[1]
        row = row_numbers(csr)
        column, distance = csr.indices, csr.data
        if drop_diagonal:
            kept = row != column
            row, column, distance = row[kept], column[kept], distance[kept]
        lengths = np.bincount(row, minlength=csr.shape[0])
        shortest = int(lengths.min()) if lengths.size else 0
        k = shortest if k is None else check_integer(k, "k", low=1)
        if shortest < max(k, 1):
            raise ValueError(
                f"row {lengths.argmin()} of the graph has {shortest} neighbors"
                f"{' besides itself' if drop_diagonal else ''}; at least {max(k, 1)} are required"
            )
        order = np.lexsort((column, distance, row))
        first = np.cumsum(lengths) - lengths
        taken = order[first[:, None] + np.arange(k)]
        return cls(column[taken], distance[taken], csr.shape[1])


def sort_equally_far(indices: Array, distances: Array) -> None:
    """Sort neighbors in place that are sorted by distance, but not by (distance, index)."""
    tied = np.flatnonzero((distances[:, 1:] <= distances[:, :-1]).any(axis=1))
    order = np.lexsort((indices[tied], distances[tied]), axis=1)
    indices[tied] = np.take_along_axis(indices[tied], order, axis=1)


def index_type(n_base: int) -> Any:
    """The smallest integer type that holds the numbers of `n_base` rows."""
    return np.int32 if n_base <= np.iinfo(np.int32).max else np.int64


def as_self_graph(graph: Any) -> NeighborGraph:
    """A graph of training rows among themselves: NeighborGraph, or in scikit-learn's form."""
    found = _as_graph(graph, drop_diagonal=True)
    if len(found) != found.n_base:
        raise ValueError(
            "graph must be square: the neighbors of each training row among the training rows; "
            f"got {len(found)} rows over {found.n_base}"
        )
    if found.has_self():
        raise ValueError("graph has a row as its own neighbor; leave each row out of its neighbors")
    return found


def as_query_graph(graph: Any, n_base: int) -> NeighborGraph:
    """A graph of queries over `n_base` training rows: NeighborGraph, or in scikit-learn's form."""
    found = _as_graph(graph, drop_diagonal=False)
    if found.n_base != n_base:
        raise ValueError(f"graph is over {found.n_base} rows; the model was fitted on {n_base}")
    return found


def _as_graph(graph: Any, *, drop_diagonal: bool) -> NeighborGraph:
    if isinstance(graph, NeighborGraph):
        return graph
    if sparse.issparse(graph):
        return NeighborGraph.from_csr(graph, drop_diagonal=drop_diagonal)
    raise TypeError(
        "graph must be a NeighborGraph or a sparse matrix in scikit-learn's precomputed form; "
        f"got {type(graph).__name__}"
    )


def stored_recall(tree: Mapping[str, Any]) -> Recall:
    """The recall stored in a file; an error if it is not valid."""
    return Recall(
        check_real(tree["value"], "recall", low=0, high=1),
        check_real(tree["standard_error"], "standard_error", low=0),
        check_integer(tree["rows"], "rows", low=1),
        check_integer(tree["k"], "k", low=1),
        check_choice(tree["sample"], "sample", ("graph", "base")),
    )


def _check_rows(indices: Array, distances: Array, n_base: int) -> None:
    """Raise an error for invalid rows; the message names the first one."""
    for start in range(0, len(indices), _ROWS_AT_ONCE):
        index = indices[start : start + _ROWS_AT_ONCE]
        distance = distances[start : start + _ROWS_AT_ONCE]
        same = distance[:, 1:] == distance[:, :-1]
        rising = (distance[:, 1:] > distance[:, :-1]) | (same & (index[:, 1:] > index[:, :-1]))
        ordered = np.sort(index, axis=1)
        for wrong, what in (
            ((index < 0) | (index >= n_base), f"an index outside 0 to {n_base - 1}"),
            (~(distance >= 0) | np.isinf(distance), "a distance that is negative or not finite"),
            (ordered[:, 1:] == ordered[:, :-1], "a neighbor twice"),
            (~rising, "neighbors that are not sorted by (distance, index)"),
        ):
            bad = wrong.any(axis=1)
            if bad.any():
                raise ValueError(f"row {start + int(bad.argmax())} of the graph has {what}")


def recall_of(found: Floats, exact: NeighborGraph, sample: str = "graph") -> Recall:
    """The recall of neighbors at canonical distances `found`, (n, k), given the exact ones."""
    farthest = exact.distances[:, -1:].astype(found.dtype)
    return recall_of_shares(np.mean(found <= farthest, axis=1), exact.k, sample)


def recall_of_shares(shares: Floats, k: int, sample: str = "graph") -> Recall:
    """The mean recall of rows, given the share of its k neighbors that each has found."""
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    return Recall(float(shares.mean()), float(error), len(shares), k, sample)


def sample_rows(n: int, seed: int, rows: int = ROWS_MEASURED) -> Array:
    """Some of n rows, drawn at random, in their order."""
    return np.sort(np.random.default_rng(seed).choice(n, min(rows, n), replace=False))
