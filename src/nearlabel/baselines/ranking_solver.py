"""The dual problem of Rank-SVM over pairs of labels, solved to a duality gap that is checked.

A pair is a label that a row carries and one that it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import linalg

from nearlabel.common.arrays import Array, Floats, runs
from nearlabel.common.progress import Progress
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
    change_at = 20
    for done in range(1, max_iter + 1):
        splitting.step()
        if done % 10 == 0 or done == max_iter:
            alpha = balanced_alphas(pairs, splitting.alpha)
            feasible, total = pairs.beta(alpha), float(alpha.sum())
            # Sums of beta beyond rounding prove nothing.
            if np.abs(feasible.sum(axis=0)).max() <= 1e-10 * total:
                scores = centered @ feasible
                norm = 0.5 * float(np.vdot(feasible, scores))
                dual = max(dual, total - norm)
                reached = norm + pairs.hinge_loss(scores + splitting.bias)
                if reached < primal:
                    primal, beta, bias = reached, feasible, splitting.bias
            if progress is not None:
                progress(done, max_iter)
            if primal - dual <= tol * primal:
                break
        if done >= change_at:
            splitting.balance_steps()
            change_at = int(change_at * 1.6)  # ever rarer, so that the step size settles
    return RankingSolution(beta, bias - means @ beta, primal, dual, done)


class _Splitting:
    """The iteration on alphas and scores F, shape (n, q).

    Each row has a rate, the step size of its alphas, and q times the rate weighs its scores: no
    singular value of the map from the scores of a row to its margins is above the square root of q.
    """

    def __init__(self, kernel: Floats, pairs: RankingPairs) -> None:
        self._kernel, self._pairs = kernel, pairs
        self._size = len(pairs.row)
        self._anderson = Anderson(self._size + pairs.n * pairs.q, depth=10)
        bound = np.zeros(pairs.n)
        bound[pairs.row] = pairs.bound
        # By these, rows of any length move alike, and alphas not beyond their bounds at once.
        least = np.maximum(np.diag(kernel), 1.0 / (pairs.q * bound))
        self._start_with(1.0 / (pairs.q * least))
        self._point = np.zeros(self._size + pairs.n * pairs.q)
        self._moves = (0.0, 0.0)
        self.alpha, self.bias = np.zeros(self._size), np.zeros(pairs.q)

    def _start_with(self, rates: Floats) -> None:
        """Go on from the same point with other rates, which make it another iteration."""
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
        self._plain_point: Floats | None = None
        self._residual, self._first_residual, self._extrapolated = np.inf, 0.0, 0
        self._anderson.forget()

    def _solved(self, right: Floats) -> Floats:
        return np.asarray(linalg.cho_solve(self._factor, right, check_finite=False))

    def step(self) -> None:
        """One iteration; its alphas are in their box, and their sums over the rows near 0."""
        image = self._iterated(self._point)
        residual = (image - self._point) * self._scale
        grown = float(np.linalg.norm(residual))
        if self._plain_point is not None and grown > 2.0 * self._residual:
            self._point, self._plain_point, self._residual = self._plain_point, None, np.inf
            self._anderson.forget()
            return
        self._residual = grown
        self._moves = (
            float(np.linalg.norm(residual[: self._size])),
            float(np.linalg.norm(residual[self._size :])),
        )
        plain = self._point + 1.6 * (image - self._point)  # between 1 and 2 times the step
        extrapolated = self._anderson.next(residual, plain)
        # Plain steps converge, and extrapolated ones may not: residuals have to fall for these.
        self._first_residual = self._first_residual or grown
        if grown <= 3.0 * self._first_residual / (1 + self._extrapolated / 3.0):
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
        factor = float(np.clip(of_alpha / of_scores, 0.1, 10.0))
        if not 0.5 < factor < 2.0:
            self._start_with(self._rates * factor)


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


class Anderson:
    """Extrapolates the steps of an iteration z -> g(z) to its fixed point [1]_.

    The next point is the combination of the latest images g(z) whose residuals g(z) - z, combined
    alike, are smallest. Points have `size` numbers, and `depth` earlier steps are combined.

    References
    ----------
    .. [1] H. F. Walker and P. Ni, "Anderson acceleration for fixed-point iterations", SIAM Journal
       on Numerical Analysis 49(4), 2011.
    """

    def __init__(self, size: int, depth: int) -> None:
        # Differences of consecutive residuals and images; the oldest is overwritten.
        self._residuals, self._images = np.zeros((depth, size)), np.zeros((depth, size))
        self.forget()

    def forget(self) -> None:
        """Start anew, as when the iteration has become another one."""
        self._steps = -1
        self._latest: tuple[Floats, Floats] | None = None

    def next(self, residual: Floats, image: Floats) -> Floats:
        """The point to go on from, after an iteration that led to `image`."""
        depth = len(self._residuals)
        if self._latest is not None:
            place = self._steps % depth
            np.subtract(residual, self._latest[0], out=self._residuals[place])
            np.subtract(image, self._latest[1], out=self._images[place])
        self._latest = residual, image
        self._steps += 1
        known = min(self._steps, depth)
        if known < 2:
            return image
        differences = self._residuals[:known]
        gram = differences @ differences.T
        gram[np.diag_indices(known)] += max(1e-10 * np.trace(gram), np.finfo(float).tiny)
        weights = np.linalg.solve(gram, differences @ residual)
        # Residuals that hardly differ say little of what is far ahead.
        weights /= max(1.0, float(np.abs(weights).sum()) / 10.0)
        return np.asarray(image - weights @ self._images[:known])
