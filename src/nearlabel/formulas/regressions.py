"""Logistic regressions of many labels on one matrix of inputs.

With many labels, counts of labels among neighbors are mostly zero, and a regression that skips the
zeros is many times faster. So inputs are scaled, but centered only if they are mostly nonzero: the
intercept is not penalized and absorbs the rest.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from nearlabel.common import engine
from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    Matrix,
    canonical_csr,
    kernel_rows,
    row_numbers,
    runs,
    with_data,
)
from nearlabel.common.progress import Progress
from nearlabel.common.threads import one_blas_thread, run_blocks

# Newton's method: a step is halved until it achieves this share of what its slope promises.
_ENOUGH = 0.1
_PRODUCTS_A_CALL = 2**26  # per call of the core: tenths of a second
_ROUNDING = 1e-13  # share of the objective that is lost in rounding errors


@dataclass(frozen=True)
class Standardization:
    """Standardization of inputs: (inputs - center) / scale, column by column."""

    # The mean of a column that is mostly nonzero. Zero for the others, which thus stay sparse;
    # their mean is no greater than their standard deviation.
    center: Floats
    scale: Floats  # the standard deviation; infinite for a constant column, which becomes zero

    @classmethod
    def of(cls, inputs: Csr) -> Standardization:
        """Fit it to inputs, a canonical ``csr_array`` of float of shape (n, m)."""
        n, m = inputs.shape

        def average(values: Floats) -> Floats:
            return np.asarray(np.bincount(inputs.indices, values / n, minlength=m), np.float64)

        stored = np.bincount(inputs.indices, minlength=m)
        zeros = 1 - stored / n
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            mean = average(inputs.data)
            deviation = inputs.data - mean[inputs.indices]
            variance = average(np.square(deviation)) + zeros * np.square(mean)
            # The mean of numbers far from zero is rounded; this removes the error.
            variance -= np.square(average(deviation) - zeros * mean)
        has_spread = varies(inputs) & (variance > 0) & np.isfinite(variance)
        center = np.where(has_spread & (stored > n / 2), mean, 0.0)
        return cls(center, np.sqrt(np.where(has_spread, variance, np.inf)))

    def __call__(self, inputs: Matrix) -> Matrix:
        """Standardized inputs: CSR if the inputs are and few are nonzero, else dense."""
        n, m = inputs.shape
        full = np.flatnonzero(self.center)
        if not isinstance(inputs, np.ndarray) and inputs.nnz + n * len(full) > n * m / 5:
            inputs = inputs.toarray()  # a dense product is faster then
        if isinstance(inputs, np.ndarray):
            return (inputs - self.center) / self.scale
        ends = np.arange(n + 1) * len(full)
        centers = (np.tile(self.center[full], n), np.tile(full, n), ends)
        centered = inputs - sparse.csr_array(centers, shape=(n, m))
        centered.data /= self.scale[centered.indices]
        return centered


def logistic_regressions(
    inputs: Matrix, Y: Csr, ridge: float, n_jobs: int = 1, progress: Progress | None = None
) -> tuple[Floats, Floats]:
    """One logistic regression per label, all on the same inputs.

    Minimizes, for each label separately, the log loss, summed over the rows, plus `ridge` times the
    sum of the squared weights; the intercept is not penalized. If inputs separate a label
    perfectly, only the ridge, which is positive, keeps the weights finite. `inputs` (n, m) are
    dense or CSR.

    Returns
    -------
    weights : ndarray of shape (q, m)
        Zero for a constant column.
    intercepts : ndarray of shape (q,)
        Infinite for a label that every row or no row has; its weights are zero.
    """
    n, q = Y.shape
    weights, intercepts = np.zeros((q, inputs.shape[1])), np.empty(q)
    used = np.flatnonzero(varies(inputs))
    design = _Design(inputs[:, used])
    by_label = Y.tocsc()

    def fit(labels: slice) -> Iterator[None]:
        for label in range(labels.start, labels.stop):
            carriers = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            if 0 < len(carriers) < n:
                sign = np.full(n, -1.0)
                sign[carriers] = 1.0
                w = yield from _newton(design, sign, ridge)
                weights[label, used], intercepts[label] = w[:-1], w[-1]
            else:
                intercepts[label] = np.inf if len(carriers) else -np.inf

    with one_blas_thread:  # threads that share small matrices cost more than they save
        run_blocks(fit, q, 1, n_jobs, progress)
    return weights, intercepts


def left_out_log_odds(
    inputs: Matrix, Y: Csr, weights: Floats, intercepts: Floats, ridge: float, n_jobs: int = 1
) -> Floats:
    """Approximate log odds (n, q) of each row by the `logistic_regressions` fitted without it.

    One step of Newton's method goes from the weights of all rows to those without row i. With
    the Hessian matrix H of all rows, probability p and second derivative h = p (1 - p) of the row,
    and a = x' H^-1 x, it changes the log odds of the row by (p - y) a / (1 - h a) [1]_.

    References
    ----------
    .. [1] D. Pregibon, "Logistic regression diagnostics", Annals of Statistics 9(4), 1981.
    """
    used = np.flatnonzero(varies(inputs))
    design = _Design(inputs[:, used])
    dense = design.rows.toarray() if sparse.issparse(design.rows) else design.rows
    penalty = np.full(len(used) + 1, 2 * ridge)
    penalty[-1] = _ROUNDING * ridge
    log_odds = np.empty(Y.shape)
    truth = Y.tocsc()

    def move(labels: slice) -> Iterator[None]:
        for label in range(labels.start, labels.stop):
            if np.isinf(intercepts[label]):
                log_odds[:, label] = intercepts[label]
                continue
            odds = dense @ np.append(weights[label, used], intercepts[label])
            p, h = expit(odds), expit(odds) * expit(-odds)
            hessian = design.curvature(h)
            hessian[np.diag_indices(len(penalty))] += penalty
            a = np.einsum("ij,ij->i", dense, _solution(hessian, dense.T).T)
            y = truth[:, [label]].toarray().ravel()
            # h a < 1, except for rounding errors if a single row determines a weight.
            log_odds[:, label] = odds + (p - y) * a / np.maximum(1 - h * a, _ROUNDING)
            yield

    with one_blas_thread:
        run_blocks(move, Y.shape[1], 1, n_jobs, None)
    return log_odds


class NeighborRegressions(NamedTuple):
    """Regressions of labels on the labels of neighbors, and on features if there are any.

    A label with weights alpha and beta has the log odds

        intercept + sum_a alpha_a omega_a + sum_j beta_j (x_j - center_j) / scale_j,

    where omega_a is the share of the neighbors with label a. So shares are not centered: only those
    that are not zero cost anything.
    """

    alpha: Floats  # (q, q)
    intercepts: Floats  # (q,)
    beta: Floats | None  # (d, q); like the last two, None without features
    center: Floats | None  # (d,)
    scale: Floats | None  # (d,)

    @classmethod
    def fitted(
        cls,
        omega: Csr,
        X: Matrix | None,
        Y: Csr,
        ridge: float,
        n_jobs: int,
        progress: Progress | None,
    ) -> NeighborRegressions:
        """`logistic_regressions` of labels Y on standardized inputs."""
        inputs, q = _side_by_side(omega, X), Y.shape[1]
        standard = Standardization.of(inputs)
        weights, intercepts = logistic_regressions(standard(inputs), Y, ridge, n_jobs, progress)
        alpha = weights[:, :q] / standard.scale[:q]
        intercepts = intercepts - alpha @ standard.center[:q]
        beta, center, scale = None, None, None
        if X is not None:
            beta = np.ascontiguousarray(weights[:, q:].T)
            center, scale = standard.center[q:], standard.scale[q:]
        return cls(np.asfortranarray(alpha), intercepts, beta, center, scale)

    def log_odds(self, omega: Csr, X: Matrix | None) -> Floats:
        """Log odds of all labels, shape (n, q)."""
        log_odds = omega @ self.alpha.T + self.intercepts
        if self.beta is not None:
            log_odds += self.of_features(X)
        return np.asarray(log_odds)

    def of_features(self, X: Matrix | None) -> Floats:
        """What the features of rows X add to the log odds, shape (n, q)."""
        if X is None:  # keep_features was changed after fit, so that nothing else has checked
            raise ValueError("X is missing: this model was fitted with keep_features=True")
        assert self.center is not None
        assert self.scale is not None
        return np.asarray(Standardization(self.center, self.scale)(X) @ self.beta)

    def left_out_log_odds(
        self, omega: Csr, X: Matrix | None, Y: Csr, ridge: float, n_jobs: int
    ) -> Floats:
        """Approximate log odds of all training rows, each by regressions without it."""
        inputs, q = _side_by_side(omega, None if self.beta is None else X), Y.shape[1]
        standard = Standardization.of(inputs)
        weights = self.alpha * np.where(np.isinf(standard.scale), 0.0, standard.scale)[:q]
        intercepts = self.intercepts + self.alpha @ standard.center[:q]
        if self.beta is not None:
            weights = np.hstack([weights, self.beta.T])
        return left_out_log_odds(standard(inputs), Y, weights, intercepts, ridge, n_jobs)

    def parts(self, label: int, omega: Csr, X: Matrix | None) -> dict[str, float]:
        """Parts of the log odds of a label in the first row: all but the weight add up to it."""
        if np.isinf(self.intercepts[label]):  # every training row carries the label, or none
            return {"constant": float(self.intercepts[label] > 0)}
        alpha, shares = self.alpha[label], omega.toarray()[0]
        own = float(alpha[label] * shares[label])
        parts = {
            "weight": float(alpha[label]),
            "intercept": float(self.intercepts[label]),
            "own": own,
            "others": float(alpha @ shares) - own,
        }
        if self.beta is not None:
            parts["features"] = float(self.of_features(X)[0, label])
        return parts


def _side_by_side(omega: Csr, X: Matrix | None) -> Csr:
    """Shares, and features beside them: the same for dense and CSR features."""
    if X is None:
        return omega
    inputs = sparse.hstack([omega, sparse.csr_array(X, dtype=np.float64)], format="csr")
    inputs.eliminate_zeros()
    return canonical_csr(inputs)


class _Design:
    """The inputs of a regression, and a column of ones for the intercept."""

    def __init__(self, inputs: Matrix) -> None:
        ones = np.ones((inputs.shape[0], 1))
        if sparse.issparse(inputs):
            self.rows = canonical_csr(sparse.hstack([inputs, ones], format="csr"))
            self.columns = self.rows.T.tocsr()
        else:
            self.rows = np.hstack([inputs, ones])
            self.columns = self.rows.T

    def curvature(self, h: Floats) -> Floats:
        """The upper triangle of the Hessian matrix of a loss with second derivatives h at rows."""
        if not sparse.issparse(self.rows):
            weighted = self.rows * np.sqrt(h)[:, None]
            return np.asarray(weighted.T @ weighted)
        core = engine.core()
        if core is None:
            weighted = with_data(self.rows, self.rows.data * h[row_numbers(self.rows)])
            return np.asarray((self.columns @ weighted).toarray())
        indptr, indices = kernel_rows(self.rows)
        sums = np.zeros((self.rows.shape[1], self.rows.shape[1]))
        for run in runs(np.square(np.diff(indptr).astype(np.int64)), _PRODUCTS_A_CALL):
            ends = indptr[run.start : run.stop + 1]
            core.add_weighted_products(ends, indices, self.rows.data, h[run], sums)
        return sums


def _newton(design: _Design, sign: Floats, ridge: float) -> Generator[None, None, Floats]:
    """The weights and, last, the intercept of one label; yields after each step.

    `sign` is 1 for the rows with the label and -1 for the others. scikit-learn's Newton solver
    cannot be used here: it falls back to L-BFGS as soon as a quarter of the rows have probabilities
    that round to 0 or 1, which happens if a label is separable and the ridge is small; L-BFGS does
    not converge then.
    """
    penalty = np.full(design.rows.shape[1], ridge)
    penalty[-1] = 0.0
    # The intercept's curvature may vanish if all rows are far on their side.
    least_curvature = np.where(penalty > 0, 2 * penalty, _ROUNDING * ridge)

    def look(w: Floats) -> tuple[Floats, float, Floats]:
        """Margins (log odds times the sign), the objective, and its gradient."""
        margin = sign * (design.rows @ w)
        height = float(np.logaddexp(0, -margin).sum() + penalty @ np.square(w))
        return margin, height, design.columns @ (-sign * expit(-margin)) + 2 * penalty * w

    w = np.zeros(len(penalty))
    margin, height, gradient = look(w)
    for _ in range(1000):
        steepness, noise = np.abs(gradient).sum(), _ROUNDING * height
        if not steepness:
            return w  # it is the minimum to the last digit
        hessian = design.curvature(expit(margin) * expit(-margin))
        hessian[np.diag_indices(len(w))] += least_curvature
        step = -_solution(hessian, gradient)
        size = 1.0
        while size >= 2.0**-20:
            trial = w + size * step
            margin, lower, new_gradient = look(trial)
            promise = -size * float(gradient @ step)
            if promise > noise:
                is_better = lower <= height - _ENOUGH * promise
            else:  # the objective is flat to its last digit: use the gradient instead
                is_better = np.abs(new_gradient).sum() <= (1 - _ENOUGH) * steepness
                is_better &= abs(lower - height) <= noise
            if is_better:
                break
            size /= 2
        else:
            return w  # the rest are rounding errors
        w, height, gradient = trial, lower, new_gradient
        yield
    return w


def _solution(matrix: Floats, right: Floats) -> Floats:
    """Solve equations with a symmetric matrix that is positive definite up to rounding errors.

    Only its upper triangle is used. `right` has one right-hand side, or one per column.
    """
    scale = 1 / np.sqrt(np.diagonal(matrix))
    matrix = matrix * scale * scale[:, None]
    for damping in (0.0, *10.0 ** np.arange(-14, 1)):
        matrix[np.diag_indices(len(scale))] = 1 + damping
        try:
            factor = cho_factor(matrix, lower=False, check_finite=False)
        except LinAlgError:
            continue
        solved = cho_solve(factor, (scale * right.T).T, check_finite=False)
        return np.asarray((scale * solved.T).T)
    raise AssertionError("a matrix with twice its diagonal is positive")  # pragma: no cover


def varies(inputs: Matrix) -> Array:
    """Whether the entries of each column are not all the same, shape (m,)."""
    most, least = inputs.max(axis=0), inputs.min(axis=0)
    if sparse.issparse(inputs):
        most, least = most.toarray(), least.toarray()
    return np.asarray(most != least).ravel()
