"""Exact search by the first of four engines that can; what it leaves goes to the next.

A k-d tree in few dimensions; all distances for few rows, or bounds for many, by the compiled core;
NumPy. All of them decide by canonical distances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Matrix, is_sparse
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_integer
from nearlabel.graph import NeighborGraph, index_type
from nearlabel.search.budgets import BLOCK_BYTES, KEPT_BYTES
from nearlabel.search.exact.compiled_index import CompiledIndex, compiled_index
from nearlabel.search.exact.distances import Metric, check_metric, space, warn_if_slow
from nearlabel.search.exact.equal_rows import without_copies
from nearlabel.search.exact.kd_tree import POWERS, TreeIndex
from nearlabel.search.exact.numpy_index import NumpyIndex
from nearlabel.search.exact.reaching import all_reached
from nearlabel.search.exact.row_arithmetic import METRICS, CoreObject, as_float, core_rows
from nearlabel.search.interfaces import Index, Reached

_MOST_FEATURES = 8  # of rows in a k-d tree
_FEW_LEFT = 1 / 16  # if at most this share of rows is left, NumPy searches them
_FEW = 2**18  # differences of features; benchmarks/special_ways.py measures them
# benchmarks/living_models.py measures them.
_FEWEST_ADDED = 4096  # rows searched beside an index before all are indexed together,
_MOST_ADDED = 1 / 8  # or this share of its rows
_MOST_REMOVED = 1 / 2  # of its rows: then a search among the others alone is faster


@dataclass(frozen=True)
class ExactSearch:
    """Search that compares every query with every base row.

    Parameters
    ----------
    block_bytes : int, default=2**26
        Approximate memory of the temporary matrices of a search, over all threads. It affects the
        time, never the result. The compiled core additionally keeps the rows in float32, or as
        bytes, up to 256 MiB, and lists of 8 (2 k + 16) bytes per row.
    """

    block_bytes: int = BLOCK_BYTES

    def build(self, vectors: Matrix, metric: Metric = "euclidean") -> Index:
        """Prepare base rows for searches."""
        block_bytes = check_integer(self.block_bytes, "block_bytes", low=1)
        warn_if_slow(check_metric(metric))
        return exact_index(vectors, metric, block_bytes)


def exact_index(vectors: Matrix, metric: Metric, block_bytes: int = BLOCK_BYTES) -> Index:
    """An exact index of base rows; if many are equal, each is searched once."""
    build = partial(ExactIndex, metric=metric, block_bytes=block_bytes)
    is_small = callable(metric) or are_few(vectors, vectors.shape[0])
    return build(vectors) if is_small else without_copies(vectors, metric, build)


class ExactIndex(Index):
    """Base rows that are searched exactly."""

    is_exact = True

    def __init__(self, vectors: Matrix, metric: Metric, block_bytes: int) -> None:
        self.vectors, self._metric, self._block_bytes = vectors, metric, block_bytes
        self._rows: CoreObject = None  # in the form that the core measures
        if metric in METRICS and max(vectors.shape) < 2**31 and engine.core() is not None:
            self._rows = core_rows(vectors, str(metric), KEPT_BYTES)
        self._tree: TreeIndex | None = None
        if tree_wins(vectors, metric):
            self._tree = TreeIndex(space(vectors, metric), str(metric), block_bytes)

    @cached_property
    def compiled(self) -> CompiledIndex | None:
        """The engine for many rows, prepared on first use; None if the core cannot search them."""
        if self._rows is None:
            return None
        return compiled_index(self.vectors, str(self._metric), self._rows, self._block_bytes)

    @cached_property
    def by_numpy(self) -> NumpyIndex:
        """The engine for what the others leave, prepared on first use."""
        return NumpyIndex(space(self.vectors, self._metric), self._block_bytes)

    def __reduce__(
        self,
    ) -> tuple[
        type[ExactIndex], tuple[object, ...]
    ]:  # what was prepared is cheaper to prepare again than to store
        return ExactIndex, (self.vectors, self._metric, self._block_bytes)

    def graph(
        self,
        k: int,
        queries: Matrix | None = None,
        *,
        planned_for: int | None = None,  # noqa: ARG002
        margin: float = np.inf,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find the k nearest base rows of each query; see `Index`.

        Rows that are farther than the nearest by more than `margin` may be missing.
        """
        base, alone = self.vectors, queries is None
        n, rows = base.shape[0], base if alone else matching(queries, base)
        m = rows.shape[0]
        measures_all = self._tree is None and self._rows is not None and are_few(base, m)
        graph = NeighborGraph.unchecked(np.empty((m, k), index_type(n)), np.empty((m, k)), n)
        left = np.arange(m)
        tell = progress  # for the first engine that sees all rows
        if self._tree is not None:
            left = self._tree.search(rows, graph, alone, n_jobs, _all_but_one(progress))
            tell = None
        elif measures_all:
            asked = self._rows if alone else core_rows(rows, str(self._metric))
            engine.core().nearest_rows(asked, self._rows, alone, graph.indices, graph.distances)
            if progress is not None:
                progress(m, m)
            return graph
        if len(left) > _FEW_LEFT * m:
            compiled = self.compiled
            if compiled is not None and alone:
                left = compiled.fill_among(graph, n_jobs, tell)
            elif compiled is not None:
                left = compiled.fill(rows, graph, n_jobs, tell, margin=margin)
            tell = None if compiled is not None else tell
        if len(left):
            self.by_numpy.fill(rows, left, graph, alone, n_jobs, tell)
        if self._tree is not None and progress is not None:
            progress(m, m)
        return graph

    def nearest_and_reached(
        self,
        queries: Matrix,
        k: int,
        limits: Array,
        *,
        planned_for: int | None = None,  # noqa: ARG002
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> tuple[NeighborGraph, Reached]:
        """Find the k nearest base rows of each query, and rows with a query within their limit."""
        base, queries = self.vectors, matching(queries, self.vectors)
        m, n = queries.shape[0], base.shape[0]
        if self._rows is not None and are_few(base, m):
            graph = self.graph(k, queries, n_jobs=n_jobs, progress=progress)
            return graph, all_reached(core_rows(queries, str(self._metric)), self._rows, limits)
        if self.compiled is None:  # a tree does not support limits
            graph = self.graph(k, queries, n_jobs=n_jobs, progress=progress)
            return graph, self.by_numpy.reached(queries, np.arange(m), limits, n_jobs)
        graph = NeighborGraph.unchecked(np.empty((m, k), index_type(n)), np.empty((m, k)), n)
        left, reached = self.compiled.fill_and_reach(queries, graph, limits, n_jobs, progress)
        if len(left):
            self.by_numpy.fill(queries, left, graph, False, n_jobs, None)
            others = self.by_numpy.reached(queries, left, limits, n_jobs)
            reached = Reached.joined([reached, others])
        return graph, reached

    def renewal(self, added: int, removed: int) -> Callable[[Matrix, Array], Index] | None:
        """Index all rows anew if many were added, or most removed."""
        n = self.vectors.shape[0]
        if added <= max(_FEWEST_ADDED, _MOST_ADDED * n) and removed <= _MOST_REMOVED * n:
            return None
        return lambda vectors, _: exact_index(vectors, self._metric, self._block_bytes)


def are_few(vectors: Matrix, count: int) -> bool:
    """Whether measuring all distances of `count` queries is as fast as preparing bounds."""
    n, d = vectors.shape
    # A stored feature takes as long as this many dense ones.
    terms = 8 * (1 + vectors.nnz // n) if is_sparse(vectors) else d
    return bool(count * n * terms <= _FEW)


def tree_wins(vectors: Matrix, metric: Metric) -> bool:
    """Whether a tree is faster than comparing all rows, as measured: few features, many rows."""
    if is_sparse(vectors) or not isinstance(metric, str) or metric not in POWERS:
        return False
    n, d = vectors.shape
    # Each further feature needs four times the rows; NumPy is much slower than the core.
    return bool(d <= _MOST_FEATURES and n >= (200 if engine.core() else 12) * 4**d)


def _all_but_one(progress: Progress | None) -> Progress | None:
    """Report progress except the end: something may be left to do."""
    return None if progress is None else lambda done, n: progress(min(done, n - 1), n)


def matching(queries: Matrix, base: Matrix) -> Matrix:
    """`queries` in the form, dense or CSR, of the base rows."""
    if is_sparse(base) and not is_sparse(queries):
        return sparse.csr_array(as_float(queries))
    if is_sparse(queries) and not is_sparse(base):
        return np.asarray(queries.toarray())
    return queries
