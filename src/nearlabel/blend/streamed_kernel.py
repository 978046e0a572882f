"""Kernel features of so many rows that they are recomputed instead of kept.

Computing them takes most of the time of a regression. With K the kernel of rows and landmarks and R
the whitening, ZcᵀZc is Rᵀ KcᵀKc R and ZcᵀY is Rᵀ KcᵀY: both are sums over rows of K, which take one
pass, and no row is whitened. Whitening the sums instead loses about 1e-10 per row, far below the
smallest penalty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dtrmm

from nearlabel.blend.kernel_features import NystroemFeatures
from nearlabel.blend.spectra import Spectrum, row_blocks, spectrum_of_gram
from nearlabel.common.arrays import Csr, Floats
from nearlabel.labels.counts import label_totals

_CELLS_OF_A_RUN = 2**24  # of the kernel: every run visits all labels


def one_pass(X: Any, Y: Csr, features: NystroemFeatures) -> tuple[Spectrum, Floats]:
    """The spectrum of the rows' features, and C = Bᵀ Y of their coordinates B, shape (r, q)."""
    (n, q), m = Y.shape, features.landmarks.shape[0]
    # Relative to a point near the mean nothing is lost by cancellation.
    near = features.kernel(X[: min(n, 1024)]).mean(axis=0)
    gram, total, cross = np.zeros((m, m)), np.zeros(m), np.zeros((q, m))
    room = np.empty((min(n, max(256, _CELLS_OF_A_RUN // m)), m))
    for start in range(0, n, len(room)):
        rows = slice(start, min(start + len(room), n))
        kernel = features.kernel(X[rows], room[: rows.stop - start])
        kernel -= near
        gram += kernel.T @ kernel
        total += kernel.sum(axis=0)
        add_by_label(cross, Y[rows], kernel)
    gram -= np.outer(total, total) / n
    gram = features.whitening.T @ gram @ features.whitening
    spectrum = spectrum_of_gram((near + total / n) @ features.whitening, (gram + gram.T) / 2)
    axes = features.whitening @ spectrum.vectors
    totals = label_totals(Y)
    for labels in row_blocks(q, m):
        cross[labels] -= np.outer(totals[labels], total / n)
    return spectrum, (cross @ axes).T


def add_by_label(sums: Floats, Y: Csr, values: Floats) -> None:
    """Add Yᵀ values to sums, shape (q, r), for some rows."""
    labels = np.flatnonzero(np.bincount(Y.indices, minlength=len(sums)))
    if 2 * len(labels) > len(sums):
        sums += Y.T @ values
    else:  # a sparse product would visit all of them for every run of rows
        place = np.empty(len(sums), Y.indices.dtype)
        place[labels] = np.arange(len(labels))
        parts = Y.data, place[Y.indices], Y.indptr
        sums[labels] += sparse.csr_array(parts, shape=(Y.shape[0], len(labels))).T @ values


class KernelLeverage(NamedTuple):
    """Leverages, less 1 / n, as squared lengths ||T k - t||² of rows k of the kernel.

    T is a triangular factor of the axes; multiplying by it takes half as long.
    """

    triangle: Floats
    offset: Floats

    @classmethod
    def of(cls, axes: Floats, mean: Floats, shrinkage: Floats) -> KernelLeverage:
        """From coordinates K axes - mean, each with its factor (e + λ)⁻¹."""
        m, r = axes.shape
        root = np.sqrt(shrinkage)
        turned, part = np.linalg.qr((axes * root).T)
        triangle, offset = np.zeros((m, m), order="F"), np.zeros(m)
        triangle[:r], offset[:r] = part, turned.T @ (root * mean)
        return cls(triangle, offset)

    def of_rows(self, kernel: Floats) -> Floats:
        """Of some rows of the kernel, which are overwritten."""
        found = dtrmm(1.0, self.triangle, kernel.T, overwrite_b=1).T
        found -= self.offset
        return np.asarray(np.einsum("ij,ij->i", found, found))
