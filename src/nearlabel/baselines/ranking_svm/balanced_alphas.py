"""The nearest feasible point of Rank-SVM's dual problem."""

from __future__ import annotations

import numpy as np

from nearlabel.baselines.ranking_svm.ranking_pairs import RankingPairs
from nearlabel.common.arrays import Array, Floats

_MOST_STEPS = 100
_ROUNDING = 1e-13  # of the sum of the alphas
_LEAST_DAMPING, _FIRST_DAMPING = 1e-12, 1e-3


def balanced_alphas(pairs: RankingPairs, alpha: Floats) -> Floats:
    """Project alphas onto the box and onto sum_i beta_li = 0 for every label l.

    The projection is clip(alpha - (mu_a - mu_b)), where the multiplier mu of each label maximizes a
    concave, piecewise quadratic function. Newton's method finds it in a few steps; each is damped
    by the curvature that the function has at most, so that it rises.
    """
    mu, damping = np.zeros(pairs.q), _FIRST_DAMPING
    found, value = _projected(pairs, alpha, mu)
    slope = pairs.label_sums(found)
    most = _curvature(pairs, np.ones(len(alpha), bool))
    rounding = _ROUNDING * float(alpha.sum())
    for _ in range(_MOST_STEPS):
        if np.abs(slope).max() <= rounding:
            break
        movable = _curvature(pairs, (found > 0) & (found < pairs.bound))
        step = np.linalg.solve(movable + damping * most, slope)
        tried, risen = _projected(pairs, alpha, mu + step)
        next_slope = pairs.label_sums(tried)
        # Where the function is too flat for its values to tell, its slope does.
        is_flatter = np.abs(next_slope).max() <= 0.5 * np.abs(slope).max()
        if is_flatter or risen >= value + 1e-4 * (slope @ step) or damping >= 1:
            mu, found, value, slope = mu + step, tried, risen, next_slope
            damping = max(damping / 10, _LEAST_DAMPING)
        else:
            damping = min(damping * 10, 1.0)
    return found


def _projected(pairs: RankingPairs, alpha: Floats, mu: Floats) -> tuple[Floats, float]:
    """The alphas for multipliers, and the value of the function that these maximize."""
    shift = mu[pairs.better] - mu[pairs.worse]
    found = np.clip(alpha - shift, 0.0, pairs.bound)
    return found, float(0.5 * np.sum((found - alpha) ** 2) + found @ shift)


def _curvature(pairs: RankingPairs, movable: Array) -> Floats:
    """The graph Laplacian of some pairs; invertible by a trifle that moves all labels alike."""
    q = pairs.q
    cells = pairs.better[movable] * q + pairs.worse[movable]
    joined = np.bincount(cells, minlength=q * q).reshape(q, q).astype(np.float64)
    joined += joined.T
    degree = joined.sum(axis=1)
    return np.asarray(np.diag(degree) - joined + 1e-12 * max(1.0, degree.max()) * np.eye(q))
