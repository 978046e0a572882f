"""Ridge scores of many rows and labels: a product of low rank and a sparse part, never n x q."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, entries_at
from nearlabel.common.validation import check_dense_size

_CELLS_AT_ONCE = 2**22


@dataclass(frozen=True)
class RidgeScores:
    """Scores of q labels for n rows.

    Row i is ``rows(i) @ loadings + of_mean[i] * mean - of_own[i] * own[i]``. For new rows `of_mean`
    is 1 and `of_own` is 0; for training rows that are left out both follow from their leverage.

    Attributes
    ----------
    shape : (n, q)
    rows : callable
        Gives the factor of some rows, an array of row numbers, as an array of shape (m, r).
    loadings : ndarray, shape (r, q)
    mean : ndarray, shape (q,)
        The share of the training rows that carry each label.
    of_mean, of_own : ndarray, shape (n,)
    own : csr_array, shape (n, q), or None
        The labels of the rows themselves, where they are training rows.
    """

    shape: tuple[int, int]
    rows: Callable[[Array], Floats]
    loadings: Floats
    mean: Floats
    of_mean: Floats
    of_own: Floats
    own: Csr | None = None

    def dense(self, rows: Array | slice) -> Floats:
        """The scores of some rows as an array of shape (m, q)."""
        chosen = np.arange(self.shape[0])[rows]
        check_dense_size("dense(rows)", (len(chosen), self.shape[1]), 8, "fewer rows")
        scores = self.rows(chosen) @ self.loadings
        scores += self.of_mean[chosen, None] * self.mean
        if self.own is not None:
            own = self.own[chosen].tocoo()
            scores[own.row, own.col] -= self.of_own[chosen][own.row]
        return np.asarray(scores)

    def at(self, row: Array, label: Array) -> Floats:
        """The scores of pairs of a row and a label, each an array of shape (p,)."""
        row, label = np.asarray(row, np.intp), np.asarray(label, np.intp)
        scores = self.of_mean[row] * self.mean[label]
        if self.own is not None:
            scores -= self.of_own[row] * entries_at(self.own, row, label)[0]
        order = np.argsort(row, kind="stable")  # each row's factor is computed once
        step = max(1, _CELLS_AT_ONCE // max(1, len(self.loadings)))
        for start in range(0, len(order), step):
            some = order[start : start + step]
            distinct, place = np.unique(row[some], return_inverse=True)
            factor = self.rows(distinct)[place]
            scores[some] += np.einsum("ij,ji->i", factor, self.loadings[:, label[some]])
        return np.asarray(scores)
