"""Ridge regressions of all labels with any penalty, from one decomposition of the features."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nearlabel.blend.kernel_features import Features
from nearlabel.blend.ridge_scores import RidgeScores
from nearlabel.blend.spectra import row_blocks, spectrum_of
from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.labels.counts import label_totals

LABEL_CELLS = 2**26  # of an array of axes x labels: 512 MiB
_KEPT_CELLS = 2**25  # of an array of rows x axes: 256 MiB
_LEAST_REST = 1e-12  # of 1 - leverage, against rounding


class Shares(NamedTuple):
    """What left-out scores take of the labels' means and of the rows' own labels, shape (n,)."""

    leverage: Floats
    of_mean: Floats
    of_own: Floats


class ClosedForm:
    """Ridge regressions of Y on features of X; the penalty is given when scores are asked for.

    With Zc = U diag(sqrt e) Vᵀ the centered features and λ the penalty, B = Zc V and C = Bᵀ Y give
    the fitted values B (e + λ)⁻¹ C + mean(Y). No root of e is divided by, so small e do no harm.
    The penalty is λ = alpha mean(e): the same λ for every row that is left out.
    """

    def __init__(self, X: Any, Y: Csr, features: Features, random_state: int) -> None:
        n, q = Y.shape
        self.X, self.Y, self.features = X, Y, features
        self.spectrum = spectrum_of(X, features, LABEL_CELLS // q, random_state)
        self.mean: Floats = label_totals(Y) / n
        cross = np.zeros((q, len(self.spectrum.values)))
        for rows in row_blocks(n, max(X.shape[1], cross.shape[1])):
            cross += Y[rows].T @ self.coordinates(np.arange(n)[rows])
        self.cross: Floats = np.ascontiguousarray(cross.T)

    @cached_property
    def _kept(self) -> Floats | None:
        """B of all training rows, where that is not too large."""
        n, r = self.X.shape[0], len(self.spectrum.values)
        if n * max(r, 1) > _KEPT_CELLS:
            return None
        kept = np.empty((n, r))
        for rows in row_blocks(n, max(r, self.X.shape[1])):
            kept[rows] = self.spectrum.coordinates(self.features.of(self.X[rows]))
        return kept

    def coordinates(self, rows: Array) -> Floats:
        """B of some training rows, shape (m, r)."""
        if self._kept is not None:
            return self._kept[rows]
        return self.spectrum.coordinates(self.features.of(self.X[rows]))

    def shrinkage(self, alpha: float) -> Floats:
        """(e + λ)⁻¹, shape (r,)."""
        values = self.spectrum.values
        found: Floats = 1 / (values + alpha * values.mean()) if len(values) else np.empty(0)
        return found

    def shares(self, alpha: float, rows: Array | None = None) -> Shares:
        """Leverages of training rows, of all if None, and what follows from them.

        y_i - (yc_i - fitted_i) / (1 - h_i) = (fitted_i + mean(Y)) / (1 - h_i) - h_i / (1 - h_i) y_i
        where the fitted values are centered, too.
        """
        n, inverse = self.X.shape[0], self.shrinkage(alpha)
        rows = np.arange(n) if rows is None else rows
        leverage = np.full(len(rows), 1 / n)
        for block in row_blocks(len(rows), len(inverse)):
            leverage[block] += self.coordinates(rows[block]) ** 2 @ inverse
        rest = np.maximum(1 - leverage, _LEAST_REST)
        return Shares(leverage, 1 / rest, leverage / rest)

    def left_out_scores(self, alpha: float, rows: Array | None = None) -> RidgeScores:
        """Scores of training rows, of all if None, each left out."""
        rows = np.arange(self.X.shape[0]) if rows is None else rows
        shares, inverse = self.shares(alpha, rows), self.shrinkage(alpha)

        def factor(some: Array) -> Floats:
            return self.coordinates(rows[some]) * inverse * shares.of_mean[some, None]

        shape = (len(rows), len(self.mean))
        own = self.Y if len(rows) == self.Y.shape[0] else self.Y[rows]
        return RidgeScores(shape, factor, self.cross, self.mean, *shares[1:], own)

    def weights(self, alpha: float) -> tuple[Floats, Floats]:
        """The factors of V (e + λ)⁻¹ C, by which new features are multiplied once centered.

        The second is the identity where there are fewer labels than axes.
        """
        first = self.spectrum.vectors * self.shrinkage(alpha)
        if self.cross.shape[1] < self.cross.shape[0]:
            return first @ self.cross, np.eye(self.cross.shape[1])
        return first, self.cross
