"""Ridge regressions of all labels at once, with leave-one-out scores in closed form.

    ridges = label_ridges(X, Y)      # for each kernel; X: checked vectors, Y: csr_array of ones
    weights = ridges[best_kernel(ridges)].weights()
    weights.left_out_scores(X, np.arange(n), Y)   # RidgeScores of the training rows, each left out
    weights.scores(X_new)                         # RidgeScores of new rows

Both are the same kind of number: what a model that has not seen the row predicts for its labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from nearlabel.blend.axes import LABEL_CELLS, kernel_axes, linear_axes
from nearlabel.blend.projections import Landmarks
from nearlabel.blend.ridge_scores import RidgeScores, RidgeWeights, rest_of
from nearlabel.blend.rows import drawn_rows, row_blocks
from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.common.threads import one_blas_thread
from nearlabel.labels.counts import label_totals
from nearlabel.labels.scores import DenseScores
from nearlabel.metrics import average_precision

KERNELS = ("linear", "rbf")
ALPHAS = tuple(float(alpha) for alpha in np.logspace(2, -4, 13))
_STORED_CELLS = 2**25  # of an array of rows x axes: 256 MiB
_FEWEST_RANKED = 500  # rows: with fewer, average precision would be unreliable


class LabelRidge:
    """Ridge regression of all labels on rows X, or on Nystroem features of an RBF kernel.

    The labels' means are not penalized. With Zc = U diag(sqrt e) Vᵀ the centered features and λ the
    penalty, B = Zc V and C = Bᵀ Y give the fitted values B (e + λ)⁻¹ C + mean(Y), and h_i = 1 / n +
    Σ_j B_ij² / (e_j + λ) is the leverage of row i. Its leave-one-out scores are y_i - (yc_i -
    fitted_i) / (1 - h_i): exactly those of a ridge regression fitted to the other rows with the
    same λ, and for an RBF kernel with the same features. They are used to choose the penalty λ =
    alpha mean(e), which is the same whichever row is left out. Nothing is divided by sqrt e, so
    small e do no harm.

    Sums are in float64 whatever the type of X. Sparse X and Y stay sparse, and no array has as many
    cells as rows x labels. If rows and features are both more than 3,000, only the 1,000 leading
    axes are used (`linear_axes`): scores and leverages are then those of X projected on these.

    `alpha` is the best of `alphas`, and `value` says how good it is: greater is better.
    """

    def __init__(
        self, X: Matrix, Y: Csr, landmarks: Landmarks | None, alphas: Sequence[float], seed: int
    ) -> None:
        self.X, self.Y = X, Y
        self.mean: Floats = label_totals(Y) / Y.shape[0]
        axes = linear_axes(X, Y, seed) if landmarks is None else kernel_axes(X, Y, landmarks)
        self.values, self.projection, self.cross = axes
        self._leverages: Floats | None = None
        self.alpha, self.value = _best_penalty(self, alphas, seed)

    @cached_property
    def _stored(self) -> Floats | None:
        """B of all training rows, if it is not too large."""
        fits = self.X.shape[0] * len(self.values) <= _STORED_CELLS
        return self.projection.coordinates(self.X) if fits else None

    def coordinates(self, rows: Array | slice) -> Floats:
        """B of some training rows, shape (m, r)."""
        if self._stored is None:
            return self.projection.coordinates(self.X[rows])
        return self._stored[rows]

    def shrinkage(self, alpha: float) -> Floats:
        """(e + λ)⁻¹, shape (r,)."""
        return 1 / (self.values + alpha * self.values.mean()) if len(self.values) else self.values

    def leverage(self, alpha: float, B: Floats) -> Floats:
        """Leverages of training rows with coordinates B."""
        return np.asarray(1 / self.X.shape[0] + B**2 @ self.shrinkage(alpha))

    def left_out_products(self, loadings: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Blocks of training rows, each with B loadings, shape (m, k), and its leverages."""
        n = self.X.shape[0]
        leverages = np.empty(n)
        for rows in row_blocks(n, max(self.X.shape[1], len(self.cross))):
            B = self.coordinates(rows)
            leverages[rows] = self.leverage(self.alpha, B)
            yield rows, B @ loadings, leverages[rows]
        self._leverages = leverages

    def weights(self) -> RidgeWeights:
        """The weights for scores of new rows: V (e + λ)⁻¹ C, as two factors if that is smaller."""
        shrinkage, projection = self.shrinkage(self.alpha), self.projection
        loadings: Floats | None = self.cross
        with one_blas_thread:
            if self.cross.shape[1] < len(self.cross):
                projection, loadings = projection.times(shrinkage[:, None] * self.cross), None
            else:
                weights, offset = projection.weights * shrinkage, projection.offset * shrinkage
                projection = replace(projection, weights=weights, offset=offset)
            if self._leverages is None:
                for _ in self.left_out_products(np.empty((len(self.cross), 0))):
                    pass
        assert self._leverages is not None
        return RidgeWeights(projection, loadings, self.mean, self._leverages)


def label_ridges(
    X: Matrix,
    Y: Csr,
    kernels: Sequence[str] = KERNELS,
    alpha: float | str = "auto",
    random_state: int = 0,
) -> dict[str, LabelRidge]:
    """A ridge regression of labels Y on checked vectors X for each kernel, "linear" or "rbf".

    `alpha` is the penalty relative to the mean eigenvalue; "auto": the one with the best
    leave-one-out scores. `random_state` is the seed for the landmarks, and for sampling the rows
    that choices are based on if there are many. X and Y are kept, not copied.
    """
    alphas = ALPHAS if isinstance(alpha, str) else (float(alpha),)
    with one_blas_thread:  # the order of sums, and so the rounding, stays the same
        return {
            kernel: LabelRidge(X, Y, None, alphas, random_state)
            if kernel == "linear"
            else _rbf_ridge(X, Y, alphas, random_state)
            for kernel in kernels
        }


def best_kernel(ridges: Mapping[str, LabelRidge]) -> str:
    """The kernel with the best leave-one-out scores; the first among equal ones."""
    return max(ridges, key=lambda kernel: ridges[kernel].value)


def _rbf_ridge(X: Matrix, Y: Csr, alphas: Sequence[float], seed: int) -> LabelRidge:
    """With the kernel width that is best for a few landmarks, on at most 10,000 rows."""
    n, q = Y.shape
    # Fewer landmarks for more than 15,000 rows: the work grows with rows x landmarks².
    most = min(2_000, LABEL_CELLS // q, math.isqrt(6 * 10**10 // n))
    drawn = np.random.RandomState(seed).permutation(n)[: max(64, most)]
    few = X[drawn[:300]].astype(np.float64)
    rows = drawn_rows(n, 10_000, seed)
    sample = (X, Y) if len(rows) == n else (X[rows], Y[rows])
    centered = few if sparse.issparse(few) else few - few.mean(axis=0)
    distances = euclidean_distances(centered, squared=True)
    scale = np.median(distances[distances > 0]) if distances.any() else 1.0
    gammas = (0.25 / scale, 1.0 / scale, 4.0 / scale)
    trials = [LabelRidge(*sample, Landmarks(few, gamma), alphas, seed) for gamma in gammas]
    best = max(trials, key=lambda trial: trial.value)
    if len(drawn) == few.shape[0] and len(rows) == n:
        return best
    assert best.projection.landmarks is not None
    landmarks = Landmarks(X[drawn].astype(np.float64), best.projection.landmarks.gamma)
    return LabelRidge(X, Y, landmarks, alphas, seed)


def _best_penalty(ridge: LabelRidge, alphas: Sequence[float], seed: int) -> tuple[float, float]:
    """The penalty with the best leave-one-out scores, the first among equal ones, and its value.

    By average precision, or by the negative squared error (PRESS; Allen, 1974) if there are so many
    labels that few rows could be ranked, or if every row has no label or all of them.
    """
    n, q = ridge.Y.shape
    ranked, values = min(n, 2**22 // q, 20_000), [np.nan]
    if ranked >= min(n, _FEWEST_RANKED):
        rows = drawn_rows(n, ranked, seed)
        truth, B = ridge.Y[rows], ridge.coordinates(rows)
        values = []
        for alpha in alphas:
            factors, leverage = B * ridge.shrinkage(alpha), ridge.leverage(alpha, B)
            scores = RidgeScores.left_out(factors, ridge.cross, ridge.mean, leverage, truth)
            values.append(average_precision(truth, DenseScores(scores.toarray())))
    if np.isnan(values).any():
        rows = drawn_rows(n, 2_000, seed)
        values = [-error for error in squared_errors(ridge, alphas, rows)]
    best = int(np.argmax(values))
    return alphas[best], float(values[best])


def squared_errors(ridge: LabelRidge, alphas: Sequence[float], rows: Array) -> list[float]:
    """Mean squared leave-one-out errors over all labels, without a rows x labels matrix.

    With a_i = (e + λ)⁻¹ B_i, ||yc_i - a_i C||² = ||yc_i||² - 2 a_i · C yc_i + a_i · C Cᵀ a_i, and
    the sum of the last terms is that of the cells of C Cᵀ times those of aᵀ a.
    """
    mean, cross, truth = ridge.mean, ridge.cross, ridge.Y[rows]
    B = ridge.coordinates(rows)
    lengths = np.diff(truth.indptr) - 2 * (truth @ mean) + mean @ mean
    towards = np.asarray(truth @ cross.T) - cross @ mean
    inner = cross @ cross.T
    errors = []
    for alpha in alphas:
        growth = 1 / rest_of(ridge.leverage(alpha, B))
        a = B * ridge.shrinkage(alpha) * growth[:, None]
        squared = lengths * growth - 2 * np.einsum("ij,ij->i", a, towards)
        total = squared @ growth + np.vdot(inner, a.T @ a)
        errors.append(float(total) / len(rows) / len(mean))
    return errors
