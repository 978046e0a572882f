"""scikit-learn's ColumnTransformer in model files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from nearlabel.common.files import FileError
from nearlabel.common.validation import check_flag, check_integer, check_real
from nearlabel.methods.fields import stored_names
from nearlabel.persistence.values import as_stored, from_stored

_PLAIN = ("drop", "passthrough")


class _StandIn(BaseEstimator):
    """A fitted transformer in a ColumnTransformer that is fitted to nothing.

    It gives rows of zeros of the right form, and is not cloned, so that it can be told again.
    """

    def __init__(self, fitted: Any, width: int) -> None:
        self.fitted = fitted
        self.width = width

    def __sklearn_clone__(self) -> _StandIn:
        return self

    def fit(self, _: Any, __: Any = None) -> _StandIn:
        return self

    def transform(self, X: Any) -> Any:
        return sparse.csr_array((len(X), self.width))  # whatever the width, it is small


def column_transformer_tree(model: Any, tree_of: Callable[[Any], Any]) -> dict[str, Any]:
    """A fitted ColumnTransformer as a tree; `tree_of` makes that of each of its transformers."""
    names = getattr(model, "feature_names_in_", np.array([])).tolist()
    given = {name: part for name, part, _ in model.transformers}
    steps = []
    for name, part, columns in model.transformers_:
        plain = part if isinstance(part, str) else given.get(name, model.remainder)
        if np.size(columns) == 0 and not isinstance(columns, slice):
            plain = "drop"  # it was never fitted
        width = model.output_indices_[name]
        steps.append(
            {
                "name": name,
                "transformer": plain if isinstance(plain, str) else tree_of(part),
                "columns": as_stored(columns, f"the columns of {name}"),
                "width": width.stop - width.start,
            }
        )
    return {
        "class": "ColumnTransformer",
        "features": model.n_features_in_,
        "feature_names": names or None,
        "steps": steps,
        "remainder": model.remainder if isinstance(model.remainder, str) else None,
        "sparse_output": bool(model.sparse_output_),
        "sparse_threshold": float(model.sparse_threshold),
        "transformer_weights": as_stored(model.transformer_weights, "transformer_weights"),
        "verbose_feature_names_out": as_stored(
            model.verbose_feature_names_out, "verbose_feature_names_out"
        ),
    }


def column_transformer_from(tree: Mapping[str, Any], part_from: Callable[[Any], Any]) -> Any:
    """The ColumnTransformer of a tree.

    scikit-learn makes its private values while it is fitted to one row of zeros, with stand-ins in
    place of the transformers.
    """
    from sklearn.compose import ColumnTransformer

    features = check_integer(tree["features"], "features", low=1)
    names = stored_names(tree["feature_names"], features)
    steps, fitted = [], {}
    remainder: Any = tree["remainder"]
    for step in tree["steps"]:
        name, part = str(step["name"]), step["transformer"]
        if isinstance(part, str):
            if part not in _PLAIN:
                raise FileError(f"has a transformer {part!r}, which is none")
        else:
            part = _StandIn(part_from(part), check_integer(step["width"], "width", low=0))
            fitted[name] = part.fitted
        if name == "remainder":
            remainder = part
        else:
            steps.append((name, part, from_stored(step["columns"])))
    model = ColumnTransformer(
        [(name, part, column_positions(columns, names, features)) for name, part, columns in steps],
        remainder="drop" if remainder is None else remainder,
        sparse_threshold=1.0,
        transformer_weights=from_stored(tree["transformer_weights"]),
        verbose_feature_names_out=from_stored(tree["verbose_feature_names_out"]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.zeros((1, features), object))
    columns_of = {name: columns for name, _, columns in steps}
    model.transformers_ = [
        (name, fitted.get(name, part), columns_of.get(name, columns))
        for name, part, columns in model.transformers_
    ]
    model.transformers = [(name, fitted.get(name, part), at) for name, part, at in steps]
    if isinstance(remainder, _StandIn):
        model.remainder = remainder.fitted
    model.sparse_threshold = check_real(tree["sparse_threshold"], "sparse_threshold", low=0, high=1)
    model.sparse_output_ = check_flag(tree["sparse_output"], "sparse_output")
    if names is not None:
        model.feature_names_in_ = names.astype(object)
    return model


def column_positions(columns: Any, names: Any, features: int) -> Any:
    """Columns of a ColumnTransformer by their numbers, which need no names."""
    place = {} if names is None else {name: at for at, name in enumerate(names.tolist())}
    if isinstance(columns, slice) and isinstance(columns.start, str | None) and names is not None:
        stop = features if columns.stop is None else place[columns.stop] + 1  # it is included
        start = None if columns.start is None else place[columns.start]
        return slice(start, stop, columns.step)
    if isinstance(columns, str):
        return place[columns]
    if isinstance(columns, list | np.ndarray):
        return [place[one] if isinstance(one, str) else one for one in columns]
    return columns
