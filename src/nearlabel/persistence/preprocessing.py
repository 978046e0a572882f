"""scikit-learn's transformers in model files, without pickle.

A file contains a transformer's non-default parameters, and its public fitted attributes. Many
transformers have private attributes as well, which differ from version to version. These are never
written: the transformer is fitted to a small stand-in for its training data, so that scikit-learn
sets its private attributes, and then the public ones are restored to the last bit.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError
from nearlabel.common.validation import check_integer
from nearlabel.methods.fields import stored_array, stored_names
from nearlabel.persistence.category_encoders import encoder_from, encoder_tree
from nearlabel.persistence.imputers import imputer_from, imputer_tree
from nearlabel.persistence.text_vectorizers import (
    hashing_from,
    hashing_tree,
    vectorizer_from,
    vectorizer_tree,
)
from nearlabel.persistence.values import Tree, as_stored, from_stored


class Kind(NamedTuple):
    """How a class of scikit-learn is stored.

    Attributes
    ----------
    module : str
        The module of scikit-learn that it is in.
    arrays : mapping of str to str
        Its fitted arrays, each with its shape in letters: d features, other letters for sizes that
        must agree. Any of them may be None.
    numbers : tuple of str
        Its fitted numbers.
    write : callable, optional
        Returns the rest of its fitted state, as a tree.
    rebuild : callable, optional
        Makes the fitted transformer from the class, the parameters and the tree; by default the
        arrays are simply set.
    """

    module: str
    arrays: Mapping[str, str] = MappingProxyType({})
    numbers: tuple[str, ...] = ()
    write: Callable[[Any], Tree] | None = None
    rebuild: Callable[[Any, Tree, Tree], Any] | None = None


def transformer_tree(transformer: Any) -> Tree:
    """A fitted transformer of a known kind as a tree."""
    name = type(transformer).__name__
    kind = KINDS[name]
    names = getattr(transformer, "feature_names_in_", np.array([])).tolist()
    arrays = {key: getattr(transformer, key) for key in kind.arrays if hasattr(transformer, key)}
    learned = {key: _ordered(array) for key, array in arrays.items()}
    layouts = {key: layout for key, array in arrays.items() if (layout := _layout(array))}
    numbers = {key: as_stored(getattr(transformer, key), key) for key in kind.numbers}
    seen = getattr(transformer, "n_samples_seen_", None)
    return {
        "class": name,
        "parameters": _changed_parameters(transformer),
        "features": getattr(transformer, "n_features_in_", None),
        "feature_names": names or None,
        **({} if seen is None else {"seen": np.asarray(seen, dtype=np.int64)}),
        **learned,
        **({"layouts": layouts} if layouts else {}),
        **numbers,
        **({} if kind.write is None else kind.write(transformer)),
    }


def transformer_from(tree: Mapping[str, Any]) -> Any:
    """The transformer of a tree; a ValueError or the like if the tree is not valid."""
    name = tree["class"]
    kind = KINDS[name]
    made = getattr(importlib.import_module(f"sklearn.{kind.module}"), name)
    parameters = _parameters(made, tree["parameters"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about the stand-in
        if kind.rebuild is not None:
            transformer = kind.rebuild(made, parameters, dict(tree))
        else:
            transformer = made(**parameters)
            _check_parameters(made(**parameters))
        if tree["features"] is not None:
            features = check_integer(tree["features"], "features", low=1)
            transformer.n_features_in_ = features
            names = stored_names(tree["feature_names"], features)
            if names is not None:
                transformer.feature_names_in_ = names.astype(object)
        if "seen" in tree:
            transformer.n_samples_seen_ = tree["seen"][()]
        _put_back(transformer, kind, tree)
        if kind.rebuild is None and kind.arrays:
            _try_out(transformer, kind)
    return transformer


def _check_parameters(transformer: Any) -> None:
    """Let scikit-learn validate parameters, which it does before it finds that there are no rows.

    With rows it would compute, for as many iterations as a file asks for.
    """
    try:
        transformer.fit(np.empty((0, 1)))
    except ValueError as error:
        if type(error).__name__ == "InvalidParameterError":
            raise


def _ordered(array: Any) -> Any:
    """An array in its memory order, on which the rounding of products depends."""
    return {"columns": array.T} if _is_by_columns(array) else array


def _is_by_columns(array: Any) -> bool:
    return (
        isinstance(array, np.ndarray)
        and array.ndim == 2
        and abs(array.strides[0]) < abs(array.strides[1])
    )


def _layout(array: Any) -> list[str]:
    """What else the rounding of products depends on: reversed rows, and gaps between rows.

    Some of scikit-learn's solvers return views of larger arrays, or the last component first.
    """
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        return []
    stored = array.T if _is_by_columns(array) else array
    is_apart = len(stored) > 1 and abs(stored.strides[0]) > stored.shape[1] * stored.itemsize
    return [*(["apart"] if is_apart else []), *(["backwards"] if array.strides[0] < 0 else [])]


def _laid_out(stored: Any, layout: list[str], key: str, dimensions: int) -> Array:
    """An array as it was in memory, from what `_ordered` and `_layout` returned."""
    is_by_columns = isinstance(stored, dict)
    array = stored_array(stored["columns"] if is_by_columns else stored, key, "f", dimensions)
    if "apart" in layout:  # any gap will do
        array = np.pad(array, ((0, 0), (0, 1)))[:, :-1]
    array = array.T if is_by_columns else array
    if "backwards" in layout:
        array = array[::-1].copy(order="K")[::-1]
    return array


def _put_back(transformer: Any, kind: Kind, tree: Mapping[str, Any]) -> None:
    sizes = {"d": getattr(transformer, "n_features_in_", None)}
    for key in kind.numbers:
        number = from_stored(tree[key])
        if not isinstance(number, int | float | np.number):
            raise ValueError(f"its {key} is not a number")
        setattr(transformer, key, number)
    for key, shape in kind.arrays.items():
        if tree.get(key) is None:
            if key in tree:
                setattr(transformer, key, None)
            continue
        array = _laid_out(tree[key], tree.get("layouts", {}).get(key, []), key, len(shape))
        for letter, size in zip(shape, array.shape, strict=True):
            if size != (sizes.setdefault(letter, size) or size):
                raise ValueError(f"the shape of its {key} does not match its other arrays")
        setattr(transformer, key, array)


def _try_out(transformer: Any, kind: Kind) -> None:
    """Transform a row of zeros, which shows whether the parts match."""
    features = transformer.n_features_in_
    wide = [key for key, shape in kind.arrays.items() if "d" in shape]
    if all(getattr(transformer, key, None) is None for key in wide):
        transformer.n_features_in_ = 1  # no array in the file bounds the number that it states
    with np.errstate(all="ignore"):
        made = transformer.transform(np.zeros((1, transformer.n_features_in_)))
    transformer.n_features_in_ = features
    if made.shape[0] != 1:
        raise ValueError("the parts of its transformer do not match")


def _changed_parameters(transformer: Any) -> Tree:
    """Non-default parameters only: not every version of scikit-learn has all of them."""
    usual = type(transformer)().get_params(deep=False)
    name = type(transformer).__name__
    return {
        key: as_stored(value, f"{name}'s {key}", types=key == "dtype")
        for key, value in transformer.get_params(deep=False).items()
        if not _is_same(value, usual[key])
    }


def _is_same(value: Any, usual: Any) -> bool:
    return value is usual or (type(value) is type(usual) and bool(np.all(value == usual)))


def _parameters(made: Any, stored: Mapping[str, Any]) -> Tree:
    parameters = {key: from_stored(value) for key, value in stored.items()}
    for key, value in parameters.items():
        if isinstance(value, type) and key != "dtype":  # it would be called as a function
            raise ValueError(f"its {key} is a type")
    if "feature_range" in parameters:  # a list in files of earlier versions
        parameters["feature_range"] = tuple(parameters["feature_range"])
    unknown = sorted(parameters.keys() - made().get_params().keys())
    if unknown:
        raise FileError(
            f"needs another version of scikit-learn: this {made.__name__} has no {unknown[0]!r}"
        )
    return parameters


_SVD = {
    "components_": "cd",
    "explained_variance_": "c",
    "explained_variance_ratio_": "c",
    "singular_values_": "c",
}
KINDS = {
    "MaxAbsScaler": Kind("preprocessing", {"scale_": "d", "max_abs_": "d"}),
    "MinMaxScaler": Kind(
        "preprocessing",
        {"scale_": "d", "min_": "d", "data_min_": "d", "data_max_": "d", "data_range_": "d"},
    ),
    "StandardScaler": Kind("preprocessing", {"scale_": "d", "mean_": "d", "var_": "d"}),
    "RobustScaler": Kind("preprocessing", {"center_": "d", "scale_": "d"}),
    "Normalizer": Kind("preprocessing"),
    "FunctionTransformer": Kind("preprocessing"),  # without a function, as for "passthrough"
    "QuantileTransformer": Kind(
        "preprocessing", {"quantiles_": "md", "references_": "m"}, ("n_quantiles_",)
    ),
    "TruncatedSVD": Kind("decomposition", _SVD),
    "PCA": Kind(
        "decomposition",
        {**_SVD, "mean_": "d"},
        ("n_components_", "n_samples_", "noise_variance_"),
    ),
    "SimpleImputer": Kind("impute", write=imputer_tree, rebuild=imputer_from),
    "OneHotEncoder": Kind("preprocessing", write=encoder_tree, rebuild=encoder_from),
    "OrdinalEncoder": Kind("preprocessing", write=encoder_tree, rebuild=encoder_from),
    "CountVectorizer": Kind(
        "feature_extraction.text", write=vectorizer_tree, rebuild=vectorizer_from
    ),
    "TfidfVectorizer": Kind(
        "feature_extraction.text", write=vectorizer_tree, rebuild=vectorizer_from
    ),
    "HashingVectorizer": Kind("feature_extraction.text", write=hashing_tree, rebuild=hashing_from),
    "TfidfTransformer": Kind("feature_extraction.text", {"idf_": "d"}),
}
