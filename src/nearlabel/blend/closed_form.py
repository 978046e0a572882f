"""Ridge regressions of all labels with any penalty, from one decomposition of the features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nearlabel.blend.axes import kernel_axes, linear_axes
from nearlabel.blend.projections import Landmarks
from nearlabel.blend.ridge_scores import RidgeScores, RidgeWeights, rest_of
from nearlabel.blend.rows import drawn_rows, row_blocks
from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.labels.counts import label_totals
from nearlabel.labels.scores import DenseScores
from nearlabel.metrics import average_precision

_STORED_CELLS = 2**25  # of an array of rows x axes: 256 MiB
_FEWEST_RANKED = 500  # rows: with fewer, average precision would be unreliable


class ClosedForm:
    """Ridge regressions of Y on X, or on features of its kernel; scores are for any penalty.

    With Zc = U diag(sqrt e) Vᵀ the centered features and λ the penalty, B = Zc V and C = Bᵀ Y give
    the fitted values B (e + λ)⁻¹ C + mean(Y). Nothing is divided by sqrt e, so small e do no harm.
    The penalty is λ = alpha mean(e): the same λ whichever row is left out.
    """

    def __init__(self, X: Matrix, Y: Csr, landmarks: Landmarks | None, seed: int) -> None:
        self.X, self.Y = X, Y
        self.mean: Floats = label_totals(Y) / Y.shape[0]
        axes = linear_axes(X, Y, seed) if landmarks is None else kernel_axes(X, Y, landmarks)
        self.values, self.projection, self.cross = axes
        self._leverages: dict[float, Floats] = {}

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

    def leverages(self, alpha: float) -> Floats:
        """Leverages of all training rows, shape (n,)."""
        if alpha not in self._leverages:
            for _ in self.left_out_products(alpha, np.empty((len(self.cross), 0))):
                pass
        return self._leverages[alpha]

    def left_out_products(
        self, alpha: float, loadings: Floats
    ) -> Iterator[tuple[slice, Floats, Floats]]:
        """Blocks of training rows, each with B loadings, shape (m, k), and its leverages."""
        n = self.X.shape[0]
        leverages = np.empty(n)
        for rows in row_blocks(n, max(self.X.shape[1], len(self.cross))):
            B = self.coordinates(rows)
            leverages[rows] = self.leverage(alpha, B)
            yield rows, B @ loadings, leverages[rows]
        self._leverages = {alpha: leverages}

    def weights(self, alpha: float) -> RidgeWeights:
        """The weights for scores of new rows: V (e + λ)⁻¹ C, as two factors if that is smaller."""
        shrinkage, projection = self.shrinkage(alpha), self.projection
        loadings: Floats | None = self.cross
        if self.cross.shape[1] < len(self.cross):
            projection, loadings = projection.times(shrinkage[:, None] * self.cross), None
        else:
            weights, offset = projection.weights * shrinkage, projection.offset * shrinkage
            projection = replace(projection, weights=weights, offset=offset)
        return RidgeWeights(projection, loadings, self.mean, self.leverages(alpha))


class Penalty(NamedTuple):
    """A penalty, and the criterion by which it was chosen.

    Attributes
    ----------
    alpha : float
    criterion : {"average_precision", "squared_error"}
    value : float
        Greater is better: errors are negated.
    """

    alpha: float
    criterion: str
    value: float


def best_penalty(form: ClosedForm, alphas: Sequence[float], seed: int) -> Penalty:
    """The penalty with the best leave-one-out scores; the first among equal ones.

    By average precision, or by the squared error (PRESS; Allen, 1974) if there are so many labels
    that few rows could be ranked, or if every row has no label or all of them.
    """
    n, q = form.Y.shape
    criterion, values = "average_precision", [np.nan]
    ranked = min(n, 2**22 // q, 20_000)
    if ranked >= min(n, _FEWEST_RANKED):
        rows = drawn_rows(n, ranked, seed)
        truth, B = form.Y[rows], form.coordinates(rows)
        values = []
        for alpha in alphas:
            factors, leverage = B * form.shrinkage(alpha), form.leverage(alpha, B)
            scores = RidgeScores.left_out(factors, form.cross, form.mean, leverage, truth)
            values.append(average_precision(truth, DenseScores(scores.toarray())))
    if np.isnan(values).any():
        rows = drawn_rows(n, 2_000, seed)
        criterion = "squared_error"
        values = [-error for error in squared_errors(form, alphas, rows, form.Y[rows])]
    best = int(np.argmax(values))
    return Penalty(alphas[best], criterion, float(values[best]))


def squared_errors(
    form: ClosedForm, alphas: Sequence[float], rows: Array, truth: Csr
) -> list[float]:
    """Mean squared leave-one-out errors over all labels, without a rows x labels matrix.

    With a_i = (e + λ)⁻¹ B_i, ||yc_i - a_i C||² = ||yc_i||² - 2 a_i · C yc_i + a_i · C Cᵀ a_i, and
    the sum of the last terms is that of the cells of C Cᵀ times those of aᵀ a.
    """
    mean, cross = form.mean, form.cross
    B = form.coordinates(rows)
    lengths = np.diff(truth.indptr) - 2 * (truth @ mean) + mean @ mean
    towards = np.asarray(truth @ cross.T) - cross @ mean
    inner = cross @ cross.T
    errors = []
    for alpha in alphas:
        growth = 1 / rest_of(form.leverage(alpha, B))
        a = B * form.shrinkage(alpha) * growth[:, None]
        squared = lengths * growth - 2 * np.einsum("ij,ij->i", a, towards)
        total = squared @ growth + np.vdot(inner, a.T @ a)
        errors.append(float(total) / len(rows) / len(mean))
    return errors
