"""Exact search in few dimensions: SciPy's k-d tree finds candidates, canonical distances decide.

The tree returns a few more rows than requested. All others are at least as far as the farthest of
these by the tree's own distance, which differs from the canonical one only by rounding. So if the
k-th canonical distance is clearly below that, the k nearest are known.
"""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph
from nearlabel.search.exact.distances import Space

POWERS = {"euclidean": 2, "sqeuclidean": 2, "manhattan": 1, "chebyshev": np.inf}
_ROWS_AT_ONCE = 4096
_MORE = 8  # rows requested beyond k


class TreeIndex:
    """Base rows in a k-d tree."""

    def __init__(self, space: Space, metric: str, block_bytes: int) -> None:
        from scipy.spatial import cKDTree

        self._space, self._metric, self._block_bytes = space, metric, block_bytes
        # Splitting at midpoints is fast, also with equal rows.
        self._tree = cKDTree(space.vectors, balanced_tree=False)

    def search(
        self,
        queries: Matrix,
        found: NeighborGraph,
        alone: bool,
        n_jobs: int,
        progress: Progress | None,
    ) -> Array:
        """Fill the graph of queries, or of base rows if `alone`; returns the rows left to do."""
        is_known = np.zeros(len(found), bool)
        tries = (_MORE, 4 * (found.k + _MORE))  # ties need more rows

        def work(rows: slice) -> None:
            left = np.arange(rows.start, rows.stop)
            for further in tries:
                is_known[left] = self._fill(queries, left, found, alone, further)
                left = left[~is_known[left]]
                if not len(left):
                    break

        most = min(found.n_base, found.k + 1 + max(tries))
        # A pair takes 64 bytes: index, distance, their order and the rows of a chunk.
        step = self._block_bytes // (64 * most * n_jobs)
        run_blocks(work, len(found), max(1, min(step, _ROWS_AT_ONCE)), n_jobs, progress)
        return np.flatnonzero(~is_known)

    def _fill(
        self, queries: Matrix, some: Array, found: NeighborGraph, alone: bool, more: int
    ) -> Array:
        """Fill rows of the graph from `more` candidates than needed; returns which are certain."""
        n, k = found.n_base, found.k
        wanted = min(n, k + alone + more)
        part = queries[some]
        reached, index = self._tree.query(part, np.arange(1, wanted + 1), p=POWERS[self._metric])
        too_far = index == n  # the tree's distance overflowed: no row was returned
        index[too_far] = 0
        row = np.repeat(np.arange(len(some)), wanted)
        distances = self._space.distances(part, row, index.ravel()).reshape(index.shape)
        if alone:
            distances[index == some[:, None]] = np.inf  # itself goes to the end
        order = np.lexsort((index, distances))[:, :k]
        found.indices[some] = np.take_along_axis(index, order, axis=1)
        found.distances[some] = np.take_along_axis(distances, order, axis=1)
        farthest = found.distances[some, -1]
        is_certain = (wanted == n) | (farthest < self._beyond(reached[:, -1]))
        return np.asarray(np.isfinite(farthest) & is_certain & ~too_far.any(axis=1))

    def _beyond(self, reached: Floats) -> Floats:
        """A lower bound on the canonical distances of rows that the tree did not return."""
        squared = reached * reached if self._metric == "sqeuclidean" else reached
        # Far above the rounding errors of the tree's distances and bounds.
        bound: Floats = squared * (1 - 2.0**-40)
        return bound
