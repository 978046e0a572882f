"""scikit-learn's ColumnTransformer and FeatureUnion in model files."""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable, Iterable, Mapping
from types import NoneType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from nearlabel.common.arrays import Tree
from nearlabel.common.files import FileError
from nearlabel.common.validation import check_flag, check_integer, check_real
from nearlabel.methods.fields import stored_names
from nearlabel.persistence.values import as_stored, from_stored

PartTree = Callable[[BaseEstimator | str | None], Tree | str | None]
_PLAIN = ("drop", "passthrough")
_MOST_UNLISTED = 2**20  # features that a file lists neither by name nor by number


def column_transformer_tree(model: BaseEstimator, tree_of: PartTree) -> Tree:
    """A fitted ColumnTransformer as a tree; `tree_of` makes that of each of its transformers."""
    if not hasattr(model, "output_indices_"):
        raise ValueError("cannot save a ColumnTransformer that drops all columns")
    names = getattr(model, "feature_names_in_", np.array([])).tolist()
    transformers = [
        (name, part, _plain_columns(columns)) for name, part, columns in model.transformers_
    ]
    _check_width(model.n_features_in_, (columns for *_, columns in transformers), len(names))
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


def column_transformer_from(
    tree: Tree, part_from: Callable[[Tree], BaseEstimator]
) -> BaseEstimator:
    """The ColumnTransformer of a tree.

    It is fitted to a table without rows, which shows it where the columns are; then its fitted
    transformers take their places.
    """
    from sklearn.compose import ColumnTransformer

    features = check_integer(tree["features"], "features", low=1)
    names = stored_names(tree["feature_names"], features)
    places = {} if names is None else {name: at for at, name in enumerate(names.tolist())}
    parts: dict[str, BaseEstimator | str] = {}
    columns, widths = {}, {}
    for step in tree["steps"]:
        name, part = str(step["name"]), step["transformer"]
        if isinstance(part, str) and part not in _PLAIN:
            raise FileError(f"has {part!r} in place of a transformer")
        if name in parts:
            raise ValueError(f"two of its steps have the name {name!r}")
        parts[name] = part if isinstance(part, str) else part_from(part)
        columns[name] = from_stored(step["columns"])
        widths[name] = check_integer(step["width"], "width", low=0)
    _check_width(features, columns.values(), len(places))
    remainder = parts.get("remainder", tree["remainder"] or "drop")
    named = [name for name in parts if name != "remainder"]
    model = ColumnTransformer(
        [(name, _plain(parts[name]), _listed(columns[name], places, features)) for name in named],
        remainder=_plain(remainder),
        transformer_weights=from_stored(tree["transformer_weights"]),
        verbose_feature_names_out=from_stored(tree["verbose_feature_names_out"]),
    )
    model.fit(np.empty((0, features), object))
    model.transformers = [(name, parts[name], columns[name]) for name in named]
    model.remainder = remainder
    model.transformers_ = [
        (
            name,
            fitted if isinstance(parts.get(name, ""), str) else parts[name],
            columns[name] if name in named else at,
        )
        for name, fitted, at in model.transformers_
    ]
    end = 0
    for name, _, _ in model.transformers_:
        width = widths.get(name, 0)
        model.output_indices_[name] = slice(end, end + width) if width else slice(0, 0)
        end += width
    model.sparse_threshold = check_real(tree["sparse_threshold"], "sparse_threshold", low=0, high=1)
    model.sparse_output_ = check_flag(tree["sparse_output"], "sparse_output")
    if names is not None:
        model.feature_names_in_ = names.astype(object)
    return model


def _plain(part: BaseEstimator | str) -> str:
    return part if isinstance(part, str) else "passthrough"


def _plain_columns(columns: object) -> Any:
    """Columns as a list if they are a series, a range or the like."""
    if isinstance(columns, UserList):  # of the remainder, before scikit-learn 1.9
        return columns.data
    is_plain = isinstance(columns, str | list | tuple | np.ndarray)
    return columns if is_plain or not isinstance(columns, Iterable) else list(columns)


def _check_width(features: int, columns: Iterable[object], named: int) -> None:
    """Raise an error for billions of features, which a few bytes of a file could ask for."""
    columns = list(columns)
    listed = sum(np.size(part) for part in columns if isinstance(part, list | tuple | np.ndarray))
    width = features * max(1, sum(isinstance(part, slice) for part in columns))
    if width > max(_MOST_UNLISTED, 4 * (listed + named)):
        raise ValueError(
            f"a ColumnTransformer of {features} features is too wide for a model file: without "
            f"their names or numbers, at most {_MOST_UNLISTED} are supported, slices together"
        )


def _listed(columns: object, places: Mapping[str, int], features: int) -> object:
    """Columns by number, in a list also if there is one, whose 1-d values no table can have."""
    positions = column_positions(columns, places, features)
    return [positions] if isinstance(columns, str | int) else positions


def column_positions(columns: object, places: Mapping[str, int], features: int) -> Any:
    """Columns of a ColumnTransformer by number, given the number of each name."""
    if isinstance(columns, slice) and {type(columns.start), type(columns.stop)} <= {str, NoneType}:
        stop = features if columns.stop is None else places[columns.stop] + 1  # it is included
        start = None if columns.start is None else places[columns.start]
        return slice(start, stop, columns.step)
    if isinstance(columns, str):
        return places[columns]
    if isinstance(columns, list | tuple | np.ndarray):
        return [places[column] if isinstance(column, str) else column for column in columns]
    return columns


def feature_union_tree(model: BaseEstimator, tree_of: PartTree) -> Tree:
    """A fitted FeatureUnion as a tree; `tree_of` makes that of each of its transformers."""
    return {
        "class": "FeatureUnion",
        "steps": [[step, tree_of(part)] for step, part in model.transformer_list],
        "weights": as_stored(model.transformer_weights, "transformer_weights"),
        "verbose_feature_names_out": model.verbose_feature_names_out,
    }


def feature_union_from(tree: Tree, part_from: Callable[[Tree], BaseEstimator]) -> BaseEstimator:
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


def check_steps(steps: object, words: tuple[str | None, ...]) -> list[tuple[str, Any]]:
    """Named steps of a tree, each a tree or one of `words`, with names valid in scikit-learn."""
    if not isinstance(steps, list):
        raise TypeError("its steps must be a list")
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
