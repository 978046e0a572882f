"""From scores to label sets."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nearlabel.arrays import Csr, Floats, entries_at, row_numbers
from nearlabel.scores import LabelScores


def labels_from(scores: LabelScores, cut: float | Floats, *, strict: bool = False) -> Csr:
    """Labels whose score reaches a cut.

    Parameters
    ----------
    scores : LabelScores of shape (n, q)
    cut : float or ndarray of shape (q,)
        One for all labels, or one a label.
    strict : bool, default=False
        Whether the score must be above the cut.

    Returns
    -------
    csr_array of int64 ones, shape (n, q)
        Labels that a row does not touch are decided by their default scores.
    """
    reached = np.greater if strict else np.greater_equal
    cuts = np.broadcast_to(cut, scores.shape[1:])
    touched = scores.touched()
    yes = reached(touched.data, cuts[touched.indices])
    row, label = row_numbers(touched)[yes], touched.indices[yes]
    if scores.defaults is not None:
        by_default = sparse.csr_array(reached(scores.defaults.values, cuts))
        if by_default.nnz:
            given = by_default[scores.group]
            more_rows, more_labels = row_numbers(given), given.indices
            free = ~entries_at(touched, more_rows, more_labels)[0]
            row = np.concatenate([row, more_rows[free]])
            label = np.concatenate([label, more_labels[free]])
    decided = sparse.csr_array((np.ones(len(row), np.int64), (row, label)), shape=scores.shape)
    decided.sort_indices()
    return decided
