"""scikit-learn's transformers in model files: one table of what each of them learns.

A file contains a transformer's non-default parameters and its public fitted attributes. Private
ones differ from version to version and are never written. Most transformers do not need any: what
they have learned is set. The others are given what they have learned as scikit-learn provides for
it (an encoder its categories, a vectorizer its vocabulary, an imputer a row of its fill values), so
that scikit-learn sets its private attributes by itself.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from nearlabel.common.arrays import Array, Tree
from nearlabel.common.files import FileError
from nearlabel.common.validation import check_integer
from nearlabel.methods.fields import stored_array, stored_names
from nearlabel.persistence.text_vectorizers import (
    check_vectorizer,
    vectorizer_from,
    vectorizer_tree,
)
from nearlabel.persistence.values import NUMBER_TYPES, as_stored, check_length, from_stored


class Kind(NamedTuple):
    """How a class of scikit-learn is stored."""

    module: str  # of scikit-learn
    # Its fitted arrays, each with its shape in letters: d features, other letters for sizes that
    # must agree. Any of them may be None.
    arrays: Mapping[str, str] = MappingProxyType({})
    numbers: tuple[str, ...] = ()  # its fitted numbers
    # The rest of its fitted state, as a tree; an error if it cannot be stored.
    write: Callable[[BaseEstimator], Tree] | None = None
    # The fitted transformer from its class, parameters and tree; by default the arrays are set.
    rebuild: Callable[[type[BaseEstimator], Tree, Tree], BaseEstimator] | None = None


def transformer_tree(transformer: BaseEstimator) -> Tree:
    """A fitted transformer of a known kind as a tree."""
    name = type(transformer).__name__
    kind = KINDS[name]
    usual = type(transformer)().get_params(deep=False)
    parameters = {  # non-default ones only: not every version of scikit-learn has all of them
        key: as_stored(value, f"{name}'s {key}", types=key == "dtype")
        for key, value in transformer.get_params(deep=False).items()
        if not _is_same(value, usual[key])
    }
    names = getattr(transformer, "feature_names_in_", np.array([])).tolist()
    seen = getattr(transformer, "n_samples_seen_", None)
    arrays = {
        key: _in_memory_order(getattr(transformer, key))
        for key in kind.arrays
        if hasattr(transformer, key)
    }
    layouts = {key: layout for key, (_, layout) in arrays.items() if layout}
    return {
        "class": name,
        "parameters": parameters,
        "features": getattr(transformer, "n_features_in_", None),
        "feature_names": names or None,
        **({} if seen is None else {"seen": np.asarray(seen, dtype=np.int64)}),
        **{key: array for key, (array, _) in arrays.items()},
        **({"layouts": layouts} if layouts else {}),
        **{key: as_stored(getattr(transformer, key), key) for key in kind.numbers},
        **({} if kind.write is None else kind.write(transformer)),
    }


def _is_same(value: object, usual: object) -> bool:
    return value is usual or (type(value) is type(usual) and bool(np.all(value == usual)))


def transformer_from(tree: Tree) -> BaseEstimator:
    """The transformer of a tree; a ValueError or the like if the tree is not valid."""
    name = tree["class"]
    kind = KINDS[name]
    made = getattr(importlib.import_module(f"sklearn.{kind.module}"), name)
    parameters = _parameters(made, tree["parameters"])
    if kind.rebuild is None:
        transformer = made(**parameters)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about values that are learned already
            transformer = kind.rebuild(made, parameters, tree)
    if tree["features"] is not None:
        transformer.n_features_in_ = check_integer(tree["features"], "features", low=1)
    if "seen" in tree:
        transformer.n_samples_seen_ = tree["seen"][()]
    _set_learned(transformer, kind, tree)
    if kind.rebuild is None and kind.arrays:
        _try_out(transformer, kind)
    if tree["features"] is not None:
        names = stored_names(tree["feature_names"], transformer.n_features_in_)
        if names is not None:
            transformer.feature_names_in_ = names.astype(object)
    return transformer


def _parameters(made: type[BaseEstimator], stored: Tree) -> Tree:
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


def _in_memory_order(array: Array | None) -> tuple[object, list[str]]:
    """An array in its memory order, and what else the rounding of products depends on.

    That is reversed rows, and gaps between rows: some of scikit-learn's solvers return views of
    larger arrays, or the last component first. An array that is stored by columns is in a dict.
    """
    if array is None or array.ndim != 2:
        return array, []
    is_by_columns = abs(array.strides[0]) < abs(array.strides[1])
    stored = array.T if is_by_columns else array
    is_apart = len(stored) > 1 and abs(stored.strides[0]) > stored.shape[1] * stored.itemsize
    layout = [*(["apart"] if is_apart else []), *(["backwards"] if array.strides[0] < 0 else [])]
    return {"columns": stored} if is_by_columns else stored, layout


def _laid_out(
    stored: Array | dict[str, Array], layout: list[str], key: str, dimensions: int
) -> Array:
    """An array as it was in memory, from what `_in_memory_order` returned."""
    is_by_columns = isinstance(stored, dict)
    array = stored_array(stored["columns"] if is_by_columns else stored, key, "f", dimensions)
    if "apart" in layout:  # any gap will do
        array = np.pad(array, ((0, 0), (0, 1)))[:, :-1]
    array = array.T if is_by_columns else array
    if "backwards" in layout:
        array = array[::-1].copy(order="K")[::-1]
    return array


def _set_learned(transformer: BaseEstimator, kind: Kind, tree: Tree) -> None:
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


def _try_out(transformer: BaseEstimator, kind: Kind) -> None:
    """Transform a row of zeros, which shows whether the parts match."""
    features = transformer.n_features_in_
    wide = [key for key, shape in kind.arrays.items() if "d" in shape]
    if all(getattr(transformer, key, None) is None for key in wide):
        transformer.n_features_in_ = 1  # no array in the file bounds the number that it states
    with np.errstate(all="ignore"):
        row = transformer.transform(np.zeros((1, transformer.n_features_in_)))
    transformer.n_features_in_ = features
    if row.shape[0] != 1:
        raise ValueError("the parts of its transformer do not match")


def _encoder_tree(encoder: BaseEstimator) -> Tree:
    """The fitted state of an encoder: the categories of each column."""
    for key in ("min_frequency", "max_categories"):
        if getattr(encoder, key) is not None:
            raise ValueError(
                f"{type(encoder).__name__}'s {key}={getattr(encoder, key)!r} cannot be saved; "
                f"{_WITHOUT_INFREQUENT}"
            )
    categories = [as_stored(column, "categories_") for column in encoder.categories_]
    return {"categories": categories, "infrequent": None}


def _encoder_from(made: type[BaseEstimator], parameters: Tree, tree: Tree) -> BaseEstimator:
    """The encoder of a tree: it is given its categories and fitted to a row of them."""
    if tree["infrequent"] is not None:
        raise FileError(
            f"has infrequent categories of {made.__name__}, which nearlabel no longer reads; "
            f"{_WITHOUT_INFREQUENT}"
        )
    categories = from_stored(tree["categories"])
    check_length(categories, tree["features"], "categories")
    for column in categories:
        if not isinstance(column, np.ndarray) or column.ndim != 1 or not column.size:
            raise ValueError("its categories are not arrays")
    encoder = made(**parameters)
    given = encoder.categories
    encoder.categories = [column.astype(object) for column in categories]
    encoder.fit(np.array([[column[0] for column in encoder.categories]], object))
    encoder.categories, encoder.categories_ = given, categories
    return encoder


def _imputer_tree(imputer: BaseEstimator) -> Tree:
    """The fitted state of an imputer: its fill values, and the columns with an indicator."""
    statistics = imputer.statistics_
    kind = statistics.dtype
    if imputer.strategy == "constant":  # then they are objects, whatever the data are
        constants = [value for value in statistics.tolist() if value == value]
        kind = np.array([imputer.missing_values, *constants]).dtype
    indicator = imputer.indicator_
    return {
        "statistics": as_stored(statistics, "statistics_"),
        "type": kind.name if kind.name in NUMBER_TYPES else "object",
        "indicated": None if indicator is None else indicator.features_.astype(np.int64),
    }


def _imputer_from(made: type[BaseEstimator], parameters: Tree, tree: Tree) -> BaseEstimator:
    """The imputer of a tree, fitted to a row of its fill values."""
    statistics, indicated = from_stored(tree["statistics"]), tree["indicated"]
    check_length(statistics, tree["features"], "statistics")
    if not all(value is None or np.isscalar(value) for value in statistics.tolist()):
        raise ValueError("its statistics are neither numbers nor strings")
    if tree["type"] not in ("object", *NUMBER_TYPES):
        raise ValueError(f"its imputer has the unknown type {tree['type']!r}")
    imputer = made(**parameters)
    is_empty = statistics != statistics  # a column without any values
    row = np.where(is_empty, imputer.missing_values, statistics.astype(object))
    imputer.fit(row[None].astype(tree["type"]))
    learned = imputer.statistics_
    if imputer.strategy == "constant":  # their type depends on the version of scikit-learn, too
        if np.any(is_empty & (learned == learned)):
            raise FileError(
                "needs another version of scikit-learn: this one does not drop columns without any "
                "values"
            )
        statistics = statistics.astype(learned.dtype)
    elif learned.dtype.kind != statistics.dtype.kind or statistics.ndim != 1:
        raise ValueError("its statistics do not match its strategy")
    imputer.statistics_ = statistics
    if (imputer.indicator_ is None) != (indicated is None):
        raise ValueError("the columns of its indicator do not match its parameters")
    if indicated is not None:
        columns = stored_array(indicated, "indicated", "i", 1)
        if not np.isin(np.arange(len(statistics)), columns).sum() == len(columns):
            raise ValueError("the columns of its indicator are not columns of its data")
        imputer.indicator_.features_ = columns
    return imputer


def _hashing_tree(vectorizer: BaseEstimator) -> Tree:
    """Nothing: a HashingVectorizer does not learn."""
    check_vectorizer(vectorizer)
    return {}


def _hashing_from(made: type[BaseEstimator], parameters: Tree, _: Tree) -> BaseEstimator:
    vectorizer = made(**parameters)
    check_vectorizer(vectorizer)
    return vectorizer


_WITHOUT_INFREQUENT = (
    "fit it again without min_frequency and max_categories, with the categories to keep as "
    "categories=[…], and handle_unknown"
)
_SVD = {
    "components_": "cd",
    "explained_variance_": "c",
    "explained_variance_ratio_": "c",
    "singular_values_": "c",
}
_TEXT = "feature_extraction.text"
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
    "SimpleImputer": Kind("impute", write=_imputer_tree, rebuild=_imputer_from),
    "OneHotEncoder": Kind("preprocessing", write=_encoder_tree, rebuild=_encoder_from),
    "OrdinalEncoder": Kind("preprocessing", write=_encoder_tree, rebuild=_encoder_from),
    "CountVectorizer": Kind(_TEXT, write=vectorizer_tree, rebuild=vectorizer_from),
    "TfidfVectorizer": Kind(_TEXT, write=vectorizer_tree, rebuild=vectorizer_from),
    "HashingVectorizer": Kind(_TEXT, write=_hashing_tree, rebuild=_hashing_from),
    "TfidfTransformer": Kind(_TEXT, {"idf_": "d"}),
}
