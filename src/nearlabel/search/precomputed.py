"""Neighbors by precomputed distances."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats, Matrix, canonical_csr, entries_at
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph, index_type
from nearlabel.search.budgets import ELEMENTS_AT_ONCE
from nearlabel.search.exact.distances import Bounds
from nearlabel.search.exact.numpy_index import nearest
from nearlabel.search.interfaces import Index


class PrecomputedIndex(Index):
    """Distances instead of vectors: dense, or scikit-learn's sparse graph of the nearest ones.

    Parameters
    ----------
    between : ndarray or csr_array, shape (n_base, n_base)
        Distances between the base rows.
    """

    def __init__(self, between: Matrix) -> None:
        if between.shape[0] != between.shape[1]:
            raise ValueError(f"X must be square if metric='precomputed'; got shape {between.shape}")
        self.vectors = between

    def left_out(
        self, rows: Array, k: int, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """The k nearest rows of some base rows; distances of rows to themselves may be missing."""
        return self.graph(k, n_jobs=n_jobs, progress=progress).take(rows)

    def graph(
        self,
        k: int,
        queries: Matrix | None = None,
        *,
        planned_for: int | None = None,  # noqa: ARG002
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> NeighborGraph:
        """The k nearest by the distances `queries` (n, n_base), or of the base rows themselves."""
        alone = queries is None
        given = self.vectors if queries is None else queries
        if sparse.issparse(given):
            return NeighborGraph.from_csr(given, k, drop_diagonal=alone)
        n, n_base = given.shape
        indices, distances = np.empty((n, k), index_type(n_base)), np.empty((n, k))

        def search(rows: slice) -> None:
            block = given[rows].astype(np.float64)
            if np.any(block < 0):
                raise ValueError(
                    f"Negative values in data: a precomputed distance is {block.min()}"
                )
            itself = np.arange(rows.start, rows.stop) if alone else None
            indices[rows], distances[rows] = nearest(
                Bounds(block.copy()), lambda row, column: block[row, column], k, itself
            )

        run_blocks(search, n, max(1, ELEMENTS_AT_ONCE // n_base), n_jobs, progress)
        return NeighborGraph.unchecked(indices, distances, n_base)


def given_distances(distances: Matrix, row: Array, column: Array) -> Floats:
    """Given distances of pairs of a query and a base row; infinite if a graph has none."""
    if not sparse.issparse(distances):
        return np.asarray(distances[row, column], dtype=np.float64)
    is_stored, value = entries_at(canonical_csr(distances), row, column)
    return np.where(is_stored, value, np.inf)
