"""A distance learned from the labels."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.blend.joined_space import Joining, LabelAxes, left_out_quality, unit_scale
from nearlabel.blend.projections import Projection
from nearlabel.blend.ridge import KERNELS, LabelRidge, best_kernel, label_ridges
from nearlabel.blend.rows import drawn_rows, seed_of
from nearlabel.common.arrays import (
    Csr,
    Floats,
    LabelsLike,
    Matrix,
    MatrixLike,
    Seed,
    Tree,
    canonical_csr,
)
from nearlabel.common.mapped_arrays import checked_tree
from nearlabel.common.threads import one_blas_thread
from nearlabel.common.validation import (
    SMALLEST,
    check_choice,
    check_integer,
    check_labels,
    check_n_jobs,
    check_real,
    check_same_length,
    checked_vectors,
)
from nearlabel.methods.fields import stored_names

METRICS = ("euclidean", "cosine")


class LabelSpace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Vectors whose Euclidean distances are learned from the labels.

    A ridge regression predicts all labels of a row. Rows with similar predictions are close,
    whatever their features: for a linear regression this is a Mahalanobis distance. The predictions
    are joined with the features, and any method can search for neighbors among the resulting rows.

    `fit_transform` returns the training rows **left out**: each by a regression fitted to the
    others, in closed form. `transform` returns new rows. So ``fit(X, Y).transform(X)`` differs from
    ``fit_transform(X, Y)``, as with scikit-learn's `TargetEncoder`: a row that the regression was
    fitted to would look closer to rows with its labels than a new row does. In a pipeline, methods
    are fitted to the left-out rows.

    Parameters
    ----------
    kernel : {"auto", "linear", "rbf"}, default="auto"
        Regression on the features, or on Nystroem features of an RBF kernel with up to 2,000
        landmarks. "auto": whichever predicts the left-out rows better.
    weight : "auto" or float, default="auto"
        Share of the predictions in the squared distance, above 0 and up to 1; the rest is the share
        of the features. Both parts are scaled to mean squared distance 1 between training rows.
        "auto": 0.5 or 1.
    metric : {"auto", "euclidean", "cosine"}, default="auto"
        "cosine": rows are scaled to length 1, so that Euclidean neighbors are those by cosine.
    spread : "auto" or float, default=0.5
        Predictions of a label that a share p of the rows has are multiplied by
        (p (1 - p))^(-spread / 2): 0 for no scaling, 1 for equal weights of all labels. "auto": 0 or
        0.5.
    n_components : int, default=128
        If there are more labels than that, their predictions on that many principal axes are used.
    alpha : "auto" or float, default="auto"
        Penalty of the regression, relative to the mean eigenvalue of the features; above 0.
    random_state : int, RandomState or None, default=0
        Seed for the landmarks, and for sampling the rows that choices are based on if there are
        many.
    n_jobs : int, optional
        Threads of the searches that choose weight, metric and spread. The result is the same.

    Attributes
    ----------
    kernel_, weight_, metric_, spread_, alpha_ : what was chosen, or given
    gamma_ : float or None
        Of the RBF kernel exp(-gamma ||x - y||²).
    kernel_scores_ : dict
        Each kernel that was tried, with the average precision of its leave-one-out predictions
        (with one label or very many, the negative squared error).
    candidates_ : list of dict
        Combinations of spread, weight and metric, each with the leave-one-out score of ML-kNN with
        k = 30 on the training rows: average precision (with one label, the negative squared error).
        Empty if there was nothing to choose.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    Sparse features stay sparse, and so do rows that include them. Nothing as large as rows x labels
    or labels x labels is computed. If rows and features are both more than 3,000, the regression
    uses their 1,000 principal axes.

    References
    ----------
    .. [1] D. M. Allen, "The relationship between variable selection and data augmentation and a
       method for prediction", Technometrics 16(1), 1974.
    .. [2] C. K. I. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines",
       NIPS 2000.

    Examples
    --------
    >>> import nearlabel as nl
    >>> data = nl.datasets.make_local_labels(200, 5, 6, labels_per_sample=2)
    >>> model = nl.make_pipeline(nl.LabelSpace(), nl.MLkNN()).fit(data.X[:150], data.Y[:150])
    >>> model.predict(data.X[150:]).shape
    (50, 6)
    >>> sorted({candidate["weight"] for candidate in model[0].candidates_})
    [0.5, 1.0]
    """

    def __init__(
        self,
        kernel: str = "auto",
        *,
        weight: float | str = "auto",
        metric: str = "auto",
        spread: float | str = 0.5,
        n_components: int = 128,
        alpha: float | str = "auto",
        random_state: Seed = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.weight = weight
        self.metric = metric
        self.spread = spread
        self.n_components = n_components
        self.alpha = alpha
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: MatrixLike, y: LabelsLike) -> Self:
        """Learn the distance.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        y : labels of n rows
            A 0/1 matrix, tags or two classes, as for the methods; also 1-d with more classes.

        Returns
        -------
        self
        """
        self._learn(X, y)
        return self

    def fit_transform(self, X: MatrixLike, y: LabelsLike) -> Matrix:
        """Learn the distance, and return the training rows, each left out.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        ndarray, or csr_array if it includes a sparse X, shape (n, n_features_out)
        """
        return self.left_out_rows(X, y)[0]

    def left_out_rows(self, X: MatrixLike, y: LabelsLike) -> tuple[Matrix, dict[str, LabelRidge]]:
        """The result of `fit_transform`, and the regressions by kernel that it comes from."""
        X, coordinates, ridges = self._learn(X, y)
        return self._joining.rows(coordinates, X), ridges

    def transform(self, X: MatrixLike) -> Matrix:
        """Transform new rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (m, d)

        Returns
        -------
        ndarray, or csr_array if it includes a sparse X, shape (m, n_features_out)
        """
        check_is_fitted(self)
        X = checked_vectors(partial(validate_data, self, reset=False), X, "X")
        with one_blas_thread:
            coordinates = self._projection.coordinates(X)
        return self._joining.rows(coordinates.astype(_float_type(X), copy=False), X)

    @property
    def gamma_(self) -> float | None:
        """The width parameter of the RBF kernel exp(-gamma ||x - y||²); None for a linear one."""
        check_is_fitted(self)
        landmarks = self._projection.landmarks
        return None if landmarks is None else landmarks.gamma

    @property
    def _n_features_out(self) -> int:
        plain = self.n_features_in_ if self._joining.plain else 0
        return len(self._projection.offset) + int(plain)

    def _learn(self, X: MatrixLike, y: LabelsLike) -> tuple[Matrix, Floats, dict[str, LabelRidge]]:
        """Fit; returns the checked rows, their left-out coordinates, and the regressions."""
        options = self._options()
        n_components = check_integer(self.n_components, "n_components", low=1)
        n_jobs = check_n_jobs(self.n_jobs)
        kernels, alpha, seed = self._ridge_options()
        Y = _label_matrix(y)
        X = checked_vectors(partial(validate_data, self), X, "X")
        check_same_length(X=X.shape[0], y=Y.shape[0])
        if X.shape[0] < 2:
            raise ValueError("X has 1 sample; at least 2 are required to leave one out")
        ridges = label_ridges(X, Y, kernels, alpha, seed)
        self.kernel_ = best_kernel(ridges)
        ridge = ridges[self.kernel_]
        axes, scales, plain_scale = {}, {}, unit_scale(X)
        for spread in options[0]:
            with one_blas_thread:
                axes[spread] = LabelAxes.of(ridge, spread, n_components, _float_type(X))
            scales[spread] = unit_scale(axes[spread].left_out)

        def joining(spread: float, weight: float, metric: str) -> Joining:
            learned, plain = math.sqrt(weight) * scales[spread], math.sqrt(1 - weight) * plain_scale
            return Joining(learned, plain, metric)

        best, *others = candidates = [*product(*options)]
        scores = []
        if others:
            sample = drawn_rows(X.shape[0], 4_000, seed)
            for candidate in candidates:
                rows = joining(*candidate).rows(axes[candidate[0]].left_out[sample], X[sample])
                scores.append(left_out_quality(rows, Y[sample], n_jobs))
            best = candidates[int(np.argmax(scores))]
        names = ("spread", "weight", "metric", "score")
        self.candidates_ = [
            dict(zip(names, (*candidate, score), strict=True))
            for candidate, score in zip(candidates, scores, strict=False)
        ]
        self.spread_, self.weight_, self.metric_ = best
        self.kernel_scores_ = {kernel: tried.value for kernel, tried in ridges.items()}
        self.alpha_ = ridge.alpha
        self._projection, self._joining = axes[self.spread_].projection, joining(*best)
        return X, axes[self.spread_].left_out, ridges

    def _options(self) -> tuple[list[float], list[float], list[str]]:
        """The spreads, weights and metrics that the parameters leave to choose from."""
        spreads, weights, metrics = [0.5, 0.0], [0.5, 1.0], [*METRICS]
        if not _is_auto(self.spread):
            spreads = [check_real(self.spread, 'spread (or "auto")', low=0, high=2)]
        if not _is_auto(self.weight):
            weights = [check_real(self.weight, 'weight (or "auto")', low=SMALLEST, high=1)]
        if not _is_auto(self.metric):
            metrics = [check_choice(self.metric, "metric", ("auto", *METRICS))]
        return spreads, weights, metrics

    def _ridge_options(self) -> tuple[Sequence[str], float | str, int]:
        """The kernels, the penalty and the seed of the regressions."""
        kernel = check_choice(self.kernel, "kernel", ("auto", *KERNELS))
        alpha = self.alpha
        if not _is_auto(alpha):
            alpha = check_real(alpha, 'alpha (or "auto")', low=SMALLEST, high=1e9)
        return KERNELS if kernel == "auto" else (kernel,), alpha, seed_of(self.random_state)

    def _tree(self) -> Tree:
        check_is_fitted(self)
        parameters = self.get_params()
        del parameters["n_jobs"]  # of the machine, not of the model
        if not isinstance(self.random_state, numbers.Integral):
            parameters["random_state"] = None
        names = getattr(self, "feature_names_in_", None)
        return {
            "class": type(self).__name__,
            "parameters": parameters,
            "features": self.n_features_in_,
            "feature_names": None if names is None else names.tolist(),
            "chosen": {
                "kernel": self.kernel_,
                "alpha": self.alpha_,
                "spread": self.spread_,
                "weight": self.weight_,
                "metric": self.metric_,
            },
            "kernel_scores": self.kernel_scores_,
            "candidates": self.candidates_,
            "projection": self._projection.tree(),
            "factors": [self._joining.learned, self._joining.plain],
        }

    @classmethod
    def _from_tree(cls, tree: Tree, _: int) -> Self:
        tree = checked_tree(tree)
        return cls(**tree["parameters"])._restored(tree)

    def _restored(self, tree: Tree) -> Self:
        """The transformer with what a tree says that it has learned."""
        self._options()
        self._ridge_options()
        check_integer(self.n_components, "n_components", low=1)
        self.n_features_in_ = check_integer(tree["features"], "features", low=1)
        names, chosen = stored_names(tree["feature_names"], self.n_features_in_), tree["chosen"]
        if names is not None:
            self.feature_names_in_ = names.astype(object)
        self.kernel_ = check_choice(chosen["kernel"], "kernel", KERNELS)
        self.metric_ = check_choice(chosen["metric"], "metric", METRICS)
        self.alpha_ = check_real(chosen["alpha"], "alpha", low=0)
        self.spread_ = check_real(chosen["spread"], "spread", low=0, high=2)
        self.weight_ = check_real(chosen["weight"], "weight", low=0, high=1)
        self.kernel_scores_, self.candidates_ = tree["kernel_scores"], tree["candidates"]
        self._projection = Projection.from_tree(tree["projection"], self.n_features_in_)
        learned, plain = (check_real(factor, "factors", low=0) for factor in tree["factors"])
        self._joining = Joining(learned, plain, self.metric_)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_joining")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _label_matrix(y: LabelsLike) -> Csr:
    """Labels as for the methods; for a 1-d y with more than two classes, one label per class."""
    column = y if getattr(y, "ndim", None) == 1 else None
    if column is not None and type_of_target(column, input_name="y") == "multiclass":
        classes, codes = np.unique(np.asarray(column), return_inverse=True)
        return canonical_csr(np.eye(len(classes), dtype=np.int8)[codes])
    return check_labels(y).matrix


def _float_type(X: Matrix) -> type:
    """The type of learned coordinates: that of the features if these are small floats."""
    return np.float32 if X.dtype in (np.float16, np.float32) else np.float64


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"
