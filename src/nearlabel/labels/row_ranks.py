"""Ranks of rows by the scores of a label, counted without rows x labels."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers
from nearlabel.labels.scores import LabelScores


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
    touched, (defaults, group) = scores.touched(), scores.untouched()
    label = row_numbers(carriers)
    mine = scores.at(carriers.indices, label)
    counts = _among_touched(touched, label, mine)
    for values, rows in zip(defaults, _untouched_rows(touched, group, len(defaults)), strict=True):
        counts[0] += np.where(values[label] > mine, rows[label], 0)
        counts[1] += np.where(values[label] >= mine, rows[label], 0)
    return counts


def _among_touched(touched: Csr, label: Array, mine: Floats) -> Array:
    """Numbers of touched entries of labels above given scores, and not below them; shape (2, p)."""
    # Ranks instead of scores, so that label and score fit into one integer key.
    distinct, code = np.unique(np.concatenate([touched.data, mine]), return_inverse=True)
    v = len(distinct)
    keys = np.sort(touched.indices.astype(np.int64) * v + code[: touched.nnz])
    end = np.searchsorted(keys, (label + 1) * v)
    wanted = label * v + code[touched.nnz :]
    first, last = np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")
    return np.array([end - last, end - first])


def _untouched_rows(touched: Csr, group: Array, n_groups: int) -> Array:
    """The number of rows of each group that do not touch each label, shape (n_groups, q)."""
    q = touched.shape[1]
    at = group[row_numbers(touched)] * q + touched.indices
    rows = np.bincount(at, minlength=n_groups * q).reshape(n_groups, q)
    return np.asarray(np.bincount(group, minlength=n_groups)[:, None] - rows)
