"""Coordinates from ridge scores: a row's expected labels on at most a few principal axes.

Distances between rows of scores with columns l scaled by S_l are distances by W S² Wᵀ, W the
weights of the regression: for a linear one a Mahalanobis distance. So a few axes are enough,
however many labels there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nearlabel.blend.closed_form import ClosedForm
from nearlabel.blend.kernel_features import NystroemFeatures, rbf_kernel
from nearlabel.blend.spectra import row_blocks
from nearlabel.common.arrays import Floats
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.validation import all_finite, check_real
from nearlabel.methods.fields import stored_array

_SMALLEST = 1e-12  # variance along an axis, relative to the greatest


class Projection(NamedTuple):
    """Learned coordinates of new rows: (x - center) weights + offset, x the row or its kernel.

    Attributes
    ----------
    center : ndarray, shape (d,)
        Empty for a kernel.
    weights : ndarray, shape (d, k), or (landmarks, k)
    offset : ndarray, shape (k,)
    landmarks : ndarray or csr_array, shape (m, d), or None
    gamma : float or None
    """

    center: Floats
    weights: Floats
    offset: Floats
    landmarks: Any = None
    gamma: float | None = None

    def coordinates(self, X: Any) -> Floats:
        """Learned coordinates of some rows, shape (m, k)."""
        found = np.empty((X.shape[0], len(self.offset)))
        for rows in row_blocks(len(found), max(len(self.weights), X.shape[1])):
            some = X[rows].astype(np.float64, copy=False)
            if self.gamma is not None:
                some = _in_form_of(self.landmarks, some)
                found[rows] = rbf_kernel(some, self.landmarks, self.gamma) @ self.weights
            elif sparse.issparse(some):
                found[rows] = some @ self.weights - self.center @ self.weights
            else:
                found[rows] = (some - self.center) @ self.weights
        found += self.offset
        return found

    def tree(self) -> dict[str, Any]:
        """What files have of it."""
        landmarks = self.landmarks
        if sparse.issparse(landmarks):
            landmarks = csr_tree(landmarks)
        return {**self._asdict(), "landmarks": landmarks}

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any], d: int) -> Projection:
        """That of a file; a ValueError or the like where it makes no sense."""
        weights = _finite(tree["weights"], "weights", 2)
        offset = _finite(tree["offset"], "offset", 1)
        if offset.shape != weights.shape[1:]:
            raise ValueError("its offset is not that of its weights")
        if tree["gamma"] is None:
            center = _finite(tree["center"], "center", 1)
            if center.shape != (d,) or len(weights) != d:
                raise ValueError("its center and its weights are not those of its features")
            return cls(center, weights, offset)
        landmarks = tree["landmarks"]
        if isinstance(landmarks, Mapping):
            landmarks = csr_from(landmarks, "landmarks")
            _finite(landmarks.data, "landmarks", 1)
        else:
            _finite(landmarks, "landmarks", 2)
        if landmarks.shape != (len(weights), d):
            raise ValueError("its landmarks are not those of its weights and features")
        gamma = check_real(tree["gamma"], "gamma", low=0)
        return cls(np.empty(0), weights, offset, landmarks, gamma)


def _finite(array: Any, key: str, ndim: int) -> Floats:
    found: Floats = stored_array(array, key, "f", ndim)
    if found.dtype != np.float64 or not all_finite(found):
        raise ValueError(f"its {key} hold a number that cannot be")
    return found


def _in_form_of(others: Any, X: Any) -> Any:
    """Rows as an array where others are, else as a ``csr_array``."""
    if sparse.issparse(others):
        return X if sparse.issparse(X) else sparse.csr_array(X)
    return X.toarray() if sparse.issparse(X) else X


def label_scales(mean: Floats, spread: float) -> Floats:
    """(p (1 - p))^(-spread / 2) of each label's share p; 0 for a label of no row or of all."""
    variance = mean * (1 - mean)
    varies = variance > 0
    return np.where(varies, np.where(varies, variance, 1.0) ** (-spread / 2), 0.0)


class LabelAxes:
    """The principal axes of a regression's scaled scores.

    Parameters
    ----------
    form, alpha : the regression and its penalty
    spread : float
        To what power labels are scaled by their spread.
    n_components : int
        Axes at most. Where there are no more labels than that, the axes are the labels.
    """

    def __init__(self, form: ClosedForm, alpha: float, spread: float, n_components: int) -> None:
        self._form, self._alpha = form, alpha
        scales = label_scales(form.mean, spread)
        if len(scales) <= n_components:
            self._loadings, self._of_labels = form.cross * scales, np.diag(scales)
        else:
            # The scores' own variance is diag(w) G diag(w), G = C S² Cᵀ: nothing is q x q.
            w = np.sqrt(form.spectrum.values) * form.shrinkage(alpha)
            gram = np.zeros((len(w), len(w)))
            for labels in row_blocks(len(scales), len(w)):
                scaled = form.cross[:, labels] * scales[labels]
                gram += scaled @ scaled.T
            variance, turned = np.linalg.eigh(w[:, None] * gram * w)
            kept = np.arange(len(w))[::-1][:n_components]
            kept = kept[variance[kept] > _SMALLEST * variance[kept[:1]]]
            axes = w[:, None] * turned[:, kept] / np.sqrt(variance[kept])
            axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(len(kept))] < 0, -1, 1)
            self._loadings = gram @ axes
            self._of_labels = (scales**2)[:, None] * (form.cross.T @ axes)
        self._offset: Floats = form.mean @ self._of_labels

    @property
    def projection(self) -> Projection:
        """What gives the coordinates of new rows."""
        form = self._form
        weights = (form.spectrum.vectors * form.shrinkage(self._alpha)) @ self._loadings
        if not isinstance(form.features, NystroemFeatures):
            return Projection(form.spectrum.mean, weights, self._offset)
        kernel = form.features
        offset = self._offset - form.spectrum.mean @ weights
        whitened = kernel.whitening @ weights
        return Projection(np.empty(0), whitened, offset, kernel.landmarks, kernel.gamma)

    def left_out(self, kind: Any = np.float64) -> Floats:
        """Coordinates of the training rows, each by a regression fitted to the others.

        All else stays: the axes, and the labels' means, which are only added. The mean of all other
        rows would tell a row's own labels: it is lower for each label that the row carries.
        """
        form, n = self._form, self._form.X.shape[0]
        inverse = form.shrinkage(self._alpha)
        # (fitted_i + mean) / (1 - h) - h / (1 - h) y_i, less the mean of the others, (n mean - y_i)
        # / (n - 1), is fitted_i / (1 - h) - t (y_i - mean) with the t below.
        found = np.empty((n, len(self._offset)), kind)
        for rows in row_blocks(n, max(len(inverse), form.X.shape[1])):
            B = form.coordinates(np.arange(n)[rows])
            shares = form.shares(self._alpha, B)
            t = (n * shares.leverage - 1) / (n - 1) * shares.of_mean
            some = (B * inverse * shares.of_mean[:, None]) @ self._loadings
            some -= t[:, None] * (form.Y[rows] @ self._of_labels - self._offset)
            found[rows] = some + self._offset
        return found
