"""Scores of labels that a row does not touch: one row of scores per group of rows."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    entries_at,
    kernel_array,
    kernel_rows,
    row_numbers,
    runs,
)
from nearlabel.common.engine import compiled_by

_CELLS_AT_ONCE = 2**24  # cells of a dense matrix that are filled together


class DefaultScores:
    """Scores of labels that a row does not touch, sorted once: one row of q scores per group."""

    def __init__(self, values: Floats) -> None:
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


@lru_cache(maxsize=8)
def zero_defaults(q: int) -> DefaultScores:
    """A default score of 0 for each of q labels."""
    return DefaultScores(np.zeros((1, q)))


def scores_at(
    touched: Csr, defaults: DefaultScores, group: Array, row: Array, label: Array
) -> Floats:
    """Scores of pairs of a row and a label: touched, or by default."""
    found, score = entries_at(touched, row, label)
    score[~found] = defaults.values[group[row[~found]], label[~found]]
    return score


def kernel_scores(
    touched: Csr, defaults: DefaultScores, group: Array
) -> tuple[Array, Array, Floats, Array, Floats]:
    """What kernels read: indptr, indices and data of the touched; groups and defaults."""
    return (
        *kernel_rows(touched),
        kernel_array(touched.data, np.float64),
        kernel_array(group, np.int64),
        kernel_array(defaults.values, np.float64),
    )


def _filled_by_core(core: Any, touched: Csr, defaults: DefaultScores, group: Array) -> Floats:
    indptr, *entries, groups, values = kernel_scores(touched, defaults, group)
    n, q = touched.shape
    dense = np.empty((n, q))
    for rows in runs(np.full(n, q), _CELLS_AT_ONCE):
        ends = indptr[rows.start : rows.stop + 1]
        core.fill_scores(ends, *entries, groups[rows], values, dense[rows])
    return dense


@compiled_by(_filled_by_core)
def filled_scores(touched: Csr, defaults: DefaultScores, group: Array) -> Floats:
    """A dense matrix of the defaults with the touched scores in it."""
    dense: Floats = defaults.values[group]
    dense[row_numbers(touched), touched.indices] = touched.data
    return dense
