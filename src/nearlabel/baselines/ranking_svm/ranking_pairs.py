"""The pairs of labels that Rank-SVM ranks, and the nearest feasible point of its dual problem.

A pair is a label that a row carries and one that it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from nearlabel.common.arrays import Array, Floats, runs
from nearlabel.common.validation import check_dense_size


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
        # Bytes of a pair in the solver, most of them for its extrapolations.
        check_dense_size("the pairs of labels of RankSVM", (total, 1), 300, instead)
        parts = [np.zeros((3, 0), np.int64)]
        for rows in runs(np.full(n, q * q), 2**24):
            block = carried[rows]
            row, better, worse = np.nonzero(block[:, :, None] & ~block[:, None, :])
            parts.append(np.stack([row + rows.start, better, worse]))
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


def balanced_alphas(pairs: RankingPairs, alpha: Floats) -> Floats:
    """Project alphas onto the box and onto sum_i beta_li = 0 for every label l.

    The projection is clip(alpha - (mu_a - mu_b)), where the multiplier mu of each label maximizes a
    concave, piecewise quadratic function. Newton's method finds it in a few steps; each is damped
    by the curvature that the function has at most, so that it rises.
    """
    mu, damping = np.zeros(pairs.q), 1e-3
    projected, value = _projected(pairs, alpha, mu)
    slope = pairs.label_sums(projected)
    most = _curvature(pairs, np.ones(len(alpha), bool))
    rounding = 1e-13 * float(alpha.sum())
    for _ in range(100):
        if np.abs(slope).max() <= rounding:
            break
        movable = _curvature(pairs, (projected > 0) & (projected < pairs.bound))
        step = np.linalg.solve(movable + damping * most, slope)
        tried, risen = _projected(pairs, alpha, mu + step)
        next_slope = pairs.label_sums(tried)
        # Where the function is too flat for its values to tell, its slope does.
        is_flatter = np.abs(next_slope).max() <= 0.5 * np.abs(slope).max()
        if is_flatter or risen >= value + 1e-4 * (slope @ step) or damping >= 1:
            mu, projected, value, slope = mu + step, tried, risen, next_slope
            damping = max(damping / 10, 1e-12)
        else:
            damping = min(damping * 10, 1.0)
    return projected


def _projected(pairs: RankingPairs, alpha: Floats, mu: Floats) -> tuple[Floats, float]:
    """The alphas for multipliers, and the value of the function that these maximize."""
    shift = mu[pairs.better] - mu[pairs.worse]
    projected = np.clip(alpha - shift, 0.0, pairs.bound)
    return projected, float(0.5 * np.sum((projected - alpha) ** 2) + projected @ shift)


def _curvature(pairs: RankingPairs, movable: Array) -> Floats:
    """The graph Laplacian of some pairs; invertible by a trifle that moves all labels alike."""
    q = pairs.q
    cells = pairs.better[movable] * q + pairs.worse[movable]
    joined = np.bincount(cells, minlength=q * q).reshape(q, q).astype(np.float64)
    joined += joined.T
    degree = joined.sum(axis=1)
    return np.asarray(np.diag(degree) - joined + 1e-12 * max(1.0, degree.max()) * np.eye(q))
