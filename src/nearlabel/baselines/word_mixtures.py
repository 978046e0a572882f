"""Learning of the parametric mixture models: word distributions of labels, mixed in each row.

The symbols are those of Ueda and Saito (2003): theta_l is the word distribution of label l, h_n
has 1/|Y_n| for the labels of row n, and phi_n is the word distribution of the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from nearlabel.common.arrays import Array, Csr, Floats, with_data
from nearlabel.common.progress import Progress


class WordMixtures(NamedTuple):
    """A learned model, and how learning ended."""

    theta: Floats  # (q, d), rows of sum 1
    alpha: Floats | None  # (q, q), PMM2 alone: alpha_lm + alpha_ml = 1
    log_posterior: float  # but for a constant
    n_iter: int
    converged: bool


def word_mixtures(
    X: Csr,
    Y: Csr,
    order: int,
    xi: float,
    zeta: float,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
) -> WordMixtures:
    """Climb to a maximum of the posterior; for PMM1 there is only one.

    Each update maximizes an auxiliary function that touches the log posterior from below, so that
    it never falls.
    """
    documents = _Documents(X, Y, has_pairs=order == 2)
    theta = _normalized(documents.labels.T @ documents.words, xi - 1)
    alpha = np.full((Y.shape[1],) * 2, 0.5) if order == 2 else None
    weights = documents.weights(alpha)
    phi = documents.phi(theta, weights)

    def log_posterior() -> float:
        prior = (xi - 1) * np.log(theta).sum()
        if alpha is not None:  # each pair once: both shares of it
            prior += xlogy(zeta - 1, alpha).sum() - xlogy(zeta - 1, alpha.diagonal()).sum()
        return float(documents.words.data @ np.log(phi) + prior)

    reached, n_iter, converged = log_posterior(), 0, False
    while n_iter < max_iter and not converged:
        ratio = with_data(documents.words, documents.words.data / phi)
        if alpha is not None:  # by the old theta, as all of an update
            alpha = _shares(alpha * documents.share_counts(theta, ratio.data) + (zeta - 1))
        expected = with_data(documents.labels, weights).T @ ratio
        theta = _normalized(expected.multiply(theta), xi - 1)
        weights = documents.weights(alpha)
        phi = documents.phi(theta, weights)
        before, reached, n_iter = reached, log_posterior(), n_iter + 1
        converged = reached - before <= tol * abs(reached)
        if progress is not None:
            progress(max_iter if converged else n_iter, max_iter)
    return WordMixtures(theta, alpha, reached, n_iter, converged)


class _Documents:
    """Rows that have words and labels, those with most labels first.

    The rows with a j-th label then come first, and so do their words: what is computed for each
    word and each label of its row takes one pass over such a beginning for each j.
    """

    def __init__(self, X: Csr, Y: Csr, *, has_pairs: bool) -> None:
        sizes = np.diff(Y.indptr)
        rows = np.flatnonzero((sizes > 0) & (X.sum(axis=1) > 0))
        rows = rows[np.argsort(-sizes[rows], kind="stable")]
        self.words, self.labels = X[rows], Y[rows].astype(np.float64)
        self.sizes = np.diff(self.labels.indptr)  # |Y_n|
        self._label = self.labels.indices.astype(np.int64)
        if not has_pairs:
            return
        # Pairs of labels of one row: the place of the first, and both as a place in (q, q).
        counts = np.repeat(self.sizes, self.sizes)
        self._pair_start = np.cumsum(counts) - counts
        first = np.repeat(np.arange(len(counts)), counts)
        row_start = np.repeat(np.repeat(self.labels.indptr[:-1], self.sizes), counts)
        second = row_start + np.arange(len(first)) - self._pair_start[first]
        self._pair_first = first
        self._pair = self._label[first] * self.labels.shape[1] + self._label[second]

    def weights(self, alpha: Floats | None) -> Floats:
        """Weight of each label in its row: h_l of PMM1, 2 h_l sum_m h_m alpha_lm of PMM2."""
        sizes = np.repeat(self.sizes, self.sizes).astype(np.float64)
        if alpha is None or not len(sizes):
            return 1 / sizes
        return 2 * np.add.reduceat(alpha.ravel()[self._pair], self._pair_start) / sizes**2

    def phi(self, theta: Floats, weights: Floats) -> Floats:
        """phi_ni of each stored word i of its row n."""
        phi = np.zeros(self.words.nnz)
        for place, lengths, at_words in self._ranks(theta):
            phi[: len(at_words)] += np.repeat(weights[place], lengths) * at_words
        return phi

    def share_counts(self, theta: Floats, ratio: Floats) -> Floats:
        """Expected words of each share of a pair, divided by the share: B_lm, shape (q, q).

        2 h_l h_m sum_i x_i theta_li / phi_i, summed over the rows with both labels.
        """
        of_label = np.zeros(len(self._label))
        for place, _, at_words in self._ranks(theta):
            starts = self.words.indptr[: len(place)]
            of_label[place] = np.add.reduceat(ratio[: len(at_words)] * at_words, starts)
        of_label *= 2 / np.repeat(self.sizes, self.sizes) ** 2
        q = self.labels.shape[1]
        counts = np.bincount(self._pair, of_label[self._pair_first], q * q)
        return np.asarray(counts, np.float64).reshape(q, q)

    def _ranks(self, theta: Floats) -> Iterator[tuple[Array, Array, Floats]]:
        """For each j, of the rows that have a j-th label: the places of these labels, how many
        words the rows store, and theta_li of the labels for these words.
        """
        for j in range(self.sizes.max(initial=0)):
            rows = int(np.searchsorted(-self.sizes, -j))  # those with more than j labels
            place, lengths = self.labels.indptr[:rows] + j, np.diff(self.words.indptr[: rows + 1])
            at = np.repeat(self._label[place] * theta.shape[1], lengths)
            at += self.words.indices[: len(at)]
            yield place, lengths, np.asarray(theta.ravel()[at])


def _normalized(counts: Csr, prior: float) -> Floats:
    """Distributions of sum 1 of sparse counts, to each of which `prior` is added."""
    theta = np.asarray(sparse.csr_array(counts).toarray()) + prior
    return np.asarray(theta / theta.sum(axis=1, keepdims=True))


def _shares(expected: Floats) -> Floats:
    """alpha_lm and alpha_ml in proportion to what is expected of both; 1/2 where nothing is."""
    total = expected + expected.T
    half = np.full(total.shape, 0.5)
    return np.asarray(np.divide(expected, total, where=total > 0, out=half))
