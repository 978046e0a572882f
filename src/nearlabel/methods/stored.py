"""Fitted models as trees of plain values and arrays, and back: what a model file holds.

A method declares what it learns as `Field` objects, each with its name in files, its attribute and
what values are possible. Saving, loading and checking follow from that. Everything is checked on
the way back, as if it came from a stranger: a wrong index would crash the interpreter later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.messages import text_array
from nearlabel.common.validation import (
    LabelClasses,
    Labels,
    all_finite,
    check_choice,
    check_flag,
    check_integer,
    check_real,
)
from nearlabel.common.versions import package_versions
from nearlabel.graph import stored_recall
from nearlabel.labels.histograms import LabelHistograms
from nearlabel.methods.items import Items
from nearlabel.methods.needs import needs_vectors
from nearlabel.methods.registry import METHODS, method
from nearlabel.search import (
    ExactSearch,
    InvertedLists,
    VectorStore,
    check_metric,
    check_search,
    is_precomputed,
)

_SEARCHES = {kind.__name__: kind for kind in (ExactSearch, InvertedLists)}
_CLASS_TYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_CLASS_TYPES += ["float16", "float32", "float64"]
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Field(ABC):
    """Something that a method learns: its key in files and its attribute."""

    key: str
    attribute: str

    @abstractmethod
    def write(self, model: Any, learned: dict[str, Any]) -> None:
        """Add the value to what the model has learned, a tree of plain values and arrays."""

    @abstractmethod
    def read(self, model: Any, learned: Mapping[str, Any], sizes: dict[str, int]) -> None:
        """Set the attribute from a tree; a ValueError or the like where it makes no sense.

        `sizes` has the numbers of rows, labels and features as n, q and d.
        """


@dataclass(frozen=True)
class Value(Field):
    """A value that is checked by itself, as a parameter and when a file is read."""

    @abstractmethod
    def check(self, value: Any, sizes: dict[str, int] | None = None) -> Any:
        """The value as it is kept; an error that names the key where it cannot be."""

    def write(self, model: Any, learned: dict[str, Any]) -> None:
        learned[self.key] = getattr(model, self.attribute)

    def read(self, model: Any, learned: Mapping[str, Any], sizes: dict[str, int]) -> None:
        setattr(model, self.attribute, self.check(learned[self.key], sizes))


@dataclass(frozen=True)
class Real(Value):
    """A finite number; `absent`, if given, is one that JSON does not have and stands as null."""

    low: float = -_LARGEST
    high: float = _LARGEST
    absent: float | None = None

    def write(self, model: Any, learned: dict[str, Any]) -> None:
        value = float(getattr(model, self.attribute))
        learned[self.key] = value if np.isfinite(value) else None

    def check(self, value: Any, sizes: dict[str, int] | None = None) -> float:
        if value is None and self.absent is not None:
            return self.absent
        return check_real(value, self.key, low=self.low, high=self.high)


@dataclass(frozen=True)
class Integer(Value):
    """A whole number from `low` up, to the number of rows where it has `at_most_rows`."""

    low: int = 0
    at_most_rows: bool = False

    def check(self, value: Any, sizes: dict[str, int] | None = None) -> int:
        high = sizes["n"] if sizes and self.at_most_rows else None
        return check_integer(value, self.key, low=self.low, high=high)


@dataclass(frozen=True)
class Choice(Value):
    """One of several words, or None where that is among them."""

    choices: tuple[str | None, ...] = ()

    def check(self, value: Any, sizes: dict[str, int] | None = None) -> Any:
        if None not in self.choices:
            return check_choice(value, self.key, self.choices)
        words = [word for word in self.choices if word is not None]
        return None if value is None else check_choice(value, f"{self.key} (or None)", words)


@dataclass(frozen=True)
class Reals(Value):
    """An array of floats between bounds.

    Its shape is in letters: n rows, q labels, d features; another letter stands for the size that
    it has where it first occurs. Where `optional` names a key and the file does not have that, the
    array is None. The file has the transposed array where `transposed`.
    """

    shape: str = "q"
    low: float = -_LARGEST
    high: float = _LARGEST
    nan: bool = False
    optional: str = ""
    transposed: bool = False

    def write(self, model: Any, learned: dict[str, Any]) -> None:
        array = getattr(model, self.attribute)
        if array is not None:
            learned[self.key] = array.T if self.transposed else array

    def read(self, model: Any, learned: Mapping[str, Any], sizes: dict[str, int]) -> None:
        if self.optional and self.optional not in learned:
            setattr(model, self.attribute, None)
            return
        super().read(model, learned, sizes)

    def check(self, value: Any, sizes: dict[str, int] | None = None) -> Array:
        sizes = {} if sizes is None else sizes
        array = stored_array(value, self.key, "f", len(self.shape))
        array = array.T if self.transposed else array
        _check_shape(array, self.key, self.shape, sizes)
        inside = (array >= self.low) & (array <= self.high)
        if not np.all(inside | np.isnan(array) if self.nan else inside):
            raise ValueError(f"its {self.key} hold a number that cannot be")
        return array


@dataclass(frozen=True)
class Numbers(Value):
    """An array of whole numbers, each below the size that a letter stands for."""

    shape: str = "n"
    below: str = "m"

    def check(self, value: Any, sizes: dict[str, int] | None = None) -> Array:
        sizes = {} if sizes is None else sizes
        array = stored_array(value, self.key, "i", len(self.shape))
        _check_shape(array, self.key, self.shape, sizes)
        if array.size and not 0 <= array.min() <= array.max() < sizes[self.below]:
            raise ValueError(f"its {self.key} are not numbers below {sizes[self.below]}")
        return array


@dataclass(frozen=True)
class Histograms(Field):
    """Counts of rows by label and number of neighbors: a table, or one per cluster.

    `clusters` is the attribute with the cluster of each row, from 0 up; none for one table.
    """

    key: str = "with_label"
    attribute: str = "_counted"
    clusters: str | None = None

    def write(self, model: Any, learned: dict[str, Any]) -> None:
        counted = getattr(model, self.attribute)
        learned["with_label"] = counted.with_label
        learned["without_label"] = counted.without_label

    def read(self, model: Any, learned: Mapping[str, Any], sizes: dict[str, int]) -> None:
        cells = [stored_array(learned[key], key, "i", 1) for key in ("with_label", "without_label")]
        if any(some.size and some.min() < 0 for some in cells):
            raise ValueError("its counts hold a negative number")
        Y, k = model._items.labels, min(model.n_neighbors_, sizes["n"] - 1)
        members: list[Array | None] = [None]
        if self.clusters is not None:
            cluster = getattr(model, self.clusters)
            members = [np.flatnonzero(cluster == g) for g in range(sizes["m"])]
        if any(len(some) % len(members) for some in cells):
            raise ValueError("its tables are not of one size")
        parts = zip(*(np.split(some, len(members)) for some in cells), strict=True)
        tables = [
            LabelHistograms.of_cells(Y, k, *part, rows=rows)
            for part, rows in zip(parts, members, strict=True)
        ]
        stacked = tables[0] if self.clusters is None else LabelHistograms.stacked(tables)
        setattr(model, self.attribute, stacked)


@dataclass(frozen=True)
class NeighborCounts(Field):
    """How many neighbors of each training row carry each label, a sparse matrix."""

    key: str = "counts"
    attribute: str = "_counts"

    def write(self, model: Any, learned: dict[str, Any]) -> None:
        learned[self.key] = csr_tree(getattr(model, self.attribute))

    def read(self, model: Any, learned: Mapping[str, Any], sizes: dict[str, int]) -> None:
        counts = csr_from(learned[self.key], self.key)
        if counts.shape != (sizes["n"], sizes["q"]):
            raise ValueError("its counts are of other labels")
        most = np.minimum(model._items.totals, model.n_neighbors_)
        wrong = (counts.data < 1) | (counts.data > most[counts.indices])
        if counts.dtype.kind != "i" or np.any(wrong):
            raise ValueError("its counts are not those of neighbors")
        setattr(model, self.attribute, counts.astype(np.int32))


def check_declared(kind: type) -> None:
    """Refuse a method that learns and does not say what: its files would lack it."""
    if "_learn" in vars(kind) and "stored" not in vars(kind):
        raise TypeError(
            f"{kind.__name__} defines _learn, so it must declare what it learns: stored = (…), "
            "with fields of nearlabel.methods.stored"
        )


def keep_settings(model: Any) -> None:
    """Keep the settings of a model as they are, whatever its parameters become after the fit."""
    for setting in model.settings:
        setattr(model, setting.attribute, setting.check(getattr(model, setting.key)))


def check_learned(model: Any, before: set[str]) -> None:
    """Refuse attributes that `_learn` has set and `stored` does not declare, and the reverse."""
    declared = {field.attribute for field in model.stored}
    wrong = (vars(model).keys() - before - declared) | (declared - vars(model).keys())
    if wrong:
        raise TypeError(
            f"{type(model).__name__}: _learn must set what stored declares, and nothing else; "
            f"they differ in {', '.join(sorted(wrong))}"
        )


def learned_tree(model: Any) -> dict[str, Any]:
    """What a method has learned, as its fields write it."""
    # The totals are known from the labels. They are a check: a small file cannot name many labels.
    learned: dict[str, Any] = {"totals": model._items.totals}
    for field in (*model.settings, *model.stored):
        field.write(model, learned)
    return learned


def read_learned(model: Any, learned: Mapping[str, Any]) -> None:
    """Take up again what `learned_tree` gave, and prepare the model."""
    store = model._items.store
    if needs_vectors(model) and (store is None or is_precomputed(model._items.metric)):
        raise ValueError("it has no vectors, which its method needs")
    n, q = model._items.labels.shape
    sizes = {"n": n, "q": q} if store is None else {"n": n, "q": q, "d": store.vectors.shape[1]}
    if "totals" in learned:  # which older files of some methods do not have
        totals = stored_array(learned["totals"], "totals", "i", 1)
        if not np.array_equal(totals, model._items.totals):
            raise ValueError("its totals are not those of its labels")
    for field in (*model.settings, *model.stored):
        field.read(model, learned, sizes)
    model._prepare()


def model_tree(model: Any) -> dict[str, Any]:
    """A fitted model as a tree."""
    if not type(model).__module__.startswith("nearlabel."):
        raise _custom_class(model)
    items, recall = model._items, model.search_recall_
    return {
        "class": type(model).__name__,
        "versions": package_versions(),
        "parameters": _parameter_tree(model),
        "neighbors": model.n_neighbors_,
        "metric": _plain("metric", items.metric),
        "search": _plain("search", items.search),
        "classes": _class_tree(model.classes_),
        "sparse_output": items.given.sparse,
        "label_names": None if model.label_names_ is None else model.label_names_.tolist(),
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist() or None,
        "labels": csr_tree(items.labels, only_ones=True),
        "vectors": None if items.store is None else _vector_tree(items.vectors),
        "ids": _ids_tree(items.store),
        **({} if recall is None else {"search_recall": asdict(recall)}),
        "learned": learned_tree(model),
    }


def model_from(kind: Any, tree: Mapping[str, Any], version: int) -> Any:
    """The model of a tree; a ValueError or the like where the tree makes no sense."""
    if version < 2:  # it kept the ids of all rows, of which none had a name then
        tree = {**tree, "ids": None}
    model = kind(**{name: _object(value) for name, value in tree["parameters"].items()})
    model.check_parameters()
    labels = csr_from(tree["labels"], "labels")
    n, q = labels.shape
    if tree["labels"]["data"] is not None or not (n > 1 and q > 0):
        raise ValueError("its labels are no 0/1 matrix")
    learned = tree["learned"].values()
    if q > max((part.size for part in learned if isinstance(part, np.ndarray)), default=0):
        raise ValueError("it has learned nothing of most of its labels")
    most = n if model.needs.all_rows else n - 1
    model.n_neighbors_ = check_integer(tree["neighbors"], "neighbors", low=1, high=most)
    recall = tree.get("search_recall")  # files of exact searches, and older ones, have none
    model.search_recall_ = None if recall is None else stored_recall(recall)
    model.classes_ = _classes(tree["classes"], q)
    model.label_names_ = stored_names(tree["label_names"], q)
    is_sparse = check_flag(tree["sparse_output"], "sparse_output")
    given = Labels(labels, model.classes_, model.label_names_, is_sparse)
    metric, search = check_metric(_object(tree["metric"])), _object(tree["search"])
    check_search(search)
    model._items = Items(given, metric, search, None)
    if tree["vectors"] is not None:
        vectors = _vectors(tree["vectors"], n)
        model._items.store = VectorStore(vectors, _ids(tree["ids"]))
        model.n_features_in_ = vectors.shape[1]
        if is_precomputed(metric) and vectors.shape[0] != vectors.shape[1]:
            raise ValueError("its distances are not square")
        feature_names = stored_names(tree["feature_names"], vectors.shape[1])
        if feature_names is not None:
            model.feature_names_in_ = feature_names.astype(object)
    read_learned(model, tree["learned"])
    return model


def stored_array(array: Any, key: str, kinds: str, ndim: int) -> Array:
    """An array of a tree with the number of axes and the kind of numbers that are expected."""
    if not isinstance(array, np.ndarray) or array.ndim != ndim or array.dtype.kind not in kinds:
        raise TypeError(f"its {key} must be a {ndim}-d array of numbers")
    return array


def stored_names(stored: Any, count: int) -> Array | None:
    """Names of a tree, or None where it has none."""
    if stored is None:
        return None
    if not isinstance(stored, list) or len(stored) != count:
        raise ValueError(f"its names are not {count} texts")
    return text_array(stored)


def _check_shape(array: Array, key: str, shape: str, sizes: dict[str, int]) -> None:
    for letter, size in zip(shape, array.shape, strict=True):
        if letter in "nqd" and letter not in sizes:
            raise ValueError(f"it has {key}, and no vectors")
        if size != sizes.setdefault(letter, size) or not size:
            raise ValueError(f"its {key} do not fit its labels and vectors")


def _custom_class(model: Any) -> TypeError:
    return TypeError(
        f"cannot save the custom class {type(model).__name__}: a file keeps nearlabel's own "
        "estimators (joblib or pickle keep any object)"
    )


def _parameter_tree(model: Any) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    return {name: _plain(name, value) for name, value in parameters.items()}


def _plain(name: str, value: Any) -> Any:
    """A parameter as a value of JSON, an array, or an estimator in parts."""
    if type(value) in _SEARCHES.values():
        return {type(value).__name__: asdict(value)}
    if name == "estimator":
        if type(value).__name__ not in METHODS or method(type(value).__name__) is not type(value):
            raise _custom_class(value)
        return {"class": type(value).__name__, "parameters": _parameter_tree(value)}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray | list | tuple):
        return np.asarray(value, np.float64)
    raise TypeError(
        f"{name}={value!r} cannot be saved: a file keeps numbers, texts, arrays and nearlabel's "
        "own search objects (joblib or pickle keep any object)"
    )


def _object(value: Any) -> Any:
    """A parameter of what `_plain` gave."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"class", "parameters"}:
        parameters = {name: _object(one) for name, one in value["parameters"].items()}
        return method(value["class"])(**parameters)
    ((name, parameters),) = value.items()
    if name not in _SEARCHES:
        raise ValueError(f"its search {name!r} is unknown")
    search = _SEARCHES[name](**parameters)
    search.build(np.zeros((2, 1)))  # where searches check their parameters
    return search


def _vector_tree(vectors: Any) -> dict[str, Any]:
    return csr_tree(vectors) if sparse.issparse(vectors) else {"dense": vectors}


def _vectors(tree: Mapping[str, Any], n: int) -> Any:
    is_dense = "dense" in tree
    vectors = (
        stored_array(tree["dense"], "vectors", "biuf", 2) if is_dense else csr_from(tree, "vectors")
    )
    if vectors.shape[0] != n or not vectors.shape[1]:
        raise ValueError(f"its vectors have the shape {vectors.shape}, its labels {n} rows")
    values: Any = vectors if is_dense else vectors.data
    # A mapped file is left on the disk: its checksum has said that it is as it was written.
    if not isinstance(values, np.memmap) and not all_finite(values):
        raise ValueError("its vectors hold a number that is not finite")
    return vectors


def _ids_tree(store: VectorStore | None) -> Any:
    """Ids of rows, where they are not just the rows' numbers."""
    if store is None or np.array_equal(store.ids, np.arange(len(store))):
        return None
    return store.ids if store.ids.dtype.kind in "iu" else store.ids.tolist()


def _ids(ids: Any) -> Any:
    return stored_array(ids, "ids", "iu", 1) if isinstance(ids, np.ndarray) else ids


def _class_tree(classes: LabelClasses | Array) -> Any:
    if isinstance(classes, LabelClasses):
        return None
    if classes.dtype.kind not in "biufU":
        raise TypeError(f"classes of type {classes.dtype} cannot be saved")
    return ["U" if classes.dtype.kind == "U" else classes.dtype.name, classes.tolist()]


def _classes(stored: Any, q: int) -> LabelClasses | Array:
    if stored is None:
        return LabelClasses([np.array([0, 1])] * q)
    name, values = stored
    types = {"U": str, "bool": bool}
    wanted = types.get(name, float if name.startswith("float") else int)
    if not all(type(value) is wanted for value in values) or name not in (*types, *_CLASS_TYPES):
        raise ValueError("its classes are of another type")
    with np.errstate(all="ignore"):
        classes = np.array(values, dtype=name)
    if classes.shape != (2,) or q != 1 or classes.tolist() != values or not values[0] < values[1]:
        raise ValueError("its classes are not two, in order")
    return classes
