"""The dual problem of Rank-SVM, solved to a duality gap that is checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from nearlabel.baselines.anderson import Anderson
from nearlabel.baselines.balanced_alphas import balanced_alphas
from nearlabel.baselines.ranking_pairs import RankingPairs
from nearlabel.common.arrays import Floats
from nearlabel.common.progress import Progress

_RELAXATION = 1.6  # of each step, between 1 and 2
_DEPTH = 10  # of the acceleration
_ITERATIONS_A_CHECK = 10
_FIRST_CHANGE, _CHANGES_APART = 20, 1.6  # of the step size: ever rarer, so that it settles
_LARGEST_CHANGE, _SMALLEST_CHANGE = 10.0, 2.0
_INFEASIBLE = 1e-10  # sums of beta, of the sum of the alphas, from which on they prove nothing
_GROWN = 2.0  # residuals after which an extrapolation is taken back


@dataclass(frozen=True)
class RankingSolution:
    """What the solver found: scores are ``kernel @ beta + bias``."""

    beta: Floats  # (n, q)
    bias: Floats  # (q,)
    primal: float
    dual: float
    n_iter: int

    @property
    def gap(self) -> float:
        """The duality gap relative to the primal objective."""
        return max(0.0, self.primal - self.dual) / self.primal if self.primal > 0 else 0.0


def solve_ranking(
    kernel: Floats, pairs: RankingPairs, tol: float, max_iter: int, progress: Progress | None = None
) -> RankingSolution:
    """Solve Rank-SVM on a kernel matrix (n, n) until the relative duality gap is at most `tol`.

    The primal problem is split into the loss of the margins and the norm with the scores F, and
    solved by a proximal alternating direction method of multipliers: alphas are clipped to their
    box, and F follows from one linear system with the kernel. See ``docs/methods/ranksvm.md``.
    """
    # beta sums to 0 over the rows, so a centered kernel gives the same scores but for the biases.
    means = kernel.mean(axis=0)
    centered = kernel - means - means[:, None] + means.mean()
    rounding = len(kernel) * np.finfo(np.float64).eps * float(np.abs(kernel).max())
    if np.abs(centered).max() <= rounding:
        centered[:] = 0.0
    centered[np.diag_indices(len(centered))] += rounding
    splitting = _Splitting(centered, pairs)
    beta, bias = np.zeros((pairs.n, pairs.q)), np.zeros(pairs.q)
    primal, dual = pairs.hinge_loss(beta), 0.0
    change_at = _FIRST_CHANGE
    for done in range(1, max_iter + 1):
        splitting.step()
        if done % _ITERATIONS_A_CHECK == 0 or done == max_iter:
            alpha = balanced_alphas(pairs, splitting.alpha)
            found, total = pairs.beta(alpha), float(alpha.sum())
            if np.abs(found.sum(axis=0)).max() <= _INFEASIBLE * total:
                scores = centered @ found
                norm = 0.5 * float(np.vdot(found, scores))
                dual = max(dual, total - norm)
                reached = norm + pairs.hinge_loss(scores + splitting.bias)
                if reached < primal:
                    primal, beta, bias = reached, found, splitting.bias
            if progress is not None:
                progress(done, max_iter)
            if primal - dual <= tol * primal:
                break
        if done >= change_at:
            splitting.balance_steps()
            change_at = int(change_at * _CHANGES_APART)
    return RankingSolution(beta, bias - means @ beta, primal, dual, done)


class _Splitting:
    """The iteration on alphas and scores F, shape (n, q).

    `rate` is the step size of the alphas. Of the linear map from F to the margins of a row, no
    singular value is above the square root of q, so that ``rate * q`` is one for F.
    """

    def __init__(self, kernel: Floats, pairs: RankingPairs) -> None:
        self._kernel, self._pairs = kernel, pairs
        self._size = len(pairs.row)
        self._anderson = Anderson(self._size + pairs.n * pairs.q, _DEPTH)
        scale = float(np.trace(kernel)) / pairs.n
        self._set_rate(1.0 / (pairs.q * (scale if scale > 0 else 1.0)))
        self._point = np.zeros(self._size + pairs.n * pairs.q)
        self._point_without_extrapolation: Floats | None = None
        self._residual = np.inf
        self._moves = (0.0, 0.0)
        self.alpha, self.bias = np.zeros(self._size), np.zeros(pairs.q)

    def _set_rate(self, rate: float) -> None:
        self._rate, self._weight = rate, rate * self._pairs.q
        system = self._kernel.copy()
        system[np.diag_indices(len(system))] += 1.0 / self._weight
        self._factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)

    def step(self) -> None:
        """One iteration; its alphas are in their box, and their sums over the rows near 0."""
        image = self._iterated(self._point)
        residual = image - self._point
        grown = float(np.linalg.norm(residual))
        if self._point_without_extrapolation is not None and grown > _GROWN * self._residual:
            self._point, self._point_without_extrapolation = self._point_without_extrapolation, None
            self._residual = np.inf
            self._anderson.forget()
            return
        self._residual = grown
        self._moves = (
            float(np.linalg.norm(residual[: self._size])),
            float(np.linalg.norm(residual[self._size :])),
        )
        self._point_without_extrapolation = self._point + _RELAXATION * residual
        self._point = self._anderson.next(residual, self._point_without_extrapolation)

    def _iterated(self, point: Floats) -> Floats:
        """The iteration itself, of a point whose parts are scaled so that lengths compare."""
        pairs, root = self._pairs, np.sqrt(self._rate)
        alpha, scores = point[: self._size] * root, self._scores_of(point)
        new = alpha + self._rate * (1.0 - pairs.margins(scores))
        np.clip(new, 0.0, pairs.bound, out=new)
        target = scores + pairs.beta(2 * new - alpha) / self._weight
        # F minimizes the norm of its weights + weight / 2 * |F - target|².
        self.alpha, self.bias = new, target.mean(axis=0)
        beta = linalg.cho_solve(self._factor, target - self.bias, check_finite=False)
        scores = target - beta / self._weight
        return np.concatenate([new / root, scores.ravel() * np.sqrt(self._weight)])

    def _scores_of(self, point: Floats) -> Floats:
        scores = point[self._size :] / np.sqrt(self._weight)
        return np.asarray(scores.reshape(self._pairs.n, self._pairs.q))

    def balance_steps(self) -> None:
        """Change the step size where alphas and scores do not move by like lengths."""
        of_alpha, of_scores = self._moves
        if not (of_alpha > 0 and of_scores > 0):
            return
        factor = float(np.clip(of_alpha / of_scores, 1 / _LARGEST_CHANGE, _LARGEST_CHANGE))
        if 1 / _SMALLEST_CHANGE < factor < _SMALLEST_CHANGE:
            return
        self._point[: self._size] /= np.sqrt(factor)
        self._point[self._size :] *= np.sqrt(factor)
        self._set_rate(self._rate * factor)
        self._point_without_extrapolation, self._residual = None, np.inf
        self._anderson.forget()
