"""scikit-learn's SimpleImputer in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError
from nearlabel.methods.fields import stored_array
from nearlabel.persistence.values import NUMBER_TYPES, Tree, as_stored, check_length, from_stored


def imputer_tree(imputer: Any) -> Tree:
    """The fitted state of an imputer: its fill values, and the columns with an indicator."""
    return {
        "statistics": as_stored(imputer.statistics_, "statistics_"),
        # The type of the training data decides how new data are read; the attribute is private.
        "type": imputer._fit_dtype.name,
        "indicated": _indicated(imputer),
    }


def imputer_from(made: Any, parameters: Tree, tree: Tree) -> Any:
    """The imputer of a tree, fitted to a sample with missing values in the right columns."""
    statistics, indicated = from_stored(tree["statistics"]), tree["indicated"]
    check_length(statistics, tree["features"], "statistics")
    if not all(one is None or np.isscalar(one) for one in statistics.tolist()):
        raise ValueError("its statistics are neither numbers nor strings")
    if tree["type"] not in ("object", *NUMBER_TYPES):
        raise ValueError(f"its imputer has the unknown type {tree['type']!r}")
    if indicated is not None:
        indicated = stored_array(indicated, "indicated", "i", 1)
    imputer = made(**parameters)
    imputer.fit(_sample(imputer.missing_values, statistics, indicated, tree["type"]))
    if not np.array_equal(_indicated(imputer), indicated):  # None is equal to None alone
        raise ValueError("the columns of its indicator do not match its parameters")
    made_of_sample = imputer.statistics_
    if imputer.strategy == "constant":  # its type depends on the version of scikit-learn
        if np.any((statistics != statistics) != (made_of_sample != made_of_sample)):
            raise FileError(
                "needs another version of scikit-learn: this one drops other columns with "
                "missing values"
            )
        return imputer
    # float64 for sparse data, whatever their type
    if made_of_sample.dtype.kind != statistics.dtype.kind or statistics.ndim != 1:
        raise ValueError("its statistics do not match its strategy")
    imputer.statistics_ = statistics
    return imputer


def _sample(missing: Any, statistics: Array, indicated: Array | None, dtype: str) -> Array:
    """Two rows: a missing value where a column has an indicator, and no values if it had none."""
    sample = np.full((2, len(statistics)), 1 if missing == 0 else 0, dtype)
    is_empty = statistics != statistics
    if indicated is not None:
        sample[1, indicated] = missing
        is_empty &= np.isin(np.arange(len(statistics)), indicated)
    if is_empty.any():
        sample[:, is_empty] = missing
    return sample


def _indicated(imputer: Any) -> Any:
    """The columns with a missing-value indicator; None if there is no indicator."""
    indicator = imputer.indicator_
    return None if indicator is None else indicator.features_.astype(np.int64)
