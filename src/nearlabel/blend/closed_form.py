"""Ridge regressions of all labels with any penalty, from one decomposition of the features."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from nearlabel.blend.axes import kernel_axes, linear_axes
from nearlabel.blend.projections import Landmarks
from nearlabel.blend.ridge_scores import RidgeScores, RidgeWeights, Shares
from nearlabel.blend.rows import row_blocks
from nearlabel.common.arrays import Array, Csr, Floats, Matrix
from nearlabel.labels.counts import label_totals

_STORED_CELLS = 2**25  # of an array of rows x axes: 256 MiB


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

    def shares(self, alpha: float, B: Floats) -> Shares:
        """Leverages of training rows with coordinates B, and the factors that follow from them.

        y_i - (yc_i - fitted_i) / (1 - h_i) = (fitted_i + mean(Y)) / (1 - h_i) - h_i / (1 - h_i) y_i
        with centered fitted values.
        """
        return Shares.of(1 / self.X.shape[0] + B**2 @ self.shrinkage(alpha))

    def leverages(self, alpha: float) -> Floats:
        """Leverages of all training rows, shape (n,)."""
        if alpha not in self._leverages:
            for _ in self.left_out_products(alpha, np.empty((len(self.cross), 0))):
                pass
        return self._leverages[alpha]

    def left_out_products(
        self, alpha: float, loadings: Floats
    ) -> Iterator[tuple[slice, Floats, Shares]]:
        """Blocks of training rows, each with B loadings, shape (m, k), and its shares."""
        n = self.X.shape[0]
        leverages = np.empty(n)
        for rows in row_blocks(n, max(self.X.shape[1], len(self.cross))):
            B = self.coordinates(rows)
            shares = self.shares(alpha, B)
            leverages[rows] = shares.leverage
            yield rows, B @ loadings, shares
        self._leverages = {alpha: leverages}

    def left_out_rows(self, alpha: float, B: Floats, own: Csr) -> Floats:
        """Dense scores of a few training rows with coordinates B, each left out."""
        shares = self.shares(alpha, B)
        factors = B * self.shrinkage(alpha) * shares.of_mean[:, None]
        return RidgeScores(factors, self.cross, self.mean, *shares[1:], own).toarray()

    def weights(self, alpha: float) -> RidgeWeights:
        """The weights for scores of new rows: V (e + λ)⁻¹ C, as two factors if that is smaller."""
        shrinkage, projection = self.shrinkage(alpha), self.projection
        loadings: Floats | None = self.cross
        if self.cross.shape[1] < len(self.cross):
            projection, loadings = projection.times(shrinkage[:, None] * self.cross), None
        else:
            weights, offset = projection.weights * shrinkage, projection.offset * shrinkage
            projection = projection._replace(weights=weights, offset=offset)
        return RidgeWeights(projection, loadings, self.mean, self.leverages(alpha))
