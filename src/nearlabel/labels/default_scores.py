"""Scores of labels that a row does not touch: one row of scores per group of rows."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers


class DefaultScores:
    """Scores of labels that a row does not touch, sorted once: one row of q scores per group."""

    def __init__(self, values: Floats) -> None:
        self.values = values.view()  # (n_groups, q)
        self.values.flags.writeable = False  # sorted once, and shared by all scores of a model

    def __getstate__(self) -> dict[str, Floats]:
        return {"values": self.values}  # the order is cheaper to compute again than to store

    @cached_property
    def order(self) -> Array:
        """Labels of each group, best first, ties by lower column; shape (n_groups, q)."""
        return np.argsort(-self.values, axis=1, kind="stable")

    def best_untouched(self, touched: Csr, group: Array, r: int) -> tuple[Array, Array, Floats]:
        """The r best labels by default of each row, excluding those it touches, as triples."""
        n, q = touched.shape
        # A row that touches t labels finds its r best others within the first r + t of the order.
        depth = np.minimum(q, r + np.diff(touched.indptr))
        end = np.cumsum(depth)
        begin = end - depth
        free = np.ones(end[-1], bool)
        row = row_numbers(touched)
        place = self._place[group[row], touched.indices]
        near = place < depth[row]
        free[begin[row[near]] + place[near]] = False
        row = np.repeat(np.arange(n), depth)
        order = np.cumsum(free)  # of the free places, starting at 1 in each row
        order -= (order - free)[begin][row]
        taken = np.flatnonzero(free & (order <= r))
        row, place = row[taken], taken - begin[row[taken]]
        label = self.order[group[row], place]
        return row, label, self.values[group[row], label]

    @cached_property
    def _place(self) -> Array:
        """The position of each label in `order`, shape (n_groups, q)."""
        return np.argsort(self.order, axis=1)


@lru_cache(maxsize=8)
def zero_defaults(q: int) -> DefaultScores:
    """A default score of 0 for each of q labels."""
    return DefaultScores(np.zeros((1, q)))
