"""Principal axes of centered features, from which ridge regressions with any penalty follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from nearlabel.blend.kernel_features import Features
from nearlabel.common.arrays import Floats

_WIDEST = 3_000  # rows or features, whichever are fewer, for a full decomposition
_TRUNCATED_RANK = 1_000
_CELLS = 2**26  # numbers in an array of axes: 512 MiB
_CELLS_AT_ONCE = 2**21  # 16 MiB: larger arrays would be returned to the system every time
_FEWEST_AXES = 64
_SMALLEST = 1e-14  # eigenvalues, relative to the largest
_ITERATIONS, _OVERSAMPLING = 4, 32


class Spectrum(NamedTuple):
    """Centered features as Zc = U diag(sqrt e) Vᵀ.

    Attributes
    ----------
    mean : ndarray, shape (d,)
    values : ndarray, shape (r,)
        e, the greatest first, without zeros.
    vectors : ndarray, shape (d, r)
        V.
    """

    mean: Floats
    values: Floats
    vectors: Floats

    def coordinates(self, Z: Any) -> Floats:
        """(Z - mean) V, which is U diag(sqrt e) for the training rows."""
        if sparse.issparse(Z):
            return np.asarray(Z @ self.vectors) - self.mean @ self.vectors
        return np.asarray((Z - self.mean) @ self.vectors)


def row_blocks(n: int, width: int) -> Iterator[slice]:
    """Runs of n rows for which arrays with `width` numbers per row fit into memory."""
    step = max(256, _CELLS_AT_ONCE // max(width, 1))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def spectrum_of(X: Any, features: Features, most: int, random_state: Any) -> Spectrum:
    """Decompose the features of training rows.

    From ZcᵀZc or ZcZcᵀ, whichever is smaller, if it has at most 3,000 rows. Otherwise, or if there
    is no room for all axes, the 1,000 leading axes or fewer by subspace iteration with a seeded
    start (Halko, Martinsson and Tropp, 2011): what is outside of them is treated as zero.

    Parameters
    ----------
    X : ndarray or csr_array, shape (n, d)
    features : of these vectors
    most : int
        How many axes there is room for.
    random_state : int
        Seed of the truncated decomposition.
    """
    n, d = X.shape[0], features.width
    most = max(_FEWEST_AXES, min(most, _CELLS // d))
    if min(n, d) > min(_WIDEST, most):
        return _truncated(X, features, min(_TRUNCATED_RANK, most, min(n, d)), random_state)
    return _primal(X, features, d) if d <= n else _dual(X, features, d)


def _primal(X: Any, features: Features, d: int) -> Spectrum:
    """From ZcᵀZc, summed over runs of rows."""
    n = X.shape[0]
    if sparse.issparse(X) and features.is_linear:
        Z: Any = features.of(X)
        mean = _mean(Z)
        gram = (Z.T @ Z).toarray() - n * np.outer(mean, mean)
    else:
        # Relative to a point near the mean nothing is lost by cancellation, so one pass suffices.
        near = _dense(features.of(X[: min(n, 1024)])).mean(axis=0)
        gram, total = np.zeros((d, d)), np.zeros(d)
        for rows in row_blocks(n, max(d, X.shape[1])):
            Z = _dense(features.of(X[rows])) - near
            gram += Z.T @ Z
            total += Z.sum(axis=0)
        gram -= np.outer(total, total) / n
        mean = near + total / n
    return spectrum_of_gram(mean, gram)


def spectrum_of_gram(mean: Floats, gram: Floats) -> Spectrum:
    """The spectrum of features with known mean and ZcᵀZc."""
    values, vectors = np.linalg.eigh(gram)
    kept = _kept(values)
    return Spectrum(mean, values[kept], np.ascontiguousarray(vectors[:, kept]))


def _dual(X: Any, features: Features, d: int) -> Spectrum:
    """From ZcZcᵀ, for fewer rows than features."""
    Z: Any = features.of(X)
    if sparse.issparse(Z):
        mean = _mean(Z)
        gram = (Z @ Z.T).toarray()
        by_row = gram.mean(axis=0)
        gram += by_row.mean() - by_row - by_row[:, None]
    else:
        mean = Z.mean(axis=0)
        gram = np.zeros((len(Z), len(Z)))
        for columns in row_blocks(d, len(Z)):
            part = Z[:, columns] - mean[columns]
            gram += part @ part.T
    values, left = np.linalg.eigh(gram)
    kept = _kept(values)
    values, left = values[kept], left[:, kept]
    return Spectrum(mean, values, _axes(Z, mean, left / np.sqrt(values)))


def _axes(Z: Any, mean: Floats, left: Floats) -> Floats:
    """Zcᵀ times a matrix with the same number of rows."""
    if sparse.issparse(Z):
        return np.asarray(Z.T @ left) - np.outer(mean, left.sum(axis=0))
    axes = np.empty((Z.shape[1], left.shape[1]))
    for columns in row_blocks(len(axes), len(Z)):
        axes[columns] = (Z[:, columns] - mean[columns]).T @ left
    return axes


def _truncated(X: Any, features: Features, rank: int, random_state: Any) -> Spectrum:
    """The leading axes by subspace iteration over rows or features, whichever are fewer."""
    n, d = X.shape[0], features.width
    is_sparse = sparse.issparse(X) and features.is_linear
    blocks = [slice(0, n)] if is_sparse else list(row_blocks(n, max(d, X.shape[1])))
    mean = sum(np.asarray(features.of(X[rows]).sum(axis=0)).ravel() for rows in blocks) / n
    width = min(rank + _OVERSAMPLING, n, d)

    def parts(axes: Floats) -> Iterator[tuple[Any, Floats]]:
        for rows in blocks:
            Z = features.of(X[rows])
            yield Z, Spectrum(mean, np.empty(0), axes).coordinates(Z)

    def transposed(left: Floats) -> Floats:
        found = (_axes(features.of(X[rows]), mean, left[rows]) for rows in blocks)
        return sum(found, np.zeros((d, width)))

    start = np.random.RandomState(random_state).standard_normal((min(n, d), width))
    if d < n:  # no array has as many rows as X
        axes = _orthonormal(start)
        for _ in range(_ITERATIONS):
            moved = np.zeros((d, width))
            for Z, B in parts(axes):
                moved += _axes(Z, mean, B)
            axes = _orthonormal(moved)
        gram = sum((B.T @ B for _, B in parts(axes)), np.zeros((width, width)))
    else:
        left = _orthonormal(start)
        for _ in range(_ITERATIONS):
            left = _orthonormal(np.concatenate([B for _, B in parts(transposed(left))]))
        axes = transposed(left)
        gram = axes.T @ axes
    values, turned = np.linalg.eigh(gram)
    kept = _kept(values)[:rank]
    values, axes = values[kept], axes @ turned[:, kept]
    return Spectrum(mean, values, axes if d < n else axes / np.sqrt(values))


def _orthonormal(matrix: Floats) -> Floats:
    found: Floats = linalg.qr(matrix, mode="economic", overwrite_a=True, check_finite=False)[0]
    return found


def _kept(values: Floats) -> Any:
    """The indices of nonzero eigenvalues, given in ascending order; greatest first."""
    count = int(np.count_nonzero(values > max(values[-1], 0) * _SMALLEST))
    return np.arange(len(values))[::-1][:count]


def _mean(Z: Any) -> Floats:
    mean: Floats = np.asarray(Z.sum(axis=0), np.float64).ravel() / Z.shape[0]
    return mean


def _dense(Z: Any) -> Floats:
    return np.asarray(Z.toarray() if sparse.issparse(Z) else Z)
