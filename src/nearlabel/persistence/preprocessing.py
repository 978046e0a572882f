"""Transformers of scikit-learn in model files, without pickle.

A file has the parameters of a transformer that are not the default ones, and what it learned under
scikit-learn's public names. Many transformers keep private values as well, which differ from
version to version. So these are never written: the transformer is fitted to a small stand-in for
its training data, from which scikit-learn itself makes its private values, and then gets the
learned values back to the last bit.

A transformer of nearlabel needs none of this: a class with `_tree()` and `_from_tree(tree,
version)` that `nearlabel.persistence.models` knows is stored by these.
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
from nearlabel.persistence.values import NUMBER_TYPES, as_stored, from_stored

Tree = dict[str, Any]


class Kind(NamedTuple):
    """How a class of scikit-learn is stored.

    Attributes
    ----------
    module : str
        Where it comes from.
    arrays : mapping of str to str
        Its learned arrays of finite numbers, each with its shape in letters: d features, other
        letters for sizes that must agree. Any of them may be None.
    numbers : tuple of str
        Its learned numbers.
    write : callable, optional
        What else it learned, as a tree.
    rebuild : callable, optional
        Makes the fitted transformer from the class, the parameters and the tree; by default the
        arrays are simply put back.
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
    learned = {
        key: _ordered(getattr(transformer, key)) for key in kind.arrays if hasattr(transformer, key)
    }
    numbers = {key: as_stored(getattr(transformer, key), key) for key in kind.numbers}
    seen = getattr(transformer, "n_samples_seen_", None)
    return {
        "class": name,
        "parameters": _changed_parameters(transformer),
        "features": getattr(transformer, "n_features_in_", None),
        "feature_names": names or None,
        **({} if seen is None else {"seen": np.asarray(seen, dtype=np.int64)}),
        **learned,
        **numbers,
        **({} if kind.write is None else kind.write(transformer)),
    }


def transformer_from(tree: Mapping[str, Any]) -> Any:
    """The transformer of a tree; a ValueError or the like where the tree makes no sense."""
    name = tree["class"]
    kind = KINDS[name]
    made = getattr(importlib.import_module(f"sklearn.{kind.module}"), name)
    parameters = _parameters(made, tree["parameters"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, about a stand-in
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
        if kind.rebuild is None:
            _try_out(transformer)
    return transformer


def _check_parameters(transformer: Any) -> None:
    """Let scikit-learn check parameters, which it does first of all when it fits."""
    try:
        transformer.fit(np.zeros((2, 1)))
    except ValueError as error:
        if type(error).__name__ == "InvalidParameterError":
            raise


def _ordered(array: Any) -> Any:
    """An array in its order in memory, which the sums of a product, and so its bits, follow."""
    if isinstance(array, np.ndarray) and array.ndim == 2 and array.flags.fnc:
        return {"columns": array.T}
    return array


def _put_back(transformer: Any, kind: Kind, tree: Mapping[str, Any]) -> None:
    sizes = {"d": getattr(transformer, "n_features_in_", None)}
    for key in kind.numbers:
        number = from_stored(tree[key])
        if not isinstance(number, int | float | np.number) or not np.isfinite(number):
            raise ValueError(f"its {key} is not a number")
        setattr(transformer, key, number)
    for key, shape in kind.arrays.items():
        if tree.get(key) is None:
            if key in tree:
                setattr(transformer, key, None)
            continue
        by_columns = isinstance(tree[key], dict)
        array = stored_array(
            tree[key]["columns"] if by_columns else tree[key], key, "f", len(shape)
        )
        array = array.T if by_columns else array
        for letter, size in zip(shape, array.shape, strict=True):
            if size != (sizes.setdefault(letter, size) or size):
                raise ValueError(f"its {key} do not fit the rest")
        if not np.isfinite(array).all():
            raise ValueError(f"its {key} hold a number that is not finite")
        setattr(transformer, key, array)


def _try_out(transformer: Any) -> None:
    """Transform a row of zeros, which shows whether the parts fit together."""
    with np.errstate(all="ignore"):
        made = transformer.transform(np.zeros((1, transformer.n_features_in_)))
    made = made.toarray() if hasattr(made, "toarray") else made
    if made.shape[0] != 1 or not np.isfinite(made).all():
        raise ValueError("the parts of its transformer do not fit together")


def _changed_parameters(transformer: Any) -> Tree:
    """Parameters that are not the default ones: not every scikit-learn knows all of them."""
    usual = type(transformer)().get_params(deep=False)
    return {
        key: as_stored(value, f"{type(transformer).__name__}'s {key}")
        for key, value in transformer.get_params(deep=False).items()
        if not _is_same(value, usual[key])
    }


def _is_same(value: Any, usual: Any) -> bool:
    return value is usual or (type(value) is type(usual) and bool(np.all(value == usual)))


def _parameters(made: Any, stored: Mapping[str, Any]) -> Tree:
    parameters = {key: from_stored(value) for key, value in stored.items()}
    if "feature_range" in parameters:  # a list in files of earlier versions
        parameters["feature_range"] = tuple(parameters["feature_range"])
    unknown = sorted(parameters.keys() - made().get_params().keys())
    if unknown:
        raise FileError(f"needs another scikit-learn: this {made.__name__} has no {unknown[0]!r}")
    return parameters


# Imputers.


def _write_imputer(imputer: Any) -> Tree:
    indicator = imputer.indicator_
    return {
        "statistics": as_stored(imputer.statistics_, "statistics_"),
        # The type of the training data decides how new data are read. It has no public name.
        "type": imputer._fit_dtype.name,
        "indicated": None if indicator is None else indicator.features_.astype(np.int64),
    }


def _rebuild_imputer(made: Any, parameters: Tree, tree: Tree) -> Any:
    statistics = from_stored(tree["statistics"])
    _check_length(statistics, tree["features"], "statistics")
    imputer = made(**parameters)
    if tree["type"] not in ("object", *NUMBER_TYPES):
        raise ValueError(f"its imputer is of the type {tree['type']!r}")
    sample = np.empty((2, len(statistics)), tree["type"])
    sample[:] = statistics
    if tree["indicated"] is not None:
        indicated = stored_array(tree["indicated"], "indicated", "i", 1)
        sample[1, indicated] = imputer.missing_values
    made_of_sample = imputer.fit(sample).statistics_
    if made_of_sample.dtype != statistics.dtype or made_of_sample.shape != statistics.shape:
        raise ValueError("its statistics are not those of its strategy")
    imputer.statistics_ = statistics
    return imputer


# Encoders of categories.


def _write_encoder(encoder: Any) -> Tree:
    few = getattr(encoder, "infrequent_categories_", None)
    return {
        "categories": [as_stored(one, "categories_") for one in encoder.categories_],
        # Places of infrequent categories, where there can be some.
        "infrequent": None
        if few is None
        else [
            np.empty(0, np.int64) if rare is None else _places(rare, everything)
            for rare, everything in zip(few, encoder.categories_, strict=True)
        ],
    }


def _places(some: Array, everything: Array) -> Array:
    """Where the values of one array stand in another, as which any two NaN are equal."""
    place = {_key(one): at for at, one in enumerate(everything.tolist())}
    return np.array([place[_key(one)] for one in some.tolist()], np.int64)


def _key(value: Any) -> Any:
    return (value,) if value == value else None


def _rebuild_encoder(made: Any, parameters: Tree, tree: Tree) -> Any:
    categories = from_stored(tree["categories"])
    _check_length(categories, tree["features"], "categories")
    for one in categories:
        if not isinstance(one, np.ndarray) or one.ndim != 1 or not one.size:
            raise ValueError("its categories are not arrays")
    infrequent = tree["infrequent"]
    few = [np.empty(0, np.int64)] * len(categories) if infrequent is None else infrequent
    _check_length(few, len(categories), "infrequent categories")
    encoder = made(**parameters)
    unknown: Any = {"handle_unknown": "ignore"}
    if made.__name__ == "OrdinalEncoder":
        unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    # Frequent categories stand twice in the stand-in, infrequent ones never; the rest is unknown.
    frequent = [
        np.delete(all_of.astype(object), stored_array(rare, "infrequent", "i", 1)).tolist()
        for all_of, rare in zip(categories, few, strict=True)
    ]
    rows = max(1, 2 * max(map(len, frequent)))
    sample = np.full((rows, len(categories)), _Unknown(), object)
    for column, some in enumerate(frequent):
        sample[: 2 * len(some), column] = some * 2
    encoder.set_params(
        categories=[one.astype(object) for one in categories],
        **unknown,
        **({} if infrequent is None else {"min_frequency": 2, "max_categories": None}),
    )
    encoder.fit(sample)
    usual = made().get_params()
    changed = ("categories", "min_frequency", "max_categories", *unknown)
    encoder.set_params(**{key: parameters.get(key, usual[key]) for key in changed})
    encoder.categories_ = categories
    return encoder


class _Unknown(str):
    """A category that is none of those that were learned."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


# Texts.


def _write_vectorizer(vectorizer: Any) -> Tree:
    words = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
    idf = getattr(vectorizer, "idf_", None) if getattr(vectorizer, "use_idf", False) else None
    return {"vocabulary": words, "idf": None if idf is None else np.asarray(idf)}


def _rebuild_vectorizer(made: Any, parameters: Tree, tree: Tree) -> Any:
    words = tree["vocabulary"]
    if not isinstance(words, list) or not all(type(word) is str for word in words):
        raise ValueError("its vocabulary is not a list of texts")
    given = parameters.pop("vocabulary", None)
    vectorizer = made(**parameters, vocabulary={word: place for place, word in enumerate(words)})
    vectorizer.fit(["a stand-in text of a few words"])
    if len(vectorizer.vocabulary_) != len(words):
        raise ValueError("its vocabulary has a word twice")
    vectorizer.vocabulary, vectorizer.fixed_vocabulary_ = given, given is not None
    if tree["idf"] is not None:
        idf = stored_array(tree["idf"], "idf", "f", 1)
        if idf.shape != (len(words),) or not np.isfinite(idf).all():
            raise ValueError("its idf are not those of its vocabulary")
        vectorizer._tfidf.idf_ = idf
    return vectorizer


def _rebuild_hashing(made: Any, parameters: Tree, _: Tree) -> Any:
    return made(**parameters).fit(["a stand-in text of a few words"])


def _check_length(values: Any, count: Any, what: str) -> None:
    if not isinstance(values, list | np.ndarray) or len(values) != count:
        raise ValueError(f"its {what} are not one for each of {count} features")


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
    "QuantileTransformer": Kind(
        "preprocessing", {"quantiles_": "md", "references_": "m"}, ("n_quantiles_",)
    ),
    "TruncatedSVD": Kind("decomposition", _SVD),
    "PCA": Kind(
        "decomposition",
        {**_SVD, "mean_": "d"},
        ("n_components_", "n_samples_", "noise_variance_"),
    ),
    "SimpleImputer": Kind("impute", write=_write_imputer, rebuild=_rebuild_imputer),
    "OneHotEncoder": Kind("preprocessing", write=_write_encoder, rebuild=_rebuild_encoder),
    "OrdinalEncoder": Kind("preprocessing", write=_write_encoder, rebuild=_rebuild_encoder),
    "CountVectorizer": Kind(
        "feature_extraction.text", write=_write_vectorizer, rebuild=_rebuild_vectorizer
    ),
    "TfidfVectorizer": Kind(
        "feature_extraction.text", write=_write_vectorizer, rebuild=_rebuild_vectorizer
    ),
    "HashingVectorizer": Kind("feature_extraction.text", rebuild=_rebuild_hashing),
    "TfidfTransformer": Kind("feature_extraction.text", {"idf_": "d"}),
}
