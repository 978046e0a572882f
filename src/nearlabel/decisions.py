"""From scores to label sets."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nearlabel.arrays import Csr, row_numbers, with_data
from nearlabel.scores import LabelScores


def labels_from(scores: LabelScores, cut: float) -> Csr:
    """Labels whose score is at least `cut`.

    Returns
    -------
    csr_array of int64 ones, shape (n, q)
        Labels that a row does not touch are decided by their default scores.
    """
    touched = scores.touched()
    decided = with_data(touched, (touched.data >= cut).astype(np.int64))
    if scores.defaults is not None:
        by_default = sparse.csr_array((scores.defaults.values >= cut).astype(np.int64))
        if by_default.nnz:
            rows = by_default[scores.group]
            # A sum tells labels by default alone (1) from touched ones (2, or 3 where both).
            overlap = rows + 2 * with_data(touched, np.ones(touched.nnz, np.int64))
            untouched = overlap.data == 1
            row, label = row_numbers(overlap)[untouched], overlap.indices[untouched]
            decided = decided + sparse.csr_array(
                (np.ones(len(row), np.int64), (row, label)), shape=scores.shape
            )
    decided.eliminate_zeros()
    decided.sort_indices()
    return decided
