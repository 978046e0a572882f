"""Nearest rows per label: one exact search for each label, among the rows that have it."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Csr, Matrix, csr_of_known
from nearlabel.search.budgets import BLOCK_BYTES
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.index import exact_index, matching


def class_neighbors(
    vectors: Matrix,
    metric: Metric,
    Y: Csr,
    per_class: int,
    queries: Matrix,
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
    queries = matching(queries, vectors)
    m, n = queries.shape[0], Y.shape[0]
    by_label = Y.tocsc()
    carriers = [rows for rows in np.split(by_label.indices, by_label.indptr[1:-1]) if len(rows)]
    indexes = [exact_index(vectors[rows], metric) for rows in carriers]
    wanted = per_class if left_out is None else per_class + 1
    members = sum(min(wanted, len(rows)) for rows in carriers)
    # A pair takes 48 bytes: itself, its distance, and a copy while they are sorted.
    step = max(1, BLOCK_BYTES // (48 * max(1, members)))
    all_pairs, all_distances = [np.empty(0, np.int64)], [np.empty(0)]
    for start in range(0, m, step):
        block = np.arange(start, min(start + step, m))
        pairs, distances = [np.empty(0, np.int64)], [np.empty(0)]
        for rows, index in zip(carriers, indexes, strict=True):
            near = index.graph(min(wanted, len(rows)), queries[block], n_jobs=n_jobs)
            columns = rows[near.indices]
            is_wanted = np.ones(columns.shape, bool)
            if left_out is not None:
                is_wanted = columns != left_out[block, None]
                is_wanted &= is_wanted.cumsum(axis=1) <= per_class
            pairs.append((block[:, None] * n + columns)[is_wanted])
            distances.append(near.distances[is_wanted])
        unique_pairs, first = np.unique(np.concatenate(pairs), return_index=True)
        all_pairs.append(unique_pairs)
        all_distances.append(np.concatenate(distances)[first])
    row, column = np.divmod(np.concatenate(all_pairs), n)
    starts = np.searchsorted(row, np.arange(m + 1))
    return csr_of_known(np.concatenate(all_distances), column, starts, (m, n))
