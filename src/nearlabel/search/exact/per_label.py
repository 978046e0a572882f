"""Nearest rows per label: one pass over all distances, and a selection from it for each label.

Bounds on the distances between a block of queries and all base rows are computed once. For each
label the rows that have it are columns of these bounds, and the nearest of them are found as in a
search among all rows: exactly, ties by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, csr_of_known
from nearlabel.common.threads import run_blocks
from nearlabel.search.budgets import BLOCK_BYTES
from nearlabel.search.exact.distances import Bounds, Metric, Space, space
from nearlabel.search.exact.index import matching
from nearlabel.search.exact.numpy_index import BYTES_A_PAIR, nearest

_BYTES_A_MEMBER = 48  # a pair and its distance, and a copy while they are sorted


def class_neighbors(
    vectors: Any,
    metric: Metric,
    Y: Csr,
    per_class: int,
    queries: Any,
    *,
    left_out: Array | None = None,
    n_jobs: int = 1,
) -> Csr:
    """For each query, the union over the labels of the nearest rows with the label.

    Parameters
    ----------
    vectors : ndarray or csr_array, shape (n, d)
    metric : str or callable
    Y : csr_array, shape (n, q)
    per_class : int
        Rows per label; all that have it if there are fewer.
    queries : ndarray or csr_array, shape (m, d)
    left_out : ndarray of int, shape (m,), optional
        A row to exclude for each query.
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    csr_array of float, shape (m, n)
        The distances of these rows, in the order of the rows. Zero distances are stored explicitly.
    """
    ready = space(vectors, metric)
    ready.prepare()
    queries = matching(queries, vectors)
    m, n = queries.shape[0], Y.shape[0]
    by_label = Y.tocsc()
    carriers = [rows for rows in np.split(by_label.indices, by_label.indptr[1:-1]) if len(rows)]
    wanted = per_class if left_out is None else per_class + 1
    parts: dict[int, tuple[Array, Floats]] = {}

    def search(block: slice) -> Iterator[None]:
        some = queries[block]
        bounds = ready.bounds(some)
        found = [(np.empty(0, np.int64), np.empty(0))]
        for rows in carriers:
            near, distances = _nearest_of(rows, ready, some, bounds, min(wanted, len(rows)))
            kept = np.ones(near.shape, bool)
            if left_out is not None:
                kept = near != left_out[block, None]
                kept &= kept.cumsum(axis=1) <= per_class
            pair = np.arange(block.start, block.stop)[:, None] * n + near
            found.append((pair[kept], distances[kept]))
            yield
        pairs, distances = (np.concatenate(column) for column in zip(*found, strict=True))
        pairs, first = np.unique(pairs, return_index=True)
        parts[block.start] = pairs, distances[first]

    members = sum(min(wanted, len(rows)) for rows in carriers)
    bytes_a_row = max(BYTES_A_PAIR * n + _BYTES_A_MEMBER * members, 8 * ready.width)
    step = max(1, min(BLOCK_BYTES // (bytes_a_row * n_jobs), -(-m // n_jobs)))
    run_blocks(search, m, step, n_jobs, None)
    pairs, distances = (
        np.concatenate(column) for column in zip(*(parts[s] for s in sorted(parts)), strict=True)
    )
    row, column = np.divmod(pairs, n)
    return csr_of_known(distances, column, np.searchsorted(row, np.arange(m + 1)), (m, n))


def _nearest_of(
    rows: Array, ready: Space, queries: Any, bounds: Bounds, k: int
) -> tuple[Array, Floats]:
    """The k nearest of some base rows to each query, and their distances."""
    place, distances = nearest(
        bounds.among(rows),
        lambda query, place: ready.distances(queries, query, rows[place]),
        k,
    )
    return rows[place], distances
