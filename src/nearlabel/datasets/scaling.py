"""Scaling of features by name: it decides results more than the method does."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.choices import SCALES
from nearlabel.common.validation import ArgumentError, check_choice


def scaler(scale: str, X: Any) -> Any:
    """An unfitted scikit-learn transformer that suits X; None for "none".

    Parameters
    ----------
    scale : {"none", "minmax", "standard"}
        As they are; each feature from 0 to 1; each feature with mean 0 and variance 1.
    X : ndarray or csr_array
        The rows that it will be fitted to. Sparse rows stay sparse: "minmax" divides each feature
        by its greatest value, which is the same where the least one is 0, and is refused where it
        is not; "standard" does not move the mean, which changes no difference between rows.
    """
    check_choice(scale, "scale", SCALES)
    if scale == "none":
        return None
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if scale == "standard":
        return StandardScaler(with_mean=not sparse.issparse(X))
    if not sparse.issparse(X):
        return MinMaxScaler()
    if X.nnz and np.any(X.min(axis=0).toarray() != 0):
        raise ArgumentError(
            "scale='minmax' needs dense features here: one of the sparse features has no zero or "
            "a negative value; use 'standard', or make X dense",
            "scale",
        )
    return MaxAbsScaler()
