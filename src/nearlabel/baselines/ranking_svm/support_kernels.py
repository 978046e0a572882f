"""Kernels between rows, dense or sparse, and the rows that a support vector machine keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Floats
from nearlabel.common.validation import check_choice, check_real
from nearlabel.methods.fields import Field
from nearlabel.methods.model_trees import vector_tree, vectors_of

KERNELS = ("linear", "poly", "rbf")
_GAMMAS = ("scale", "auto")
_SMALLEST_GAMMA = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class SupportKernel:
    """A kernel function of two matrices of rows."""

    name: str
    degree: int
    gamma: float
    coef0: float

    def __call__(self, X: Any, Y: Any) -> Floats:
        """The kernel of each row of X with each row of Y, shape (n, m)."""
        # Loads SciPy's statistics, for which no command should wait that does without.
        from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

        if self.name == "linear":
            return np.asarray(linear_kernel(X, Y))
        if self.name == "rbf":
            return np.asarray(rbf_kernel(X, Y, gamma=self.gamma))
        return np.asarray(polynomial_kernel(X, Y, self.degree, self.gamma, self.coef0))


def check_gamma(gamma: Any) -> None:
    """Refuse what is neither a positive number nor one of scikit-learn's words."""
    if isinstance(gamma, str):
        check_choice(gamma, "gamma (or a positive number)", _GAMMAS)
    else:
        check_real(gamma, "gamma (or 'scale' or 'auto')", low=_SMALLEST_GAMMA)


def gamma_of(gamma: float | str, X: Any) -> float:
    """Gamma as a number: "scale" is 1 / (d * variance of all values), "auto" 1 / d."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / float(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = X.mean()
        variance = X.multiply(X).mean() - mean**2 if sparse.issparse(X) else X.var()
        found = 1.0 / (X.shape[1] * variance)
    # Where no value differs from another, there is no scale.
    return float(found) if _SMALLEST_GAMMA <= found < np.inf else 1.0


class SupportVectors(Field):
    """Training rows with the features that the model has, dense or sparse."""

    def write(self, model: Any, learned: dict[str, Any]) -> None:
        """Add the rows to what the model has learned."""
        learned[self.key] = vector_tree(getattr(model, self.attribute))

    def read(self, model: Any, learned: Mapping[str, Any], sizes: dict[str, int]) -> None:
        """Set the attribute; as many rows as an array before it had for the letter s."""
        vectors = vectors_of(learned[self.key], sizes["s"])
        if vectors.shape[1] != sizes["d"] or vectors.dtype.kind != "f":
            raise ValueError(f"its {self.key} do not fit its features")
        setattr(model, self.attribute, vectors)
