"""Exact search by the first of four engines that can; what it leaves goes to the next.

A k-d tree in few dimensions; all distances for few rows, or bounds for many, by the compiled core;
NumPy. All of them decide by canonical distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Matrix, is_sparse
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_integer
from nearlabel.graph import NeighborGraph, index_type
from nearlabel.search.budgets import BLOCK_BYTES, KEPT_BYTES
from nearlabel.search.exact.compiled_index import CompiledIndex, compiled_index
from nearlabel.search.exact.core_rows import METRICS, are_few, core_rows
from nearlabel.search.exact.distances import Metric, check_metric, space, warn_if_slow
from nearlabel.search.exact.equal_rows import EqualRowsIndex, equal_rows
from nearlabel.search.exact.kd_tree import TreeIndex, tree_wins
from nearlabel.search.exact.numpy_index import NumpyIndex
from nearlabel.search.exact.reaching import all_reached
from nearlabel.search.exact.row_arithmetic import as_float
from nearlabel.search.interfaces import Index, Reached

_FEW = 1 / 16  # if at most this share of rows is left, NumPy searches them


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
    is_small = callable(metric) or are_few(vectors, vectors.shape[0])
    rows = None if is_small else equal_rows(vectors)
    if rows is None:
        return ExactIndex(vectors, metric, block_bytes)
    index = ExactIndex(rows.distinct(vectors), metric, block_bytes)
    return EqualRowsIndex(vectors, rows, metric, index)


class ExactIndex(Index):
    """Base rows that are searched exactly."""

    is_exact = True

    def __init__(self, vectors: Matrix, metric: Metric, block_bytes: int) -> None:
        self.vectors, self._metric, self._block_bytes = vectors, metric, block_bytes
        self._rows: Any = None  # in the form that the core measures
        if metric in METRICS and max(vectors.shape) < 2**31 and engine.core() is not None:
            self._rows = core_rows(vectors, str(metric), KEPT_BYTES)
        self._tree: TreeIndex | None = None
        self._compiled: CompiledIndex | None = None
        self._numpy: NumpyIndex | None = None
        if tree_wins(vectors, metric):
            self._tree = TreeIndex(space(vectors, metric), str(metric), block_bytes)
        elif not are_few(vectors, vectors.shape[0]):
            self._prepare()

    def _prepare(self) -> None:
        """Prepare the engine for many rows: the core, or NumPy if the core cannot."""
        if self._rows is not None:
            metric, size = str(self._metric), self._block_bytes
            self._compiled = compiled_index(self.vectors, metric, self._rows, size)
        if self._compiled is None:
            self._by_numpy()

    def __reduce__(self) -> Any:  # what was prepared is cheaper to prepare again than to store
        return ExactIndex, (self.vectors, self._metric, self._block_bytes)

    def graph(
        self,
        k: int,
        queries: Matrix | None = None,
        *,
        planned_for: int | None = None,  # noqa: ARG002
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find the k nearest base rows of each query; see `Index`."""
        return self._graph(k, queries, n_jobs, progress)

    def near(self, k: int, queries: Matrix, margin: float, *, n_jobs: int = 1) -> NeighborGraph:
        """Find those of the k nearest base rows of each query that are hardly farther than one.

        Those that are farther than the nearest by more than `margin` are -1 at infinite distance.
        """
        found = self._graph(k, queries, n_jobs, None, margin)
        is_beyond = found.distances > found.distances[:, :1] + margin
        found.indices[is_beyond], found.distances[is_beyond] = -1, np.inf
        return found

    def _graph(
        self,
        k: int,
        queries: Matrix,
        n_jobs: int,
        progress: Progress | None,
        margin: float = np.inf,
    ) -> NeighborGraph:
        """The k nearest base rows; those beyond a margin may be missing, see `near`."""
        base, alone = self.vectors, queries is None
        n, rows = base.shape[0], base if alone else matching(queries, base)
        m = rows.shape[0]
        found = NeighborGraph.unchecked(np.empty((m, k), index_type(n)), np.empty((m, k)), n)
        left = np.arange(m)
        tell = progress  # for the first engine that sees all rows
        if self._tree is not None:
            left = self._tree.search(rows, found, alone, n_jobs, _all_but_one(progress))
            tell = None
        elif self._rows is not None and are_few(base, m):
            asked = self._rows if alone else core_rows(rows, str(self._metric))
            engine.core().nearest_rows(asked, self._rows, alone, found.indices, found.distances)
            if progress is not None:
                progress(m, m)
            return found
        if len(left) > _FEW * m:
            if self._compiled is None and self._numpy is None:
                self._prepare()
            if self._compiled is not None:
                left = (
                    self._compiled.fill_among(found, n_jobs, tell)
                    if alone
                    else self._compiled.fill(rows, found, n_jobs, tell, margin=margin)
                )
                tell = None
        if len(left):
            self._by_numpy().fill(rows, left, found, alone, n_jobs, tell)
        if self._tree is not None and progress is not None:
            progress(m, m)
        return found

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
            found = self.graph(k, queries, n_jobs=n_jobs, progress=progress)
            return found, all_reached(core_rows(queries, str(self._metric)), self._rows, limits)
        if self._compiled is None and self._numpy is None:  # a tree does not support limits
            self._prepare()
        if self._compiled is None:
            found = self.graph(k, queries, n_jobs=n_jobs, progress=progress)
            return found, self._by_numpy().reached(queries, np.arange(m), limits, n_jobs)
        found = NeighborGraph.unchecked(np.empty((m, k), index_type(n)), np.empty((m, k)), n)
        left, reached = self._compiled.fill_and_reach(queries, found, limits, n_jobs, progress)
        if len(left):
            self._by_numpy().fill(queries, left, found, False, n_jobs, None)
            others = self._by_numpy().reached(queries, left, limits, n_jobs)
            reached = Reached.joined([reached, others])
        return found, reached

    def _by_numpy(self) -> NumpyIndex:
        """The fallback engine, prepared on first use."""
        if self._numpy is None:
            self._numpy = NumpyIndex(space(self.vectors, self._metric), self._block_bytes)
        return self._numpy


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
