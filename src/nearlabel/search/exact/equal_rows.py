"""Equal rows: each distinct row is searched once, and its result serves all its copies.

Copies are at the same distance from every query, so no bound separates them: a search among all
rows would measure every one of them. The k nearest rows are copies of the k nearest distinct rows,
if these are ordered by (distance, lowest row number).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Matrix, is_sparse, runs
from nearlabel.common.progress import Progress, Stages
from nearlabel.graph import NeighborGraph, Recall, index_type
from nearlabel.search.budgets import ELEMENTS_AT_ONCE
from nearlabel.search.exact.distances import Metric, space
from nearlabel.search.exact.row_arithmetic import as_float, chunks
from nearlabel.search.interfaces import Index, Reached
from nearlabel.search.reordered_rows import ordered_rows

Build = Callable[[Matrix], Index]
_WORTH_WHILE = 7 / 8  # largest share of distinct rows for which it pays


@dataclass(frozen=True)
class EqualRows:
    """Which rows are equal: distinct rows, in the order of their first copies, and all copies.

    Attributes
    ----------
    number : ndarray of int, shape (n,)
        The distinct row of each row.
    copies : ndarray of int, shape (n,)
        Rows grouped by distinct row, in order.
    starts : ndarray of int, shape (n_distinct + 1,)
        Where the copies of each distinct row start.
    """

    number: Array
    copies: Array
    starts: Array

    def __len__(self) -> int:
        return len(self.starts) - 1

    def distinct(self, vectors: Matrix) -> Matrix:
        """A copy of the distinct rows."""
        first = self.copies[self.starts[:-1]]
        if is_sparse(vectors):
            return vectors[first]
        return ordered_rows(vectors, first, vectors.dtype)

    def expanded(self, graph: NeighborGraph, k: int) -> NeighborGraph:
        """The k nearest rows of queries, given their nearest distinct rows."""
        n, shape = len(self.number), (len(graph), k)
        indices = np.empty(shape, index_type(n))
        distances = np.empty(shape, graph.distances.dtype)
        for run in runs(np.full(len(graph), k * graph.k), ELEMENTS_AT_ONCE):
            part = graph.rows(run.start, run.stop)
            indices[run], distances[run] = self._nearest_copies(part, k)
        return NeighborGraph.unchecked(indices, distances, n, graph.recall)

    def _nearest_copies(self, graph: NeighborGraph, k: int) -> tuple[Array, Array]:
        counts = np.minimum(np.diff(self.starts), k)[graph.indices]
        before = np.cumsum(counts, axis=1) - counts
        rises = np.diff(graph.distances, axis=1, prepend=-1) > 0
        nearer = np.maximum.accumulate(np.where(rises, before, 0), axis=1)
        counts[nearer >= k] = 0  # enough copies are nearer
        per_query, counts = counts.sum(axis=1), counts.ravel()
        pair = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        row = self.copies[self.starts[graph.indices.ravel()[pair]] + place]
        distance = graph.distances.ravel()[pair]
        order = np.lexsort((row, distance, pair // graph.k))
        taken = order[(np.cumsum(per_query) - per_query)[:, None] + np.arange(k)]
        return row[taken], distance[taken]


def equal_rows(vectors: Matrix) -> EqualRows | None:
    """Which rows are equal; None if there are too few to matter."""
    if not is_sparse(vectors):  # rows that differ in one feature are distinct
        feature = vectors[:, vectors.shape[1] // 2]
        if len(np.unique(feature)) > _WORTH_WHILE * len(feature):
            return None
    _, first, number = np.unique(_hashes(vectors), return_index=True, return_inverse=True)
    n, order = len(number), np.argsort(first)
    if len(first) > _WORTH_WHILE * n:
        return None
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    number = place[number]
    if not _are_equal(vectors, first[order][number]):
        return None
    starts = np.concatenate([[0], np.cumsum(np.bincount(number))])
    return EqualRows(number, np.argsort(number, kind="stable"), starts)


def _hashes(vectors: Matrix) -> Array:
    """Numbers that are the same for equal rows, and rarely for others."""
    d = vectors.shape[1]
    factors = np.random.default_rng(0).integers(2**63, size=min(d, 2**16), dtype=np.uint64) * 2 + 1
    if is_sparse(vectors):
        terms = (_bits(vectors.data) + 1) * factors[vectors.indices % len(factors)]
        terms ^= (terms >> 29) * (vectors.indices.astype(np.uint64) * 2 + 1)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return np.asarray(sums[vectors.indptr[1:]] - sums[vectors.indptr[:-1]])
    factors = np.resize(factors, d)
    hashes = np.empty(vectors.shape[0], np.uint64)
    for place, rows in chunks(vectors, d):
        hashes[place] = _bits(rows) @ factors
    return hashes


def _bits(values: Array) -> Array:
    """The bits of float64 as integers, with the high bits, which vary, mixed into the low ones."""
    bits = np.ascontiguousarray(as_float(values) + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.asarray(bits ^ (bits >> 32))


def _are_equal(vectors: Matrix, first: Array) -> bool:
    """Whether each row equals the first one with its hash, as is almost certain."""
    copies = np.flatnonzero(first != np.arange(len(first)))
    sizes = np.full(len(copies), vectors.shape[1])
    if is_sparse(vectors):
        sizes = 1 + np.diff(vectors.indptr)[copies]
    for pairs in runs(sizes, ELEMENTS_AT_ONCE):
        a, b = vectors[copies[pairs]], vectors[first[copies[pairs]]]
        if (a != b).nnz if is_sparse(vectors) else np.any(a != b):
            return False
    return True


def without_copies(vectors: Matrix, metric: Metric, build: Build) -> Index:
    """What `build` makes of rows, of the distinct ones only if many are equal."""
    rows = equal_rows(vectors)
    return build(vectors) if rows is None else EqualRowsIndex(vectors, rows, metric, build)


class EqualRowsIndex(Index):
    """Base rows with many equal ones, and an index of the distinct ones.

    Parameters
    ----------
    vectors : ndarray or csr_array, shape (n, d)
    rows : EqualRows
    metric : str
    build : callable
        Makes the index of the distinct rows.
    """

    def __init__(self, vectors: Matrix, rows: EqualRows, metric: Metric, build: Build) -> None:
        self.vectors, self._rows, self._metric, self._build = vectors, rows, metric, build
        self.index = build(rows.distinct(vectors))
        self.is_exact = self.index.is_exact

    def renewal(self, added: int, removed: int) -> Callable[[Matrix, Array], Index] | None:
        """Index all rows anew when that of the distinct ones would be."""
        if self.index.renewal(added, removed) is None:
            return None
        return lambda vectors, _: without_copies(vectors, self._metric, self._build)

    def recall(self, k: int, *, n_jobs: int = 1) -> Recall | None:
        """The recall of queries for k distinct rows."""
        return self.index.recall(k, n_jobs=n_jobs)

    def graph(
        self,
        k: int,
        queries: Matrix | None = None,
        *,
        planned_for: int | None = None,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """Find the k nearest base rows of each query."""
        if queries is not None:
            near = self.index.graph(
                min(k, len(self._rows)),
                queries,
                planned_for=self._planned(planned_for),
                n_jobs=n_jobs,
                progress=progress,
            )
            return self._rows.expanded(near, k)
        n = len(self._rows.number)
        tell = Stages(progress, n).next(n)
        near = self._rows.expanded(self._with_itself(k, n_jobs, tell), k + 1)
        indices = np.empty((n, k), near.indices.dtype)
        distances = np.empty((n, k), near.distances.dtype)
        for rows in runs(np.full(n, k), ELEMENTS_AT_ONCE):
            numbers = np.arange(rows.start, rows.stop)
            part = near.take(self._rows.number[numbers]).without(numbers)
            indices[rows], distances[rows] = part.indices, part.distances
        if progress is not None:
            progress(n, n)
        return NeighborGraph.unchecked(indices, distances, n, near.recall)

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
        """Find the k nearest base rows of each query, and rows with a query within their limit."""
        rows = self._rows
        farthest = np.maximum.reduceat(limits[rows.copies], rows.starts[:-1])
        near, reached = self.index.nearest_and_reached(
            queries,
            min(k, len(rows)),
            farthest,
            planned_for=self._planned(planned_for),
            n_jobs=n_jobs,
            progress=progress,
        )
        counts = np.diff(rows.starts)[reached.row]
        pair = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        row = rows.copies[rows.starts[reached.row[pair]] + number]
        is_within = reached.distance[pair] < limits[row]
        row, pair = row[is_within], pair[is_within]
        return rows.expanded(near, k), Reached(row, reached.new[pair], reached.distance[pair])

    def _planned(self, planned_for: int | None) -> int | None:
        """The distinct neighbors that are sure to be found."""
        return None if planned_for is None else min(planned_for, len(self._rows))

    def _with_itself(self, k: int, n_jobs: int, progress: Progress | None) -> NeighborGraph:
        """The k nearest other distinct rows of each distinct row, and itself."""
        own, distinct = np.arange(len(self._rows)), self.index.vectors
        indices = own[:, None]
        distances = space(distinct, self._metric).distances(distinct, own, own)[:, None]
        if len(own) == 1:
            return NeighborGraph.unchecked(indices, distances, 1)
        others = self.index.graph(min(k, len(own) - 1), n_jobs=n_jobs, progress=progress)
        indices = np.hstack([indices, others.indices])
        distances = np.hstack([distances.astype(others.distances.dtype), others.distances])
        order = np.lexsort((indices, distances), axis=1)
        return NeighborGraph.unchecked(
            np.take_along_axis(indices, order, axis=1),
            np.take_along_axis(distances, order, axis=1),
            len(own),
            others.recall,
        )
