"""Logistic regressions of many labels on one matrix of inputs.

Counts of labels among neighbors are mostly zero where labels are many, and a regression that steps
over the zeros is many times as quick. So inputs are scaled, but centered only where they are mostly
not zero: the intercept is free and takes up the rest.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.arrays import Array, Csr, Floats
from nearlabel.search.threads import one_blas_thread

_DENSE_FROM = 1 / 5  # share of entries from which a dense product is quicker than a sparse one
# Of the mean gradient. Where the inputs separate a label perfectly, what holds its weights is the
# slope of the ridge, about that small; Newton's last step goes down to rounding errors anyway.
_TOLERANCE = 1e-16
_MOST_STEPS = 1000


@dataclass(frozen=True)
class Standardization:
    """What makes inputs comparable: (inputs - center) / scale, column by column.

    Attributes
    ----------
    center : ndarray of shape (m,)
        The mean of a column that is mostly not zero. Zero of the others, which so stay sparse;
        their mean is no greater than their standard deviation.
    scale : ndarray of shape (m,)
        The standard deviation. Infinite for a constant column, which becomes zero.
    """

    center: Floats
    scale: Floats

    @classmethod
    def of(cls, inputs: Csr) -> Standardization:
        """Learn it from inputs, a canonical ``csr_array`` of float of shape (n, m)."""
        n, m = inputs.shape

        def average(values: Floats) -> Floats:
            return np.asarray(
                np.bincount(inputs.indices, weights=values / n, minlength=m), np.float64
            )

        stored = np.bincount(inputs.indices, minlength=m)
        zeros = 1 - stored / n
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            mean = average(inputs.data)
            deviation = inputs.data - mean[inputs.indices]
            variance = average(np.square(deviation)) + zeros * np.square(mean)
            # The mean of numbers far from zero is rounded; this takes the error out.
            variance -= np.square(average(deviation) - zeros * mean)
        has_spread = varies(inputs) & (variance > 0) & np.isfinite(variance)
        center = np.where(has_spread & (stored > n / 2), mean, 0.0)
        return cls(center, np.sqrt(np.where(has_spread, variance, np.inf)))

    def __call__(self, inputs: Any) -> Any:
        """Standardized inputs: CSR where the inputs are and few are not zero, else dense."""
        n, m = inputs.shape
        full = np.flatnonzero(self.center)
        if sparse.issparse(inputs) and inputs.nnz + n * len(full) > _DENSE_FROM * n * m:
            inputs = inputs.toarray()
        if not sparse.issparse(inputs):
            return (inputs - self.center) / self.scale
        ends = np.arange(n + 1) * len(full)
        centers = (np.tile(self.center[full], n), np.tile(full, n), ends)
        centered = inputs - sparse.csr_array(centers, shape=(n, m))
        centered.data /= self.scale[centered.indices]
        return centered


def logistic_regressions(inputs: Any, Y: Csr, ridge: float) -> tuple[Floats, Floats]:
    """One logistic regression a label, all on the same inputs.

    Minimizes, for each label by itself, the log loss, summed over the rows, plus `ridge` times the
    sum of the squared weights; the intercept is free.

    Parameters
    ----------
    inputs : ndarray or csr_array of float, shape (n, m)
    Y : csr_array, shape (n, q)
        The labels that the rows carry.
    ridge : float
        Above zero. Where inputs separate a label perfectly, it alone keeps the weights finite.

    Returns
    -------
    weights : ndarray of shape (q, m)
        Zero for a constant column.
    intercepts : ndarray of shape (q,)
        Infinite for a label that every row carries or none, whose weights are zero.
    """
    from sklearn.linear_model import LogisticRegression

    n, q = Y.shape
    weights, intercepts = np.zeros((q, inputs.shape[1])), np.empty(q)
    used = np.flatnonzero(varies(inputs))
    inputs = inputs[:, used]
    by_label = Y.tocsc()
    # Threads that share small matrices cost more than they save. And scikit-learn would warn of
    # trial steps whose loss overflows, and of last steps that are lost in rounding errors.
    with one_blas_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for label in range(q):
            carriers = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            if not 0 < len(carriers) < n or not len(used):
                intercepts[label] = np.log(len(carriers)) - np.log(n - len(carriers))
                continue
            carried = np.zeros(n, np.int8)
            carried[carriers] = 1
            regression = LogisticRegression(
                C=1 / (2 * ridge), solver="newton-cholesky", tol=_TOLERANCE, max_iter=_MOST_STEPS
            )
            regression.fit(inputs, carried)
            weights[label, used] = regression.coef_[0]
            intercepts[label] = regression.intercept_[0]
    return weights, intercepts


def varies(inputs: Any) -> Array:
    """Whether the entries of each column are not all the same, shape (m,)."""
    most, least = inputs.max(axis=0), inputs.min(axis=0)
    if sparse.issparse(inputs):
        most, least = most.toarray(), least.toarray()
    return np.asarray(most != least).ravel()
