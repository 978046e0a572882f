"""Exact search: bounds on all distances in blocks, canonical distances where these leave it open.

Let U be the largest upper bound of some k base rows. At least k rows are within U, so a row whose
lower bound is above U is not among the k nearest. All other rows are candidates; their canonical
distances decide, ties by row. Nothing has to be searched again, whatever the data: bounds that say
little only make the list of candidates longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Floats
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.common.validation import check_integer
from nearlabel.graph import NeighborGraph, index_type
from nearlabel.search.exact.distances import Bounds, Metric, Space, space, warn_if_slow
from nearlabel.search.exact.kd_tree import TreeIndex, tree_wins
from nearlabel.search.exact.packed_bounds import products_for
from nearlabel.search.exact.row_arithmetic import as_float
from nearlabel.search.exact.shortlist import CompiledIndex, can_read

_FEW = 1 / 16  # share of rows left to do up to which NumPy does them, one by one
BYTES_A_PAIR = 26  # bounds 8, a sparse product or a partition 12, masks and candidates


@dataclass(frozen=True)
class ExactSearch:
    """Search that compares every query with every base row.

    Parameters
    ----------
    block_bytes : int, default=2**26
        About how much memory the temporary matrices of a search take, over all threads. It changes
        the time, never the result. The compiled core keeps, beside these, the rows in float32, up
        to 256 MiB, and lists of 8 (2 k + 16) bytes a row.
    """

    block_bytes: int = 2**26

    def build(self, vectors: Any, metric: Metric = "euclidean") -> ExactIndex:
        """Prepare base rows for searches."""
        block_bytes = check_integer(self.block_bytes, "block_bytes", low=1)
        index = ExactIndex(vectors, metric, block_bytes)
        warn_if_slow(metric)
        return index


class ExactIndex:
    """Base rows that are ready to be searched."""

    def __init__(self, vectors: Any, metric: Metric, block_bytes: int) -> None:
        self._space = space(vectors, metric)
        self._metric, self._block_bytes = metric, block_bytes
        self._tree: TreeIndex | None = None
        if tree_wins(vectors, metric):
            self._tree = TreeIndex(self._space, str(metric), block_bytes)
        elif self._compiled is None:
            self._ready_space  # noqa: B018 - before the first search, as the others are

    @cached_property
    def _compiled(self) -> CompiledIndex | None:
        vectors, metric = self._space.vectors, self._metric
        if engine.core() is None or not can_read(vectors):
            return None
        products = products_for(vectors, metric)
        if products is None:
            return None
        return CompiledIndex(vectors, str(metric), products, self._block_bytes)

    @cached_property
    def _ready_space(self) -> Space:
        self._space.prepare()
        return self._space

    def __reduce__(self) -> Any:  # what was prepared is cheaper to prepare again than to store
        return ExactIndex, (self._space.vectors, self._metric, self._block_bytes)

    def graph(
        self,
        k: int,
        queries: Any = None,
        *,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find the k nearest base rows of each query.

        Without queries: of each base row, itself left out.
        """
        base = self._space.vectors
        rows, alone = (base, True) if queries is None else (matching(queries, base), False)
        shape, n_base = (rows.shape[0], k), base.shape[0]
        found = NeighborGraph.unchecked(
            np.empty(shape, index_type(n_base)), np.empty(shape), n_base
        )
        left = np.arange(len(found))
        tell = progress  # for whoever looks at all rows first
        if self._tree is not None:
            left = self._tree.search(rows, found, alone, n_jobs, _all_but_one(tell))
            tell = None
        if len(left) > _FEW * len(found) and self._compiled is not None:
            if alone:
                left = self._compiled.among(found, n_jobs, tell)
                tell = None
            elif self._compiled.reaches(rows):
                left = self._compiled.nearest(rows, found, n_jobs, tell)
                tell = None
        if len(left):
            self._by_bounds(rows, left, found, alone, n_jobs, tell)
        if self._tree is not None and progress is not None:
            progress(len(found), len(found))
        return found

    def _by_bounds(
        self,
        rows: Any,
        chosen: Array,
        found: NeighborGraph,
        alone: bool,
        n_jobs: int,
        progress: Progress | None,
    ) -> None:
        """Fill the chosen rows of a graph, with NumPy."""
        ready = self._ready_space

        def search(block: slice) -> None:
            some = chosen[block]
            part = rows[some]
            found.indices[some], found.distances[some] = nearest(
                ready.bounds(part),
                lambda query, base_row: ready.distances(part, query, base_row),
                found.k,
                some if alone else None,
            )

        n = len(chosen)
        bytes_a_row = max(BYTES_A_PAIR * found.n_base, 8 * ready.width)
        step = max(1, self._block_bytes // (bytes_a_row * n_jobs))
        step = min(step, -(-n // n_jobs))  # work for every thread
        run_blocks(search, n, step, n_jobs, progress)


def _all_but_one(progress: Progress | None) -> Progress | None:
    """Tell of progress, but not of the end: something may be left to do."""
    return None if progress is None else lambda done, n: progress(min(done, n - 1), n)


def nearest(
    bounds: Bounds,
    distance: Callable[[Array, Array], Floats],
    k: int,
    itself: Array | None = None,
) -> tuple[Array, Floats]:
    """The k nearest columns of each row by (distance, column), and their distances.

    Parameters
    ----------
    bounds : Bounds
        Of the distances between n rows and all columns; its lower bounds may be written to.
    distance : callable
        Distances of pairs of a row and a column.
    k : int
    itself : ndarray of shape (n,), optional
        For each row a column that is left out.
    """
    lower = bounds.lower
    n = len(lower)
    if itself is not None:
        lower[np.arange(n), itself] = np.inf
    row, column = _candidates(bounds, k)
    if itself is not None:
        other = column != itself[row]
        row, column = row[other], column[other]
    distances = distance(row, column)
    order = np.lexsort((distances, row))  # stable: equal distances stay in the order of columns
    taken = order[_firsts(row, n)[:, None] + np.arange(k)]
    found = distances[taken]
    if not np.isfinite(found).all():
        raise ValueError("a distance to a neighbor is too large for float64; rescale X")
    return column[taken], found


def _candidates(bounds: Bounds, k: int) -> tuple[Array, Array]:
    """Pairs of a row and a column that may be among the row's k nearest, in order."""
    lower = bounds.lower
    n, n_base = lower.shape
    if k == n_base:
        return np.divmod(np.arange(lower.size), n_base)
    # Any k columns give a valid bound. The nearest k of every stride-th column are found in a
    # fraction of the time of the nearest k of all, and let pass about stride times k columns.
    stride = max(1, int(np.sqrt(n_base / k) / 2))
    some = stride * np.argpartition(lower[:, ::stride], k - 1, axis=1)[:, :k]
    within = bounds.upper(np.arange(n)[:, None], some).max(axis=1)
    row, column = np.divmod(np.flatnonzero(lower <= within[:, None]), n_base)
    if stride > 1:  # the nearest k of those that passed give a tight bound
        first = _firsts(row, n)
        place = np.arange(len(row)) - first[row]
        passed = np.full((n, int(place.max()) + 1), np.inf)
        passed[row, place] = bounds.upper(row, column)
        within = np.partition(passed, k - 1, axis=1)[:, k - 1]
        kept = lower[row, column] <= within[row]
        row, column = row[kept], column[kept]
    return row, column


def _firsts(row: Array, n: int) -> Array:
    """Where the pairs of each of n rows begin, in pairs that are sorted by row."""
    return np.searchsorted(row, np.arange(n))


def matching(queries: Any, base: Any) -> Any:
    """`queries` in the form, dense or CSR, of the base rows."""
    if sparse.issparse(base) and not sparse.issparse(queries):
        return sparse.csr_array(as_float(queries))
    if sparse.issparse(queries) and not sparse.issparse(base):
        return queries.toarray()
    return queries
