"""Exact search of few rows by the compiled core: every canonical distance is measured.

For a single query, or the fit of a few hundred rows, bounds would take longer than they spare.
"""

from __future__ import annotations

from typing import Any

from scipy import sparse

from nearlabel.common import engine
from nearlabel.graph import NeighborGraph
from nearlabel.search.exact.core_rows import core_rows

_FEW = 2**18  # differences of features, as measured
_SPARSE_COST = 8  # a stored feature takes as long as so many in dense rows


def are_few(vectors: Any, count: int) -> bool:
    """Whether all distances of `count` queries are measured as soon as bounds are ready."""
    n, d = vectors.shape
    terms = _SPARSE_COST * (1 + vectors.nnz // n) if sparse.issparse(vectors) else d
    return bool(count * n * terms <= _FEW)


def fill_from_all_pairs(base: Any, metric: str, queries: Any, found: NeighborGraph) -> None:
    """Fill the graph of queries; for None that of the base rows, each left out of its own.

    `base` are the base rows as the core measures them.
    """
    rows = base if queries is None else core_rows(queries, metric)
    engine.core().nearest_rows(rows, base, queries is None, found.indices, found.distances)
