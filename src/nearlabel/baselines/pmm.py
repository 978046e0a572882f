"""PMM1 and PMM2, the parametric mixture models of texts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from nearlabel.baselines.baseline import Baseline
from nearlabel.baselines.greedy_sets import set_scores
from nearlabel.baselines.word_mixtures import word_mixtures
from nearlabel.common.arrays import Csr, Floats, MatrixLike, canonical_csr, runs
from nearlabel.common.messages import shown
from nearlabel.common.progress import Progress
from nearlabel.common.validation import UnsuitableDataError, check_dense_size, check_integer
from nearlabel.methods.fields import Integer, Real, Reals

_WORDS_AT_ONCE = 2**19  # times labels, whose likelihoods are computed together


@dataclass(repr=False, eq=False)
class PMM(Baseline):
    """Parametric mixture models of word counts, PMM1 and PMM2 [1]_.

    Each label has a distribution over the words. The words of a text are drawn from a mixture of
    the distributions of its labels: with equal weights in PMM1, with weights that depend on the
    pairs of its labels in PMM2. The distributions are those of the greatest posterior probability.
    The labels of a new text are found by a greedy search: the most likely label first, then always
    the label that raises the likelihood most, until none does. The set is never empty.

    Parameters
    ----------
    order : {1, 2}, default=1
        1 for PMM1, 2 for PMM2.
    xi : float, default=2.0
        Exponent of the Dirichlet prior of the words, above 1: xi - 1 is added to all counts.
        2 is Laplace's rule.
    zeta : float, default=2.0
        Exponent of the prior of the shares in pairs, from 1 up; greater ones keep them near 1/2.
        For PMM2 alone.
    tol : float, default=1e-7
        Learning ends with an update that raises the log posterior by at most this share of it.
    max_iter : int, default=1000
        Most updates; where they are not enough there is a `ConvergenceWarning`.

    Attributes
    ----------
    word_probabilities_ : ndarray of float, shape (q, d)
        theta of the paper: row l is the word distribution of label l.
    pair_shares_ : ndarray of float, shape (q, q), or None
        alpha of the paper, for PMM2: the share of label l in what it and label m say together.
        ``pair_shares_ + pair_shares_.T`` is 1.
    log_posterior_ : float
        What learning has reached, but for a constant.
    n_iter_ : int
        Updates that were made.
    classes_, label_names_, n_features_in_
        As in `MLkNN`.

    Notes
    -----
    X holds word counts or other weights that are not negative, such as tf-idf. Training rows
    without labels or without words teach no words. A row without words gets the most frequent
    label. With a single label, all rows get it: the model has no probability of a label itself.

    The paper defines no ranking. Here the labels of the set come first, in the order in which they
    were added, then all others by their own likelihood. The scores compare likelihoods per word
    and are no calibrated probabilities; see ``docs/methods/pmm.md``.

    References
    ----------
    .. [1] N. Ueda and K. Saito, "Parametric mixture models for multi-labeled text", Advances in
       Neural Information Processing Systems 15, 2003.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[4, 1, 0], [3, 2, 0], [0, 1, 4], [1, 1, 3], [2, 2, 2], [3, 1, 2]]
    >>> y = [[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1]]
    >>> model = nl.PMM().fit(X, y)
    >>> model.word_probabilities_.round(3)
    array([[0.627, 0.298, 0.075],
           [0.16 , 0.228, 0.612]])
    >>> model.predict([[2, 1, 1], [5, 1, 0]])
    array([[1, 1],
           [1, 0]])
    """

    order: int = 1
    xi: float = 2.0
    zeta: float = 2.0
    tol: float = 1e-7
    max_iter: int = 1000

    title = "PMM"
    settings = (
        Real("xi", "_xi", low=1.000001, high=1e6),
        Real("zeta", "_zeta", low=1.0, high=1e6),
        Real("tol", "_tol", low=0.0, high=1.0),
        Integer("max_iter", "_max_iter", low=1),
    )
    stored = (
        Reals(
            *("word_probabilities", "word_probabilities_", "qd"),
            low=float(np.nextafter(0, 1)),
            high=1.0,
            transposed=True,
        ),
        Reals("pair_shares", "pair_shares_", "qq", low=0.0, high=1.0, optional="pair_shares"),
        Reals("label_rows", "_label_rows", "q", low=0.0),
        Real("log_posterior", "log_posterior_"),
        Integer("n_iter", "n_iter_"),
    )

    def _check_parameters(self) -> None:
        check_integer(self.order, "order", low=1, high=2)

    def _learn(self, X: Csr, Y: Csr, progress: Progress | None) -> None:
        q, d = Y.shape[1], X.shape[1]
        check_dense_size("the word probabilities of PMM", (q, d), 8, "fewer labels or words")
        if self.order == 2:
            check_dense_size("the pairs of labels of PMM2", (q, q), 8, "fewer labels, or order=1")
        with np.errstate(over="ignore"):
            is_finite = np.isfinite(X.sum())
        if not is_finite:
            raise UnsuitableDataError(
                "X must have a finite sum; got numbers that add up to infinity"
            )
        learned = word_mixtures(
            X, Y, self.order, self._xi, self._zeta, self._tol, self._max_iter, progress
        )
        # Words are looked up: all labels of a word stand together.
        self.word_probabilities_ = np.asfortranarray(learned.theta)
        self.pair_shares_: Floats | None = learned.alpha
        self.log_posterior_, self.n_iter_ = learned.log_posterior, learned.n_iter
        self._label_rows = np.asarray(Y.sum(axis=0), np.float64)
        if not learned.converged:
            warnings.warn(
                f"PMM has not converged after max_iter={self._max_iter} updates; "
                "raise max_iter, or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _prepare(self) -> None:
        theta, alpha = self.word_probabilities_, self.pair_shares_
        if np.abs(theta.sum(axis=1) - 1).max() > 1e-9:
            raise ValueError("its word_probabilities do not sum to 1")
        if alpha is not None and np.abs(alpha + alpha.T - 1).max() > 1e-9:
            raise ValueError("its pair_shares are not shares of pairs")

    def _scores(self, X: Csr) -> Floats:
        theta, alpha, totals = self.word_probabilities_, self.pair_shares_, self._label_rows
        scores = np.empty((X.shape[0], len(totals)))
        for run in runs(np.diff(X.indptr) + 1, max(1, _WORDS_AT_ONCE // len(totals))):
            scores[run] = set_scores(X[run], theta, alpha, totals)
        return scores

    def _checked(self, X: MatrixLike, *, reset: bool) -> Csr:
        """Word counts as a ``csr_array``."""
        X = canonical_csr(super()._checked(X, reset=reset))
        if X.nnz and X.data.min() < 0:
            least = X.data.argmin()
            column = int(X.indices[least])  # not the row, whose number in a fold says little
            names = getattr(self, "feature_names_in_", None)
            name = column if names is None else shown(str(names[column]))
            raise UnsuitableDataError(
                "Negative values in data passed to X: PMM takes counts of words, or other weights "
                f"from 0 up; got {X.data[least]:g} in column {name}. Ranks are never negative"
            )
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # where y is 1-d: a single label is always given
        return tags
