"""The pairs of labels that Rank-SVM ranks: one that a row carries over one that it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from nearlabel.common.arrays import Array, Floats, runs
from nearlabel.common.validation import check_dense_size

_CELLS_AT_ONCE = 2**24  # label pairs of rows that are looked at together
_BYTES_A_PAIR = 300  # in the solver, most of them for its extrapolations


@dataclass(frozen=True)
class RankingPairs:
    """All (i, a, b) where row i carries label a and not b, with the bounds of their alphas.

    An array of alphas or margins has a number for each pair, in the order of these arrays.
    """

    n: int
    q: int
    row: Array
    better: Array
    worse: Array
    bound: Floats

    @classmethod
    def of(cls, carried: Array, weight: Floats) -> Self:
        """The pairs of labels, bool of shape (n, q); the alphas of row i are at most weight_i."""
        n, q = carried.shape
        count = carried.sum(axis=1, dtype=np.int64)
        total = int((count * (q - count)).sum())
        instead = "fewer rows or labels, or another method"
        check_dense_size("the pairs of labels of RankSVM", (total, 1), _BYTES_A_PAIR, instead)
        parts = [np.zeros((3, 0), np.int64)]
        for some in runs(np.full(n, q * q), _CELLS_AT_ONCE):
            block = carried[some]
            row, better, worse = np.nonzero(block[:, :, None] & ~block[:, None, :])
            parts.append(np.stack([row + some.start, better, worse]))
        row, better, worse = np.concatenate(parts, axis=1)
        return cls(n, q, row, better, worse, weight[row])

    def margins(self, scores: Floats) -> Floats:
        """f_a(x_i) - f_b(x_i) of each pair, of scores of shape (n, q)."""
        flat, start = scores.ravel(), self.row * self.q
        return np.asarray(flat[start + self.better] - flat[start + self.worse])

    def beta(self, alpha: Floats) -> Floats:
        """beta_il = sum of the alphas of row i with a = l, less those with b = l; shape (n, q)."""
        start, size = self.row * self.q, self.n * self.q
        gained = np.bincount(start + self.better, alpha, size)
        lost = np.bincount(start + self.worse, alpha, size)
        return np.asarray(gained - lost).reshape(self.n, self.q)

    def label_sums(self, alpha: Floats) -> Floats:
        """The sum of beta over all rows, shape (q,), which is 0 where alpha is feasible."""
        gained = np.bincount(self.better, alpha, self.q)
        return np.asarray(gained - np.bincount(self.worse, alpha, self.q))

    def hinge_loss(self, scores: Floats) -> float:
        """The weighted sum of max(0, 1 - margin)."""
        return float(self.bound @ np.maximum(0.0, 1.0 - self.margins(scores)))
