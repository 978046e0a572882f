"""Features for ridge regression: the vectors themselves, or Nystroem features of a kernel.

Both kinds compute the features of training rows in runs, so that no array has all rows.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from nearlabel.common.arrays import Array, Floats

_SMALLEST_EIGENVALUE = 1e-9  # of the landmarks' kernel, relative to the largest
_LANDMARKS_OF_THE_MEDIAN = 300
_CELLS_IN_CACHE = 2**20  # of a kernel that is read several times: 8 MiB


@dataclass(frozen=True)
class LinearFeatures:
    """The vectors themselves: dense rows as float64, sparse rows unchanged."""

    width: int

    @property
    def is_linear(self) -> bool:
        """Whether the features are the vectors."""
        return True

    def of(self, X: Any) -> Any:
        """Features of some vectors."""
        return X.astype(np.float64, copy=False)


@dataclass(frozen=True)
class NystroemFeatures:
    """Nystroem features of an RBF kernel (Williams and Seeger, 2001): K(X, landmarks) R.

    Attributes
    ----------
    landmarks : ndarray or csr_array, shape (m, d)
    gamma : float
        The kernel is exp(-gamma ||x - y||²).
    whitening : ndarray, shape (m, r)
        R: eigenvectors of the landmarks' kernel over the roots of their eigenvalues.
    """

    landmarks: Any
    gamma: float
    whitening: Floats

    @classmethod
    def of_landmarks(cls, landmarks: Any, gamma: float) -> NystroemFeatures:
        """Features of given landmarks; directions with tiny eigenvalues are dropped."""
        landmarks = landmarks.astype(np.float64)
        kernel = rbf_kernel(landmarks, landmarks, gamma)
        values, vectors = np.linalg.eigh((kernel + kernel.T) / 2)
        kept = values > _SMALLEST_EIGENVALUE * values[-1]
        return cls(landmarks, gamma, vectors[:, kept] / np.sqrt(values[kept]))

    @property
    def is_linear(self) -> bool:
        """Whether the features are the vectors."""
        return False

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.whitening.shape[1])

    def of(self, X: Any) -> Floats:
        """Features of some vectors."""
        return self.kernel(X) @ self.whitening

    def kernel(self, X: Any, out: Floats | None = None) -> Floats:
        """The kernel of some vectors and the landmarks, optionally in an existing array."""
        return rbf_kernel(X, self.landmarks, self.gamma, out)


Features = LinearFeatures | NystroemFeatures


def squared_distances(X: Any, others: Any) -> Floats:
    """Squared Euclidean distances between the rows of two matrices, both dense or both sparse."""
    if sparse.issparse(X):
        product = np.asarray((X @ others.T).todense(), np.float64)
        lengths = [np.asarray((part * part).sum(axis=1)).ravel() for part in (X, others)]
    else:
        center = others.mean(axis=0)  # far from the origin, differences would be lost to rounding
        X, others = X - center, others - center
        product = X @ others.T
        lengths = [np.einsum("ij,ij->i", part, part) for part in (X, others)]
    product *= -2
    product += lengths[0][:, None]
    product += lengths[1]
    return np.maximum(product, 0, out=product)


def rbf_kernel(X: Any, landmarks: Any, gamma: float, out: Floats | None = None) -> Floats:
    """exp(-gamma ||x - y||²) of all rows of two matrices, as float64."""
    n, m = X.shape[0], landmarks.shape[0]
    kernel = np.empty((n, m)) if out is None else out
    step = max(256, _CELLS_IN_CACHE // max(m, 1))
    for start in range(0, n, step):
        some = squared_distances(X[start : start + step].astype(np.float64, copy=False), landmarks)
        some *= -gamma
        np.exp(some, out=kernel[start : start + step])
    return kernel


def seed_of(random_state: Any) -> int:
    """The seed given as random_state, or one drawn from it."""
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral):
        random_state = check_random_state(random_state).randint(2**31 - 1)
    check_random_state(random_state)
    return int(random_state)


def drawn_rows(n: int, most: int, random_state: Any) -> Array:
    """At most `most` of n rows, in order, drawn by seed if there are more."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.RandomState(random_state).choice(n, most, replace=False))


def median_squared_distance(landmarks: Any) -> float:
    """The median squared distance between different rows; 1 if all are equal."""
    some = landmarks[:_LANDMARKS_OF_THE_MEDIAN].astype(np.float64)
    distances = squared_distances(some, some)[np.triu_indices(some.shape[0], 1)]
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0
