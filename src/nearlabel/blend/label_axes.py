"""Coordinates from ridge scores: a row's expected labels on a few principal axes.

With columns l scaled by S_l, distances between rows of scores are those of the matrix W S² Wᵀ,
where W are the weights of the regression: Mahalanobis distances for a linear one. So a few axes
suffice, however many labels there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.blend.closed_form import ClosedForm
from nearlabel.blend.projections import Projection
from nearlabel.blend.rows import row_blocks
from nearlabel.common.arrays import Floats

_SMALLEST = 1e-12  # variance along an axis, relative to the greatest


def label_scales(mean: Floats, spread: float) -> Floats:
    """(p (1 - p))^(-spread / 2) for each label's share p; 0 for a label of no row or all rows."""
    variance = mean * (1 - mean)
    varies = variance > 0
    return np.where(varies, np.where(varies, variance, 1.0) ** (-spread / 2), 0.0)


class LabelAxes:
    """The principal axes of a regression's scaled scores.

    Parameters
    ----------
    form, alpha : the regression and its penalty
    spread : float
        The exponent with which labels are scaled by their spread.
    n_components : int
        Maximum number of axes. If there are no more labels than that, the axes are the labels.
    """

    def __init__(self, form: ClosedForm, alpha: float, spread: float, n_components: int) -> None:
        self._form, self._alpha = form, alpha
        scales = label_scales(form.mean, spread)
        if len(scales) <= n_components:
            self._loadings, self._of_labels = form.cross * scales, np.diag(scales)
        else:
            # The variance of the scores is diag(w) G diag(w), G = C S² Cᵀ: nothing is q x q.
            w = np.sqrt(form.values) * form.shrinkage(alpha)
            gram = np.zeros((len(w), len(w)))
            for labels in row_blocks(len(scales), len(w)):
                scaled = form.cross[:, labels] * scales[labels]
                gram += scaled @ scaled.T
            variance, turned = np.linalg.eigh(w[:, None] * gram * w)
            best = np.arange(len(w))[::-1][:n_components]
            best = best[variance[best] > _SMALLEST * variance[best[:1]]]
            axes = w[:, None] * turned[:, best] / np.sqrt(variance[best])
            axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(len(best))] < 0, -1, 1)
            self._loadings = gram @ axes
            self._of_labels = (scales**2)[:, None] * (form.cross.T @ axes)
        self._offset: Floats = form.mean @ self._of_labels

    @property
    def projection(self) -> Projection:
        """The projection for coordinates of new rows."""
        form = self._form
        projection = form.projection.times(form.shrinkage(self._alpha)[:, None] * self._loadings)
        return projection._replace(offset=projection.offset + self._offset)

    def left_out(self, kind: type[np.floating[Any]] = np.float64) -> Floats:
        """Coordinates of the training rows, each by a regression fitted to the others.

        The axes and the labels' means, which are only added, stay the same. The mean of all other
        rows would reveal a row's own labels: it is lower for each label that the row has.
        """
        form, n = self._form, self._form.X.shape[0]
        loadings = form.shrinkage(self._alpha)[:, None] * self._loadings
        coordinates = np.empty((n, len(self._offset)), kind)
        for rows, block, shares in form.left_out_products(self._alpha, loadings):
            block *= shares.of_mean[:, None]
            t = shares.without_mean(n)
            block -= t[:, None] * (form.Y[rows] @ self._of_labels - self._offset)
            block += self._offset
            coordinates[rows] = block
        return coordinates
