"""Rank-SVM."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from nearlabel.baselines.baseline import Baseline
from nearlabel.baselines.ranking_solver import RankingPairs, solve_ranking
from nearlabel.common.arrays import Array, Booleans, Csr, Floats, Matrix, Tree, runs
from nearlabel.common.progress import Progress
from nearlabel.common.validation import (
    UnsuitableDataError,
    check_choice,
    check_dense_size,
    check_real,
)
from nearlabel.methods.fields import Choice, Field, Integer, Real, Reals
from nearlabel.methods.model_trees import vector_tree, vectors_of

_KERNEL_AT_ONCE = 2**24  # values of the kernel that are held together for queries
_SMALLEST_GAMMA = float(np.finfo(np.float64).tiny)


class _SupportVectors(Field):
    """Training rows with the features that the model has, dense or sparse."""

    def write(self, model: Baseline, learned: Tree) -> None:
        learned[self.key] = vector_tree(getattr(model, self.attribute))

    def read(self, model: Baseline, learned: Mapping[str, Tree], sizes: dict[str, int]) -> None:
        vectors = vectors_of(learned[self.key], sizes["s"])  # as many as there are betas
        if vectors.shape[1] != sizes["d"] or vectors.dtype.kind != "f":
            raise ValueError(f"its {self.key} do not fit its features")
        setattr(model, self.attribute, vectors)


@dataclass(repr=False, eq=False)
class RankSVM(Baseline):
    """Support vector machine that ranks the labels of each row [1]_.

    Each label has a linear function in the feature space of a kernel, f_l(x) = <w_l, x> + b_l. They
    are learned together: of each training row, every label that it carries should score higher than
    every other label, by a margin of 1. A threshold that is a linear function of the scores then
    decides how many of the labels are predicted.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf"}, default="poly"
        ``<x, x'>``, ``(gamma <x, x'> + coef0)^degree`` or ``exp(-gamma |x - x'|²)``.
    degree : int, default=8
        Degree of the polynomial kernel.
    C : float, default=1.0
        Weight of the ranking loss. The smaller, the stronger the regularization.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "poly" and "rbf", as in scikit-learn's `SVC`: "scale" is 1 / (d *
        variance of X), "auto" is 1 / d.
    coef0 : float, default=1.0
        Constant of the polynomial kernel, 0 or more.
    tol : float, default=1e-3
        Duality gap, relative to the primal objective, at which the solver stops.
    max_iter : int, default=5000
        Iterations after which it stops with a `ConvergenceWarning` if the gap is still greater.

    Attributes
    ----------
    support_vectors_ : ndarray or csr_array, shape (n_support, d)
        Training rows with a nonzero beta.
    dual_coef_ : ndarray of float, shape (n_support, q)
        beta of the support vectors: w_l is the sum of these rows, weighted by column l.
    intercept_ : ndarray of float, shape (q,)
        b.
    threshold_coef_, threshold_intercept_ : ndarray of float, shape (q,), and float
        The threshold of a row is ``scores @ threshold_coef_ + threshold_intercept_``.
    gamma_ : float
        gamma in use.
    dual_gap_ : float
        Relative duality gap of the solution.
    n_iter_ : int
        Iterations of the solver.
    classes_, label_names_, n_features_in_
        As in `MLkNN`.

    Notes
    -----
    Features should be scaled before, for example by `StandardScaler`: a kernel of degree 8 hardly
    sees features with small values beside others with large ones. Time grows with the square of the
    number of rows in each iteration, memory with that square and with the number of pairs of
    labels. Rows that carry no label or all labels do not take part in the ranking, only in the
    threshold.

    A label that all rows of the ranking carry, or none, has no finite bias. It gets the greatest
    bias of the other labels plus 1, or the least less 1. A single label cannot be ranked; it is
    ranked against its absence, which is a binary support vector machine.

    References
    ----------
    .. [1] A. Elisseeff and J. Weston, "A kernel method for multi-labelled classification", Advances
       in Neural Information Processing Systems 14, 2002.

    Examples
    --------
    >>> import nearlabel as nl
    >>> X = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
    >>> y = [[1, 0], [1, 1], [1, 0], [0, 1], [0, 1], [0, 1]]
    >>> model = nl.RankSVM(kernel="linear", tol=1e-9).fit(X, y)
    >>> scores = model.label_scores([[2.2, 0.4]]).toarray()
    >>> print(f"{scores[0, 0] - scores[0, 1]:.4f}")
    -0.1000
    >>> model.predict([[2.2, 0.4], [6, 1]])
    array([[1, 1],
           [0, 1]])
    """

    kernel: str = "poly"
    degree: int = 8
    C: float = 1.0
    gamma: float | str = "scale"
    coef0: float = 1.0
    tol: float = 1e-3
    max_iter: int = 5000

    title = "Rank-SVM"
    settings = (
        Choice("kernel", "_kernel", ("linear", "poly", "rbf")),
        Integer("degree", "_degree", low=1),
        Real("C", "_C", low=1e-10, high=1e10),
        Real("coef0", "_coef0", low=0),
        Real("tol", "_tol", low=1e-12, high=1),
        Integer("max_iter", "_max_iter", low=1),
    )
    stored = (
        Real("gamma_in_use", "gamma_", low=0),
        Reals("dual_coef", "dual_coef_", "sq"),
        _SupportVectors("support_vectors", "support_vectors_"),
        Reals("intercept", "intercept_", "q"),
        Reals("threshold_coef", "threshold_coef_", "q"),
        Real("threshold_intercept", "threshold_intercept_"),
        Real("dual_gap", "dual_gap_", low=0),
        Integer("n_iter", "n_iter_"),
    )

    def _check_parameters(self) -> None:
        if isinstance(self.gamma, str):
            check_choice(self.gamma, "gamma (or a positive number)", ("scale", "auto"))
        else:
            check_real(self.gamma, "gamma (or 'scale' or 'auto')", low=_SMALLEST_GAMMA)

    def _learn(self, X: Matrix, Y: Csr, progress: Progress | None) -> None:
        n, q = Y.shape
        what = "the kernel matrix of RankSVM"
        check_dense_size(what, (n, n), 8 * 4, "fewer rows, or another method")  # four such matrices
        self.gamma_ = gamma_of(self.gamma, X)
        carried = Y.toarray().astype(bool)
        # Departs from the paper: a single label is ranked against its absence.
        ranked = carried if q > 1 else np.hstack([carried, ~carried])
        kernel = self._kernel_of(X, X)
        beta, bias = self._solved(kernel, ranked, progress)
        beta, bias = beta[:, :q], bias[:q]
        scores = kernel @ beta + bias
        self.threshold_coef_, self.threshold_intercept_ = threshold_function(scores, carried)
        support = np.flatnonzero(beta.any(axis=1))
        support = support if len(support) else np.zeros(1, np.int64)  # a file has one at least
        self.support_vectors_, self.dual_coef_ = X[support], beta[support]
        self.intercept_ = bias

    def _kernel_of(self, X: Matrix, Z: Matrix) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            values = support_kernel(X, Z, self._kernel, self._degree, self.gamma_, self._coef0)
        if not np.isfinite(values).all():
            raise UnsuitableDataError(
                f"X has values for which kernel={self._kernel!r} is not finite: scale the features "
                "(such as by StandardScaler), or set a smaller gamma or degree"
            )
        return values

    def _solved(
        self, kernel: Floats, carried: Array, progress: Progress | None
    ) -> tuple[Floats, Floats]:
        """Beta of all rows, (n, q), and the biases, (q,)."""
        beta, bias = np.zeros(carried.shape), np.zeros(carried.shape[1])
        count = carried.sum(axis=1)
        in_ranking = (count > 0) & (count < carried.shape[1])
        always, never = carried[in_ranking].all(axis=0), ~carried[in_ranking].any(axis=0)
        if not in_ranking.any():
            always, never = np.zeros_like(always), np.zeros_like(never)
        free = ~(always | never)
        # Only rows that have a pair of labels with finite biases have any beta.
        several = carried[:, free]
        rows = np.flatnonzero(several.any(axis=1) & ~several.all(axis=1))
        self.dual_gap_, self.n_iter_ = 0.0, 0
        if len(rows):
            weight = self._C / (count * (carried.shape[1] - count))[rows]
            pairs = RankingPairs.of(several[rows], weight)
            part = kernel if len(rows) == len(kernel) else kernel[np.ix_(rows, rows)]
            solution = solve_ranking(part, pairs, self._tol, self._max_iter, progress)
            self.dual_gap_, self.n_iter_ = solution.gap, solution.n_iter
            beta[np.ix_(rows, np.flatnonzero(free))] = solution.beta
            bias[free] = solution.bias
        bias[always] = bias[free].max(initial=-np.inf) + 1 if free.any() else 1.0
        bias[never] = bias[free].min(initial=np.inf) - 1 if free.any() else -1.0
        if self.dual_gap_ > self._tol:
            warnings.warn(
                f"RankSVM stopped after max_iter={self._max_iter} iterations with a relative "
                f"duality gap of {self.dual_gap_:.1e}, above tol={self._tol:g}: scale the features "
                "(such as by StandardScaler), or set a greater max_iter",
                ConvergenceWarning,
                stacklevel=4,
            )
        return beta, bias

    def _scores(self, X: Matrix) -> Floats:
        scores = np.empty((X.shape[0], len(self.intercept_)))
        width = self.support_vectors_.shape[0]
        for rows in runs(np.full(len(scores), width), _KERNEL_AT_ONCE):
            scores[rows] = self._kernel_of(X[rows], self.support_vectors_) @ self.dual_coef_
        return scores + self.intercept_

    def _decide(self, scores: Floats) -> Booleans:
        return np.asarray(scores >= self._threshold(scores))

    def _probabilities(self, scores: Floats) -> Floats:
        return np.asarray(expit(scores - self._threshold(scores)))

    def _threshold(self, scores: Floats) -> Floats:
        """The threshold of each row, shape (n, 1)."""
        # Row by row, so that a row's answer does not depend on the others.
        products = scores * self.threshold_coef_
        return np.asarray(products.sum(axis=1, keepdims=True) + self.threshold_intercept_)


def support_kernel(
    X: Matrix, Z: Matrix, name: str, degree: int, gamma: float, coef0: float
) -> Floats:
    """The kernel of each row of X with each row of Z; it takes the parameters that it has."""
    # Loads SciPy's statistics, for which no command should wait that does without.
    from sklearn.metrics.pairwise import pairwise_kernels

    parameters = {"degree": degree, "gamma": gamma, "coef0": coef0}
    return np.asarray(pairwise_kernels(X, Z, name, filter_params=True, **parameters))


def gamma_of(gamma: float | str, X: Matrix) -> float:
    """Gamma as a number: "scale" is 1 / (d * variance of all values), "auto" 1 / d."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / float(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        variance = X.var() if isinstance(X, np.ndarray) else X.multiply(X).mean() - X.mean() ** 2
        scale = float(1.0 / (X.shape[1] * variance))
    # Where no value differs from another, there is no scale.
    return scale if _SMALLEST_GAMMA <= scale < np.inf else 1.0


def best_cuts(scores: Floats, carried: Array) -> Floats:
    """The cut of each row of scores (n, q) where ``score >= cut`` errs least on its labels.

    Cuts are the lowest score less 0.1, the midpoints of consecutive scores, and the highest score
    plus 0.1; the lowest of the best ones is taken.
    """
    order = np.argsort(scores, axis=1, kind="stable")
    rising = np.take_along_axis(scores, order, axis=1)
    is_carried = np.take_along_axis(carried, order, axis=1).astype(np.int64)
    cuts = np.column_stack(
        [rising[:, 0] - 0.1, (rising[:, :-1] + rising[:, 1:]) / 2, rising[:, -1] + 0.1]
    )
    # Errors of a cut above the j lowest scores: carried labels below it, and others above it.
    missed = np.cumsum(is_carried, axis=1)
    others = np.cumsum(1 - is_carried[:, ::-1], axis=1)[:, ::-1]
    none = np.zeros((len(scores), 1), np.int64)
    errors = np.hstack([none, missed]) + np.hstack([others, none])
    # A cut cannot part equal scores.
    errors[:, 1:-1][rising[:, :-1] == rising[:, 1:]] = scores.shape[1] + 1
    return np.asarray(cuts[np.arange(len(cuts)), errors.argmin(axis=1)])


def threshold_function(scores: Floats, carried: Array) -> tuple[Floats, float]:
    """Weights of the scores and a constant that fit the best cuts of all rows by least squares."""
    # Centered, so that scores that never vary get no weight.
    center = scores.mean(axis=0)
    cuts = best_cuts(scores, carried)
    weights, *_ = np.linalg.lstsq(scores - center, cuts - cuts.mean(), rcond=None)
    return weights, float(cuts.mean() - center @ weights)
