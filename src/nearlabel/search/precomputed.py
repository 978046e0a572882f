"""Neighbors by precomputed distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats, canonical_csr, entries_at
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph, index_type
from nearlabel.search.budgets import ELEMENTS_AT_ONCE
from nearlabel.search.exact.distances import Bounds
from nearlabel.search.exact.numpy_index import nearest


class PrecomputedIndex:
    """Distances instead of vectors: dense, or scikit-learn's sparse graph of the nearest ones.

    Parameters
    ----------
    between : ndarray or csr_array, shape (n_base, n_base)
        Distances between the base rows.
    """

    def __init__(self, between: Any) -> None:
        if between.shape[0] != between.shape[1]:
            raise ValueError(f"X must be square if metric='precomputed'; got shape {between.shape}")
        self._between = between

    def graph(
        self, k: int, queries: Any = None, *, n_jobs: int = 1, progress: Progress | None = None
    ) -> NeighborGraph:
        """The k nearest by the distances `queries` (n, n_base), or of the base rows themselves."""
        alone = queries is None
        given = self._between if alone else queries
        if sparse.issparse(given):
            return NeighborGraph.from_csr(given, k, drop_diagonal=alone)
        n, n_base = given.shape
        indices, found = np.empty((n, k), index_type(n_base)), np.empty((n, k))

        def search(rows: slice) -> None:
            distances = given[rows].astype(np.float64)
            if np.any(distances < 0):
                raise ValueError(
                    f"Negative values in data: a precomputed distance is {distances.min()}"
                )
            itself = np.arange(rows.start, rows.stop) if alone else None
            indices[rows], found[rows] = nearest(
                Bounds(distances.copy()), lambda row, column: distances[row, column], k, itself
            )

        run_blocks(search, n, max(1, ELEMENTS_AT_ONCE // n_base), n_jobs, progress)
        return NeighborGraph.unchecked(indices, found, n_base)


def given_distances(distances: Any, row: Array, column: Array) -> Floats:
    """Given distances of pairs of a query and a base row; infinite if a graph has none."""
    if not sparse.issparse(distances):
        return np.asarray(distances[row, column], dtype=np.float64)
    found, value = entries_at(canonical_csr(distances), row, column)
    return np.where(found, value, np.inf)
