"""Ranks of rows by the scores of a label, counted without rows x labels."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Csr, entries_at, row_numbers
from nearlabel.labels.ranks import standing
from nearlabel.labels.scores import LabelScores, untouched_rows


def rows_above(scores: LabelScores, carriers: Csr) -> tuple[Array, Array]:
    """For each row that carries a label, the number of rows with a larger score, or no smaller one.

    Parameters
    ----------
    scores : LabelScores, shape (n, q)
    carriers : csr_array, shape (q, n)
        The rows that carry each label.

    Returns
    -------
    above, not_below : ndarray of int, shape (p,)
        In the order of the p entries of `carriers`; `not_below` includes the row itself.
    """
    counts = np.empty((2, carriers.nnz), np.int64)
    for labels, part in scores.runs_of_labels():
        inside = slice(carriers.indptr[labels.start], carriers.indptr[labels.stop])
        by_default, _ = part.untouched()
        count = _among_mixed if len(by_default) else _among_dense
        counts[:, inside] = count(part, carriers[labels])
    return counts[0], counts[1]


def _among_dense(scores: LabelScores, carriers: Csr) -> Array:
    """The counts by sorting the scores of each label that some row carries."""
    n, counts = len(scores), np.empty((2, carriers.nnz), np.int64)
    carried = np.flatnonzero(np.diff(carriers.indptr))
    columns = np.ascontiguousarray(scores.toarray()[:, carried].T)
    for label, column in zip(carried, columns, strict=True):
        inside = slice(carriers.indptr[label], carriers.indptr[label + 1])
        mine = column[carriers.indices[inside]]
        column.sort()
        counts[0, inside] = n - np.searchsorted(column, mine, "right")
        counts[1, inside] = n - np.searchsorted(column, mine, "left")
    return counts


def _among_mixed(scores: LabelScores, carriers: Csr) -> Array:
    """The counts by sorting the touched labels, and from the number of rows with each default."""
    by_label, (defaults, _) = scores.touched().T.tocsr(), scores.untouched()
    row, label = carriers.indices, row_numbers(carriers)
    mine, is_touched = scores.at(row, label), entries_at(by_label, label, row)[0]
    larger, *equal = standing(by_label, by_label.data, label, mine, row)
    counts = np.array([larger, larger + sum(equal) + is_touched])
    for values, rows in zip(defaults, untouched_rows(scores), strict=True):
        counts[0] += np.where(values[label] > mine, rows[label], 0)
        counts[1] += np.where(values[label] >= mine, rows[label], 0)
    return counts
