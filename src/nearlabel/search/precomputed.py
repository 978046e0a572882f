"""Neighbors by distances that the user computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.arrays import Array, Floats, canonical_csr, entries_at
from nearlabel.graph import NeighborGraph
from nearlabel.search.distances import Bounds
from nearlabel.search.exact import Progress, nearest


class PrecomputedIndex:
    """Distances instead of vectors: dense, or scikit-learn's sparse graph of the nearest ones.

    Parameters
    ----------
    between : ndarray or csr_array, shape (n_base, n_base)
        Distances of the base rows among themselves.
    """

    def __init__(self, between: Any) -> None:
        if between.shape[0] != between.shape[1]:
            raise ValueError(
                f"X must be square where metric='precomputed'; got shape {between.shape}"
            )
        self._between = between

    def graph(
        self,
        k: int,
        queries: Any = None,
        *,
        n_jobs: int = 1,  # noqa: ARG002 - nothing is computed
        progress: Progress | None = None,  # noqa: ARG002
    ) -> NeighborGraph:
        """The k nearest by the distances `queries` (n, n_base), or of the base rows themselves."""
        alone = queries is None
        given = self._between if alone else queries
        if sparse.issparse(given):
            return NeighborGraph.from_csr(given, k, drop_diagonal=alone)
        n, n_base = given.shape
        distances = given.astype(np.float64)
        exact = Bounds(distances.copy(), 0.0, np.zeros(n), np.zeros(n_base))
        found = nearest(
            exact, lambda row, column: distances[row, column], k, np.arange(n) if alone else None
        )
        return NeighborGraph(*found, n_base)


def given_distances(distances: Any, row: Array, column: Array) -> Floats:
    """Given distances of pairs of a query and a base row; infinite where a graph has none."""
    if not sparse.issparse(distances):
        return np.asarray(distances[row, column], dtype=np.float64)
    found, value = entries_at(canonical_csr(distances), row, column)
    return np.where(found, value, np.inf)
