"""Coordinates from ridge scores, and how they are joined with plain features.

A row's expected labels are reduced to a few principal axes. With columns l scaled by S_l, distances
between rows of scores are those of the matrix W S² Wᵀ, where W are the weights of the regression:
Mahalanobis distances for a linear one. So a few axes suffice, however many labels there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.sparsefuncs import mean_variance_axis

from nearlabel.blend.projections import Projection
from nearlabel.blend.ridge import LabelRidge
from nearlabel.blend.ridge_scores import rest_of
from nearlabel.blend.rows import row_blocks
from nearlabel.common.arrays import Csr, Floats, Matrix, canonical_csr
from nearlabel.methods.mlknn import MLkNN
from nearlabel.metrics import average_precision


def label_scales(mean: Floats, spread: float) -> Floats:
    """(p (1 - p))^(-spread / 2) for each label's share p; 0 for a label of no row or all rows."""
    variance = mean * (1 - mean)
    varies = variance > 0
    return np.where(varies, np.where(varies, variance, 1.0) ** (-spread / 2), 0.0)


class LabelAxes(NamedTuple):
    """Coordinates of rows on the principal axes of a regression's scaled scores."""

    projection: Projection  # to the coordinates of new rows
    # (n, k): those of the training rows, each by a regression fitted to the others. The axes and
    # the labels' means, which are only added, stay the same. The mean of all other rows would
    # reveal a row's own labels: it is lower for each label that the row has.
    left_out: Floats

    @classmethod
    def of(cls, ridge: LabelRidge, spread: float, n_components: int, dtype: type) -> LabelAxes:
        """The axes of a regression, at most `n_components`.

        If there are no more labels than that, the axes are the labels.
        """
        shrinkage, scales = ridge.shrinkage(ridge.alpha), label_scales(ridge.mean, spread)
        if len(scales) <= n_components:
            loadings, of_labels = ridge.cross * scales, np.diag(scales)
        else:
            # The variance of the scores is diag(w) G diag(w), G = C S² Cᵀ: nothing is q x q.
            w = np.sqrt(ridge.values) * shrinkage
            gram = np.zeros((len(w), len(w)))
            for labels in row_blocks(len(scales), len(w)):
                scaled = ridge.cross[:, labels] * scales[labels]
                gram += scaled @ scaled.T
            variance, turned = np.linalg.eigh(w[:, None] * gram * w)
            best = np.arange(len(w))[::-1][:n_components]
            best = best[variance[best] > 1e-12 * variance[best[:1]]]
            axes = w[:, None] * turned[:, best] / np.sqrt(variance[best])
            axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(len(best))] < 0, -1, 1)
            loadings, of_labels = gram @ axes, (scales**2)[:, None] * (ridge.cross.T @ axes)
        loadings, offset = shrinkage[:, None] * loadings, ridge.mean @ of_labels
        n = ridge.X.shape[0]
        left_out: Floats = np.empty((n, len(offset)), dtype)
        for rows, block, leverage in ridge.left_out_products(loadings):
            # (fitted_i + mean) / (1 - h) - h / (1 - h) y_i, less the mean of the others,
            # (n mean - y_i) / (n - 1), is fitted_i / (1 - h) - t (y_i - mean).
            growth = 1 / rest_of(leverage)
            t = (n * leverage - 1) / (n - 1) * growth
            block *= growth[:, None]
            block -= t[:, None] * (ridge.Y[rows] @ of_labels - offset)
            block += offset
            left_out[rows] = block
        return cls(ridge.projection.times(loadings, offset), left_out)


class Joining(NamedTuple):
    """How learned coordinates L and plain features X are joined: [L learned, X plain]."""

    learned: float
    plain: float  # 0: the features are left out
    metric: str  # "cosine": rows get length 1, so that Euclidean distances rank as cosine ones do

    def rows(self, L: Floats, X: Matrix) -> Matrix:
        """Joined rows: an array, or a ``csr_array`` if they include a sparse X."""
        joined: Matrix = L * self.learned
        if self.plain:
            plain = X.astype(L.dtype) * self.plain
            if sparse.issparse(plain):
                parts = [sparse.csr_array(joined), plain]
                joined = canonical_csr(sparse.hstack(parts, format="csr"))
            else:
                joined = np.hstack([joined, plain])
        return normalize(joined, copy=False) if self.metric == "cosine" else joined


def unit_scale(rows: Matrix) -> float:
    """The factor that scales the mean squared distance between different rows to 1."""
    n, d = rows.shape
    if sparse.issparse(rows):
        variance = mean_variance_axis(rows.astype(np.float64), axis=0)[1].sum()
    else:
        blocks = row_blocks(d, n, 16)
        variance = sum(rows[:, block].var(axis=0, dtype=np.float64).sum() for block in blocks)
    variance *= 2 * n / (n - 1)
    return float(variance**-0.5) if variance > np.finfo(np.float64).tiny else 1.0


def left_out_quality(rows: Matrix, Y: Csr, n_jobs: int | None) -> float:
    """Leave-one-out average precision of ML-kNN with k = 30.

    With a single label, where there is nothing to rank, the negative squared error.
    """
    n, q = Y.shape
    model = MLkNN(min(30, n - 1), search="exact", n_jobs=n_jobs).fit(rows, Y)
    scores = model.left_out_scores()
    if q == 1:
        return -float(np.mean((scores.toarray() - Y.toarray()) ** 2))
    value = average_precision(Y, scores)
    return 0.0 if np.isnan(value) else value  # nan: no row can be ranked
