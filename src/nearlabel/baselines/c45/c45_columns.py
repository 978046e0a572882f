"""The columns of vectors as C4.5 reads them: one at a time, and all of them sorted once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats, Matrix


class Columns:
    """Columns of an array or a CSR matrix of shape (n, d), each as a dense vector.

    `n_values` (d,) has how many values a nominal feature has, and 0 for a numeric one.
    """

    def __init__(self, X: Matrix, n_values: Array) -> None:
        self.n, self.d = X.shape
        self.n_values = n_values
        self._X = sparse.csc_array(X) if sparse.issparse(X) else X

    def __getitem__(self, feature: int) -> Floats:
        if isinstance(self._X, np.ndarray):
            return self._X[:, feature]
        start, end = self._X.indptr[feature : feature + 2]
        column = np.zeros(self.n)
        column[self._X.indices[start:end]] = self._X.data[start:end]
        return column

    def branches(self, feature: int, cut: float, rows: Array) -> Array:
        """The branch that each row takes at a split; -1 where the value is missing.

        A code that no training row has is as good as missing: there is no branch for it.
        """
        values = self[feature][rows]
        is_known = ~np.isnan(values)
        if not self.n_values[feature]:
            return np.where(is_known, values > cut, -1)
        is_known &= values < self.n_values[feature]
        return np.where(is_known, values, -1).astype(np.int64)

    def sorted_entries(self) -> Entries:
        """All entries, sorted for every tree that is grown on these rows."""
        row, column, value = sparse.find(self._X)
        with_zeros = np.flatnonzero(np.bincount(column, minlength=self.d) < self.n)
        is_gap = np.isnan(value)
        gap_row, gap_column = row[is_gap], column[is_gap]
        row = np.concatenate([row[~is_gap], np.full(len(with_zeros), self.n)])
        column = np.concatenate([column[~is_gap], with_zeros])
        value = np.concatenate([value[~is_gap], np.zeros(len(with_zeros))])
        order = np.lexsort((value, column))
        row, column = row[order].astype(np.int32), column[order].astype(np.int32)
        return Entries(row, column, value[order], gap_row, gap_column)


class Entries(NamedTuple):
    """Known values by (column, value), and the places of missing ones.

    All zeros of a column are one entry, whose row is n: most columns of texts are little else.
    """

    row: Array
    column: Array
    value: Floats
    gap_row: Array
    gap_column: Array

    def of_rows(self, is_inside: Array) -> Entries:
        """The entries of some rows; `is_inside` (n + 1,) is true of row n, too."""
        return self._where(is_inside[self.row], is_inside[self.gap_row])

    def of_columns(self, is_wanted: Array) -> Entries:
        """The entries of some columns, by a mask of shape (d,)."""
        return self._where(is_wanted[self.column], is_wanted[self.gap_column])

    def _where(self, keep: Array, keep_gap: Array) -> Entries:
        known = self.row[keep], self.column[keep], self.value[keep]
        return Entries(*known, self.gap_row[keep_gap], self.gap_column[keep_gap])

    def without(self, places: Array) -> Entries:
        """All but the known values at some places."""
        row, column, value = (np.delete(part, places) for part in self[:3])
        return Entries(row, column, value, self.gap_row, self.gap_column)

    def largest_value(self, column: int, cut: float) -> float:
        """The largest value of a column that is at most `cut`."""
        start, end = np.searchsorted(self.column, [column, column + 1])
        return float(self.value[start + np.searchsorted(self.value[start:end], cut, "right") - 1])
