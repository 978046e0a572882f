"""Features with their rows in the order of the values, sorted once for all rounds of boosting.

A column is a list of rows and a list of cuts, the midpoints between distinct values. Where most
rows are zero, as in texts, these are left out of the list and stand in it as one block: a round
then costs what the column stores. Whether X is dense or CSR makes no difference to the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats

LEFT, RIGHT, MISSING = 0, 1, 2  # where a row goes: value <= cut, value > cut, value is NaN


@dataclass(frozen=True)
class SortedColumns:
    """Rows of d features, sorted by value, and the cuts between their values.

    Column f lists the rows from ``start[f]`` to ``start[f + 1]``: first those with values, in their
    order, then those whose value is missing. Its cuts stand from ``first[f]`` to ``first[f + 1]``.
    """

    n: int
    rows: Array  # int32, all lists one after the other
    start: Array  # int64, shape (d + 1,)
    known: Array  # int64, shape (d,): rows of the list that have values
    first: Array  # int64, shape (d + 1,)
    ends: Array  # int32, one per cut: how many rows of the list are left of it
    rest: Array  # int32, shape (d,): the first cut of the column that has the other rows, all
    # zero, to its left
    cuts: Floats  # one per cut; a value that is not above it is left

    @staticmethod
    def of(X: Any) -> SortedColumns:
        """The columns of vectors, an array or a canonical ``csr_array``."""
        n, d = X.shape
        column, row, value = _listed(X)
        listed = np.bincount(column, minlength=d)
        # Each block of zeros is one entry while the values are sorted, with -1 as its row.
        block = np.flatnonzero(listed < n)
        column = np.concatenate([column, block])
        row = np.concatenate([row, np.full(len(block), -1)])
        value = np.concatenate([value, np.zeros(len(block))])
        order = np.lexsort((row, value, column))  # NaN comes last
        column, row, value = column[order], row[order], value[order]
        start = np.concatenate([[0], np.cumsum(listed)])
        is_known = ~np.isnan(value)
        known = np.bincount(column[is_known & (row >= 0)], minlength=d)
        is_cut = (column[1:] == column[:-1]) & is_known[1:] & (value[1:] != value[:-1])
        place = np.flatnonzero(is_cut)
        cuts, of_column = _midpoints(value[place], value[place + 1]), column[place]
        ends = np.cumsum(row >= 0)[place] - start[of_column]
        rest = np.zeros(d, np.int64)
        rest[block] = np.searchsorted(place, np.flatnonzero(row < 0))
        first = np.concatenate([[0], np.cumsum(np.bincount(of_column, minlength=d))])
        rest[block] -= first[block]
        if not len(cuts):  # nothing varies: one cut per column that has all values to its left
            first, ends, cuts = np.arange(d + 1), known, np.full(d, np.inf)
        return SortedColumns(
            n,
            row[row >= 0].astype(np.int32),
            start.astype(np.int64),
            known.astype(np.int64),
            first.astype(np.int64),
            ends.astype(np.int32),
            rest.astype(np.int32),
            cuts,
        )

    @property
    def d(self) -> int:
        """Number of features."""
        return len(self.known)

    def sides(self, feature: int, cut: int) -> Array:
        """On which side of a cut of a feature each row is, an array of int8."""
        rows = self.rows[self.start[feature] : self.start[feature + 1]]
        left = self.ends[self.first[feature] + cut]
        sides = np.full(self.n, LEFT if cut >= self.rest[feature] else RIGHT, np.int8)
        sides[rows[:left]] = LEFT
        sides[rows[left : self.known[feature]]] = RIGHT
        sides[rows[self.known[feature] :]] = MISSING
        return sides


def _listed(X: Any) -> tuple[Array, Array, Floats]:
    """Column, row and value of all entries but the zeros of columns that are mostly zero."""
    n, d = X.shape
    if not sparse.issparse(X):
        is_listed = X != 0
        is_listed |= 2 * np.count_nonzero(is_listed, axis=0) >= n
        column, row = np.nonzero(is_listed.T)
        return column, row, X[row, column]
    entries = X.tocoo()
    row, column, value = entries.row, entries.col, entries.data
    is_stored = value != 0
    row, column, value = row[is_stored], column[is_stored], value[is_stored]
    is_full = 2 * np.bincount(column, minlength=d) >= n
    full = np.flatnonzero(is_full)
    mostly_zero = ~is_full[column]
    return (
        np.concatenate([column[mostly_zero], np.repeat(full, n)]).astype(np.int64),
        np.concatenate([row[mostly_zero], np.tile(np.arange(n), len(full))]).astype(np.int64),
        np.concatenate([value[mostly_zero], X[:, full].toarray().T.ravel()]),
    )


def _midpoints(low: Floats, high: Floats) -> Floats:
    """Between two values each, and below the upper one even where there is no float between."""
    middle = low / 2 + high / 2  # the sum of both could overflow
    return np.where((middle >= low) & (middle < high), middle, low)
