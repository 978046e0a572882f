"""Where labels stand in an order of scores, counted without sorting rows x labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, Floats, kernel_array, row_numbers
from nearlabel.common.validation import check_choice

Ties = Literal["max", "min", "higher", "lower"]
TIES = ("max", "min", "higher", "lower")


@dataclass(frozen=True)
class Places:
    """Where p given labels, by row and column, stand in the order of the scores of their rows.

    Attributes
    ----------
    above : ndarray of int, shape (p,)
        Labels of the row with a greater score.
    tied_lower, tied_higher : ndarray of int, shape (p,)
        Labels with the same score in a lower, and in a higher, column.
    """

    above: Array
    tied_lower: Array
    tied_higher: Array

    def ranks(self, ties: Ties) -> Array:
        """Ranks from 1; of tied labels all the worst or best rank, or one column first."""
        check_choice(ties, "ties", TIES)
        ranks: Array = self.above + 1
        if ties in ("max", "lower"):
            ranks += self.tied_lower
        if ties in ("max", "higher"):
            ranks += self.tied_higher
        return ranks


def at_or_above(ranks: Array, matrix: Csr) -> Array:
    """How many entries of the same row of a CSR matrix have the rank of each or a better one."""
    core = engine.core()
    if core is None:
        row = row_numbers(matrix)
        keys = row * (matrix.shape[1] + 1) + ranks
        counts: Array = np.searchsorted(np.sort(keys), keys, side="right")
        counts -= matrix.indptr[row]
        return counts
    counts = np.empty(len(ranks), np.int64)
    indptr = kernel_array(matrix.indptr, np.int64)
    core.at_or_above(indptr, kernel_array(ranks, np.int64), counts)
    return counts


class DefaultScores:
    """Scores of labels that a row does not touch, sorted once: one row of q scores a group."""

    def __init__(self, values: Floats) -> None:
        if not np.isfinite(values).all():
            raise ValueError("defaults must hold finite scores")
        self.values = values.view()  # (n_groups, q)
        self.values.flags.writeable = False  # sorted once, and shared by all scores of a model

    def __getstate__(self) -> dict[str, Any]:
        return {"values": self.values}  # the order is cheaper to sort again than to store

    @cached_property
    def order(self) -> Array:
        """Labels of each group, best first, ties by lower column; shape (n_groups, q)."""
        return np.argsort(-self.values, axis=1, kind="stable")

    @cached_property
    def place(self) -> Array:
        """Place of each label in `order`, shape (n_groups, q)."""
        place = np.empty_like(self.order)
        np.put_along_axis(place, self.order, np.arange(self.values.shape[1])[None, :], axis=1)
        return place

    @cached_property
    def _ascending(self) -> Floats:
        """Negated scores in the order of `order`."""
        return -np.take_along_axis(self.values, self.order, axis=1)

    @cached_property
    def _keys(self) -> Array:
        """For each place in `order`: the number of its run of equal scores x q + its label."""
        keys = np.zeros(self.values.shape, np.int64)
        np.cumsum(self._ascending[:, 1:] != self._ascending[:, :-1], axis=1, out=keys[:, 1:])
        keys *= self.values.shape[1]
        keys += self.order
        return keys

    def standing(self, group: Array, score: Floats, label: Array) -> tuple[Array, Array, Array]:
        """Labels with a greater default, and with the same one in a lower and a higher column."""
        above, lower, higher = (np.empty(len(score), np.int64) for _ in range(3))
        for g in np.unique(group):
            mine = group == g
            ascending, keys, q = self._ascending[g], self._keys[g], self.values.shape[1]
            first = np.searchsorted(ascending, -score[mine], side="left")
            end = np.searchsorted(ascending, -score[mine], side="right")
            tied = end > first
            # Equal scores stand in the order of their columns: count those before `label`.
            wanted = keys[np.where(tied, first, 0)] // q * q + label[mine]
            before = np.searchsorted(keys, wanted, side="left") - first
            upto = np.searchsorted(keys, wanted, side="right") - first
            above[mine] = first
            lower[mine] = np.where(tied, before, 0)
            higher[mine] = np.where(tied, end - first - upto, 0)
        return above, lower, higher


def standing_in_rows(
    pattern: Csr, values: Floats, row: Array, score: Floats, label: Array
) -> tuple[Array, Array, Array]:
    """Among `values` at `pattern` in the same row: greater ones, and equal ones in other columns.

    Returns the numbers of greater values, of equal ones in a lower and of equal ones in a higher
    column, for each (row, score, label).
    """
    # Ranks instead of values, so that row, value and column fit into one integer key.
    distinct, code = np.unique(np.concatenate([values, score]), return_inverse=True)
    v, q = len(distinct), pattern.shape[1]
    keys = np.sort((row_numbers(pattern) * v + code[: len(values)]) * q + pattern.indices)
    base = (row * v + code[len(values) :]) * q
    first, end = np.searchsorted(keys, base), np.searchsorted(keys, base + q)
    before = np.searchsorted(keys, base + label, side="left")
    upto = np.searchsorted(keys, base + label, side="right")
    return pattern.indptr[row + 1] - end, before - first, end - upto
