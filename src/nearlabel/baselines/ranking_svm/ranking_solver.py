"""The dual problem of Rank-SVM, solved to a duality gap that is checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from nearlabel.baselines.ranking_svm.anderson import Anderson
from nearlabel.baselines.ranking_svm.balanced_alphas import balanced_alphas
from nearlabel.baselines.ranking_svm.ranking_pairs import RankingPairs
from nearlabel.common.arrays import Floats
from nearlabel.common.progress import Progress

_RELAXATION = 1.6  # of each step, between 1 and 2
_DEPTH = 10  # of the acceleration
_ITERATIONS_A_CHECK = 10
_FIRST_CHANGE, _CHANGES_APART = 20, 1.6  # of the step size: ever rarer, so that it settles
_LARGEST_CHANGE, _SMALLEST_CHANGE = 10.0, 2.0
_INFEASIBLE = 1e-10  # sums of beta, of the sum of the alphas, from which on they prove nothing
_TRUSTED = 3.0  # extrapolations, until residuals have to fall like 1 / their number
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
    centered, means = _centered(kernel)
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

    Each row has a rate, the step size of its alphas, and q times the rate weighs its scores: no
    singular value of the map from the scores of a row to its margins is above the square root of q.
    """

    def __init__(self, kernel: Floats, pairs: RankingPairs) -> None:
        self._kernel, self._pairs = kernel, pairs
        self._size = len(pairs.row)
        self._anderson = Anderson(self._size + pairs.n * pairs.q, _DEPTH)
        self._set_rates(_first_rates(kernel, pairs))
        self._point = np.zeros(self._size + pairs.n * pairs.q)
        self._plain_point: Floats | None = None
        self._residual, self._first_residual, self._extrapolated = np.inf, 0.0, 0
        self._moves = (0.0, 0.0)
        self.alpha, self.bias = np.zeros(self._size), np.zeros(pairs.q)

    def _set_rates(self, rates: Floats) -> None:
        self._rates = rates
        self._weights = (rates * self._pairs.q)[:, None]
        self._pair_rates = rates[self._pairs.row]
        # What makes lengths in both parts of a point comparable.
        self._scale = np.concatenate(
            [np.sqrt(1 / self._pair_rates), np.repeat(np.sqrt(self._weights), self._pairs.q)]
        )
        system = self._kernel.copy()
        system[np.diag_indices(len(system))] += 1.0 / self._weights[:, 0]
        self._factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        self._of_ones = self._solved(np.ones((len(system), 1)))

    def _solved(self, right: Floats) -> Floats:
        return np.asarray(linalg.cho_solve(self._factor, right, check_finite=False))

    def step(self) -> None:
        """One iteration; its alphas are in their box, and their sums over the rows near 0."""
        image = self._iterated(self._point)
        residual = (image - self._point) * self._scale
        grown = float(np.linalg.norm(residual))
        if self._plain_point is not None and grown > _GROWN * self._residual:
            self._point, self._plain_point, self._residual = self._plain_point, None, np.inf
            self._anderson.forget()
            return
        self._residual = grown
        self._moves = (
            float(np.linalg.norm(residual[: self._size])),
            float(np.linalg.norm(residual[self._size :])),
        )
        plain = self._point + _RELAXATION * (image - self._point)
        extrapolated = self._anderson.next(residual, plain)
        # Plain steps converge, and extrapolated ones may not: residuals have to fall for these.
        self._first_residual = self._first_residual or grown
        if grown <= _TRUSTED * self._first_residual / (1 + self._extrapolated / _TRUSTED):
            self._point, self._plain_point = extrapolated, plain
            self._extrapolated += 1
        else:
            self._point, self._plain_point = plain, None

    def _iterated(self, point: Floats) -> Floats:
        """The iteration itself, of a point: alphas, then scores."""
        pairs = self._pairs
        alpha, scores = point[: self._size], point[self._size :].reshape(pairs.n, pairs.q)
        new = alpha + self._pair_rates * (1.0 - pairs.margins(scores))
        np.clip(new, 0.0, pairs.bound, out=new)
        target = scores + pairs.beta(2 * new - alpha) / self._weights
        # F minimizes the norm of its weights + sum_i weight_i / 2 * |F_i - target_i|².
        beta = self._solved(target)
        self.alpha, self.bias = new, beta.sum(axis=0) / self._of_ones.sum()
        beta -= self._of_ones * self.bias
        return np.concatenate([new, (target - beta / self._weights).ravel()])

    def balance_steps(self) -> None:
        """Change the step size where alphas and scores do not move by like lengths."""
        of_alpha, of_scores = self._moves
        if not (of_alpha > 0 and of_scores > 0):
            return
        factor = float(np.clip(of_alpha / of_scores, 1 / _LARGEST_CHANGE, _LARGEST_CHANGE))
        if 1 / _SMALLEST_CHANGE < factor < _SMALLEST_CHANGE:
            return
        self._set_rates(self._rates * factor)
        self._plain_point = None
        self._residual, self._first_residual, self._extrapolated = np.inf, 0.0, 0
        self._anderson.forget()


def _centered(kernel: Floats) -> tuple[Floats, Floats]:
    """The kernel of rows less their mean, and the kernel of that mean with each row.

    Betas sum to 0 over the rows, so that it gives the same scores but for the biases, and what all
    rows have in common takes no digits. Rows that are far out count less in the mean.
    """
    own = np.diag(kernel)
    own = np.maximum(own, np.median(own) or own.max() or 1.0)
    share = 1.0 / own
    share /= share.sum()
    means = kernel @ share
    centered = kernel - means - means[:, None] + means @ share
    # Each row is as exact as its own length allows, however long others are.
    rounding = len(kernel) * np.finfo(np.float64).eps
    if np.all(np.abs(centered) <= rounding * np.sqrt(own) * np.sqrt(own)[:, None]):  # equal rows
        return np.zeros_like(centered), means
    centered[np.diag_indices(len(centered))] += rounding * own  # no eigenvalue is below 0
    return centered, means


def _first_rates(kernel: Floats, pairs: RankingPairs) -> Floats:
    """Steps by which rows of any length move alike, and alphas not beyond their bounds at once."""
    bound = np.zeros(pairs.n)
    bound[pairs.row] = pairs.bound
    return np.asarray(1.0 / (pairs.q * np.maximum(np.diag(kernel), 1.0 / (pairs.q * bound))))
