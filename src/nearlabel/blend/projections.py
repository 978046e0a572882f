"""Learned coordinates of new rows, from their features or a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nearlabel.blend.kernel_features import rbf_kernel
from nearlabel.blend.spectra import row_blocks
from nearlabel.common.arrays import Floats
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.validation import all_finite, check_real
from nearlabel.methods.fields import stored_array


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
        """The stored form."""
        landmarks = self.landmarks
        if sparse.issparse(landmarks):
            landmarks = csr_tree(landmarks)
        return {**self._asdict(), "landmarks": landmarks}

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any], d: int) -> Projection:
        """From the stored form; a ValueError or the like if it is not valid."""
        weights = finite_array(tree["weights"], "weights", 2)
        offset = finite_array(tree["offset"], "offset", 1)
        if offset.shape != weights.shape[1:]:
            raise ValueError("its offset does not match its weights")
        if tree["gamma"] is None:
            center = finite_array(tree["center"], "center", 1)
            if center.shape != (d,) or len(weights) != d:
                raise ValueError("its center and its weights do not match its features")
            return cls(center, weights, offset)
        landmarks = tree["landmarks"]
        if isinstance(landmarks, Mapping):
            landmarks = csr_from(landmarks, "landmarks")
            finite_array(landmarks.data, "landmarks", 1)
        else:
            finite_array(landmarks, "landmarks", 2)
        if landmarks.shape != (len(weights), d):
            raise ValueError("its landmarks do not match its weights and features")
        gamma = check_real(tree["gamma"], "gamma", low=0)
        return cls(np.empty(0), weights, offset, landmarks, gamma)


def finite_array(array: Any, key: str, ndim: int) -> Floats:
    """An array of a file, of finite float64."""
    found: Floats = stored_array(array, key, "f", ndim)
    if found.dtype != np.float64 or not all_finite(found):
        raise ValueError(f"its {key} must be finite")
    return found


def _in_form_of(others: Any, X: Any) -> Any:
    """Rows as an array if others are one, otherwise as a ``csr_array``."""
    if sparse.issparse(others):
        return X if sparse.issparse(X) else sparse.csr_array(X)
    return X.toarray() if sparse.issparse(X) else X
