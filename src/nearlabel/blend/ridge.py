"""Ridge regression of all labels at once, with leave-one-out scores in closed form.

    ridge = LabelRidge(kernel="rbf").fit(X, Y)   # X: checked vectors; Y: csr_array of ones
    ridge.left_out_scores()                      # RidgeScores of the training rows, each left out
    ridge.scores(X_new)                          # RidgeScores of new rows

Both are the same kind of number: what a model that has not seen the row predicts for its labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from nearlabel.blend.axes import LABEL_CELLS
from nearlabel.blend.closed_form import ClosedForm, Penalty, best_penalty
from nearlabel.blend.projections import Landmarks
from nearlabel.blend.ridge_scores import RidgeScores, RidgeWeights
from nearlabel.blend.rows import drawn_rows
from nearlabel.common.arrays import Csr, Matrix
from nearlabel.common.threads import one_blas_thread

KERNELS = ("linear", "rbf")
ALPHAS = tuple(float(alpha) for alpha in np.logspace(2, -4, 13))
_Fitted = tuple[ClosedForm, Penalty]


@dataclass
class LabelRidge:
    """Ridge regression of all labels on vectors, or on Nystroem features of an RBF kernel.

    The labels' means are not penalized. With Zc = U diag(sqrt e) Vᵀ the centered features and
    λ = alpha mean(e), the fitted values are U f Uᵀ Yc with f = e / (e + λ), and h_i = 1 / n +
    Σ_j U_ij² f_j is the leverage of row i. Its leave-one-out scores are y_i - (yc_i - fitted_i) /
    (1 - h_i): exactly those of a ridge regression fitted to the other rows with the same λ, and for
    an RBF kernel with the same features. They are used to choose alpha and the kernel width.

    Sums are in float64 whatever the type of X. Sparse X and Y stay sparse, and no array has as many
    cells as rows x labels. If rows and features are both more than 3,000, only the 1,000 leading
    axes are used (`linear_axes`): scores and leverages are then those of X projected on these.

    Parameters
    ----------
    kernel : {"linear", "rbf", "auto"}
        "auto": whichever has the better leave-one-out scores.
    alpha : float or "auto"
        The penalty, relative to the mean eigenvalue; above 0.
    random_state : int
        Seed for the landmarks, and for sampling the rows that choices are based on if there are
        many.

    Attributes
    ----------
    kernel_ : {"linear", "rbf"}
    form_ : ClosedForm
        The regression for any penalty.
    choice_ : Penalty
        The penalty, the criterion by which it was chosen, and its leave-one-out value.
    values_ : dict
        That value for each kernel that was tried.
    tried_ : dict
        The regression and its penalty for each of them.
    """

    kernel: str = "auto"
    alpha: float | str = "auto"
    random_state: int = 0
    kernel_: str = field(init=False)
    form_: ClosedForm = field(init=False)
    choice_: Penalty = field(init=False)
    values_: dict[str, float] = field(init=False)
    tried_: dict[str, _Fitted] = field(init=False)

    def fit(self, X: Matrix, Y: Csr) -> Self:
        """Fit to checked vectors, an array or ``csr_array``, and labels, a ``csr_array`` of ones.

        Both are kept, not copied.
        """
        kernels = KERNELS if self.kernel == "auto" else (self.kernel,)
        self.tried_ = tried = {}
        with one_blas_thread:  # the order of sums, and so the rounding, stays the same
            for kernel in kernels:
                tried[kernel] = self._fitted(X, Y) if kernel == "linear" else self._rbf(X, Y)
        self.values_ = {kernel: choice.value for kernel, (_, choice) in tried.items()}
        self.kernel_ = max(self.values_, key=self.values_.__getitem__)  # a tie: linear
        self.form_, self.choice_ = tried[self.kernel_]
        return self

    def weights(self, kernel: str | None = None) -> RidgeWeights:
        """The weights for scores of new rows, and of training rows that are left out.

        By default those of the better kernel.
        """
        form, choice = self.tried_[kernel or self.kernel_]
        with one_blas_thread:
            return form.weights(choice.alpha)

    def left_out_scores(self) -> RidgeScores:
        """Scores of the training rows, each left out."""
        form = self.form_
        return self.weights().left_out_scores(form.X, np.arange(form.X.shape[0]), form.Y)

    def scores(self, X: Matrix) -> RidgeScores:
        """Scores of new rows: checked vectors in the same form as in `fit`."""
        return self.weights().scores(X)

    def _rbf(self, X: Matrix, Y: Csr) -> _Fitted:
        """With the kernel width that is best for a few landmarks, on at most 10,000 rows."""
        n, q = Y.shape
        # Fewer landmarks for more than 15,000 rows: the work grows with rows x landmarks².
        most = min(2_000, LABEL_CELLS // q, math.isqrt(6 * 10**10 // n))
        drawn = np.random.RandomState(self.random_state).permutation(n)[: max(64, most)]
        few = X[drawn[:300]].astype(np.float64)
        rows = drawn_rows(n, 10_000, self.random_state)
        sample = (X, Y) if len(rows) == n else (X[rows], Y[rows])
        centered = few if sparse.issparse(few) else few - few.mean(axis=0)
        distances = euclidean_distances(centered, squared=True)
        scale = np.median(distances[distances > 0]) if distances.any() else 1.0
        gammas = (0.25 / scale, 1.0 / scale, 4.0 / scale)
        trials = [self._fitted(*sample, Landmarks(few, gamma)) for gamma in gammas]
        form, choice = max(trials, key=lambda trial: trial[1].value)
        if len(drawn) == few.shape[0] and len(rows) == n:
            return form, choice
        assert form.projection.landmarks is not None
        landmarks = Landmarks(X[drawn].astype(np.float64), form.projection.landmarks.gamma)
        return self._fitted(X, Y, landmarks)

    def _fitted(self, X: Matrix, Y: Csr, landmarks: Landmarks | None = None) -> _Fitted:
        form = ClosedForm(X, Y, landmarks, self.random_state)
        alphas = ALPHAS if isinstance(self.alpha, str) else (float(self.alpha),)
        return form, best_penalty(form, alphas, self.random_state)
