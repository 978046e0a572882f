"""Ridge regressions of all labels with any penalty, from one decomposition of the features."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from nearlabel.blend.kernel_features import Features, NystroemFeatures
from nearlabel.blend.projections import Projection
from nearlabel.blend.ridge_scores import RidgeScores, RidgeWeights, Shares
from nearlabel.blend.spectra import row_blocks, spectrum_of
from nearlabel.blend.streamed_kernel import KernelLeverage, add_by_label, one_pass
from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.labels.counts import label_totals

LABEL_CELLS = 2**26  # of an array of axes x labels: 512 MiB
_KEPT_CELLS = 2**25  # of an array of rows x axes: 256 MiB


class ClosedForm:
    """Ridge regressions of Y on features of X; the penalty is given when scores are computed.

    With Zc = U diag(sqrt e) Vᵀ the centered features and λ the penalty, B = Zc V and C = Bᵀ Y give
    the fitted values B (e + λ)⁻¹ C + mean(Y). Nothing is divided by sqrt e, so small e do no harm.
    The penalty is λ = alpha mean(e): the same λ whichever row is left out.
    """

    def __init__(self, X: Any, Y: Csr, features: Features, random_state: int) -> None:
        n, q = Y.shape
        self.X, self.Y, self.features = X, Y, features
        self.mean: Floats = label_totals(Y) / n
        self._leverages: dict[float, Floats] = {}
        self.cross: Floats
        self._streamed: NystroemFeatures | None = None
        if isinstance(features, NystroemFeatures) and n * features.width > _KEPT_CELLS:
            self._streamed = features
            self.spectrum, self.cross = one_pass(X, Y, features)
            return
        self.spectrum = spectrum_of(X, features, LABEL_CELLS // q, random_state)
        cross = np.zeros((q, len(self.spectrum.values)))
        for rows in row_blocks(n, max(X.shape[1], cross.shape[1])):
            add_by_label(cross, Y[rows], self.coordinates(np.arange(n)[rows]))
        self.cross = cross.T

    @cached_property
    def _kept(self) -> Floats | None:
        """B of all training rows, if it is not too large."""
        n, r = self.X.shape[0], len(self.spectrum.values)
        if n * max(r, 1) > _KEPT_CELLS:
            return None
        kept = np.empty((n, r))
        for rows in row_blocks(n, max(r, self.X.shape[1])):
            kept[rows] = self._project(self.X[rows])
        return kept

    def coordinates(self, rows: Array) -> Floats:
        """B of some training rows, shape (m, r)."""
        return self._project(self.X[rows]) if self._kept is None else self._kept[rows]

    def _project(self, X: Any) -> Floats:
        if not isinstance(self.features, NystroemFeatures):
            return self.spectrum.coordinates(self.features.of(X))
        # Whitening and rotation to the axes in one product instead of two.
        kernel = self.features.kernel(X) @ self._whitened_axes
        return kernel - self.spectrum.mean @ self.spectrum.vectors

    @cached_property
    def _whitened_axes(self) -> Floats:
        assert isinstance(self.features, NystroemFeatures)
        return self.features.whitening @ self.spectrum.vectors

    def shrinkage(self, alpha: float) -> Floats:
        """(e + λ)⁻¹, shape (r,)."""
        values = self.spectrum.values
        found: Floats = 1 / (values + alpha * values.mean()) if len(values) else np.empty(0)
        return found

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
        """Runs of training rows, each with B loadings, shape (m, k), and its shares."""
        n = self.X.shape[0]
        found = np.empty(n)
        if self._streamed is not None:
            mean = self.spectrum.mean @ self.spectrum.vectors
            leverage = KernelLeverage.of(self._whitened_axes, mean, self.shrinkage(alpha))
            whitened, offset = self._whitened_axes @ loadings, mean @ loadings
        for rows in row_blocks(n, max(self.X.shape[1], len(self.cross))):
            if self._streamed is not None:
                kernel = self._streamed.kernel(self.X[rows])
                product = kernel @ whitened - offset
                shares = Shares.of(1 / n + leverage.of_rows(kernel))
            else:
                B = self.coordinates(np.arange(n)[rows])
                product, shares = B @ loadings, self.shares(alpha, B)
            found[rows] = shares.leverage
            yield rows, product, shares
        self._leverages = {alpha: found}

    def left_out_scores(self, alpha: float) -> RidgeScores:
        """Scores of the training rows, each left out."""
        shares, inverse = Shares.of(self.leverages(alpha)), self.shrinkage(alpha)

        def factor(some: Array) -> Floats:
            return self.coordinates(some) * inverse * shares.of_mean[some, None]

        return RidgeScores(self.Y.shape, factor, self.cross, self.mean, *shares[1:], self.Y)

    def left_out_rows(self, alpha: float, B: Floats, own: Csr) -> Floats:
        """Dense scores of a few training rows with coordinates B, each left out."""
        shares, n = self.shares(alpha, B), len(B)
        factor = B * self.shrinkage(alpha) * shares.of_mean[:, None]
        shape = (n, len(self.mean))
        scores = RidgeScores(shape, factor.__getitem__, self.cross, self.mean, *shares[1:], own)
        return scores.dense(slice(None))

    def weights(self, alpha: float) -> RidgeWeights:
        """The weights for scores of new rows: V (e + λ)⁻¹ C, as two factors if that is smaller."""
        first: Floats = self.spectrum.vectors * self.shrinkage(alpha)
        loadings: Floats | None = self.cross
        if self.cross.shape[1] < self.cross.shape[0]:
            first, loadings = first @ self.cross, None
        projection = self.projection(first, np.zeros(first.shape[1]))
        return RidgeWeights(projection, loadings, self.mean, self.leverages(alpha))

    def projection(self, weights: Floats, offset: Floats) -> Projection:
        """Centered features of new rows times weights, plus an offset."""
        kernel, mean = self.features, self.spectrum.mean
        if not isinstance(kernel, NystroemFeatures):
            return Projection(mean, weights, offset)
        offset = offset - mean @ weights
        whitened = kernel.whitening @ weights
        return Projection(np.empty(0), whitened, offset, kernel.landmarks, kernel.gamma)
