"""scikit-learn's SimpleImputer in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError
from nearlabel.methods.fields import stored_array
from nearlabel.persistence.values import NUMBER_TYPES, Tree, as_stored, check_length, from_stored


def imputer_tree(imputer: Any) -> Tree:
    """What an imputer learned: what it fills gaps with, and in which columns it marks them."""
    return {
        "statistics": as_stored(imputer.statistics_, "statistics_"),
        # The type of the training data decides how new data are read. It has no public name.
        "type": imputer._fit_dtype.name,
        "indicated": _indicated(imputer),
    }


def imputer_from(made: Any, parameters: Tree, tree: Tree) -> Any:
    """The imputer of a tree, fitted to a sample with gaps in the right columns."""
    statistics, indicated = from_stored(tree["statistics"]), tree["indicated"]
    check_length(statistics, tree["features"], "statistics")
    if not all(one is None or np.isscalar(one) for one in statistics.tolist()):
        raise ValueError("its statistics are neither numbers nor texts")
    if tree["type"] not in ("object", *NUMBER_TYPES):
        raise ValueError(f"its imputer is of the type {tree['type']!r}")
    if indicated is not None:
        indicated = stored_array(indicated, "indicated", "i", 1)
    imputer = made(**parameters)
    imputer.fit(_sample(imputer.missing_values, statistics, indicated, tree["type"]))
    if not np.array_equal(_indicated(imputer), indicated):  # None is equal to None alone
        raise ValueError("the columns of its indicator are not those of its parameters")
    made_of_sample = imputer.statistics_
    if imputer.strategy == "constant":  # whose type is another in other versions of scikit-learn
        if np.any((statistics != statistics) != (made_of_sample != made_of_sample)):
            raise FileError("needs another scikit-learn: this one drops other columns with gaps")
        return imputer
    # float64 for sparse data, whatever type these have
    if made_of_sample.dtype.kind != statistics.dtype.kind or statistics.ndim != 1:
        raise ValueError("its statistics are not those of its strategy")
    imputer.statistics_ = statistics
    return imputer


def _sample(missing: Any, statistics: Array, indicated: Array | None, dtype: str) -> Array:
    """Two rows with a gap where a column is indicated, and nothing else where it had no values."""
    sample = np.full((2, len(statistics)), 1 if missing == 0 else 0, dtype)
    is_empty = statistics != statistics
    if indicated is not None:
        sample[1, indicated] = missing
        is_empty &= np.isin(np.arange(len(statistics)), indicated)
    if is_empty.any():
        sample[:, is_empty] = missing
    return sample


def _indicated(imputer: Any) -> Any:
    """The columns with an indicator of gaps; None if it has none."""
    indicator = imputer.indicator_
    return None if indicator is None else indicator.features_.astype(np.int64)
