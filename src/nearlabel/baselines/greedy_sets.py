"""The greedy search for label sets of the parametric mixture models, for many rows at once."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Floats, row_numbers


def set_scores(X: Csr, theta: Floats, alpha: Floats | None, totals: Floats) -> Floats:
    """Scores of all labels, shape (m, q): above 1/2 for the labels of the set that is found.

    The search starts with the most likely label, adds the label that raises the likelihood most,
    and stops where none does. All likelihoods are geometric means over the words of the row.
    With L the likelihood of the whole set, a label of the set gets 1 - L'/(2L), where L' is the
    best that the search had without it: the set before it was added, or for the first label the
    second best label. Another label gets L'/(2L), where L' is its own likelihood.

    `theta` has the shape (q, d) and `alpha` (q, q); PMM1 has no alpha. Labels of rows without words
    are ranked by `totals`, how many training rows carry each; labels that none carries score 0.
    """
    m, q = X.shape[0], len(totals)
    known = totals > 0
    if not known.any():
        return np.zeros((m, q))
    X = _shares_of_words(X)
    search, has_words = _Search(X, theta, alpha), np.diff(X.indptr) > 0
    without = search.likelihoods()
    with np.errstate(divide="ignore"):
        without[~has_words] = np.log(totals / totals.max())
    without[:, ~known] = -np.inf
    rows, labels = np.arange(m), without.argmax(axis=1)
    reached = without[rows, labels]
    is_added = np.arange(q) == labels[:, None]
    without[rows, labels] = np.where(is_added, -np.inf, without).max(axis=1)
    added = [(rows, labels)]
    search.add(labels, has_words)
    while len(search.rows):
        likelihood = search.likelihoods()
        likelihood[is_added[search.rows] | ~known] = -np.inf
        best = likelihood.argmax(axis=1)
        # More than rounding errors of equal likelihoods.
        gained = likelihood.max(axis=1) > reached[search.rows] + 1e-12
        rows, labels = search.rows[gained], best[gained]
        without[rows, labels] = reached[rows]
        reached[rows] = likelihood[gained, labels]
        is_added[rows, labels] = True
        added.append((rows, labels))
        search.add(best, gained)
    scores = np.exp(without - reached[:, None]) / 2
    scores[is_added] = 1 - scores[is_added]
    return _in_order(scores, added)


class _Search:
    """The rows whose sets still grow, and what their next likelihoods are computed from.

    Without the factor 2/s² for the s labels of a set F, phi is the sum over l in F of theta_l
    sum_{m in F} alpha_lm. A further label c adds sum_{l in F} alpha_lc theta_l, which is `joined`,
    and theta_c (1/2 + sum_{m in F} alpha_cm), whose factor is `own`. In PMM1 all alpha are 1/2, so
    that both have one column for all c.
    """

    def __init__(self, X: Csr, theta: Floats, alpha: Floats | None) -> None:
        self.rows, self._words, self._alpha, self._size = np.arange(X.shape[0]), X, alpha, 0
        self._theta = theta.T[X.indices]
        width = 1 if alpha is None else len(alpha)
        self._phi, self._joined = np.zeros(X.nnz), np.zeros((X.nnz, width))
        self._own = np.full((X.shape[0], width), 0.5)

    def likelihoods(self) -> Floats:
        """Log-likelihoods per word of the sets with each further label."""
        phi = self._theta * self._own[row_numbers(self._words)]
        phi += self._phi[:, None] + self._joined
        phi *= 2 / (self._size + 1) ** 2
        words = (self._words.data, np.arange(len(phi)), self._words.indptr)
        sums = sparse.csr_array(words, shape=(len(self.rows), len(phi)))
        return np.asarray(sums @ np.log(phi, out=phi))

    def add(self, labels: Array, gained: Array) -> None:
        """Take the rows that have gained, and add their labels."""
        if not gained.all():
            has_gained = gained[row_numbers(self._words)]
            self.rows, self._words, self._own = (
                part[gained] for part in (self.rows, self._words, self._own)
            )
            self._theta, self._phi, self._joined = (
                part[has_gained] for part in (self._theta, self._phi, self._joined)
            )
        self._size += 1
        labels, row = labels[gained], row_numbers(self._words)
        word, column = np.arange(len(row)), labels if self._alpha is not None else 0 * labels
        theta = self._theta[word, labels[row]]
        own = self._own[np.arange(len(labels)), column]
        self._phi += self._joined[word, column[row]] + theta * own[row]
        share = np.full((len(labels), 1), 0.5) if self._alpha is None else self._alpha[labels]
        self._joined += theta[:, None] * share[row]
        self._own += 1 - share  # alpha_cl


def _shares_of_words(X: Csr) -> Csr:
    """Rows divided by their sums, without zeros: sets do not depend on the lengths of rows."""
    X = X.copy()
    X.eliminate_zeros()
    lengths = np.diff(X.indptr)
    starts = X.indptr[:-1][lengths > 0]
    for total in (np.maximum, np.add):  # by the greatest first: sums may be beyond floats
        if len(starts):
            X.data /= np.repeat(total.reduceat(X.data, starts), lengths[lengths > 0])
    return X


def _in_order(scores: Floats, added: list[tuple[Array, Array]]) -> Floats:
    """Scores that fall from each added label to the next, and end above 1/2, also if they tie."""
    floor = np.full(len(scores), 0.5)
    for rows, labels in reversed(added):
        floor[rows] = np.maximum(scores[rows, labels], np.nextafter(floor[rows], 2))
        scores[rows, labels] = floor[rows]
    return scores
