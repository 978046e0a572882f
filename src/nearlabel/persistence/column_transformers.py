"""scikit-learn's ColumnTransformer and FeatureUnion in model files."""

from __future__ import annotations

import warnings
from collections import UserList
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import HashingVectorizer

from nearlabel.common.files import FileError
from nearlabel.common.validation import check_flag, check_integer, check_real
from nearlabel.methods.fields import stored_names
from nearlabel.persistence.values import Tree, as_stored, from_stored

_PLAIN = ("drop", "passthrough")
_MOST_UNLISTED = 2**20  # features that a file lists neither by name nor by number
_WIDEST_HASH = 2**16  # columns of a HashingVectorizer in dense rows, which no file size limits


class _StandIn(BaseEstimator):
    """Stands for a fitted transformer while a ColumnTransformer is fitted to stand-in data.

    It returns rows of zeros of the right shape, and is not cloned, so that it can be recognized.
    """

    def __init__(self, fitted: Any, width: int) -> None:
        self.fitted = fitted
        self.width = width

    def __sklearn_clone__(self) -> _StandIn:
        return self

    def fit(self, _: Any, __: Any = None) -> _StandIn:
        return self

    def transform(self, X: Any) -> Any:
        if not self.width:  # a sparse matrix without columns has no density
            return np.empty((len(X), 0))
        return sparse.csr_array((len(X), self.width))  # small, whatever the width


def column_transformer_tree(model: Any, tree_of: Callable[[Any], Any]) -> Tree:
    """A fitted ColumnTransformer as a tree; `tree_of` makes that of each of its transformers."""
    if not hasattr(model, "output_indices_"):
        raise ValueError("cannot save a ColumnTransformer that drops all columns")
    names = getattr(model, "feature_names_in_", np.array([])).tolist()
    transformers = [
        (name, part, _plain_columns(columns)) for name, part, columns in model.transformers_
    ]
    listed = [columns for *_, columns in transformers]
    _check_width(model.n_features_in_, _places(names), listed)
    _check_dense(model)
    given = {name: part for name, part, _ in model.transformers}
    steps = []
    for name, part, columns in transformers:
        plain = part if isinstance(part, str) else given.get(name, model.remainder)
        if np.size(columns) == 0 and not isinstance(columns, slice):
            plain = "drop"  # it was never fitted
        width = model.output_indices_[name]
        steps.append(
            {
                "name": name,
                "transformer": tree_of(plain if isinstance(plain, str) else part),
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

    To set its private attributes, it is fitted to one row of zeros, with stand-ins in place of the
    transformers.
    """
    from sklearn.compose import ColumnTransformer

    features = check_integer(tree["features"], "features", low=1)
    names = stored_names(tree["feature_names"], features)
    steps, fitted, listed = [], {}, []
    remainder: Any = tree["remainder"]
    for step in tree["steps"]:
        name, part = str(step["name"]), step["transformer"]
        if isinstance(part, str):
            if part not in _PLAIN:
                raise FileError(f"has {part!r} in place of a transformer")
        else:
            part = _StandIn(part_from(part), check_integer(step["width"], "width", low=0))
            fitted[name] = part.fitted
        columns = from_stored(step["columns"])
        listed.append(columns)
        if name == "remainder":
            remainder = part
        else:
            steps.append((name, part, columns))
    places = _places(names)
    _check_width(features, places, listed)
    model = ColumnTransformer(
        [(name, part, _positions(columns, places, features)) for name, part, columns in steps],
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
    _check_dense(model)
    return model


def _plain_columns(columns: Any) -> Any:
    """Columns as a list if they are a series, a range or the like."""
    if isinstance(columns, UserList):  # of the remainder, before scikit-learn 1.9
        return columns.data
    is_plain = isinstance(columns, str | list | tuple | np.ndarray)
    return columns if is_plain or not hasattr(columns, "__len__") else list(columns)


def _check_width(features: int, places: dict[str, int], columns: list[Any]) -> None:
    """Raise an error for billions of features, which a few bytes of a file could ask for."""
    listed = sum(np.size(some) for some in columns if isinstance(some, list | tuple | np.ndarray))
    if features > max(_MOST_UNLISTED, listed, len(places)):
        raise ValueError(
            f"a ColumnTransformer of {features} features is too wide for a model file; "
            f"at most {_MOST_UNLISTED} are supported"
        )
    slices = [_positions(some, places, features) for some in columns if isinstance(some, slice)]
    in_slices = sum(len(range(*some.indices(features))) for some in slices)
    if in_slices > max(_MOST_UNLISTED, 4 * (listed + len(places))):
        raise ValueError(
            f"the slices of a ColumnTransformer have {in_slices} features, too many for a model "
            f"file; at most {_MOST_UNLISTED} are supported"
        )


def _check_dense(model: Any) -> None:
    """Raise an error for dense rows with the many columns of a HashingVectorizer."""
    if model.sparse_output_:
        return
    for part in (part for _, part, _ in model.transformers_ if not isinstance(part, str)):
        for inner in (part, *part.get_params().values()):
            if isinstance(inner, HashingVectorizer) and inner.n_features > _WIDEST_HASH:
                raise ValueError(
                    f"HashingVectorizer's n_features={inner.n_features} is too wide for the dense "
                    f"rows of a ColumnTransformer in a model file; at most {_WIDEST_HASH} are "
                    "supported, or use sparse_threshold=1 for sparse rows"
                )


def column_positions(columns: Any, names: Any, features: int) -> Any:
    """Columns of a ColumnTransformer by number, which needs no names."""
    return _positions(columns, _places(names), features)


def _places(names: Any) -> dict[str, int]:
    """The numbers of columns by name; empty if they have no names."""
    return {} if names is None else {name: at for at, name in enumerate(names)}


def _positions(columns: Any, places: dict[str, int], features: int) -> Any:
    """Columns by number, given the number of each name."""
    if isinstance(columns, slice) and {type(columns.start), type(columns.stop)} <= {str, NoneType}:
        stop = features if columns.stop is None else places[columns.stop] + 1  # it is included
        start = None if columns.start is None else places[columns.start]
        return slice(start, stop, columns.step)
    if isinstance(columns, str):
        return places[columns]
    if isinstance(columns, list | tuple | np.ndarray):
        return [places[one] if isinstance(one, str) else one for one in columns]
    return columns


def feature_union_tree(model: Any, tree_of: Callable[[Any], Any]) -> Tree:
    """A fitted FeatureUnion as a tree; `tree_of` makes that of each of its transformers."""
    return {
        "class": "FeatureUnion",
        "steps": [[step, tree_of(part)] for step, part in model.transformer_list],
        "weights": as_stored(model.transformer_weights, "transformer_weights"),
        "verbose_feature_names_out": model.verbose_feature_names_out,
    }


def feature_union_from(tree: Mapping[str, Any], part_from: Callable[[Any], Any]) -> Any:
    """The FeatureUnion of a tree."""
    from sklearn.pipeline import FeatureUnion

    steps, weights = check_steps(tree["steps"], _PLAIN), from_stored(tree["weights"])
    for name, weight in ({} if weights is None else weights).items():
        check_real(weight, f"weight of {name!r}", low=-np.finfo(float).max)
        if name not in dict(steps):
            raise ValueError(f"it has a weight for {name!r}, which is not one of its transformers")
    return FeatureUnion(
        [(name, part if isinstance(part, str) else part_from(part)) for name, part in steps],
        transformer_weights=weights,
        verbose_feature_names_out=check_flag(
            tree["verbose_feature_names_out"], "verbose_feature_names_out"
        ),
    )


def check_steps(steps: Any, words: tuple[str | None, ...]) -> list[tuple[str, Any]]:
    """Named steps of a tree, each a tree or one of `words`, with names valid in scikit-learn."""
    named = [(name, part) for name, part in steps]
    for _, part in named:
        if not isinstance(part, dict) and (not isinstance(part, str | None) or part not in words):
            raise ValueError(f"a step of it is {part!r}, not a transformer")
    names = [name for name, _ in named]
    if not names or not all(isinstance(name, str) and "__" not in name for name in names):
        raise ValueError("the names of its steps must be strings without '__'")
    if len(set(names)) < len(names):
        raise ValueError("two of its steps have the same name")
    return named
