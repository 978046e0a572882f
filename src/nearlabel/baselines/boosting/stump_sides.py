"""On which side of learned stumps rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.baselines.boosting.sorted_columns import MISSING
from nearlabel.common.arrays import Array, Floats, runs

_VALUES_AT_ONCE = 2**22  # of the features of all stumps


def stump_sides(X: Any, features: Array, cuts: Floats) -> Array:
    """LEFT, RIGHT or MISSING for m rows of vectors and t stumps, an array of int8, shape (t, m)."""
    used, place = np.unique(features, return_inverse=True)
    sides = np.empty((len(features), X.shape[0]), np.int8)
    for some in runs(np.full(X.shape[0], len(features)), _VALUES_AT_ONCE):
        values = X[some][:, used]
        values = values.toarray() if sparse.issparse(values) else values
        values = values.T[place]
        sides[:, some] = values > cuts[:, None]
        sides[:, some][np.isnan(values)] = MISSING
    return sides
