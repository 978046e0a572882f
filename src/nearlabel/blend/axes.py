"""Principal axes of centered rows, from which ridge regressions with any penalty follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from nearlabel.blend.projections import Landmarks, Projection
from nearlabel.blend.rows import row_blocks
from nearlabel.common.arrays import Csr, Floats, Matrix
from nearlabel.labels.counts import label_totals

_WIDEST = 3_000  # rows or features, whichever are fewer, for a full decomposition
_TRUNCATED_RANK = 1_000
_FEW_CELLS = 2**25  # of features of rows: benchmarks/blend_at_scale.py has more
LABEL_CELLS = 2**26  # numbers in an array of axes x labels or features: 512 MiB
_ROWS_AT_ONCE = 2**12  # at least: every block visits many labels or features


class Axes(NamedTuple):
    """Centered rows as Zc = U diag(sqrt e) Vᵀ, and what they have in common with the labels."""

    values: Floats  # (r,): e, the greatest first, without zeros
    projection: Projection  # to B = Zc V, which is U diag(sqrt e) for the training rows
    cross: Floats  # (r, q): Bᵀ Y


def kernel_axes(X: Matrix, Y: Csr, landmarks: Landmarks) -> Axes:
    """The axes of Nystroem features of an RBF kernel (Williams and Seeger, 2001).

    With K the kernel of rows and landmarks, the features are K R, where R has the eigenvectors of
    the landmarks' kernel over the roots of their eigenvalues; directions with tiny ones are
    dropped. Of many rows, ZcᵀZc is Rᵀ KcᵀKc R and ZcᵀY is Rᵀ KcᵀY, which saves a product per row.
    That loses digits of the smallest values: of few rows, which have one value less than landmarks
    once they are centered, it would leave noise in the place of zero.
    """
    kernel = landmarks.kernel(landmarks.rows)
    values, vectors = np.linalg.eigh((kernel + kernel.T) / 2)
    inside = values > 1e-9 * values[-1]
    whitening = vectors[:, inside] / np.sqrt(values[inside])
    if X.shape[0] * len(values) > _FEW_CELLS:
        mean, gram, cross = _moments(X, Y, landmarks.kernel)
        mean, gram, cross = mean @ whitening, whitening.T @ gram @ whitening, cross @ whitening
    else:
        mean, gram, cross = _moments(X, Y, lambda rows: landmarks.kernel(rows) @ whitening)
    values, vectors = _nonzero(np.linalg.eigh((gram + gram.T) / 2))
    projection = Projection(np.empty(0), whitening @ vectors, -mean @ vectors, landmarks)
    return Axes(values, projection, (cross @ vectors).T)


def linear_axes(X: Matrix, Y: Csr, seed: int) -> Axes:
    """The axes of the rows themselves.

    From ZcᵀZc or ZcZcᵀ, whichever is smaller, if it has at most 3,000 rows. Otherwise, or if there
    is no room for all axes, the 1,000 leading axes or fewer by subspace iteration with a seeded
    start (Halko, Martinsson and Tropp, 2011): what is outside of them is treated as zero.
    """
    n, d = X.shape
    room = max(64, LABEL_CELLS // max(Y.shape[1], d))
    if min(n, d) > min(_WIDEST, room):
        mean, values, vectors = _leading(X, min(_TRUNCATED_RANK, room, n, d), seed)
    elif d > n:
        mean, values, vectors = _dual(X)
    else:
        mean, gram, cross = _moments(X, Y)
        values, vectors = _nonzero(np.linalg.eigh(gram))
        return Axes(values, _linear(mean, vectors), (cross @ vectors).T)
    projection = _linear(mean, vectors)
    cross = np.zeros((Y.shape[1], len(values)))
    for rows in row_blocks(n, max(d, Y.shape[1])):
        _add_by_label(cross, Y[rows], projection.coordinates(X[rows]))
    return Axes(values, projection, cross.T)


def _linear(mean: Floats, vectors: Floats) -> Projection:
    return Projection(mean, np.ascontiguousarray(vectors), np.zeros(vectors.shape[1]))


def _moments(
    X: Matrix, Y: Csr, features: Callable[[Matrix], Floats] | None = None
) -> tuple[Floats, Floats, Floats]:
    """The mean of rows or of their features, ZcᵀZc, and Yᵀ Zc."""
    (n, q), totals = Y.shape, label_totals(Y)
    if features is None and sparse.issparse(X):
        Z: Csr = X.astype(np.float64)
        mean = _mean(Z)
        gram = (Z.T @ Z).toarray() - n * np.outer(mean, mean)
        return mean, gram, (Y.T @ Z).toarray() - np.outer(totals, mean)

    def of(rows: slice) -> Floats:
        return X[rows].astype(np.float64) if features is None else features(X[rows])

    # Relative to a point near the mean nothing is lost by cancellation, so one pass suffices.
    near = of(slice(0, 1024)).mean(axis=0)
    width = len(near)
    gram, total, cross = np.zeros((width, width)), np.zeros(width), np.zeros((q, width))
    for rows in row_blocks(n, width, _ROWS_AT_ONCE):
        Z = of(rows)
        Z -= near
        gram += Z.T @ Z
        total += Z.sum(axis=0)
        _add_by_label(cross, Y[rows], Z)
    gram -= np.outer(total, total) / n
    for labels in row_blocks(q, width):
        cross[labels] -= np.outer(totals[labels], total / n)
    return near + total / n, gram, cross


def _add_by_label(sums: Floats, Y: Csr, values: Floats) -> None:
    """Add Yᵀ values to sums, shape (q, r), for some rows."""
    labels = np.unique(Y.indices)
    if 2 * len(labels) > len(sums):
        sums += Y.T @ values
    else:  # a sparse product would visit all of them for every block of rows
        sums[labels] += Y[:, labels].T @ values


def _dual(X: Matrix) -> tuple[Floats, Floats, Floats]:
    """The mean, and the axes from ZcZcᵀ."""
    mean = _mean(X)
    if sparse.issparse(X):
        rows: Csr = X.astype(np.float64)
        gram = (rows @ rows.T).toarray()
        by_row = gram.mean(axis=0)
        gram += by_row.mean() - by_row - by_row[:, None]
    else:
        centered = X - mean
        gram = centered @ centered.T
    values, left = _nonzero(np.linalg.eigh(gram))
    return mean, values, _transposed(X, mean, left / np.sqrt(values))


def _leading(X: Matrix, rank: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """The mean, and the leading axes by subspace iteration; no array has as many rows as X.

    Unless there are fewer rows than features: then their coordinates are made orthonormal instead
    of the axes, which takes less time.
    """
    (n, d), mean = X.shape, _mean(X)
    width = min(rank + 32, n, d)  # a few more axes than are wanted, so that these converge
    blocks = [*row_blocks(n, width if sparse.issparse(X) else max(d, width), _ROWS_AT_ONCE)]

    def coordinates(axes: Floats) -> Iterator[Floats]:
        projection = _linear(mean, axes)
        return (projection.coordinates(X[rows]) for rows in blocks)

    axes = np.random.RandomState(seed).standard_normal((d, width))
    for _ in range(4):
        if d < n:
            parts = coordinates(_orthonormal(axes))
        else:
            left = _orthonormal(np.concatenate([*coordinates(axes)]))
            parts = (left[rows] for rows in blocks)
        pairs = zip(blocks, parts, strict=True)
        axes = sum((_transposed(X[rows], mean, part) for rows, part in pairs), np.zeros((d, width)))
    axes = _orthonormal(axes)
    gram = sum((B.T @ B for B in coordinates(axes)), np.zeros((width, width)))
    values, turned = _nonzero(np.linalg.eigh(gram))
    return mean, values[:rank], axes @ turned[:, :rank]


def _transposed(X: Matrix, mean: Floats, left: Floats) -> Floats:
    """Zcᵀ times a matrix with the same number of rows."""
    if sparse.issparse(X):
        return np.asarray(X.T @ left - np.outer(mean, left.sum(axis=0)))
    return np.asarray((X - mean).T @ left)


def _orthonormal(matrix: Floats) -> Floats:
    return np.asarray(linalg.qr(matrix, mode="economic", check_finite=False)[0])


def _nonzero(decomposed: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Nonzero eigenvalues, given in ascending order, and their vectors; the greatest first."""
    values, vectors = decomposed
    count = np.count_nonzero(values > max(values[-1], 0) * 1e-14)
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def _mean(X: Matrix) -> Floats:
    return np.asarray(X.sum(axis=0, dtype=np.float64).ravel() / X.shape[0])
