"""Fitted models as trees of plain values and arrays, for model files, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Matrix, Tree
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.mapped_arrays import MappedArray, checked_tree
from nearlabel.common.tag_lists import TagForm
from nearlabel.common.validation import LabelClasses, all_finite, check_flag, check_integer
from nearlabel.common.versions import package_versions
from nearlabel.graph import NeighborGraph, stored_recall
from nearlabel.methods.changes import compacted
from nearlabel.methods.fields import stored_array, stored_names, stored_tags
from nearlabel.methods.fitted_model import FittedModel, History, uses_vectors
from nearlabel.methods.items import Items
from nearlabel.methods.label_forms import LabelForm, LabelForms
from nearlabel.methods.registry import METHODS, method
from nearlabel.search import (
    ExactSearch,
    InvertedLists,
    ListIndex,
    VectorStore,
    check_metric,
    check_search,
    is_precomputed,
)

_Model = TypeVar("_Model", bound=FittedModel)
_SEARCHES = {kind.__name__: kind for kind in (ExactSearch, InvertedLists)}
_MAPPED = ("vectors", "kept")  # parts of a file that may stay on disk, checked on access
_CLASS_TYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_CLASS_TYPES += ["float16", "float32", "float64"]


def learned_tree(model: FittedModel) -> Tree:
    """What a method has learned, as its fields write it."""
    # The totals follow from the labels. They are a check: a small file cannot declare many labels.
    learned: Tree = {"totals": model.items_.totals}
    for field in (*model.settings, *model.stored):
        field.write(model, learned)
    return learned


def read_learned(model: FittedModel, learned: Tree) -> None:
    """Restore the result of `learned_tree`, and prepare the model."""
    store = model.items_.store
    if uses_vectors(model) and (store is None or is_precomputed(model.items_.metric)):
        raise ValueError("it has no vectors, but its method needs them")
    n, q = model.items_.labels.shape
    sizes = {"n": n, "q": q} if store is None else {"n": n, "q": q, "d": store.vectors.shape[1]}
    if "totals" in learned:  # older files of some methods lack it
        totals = stored_array(learned["totals"], "totals", "i", 1)
        if not np.array_equal(totals, model.items_.totals):
            raise ValueError("its totals do not match its labels")
    for field in (*model.settings, *model.stored):
        field.read(model, learned, sizes)
    model._prepare()


def model_tree(model: FittedModel) -> Tree:
    """A fitted model as a tree."""
    if not type(model).__module__.startswith("nearlabel."):
        raise custom_class(model)
    index = model.items_.index
    lists = None if index is None else index.stored()
    if model.items_.grown is not None or model.items_.alive is not None:
        model = compacted(model)  # without forgotten rows, and with contiguous rows
    items, recall = model.items_, model.search_recall_
    known = items.known_neighbors(min(model.n_neighbors_, len(items) - 1))
    return {
        "class": type(model).__name__,
        "versions": package_versions(),
        "parameters": parameter_tree(model),
        "neighbors": model.n_neighbors_,
        "asked": items.asked,
        "history": asdict(model.history_),
        "metric": _plain("metric", items.metric),
        "search": _plain("search", items.search),
        **form_tree(model),
        "labels": csr_tree(items.labels, only_ones=True),
        **_store_tree(items, lists),
        "kept": None if known is None else {"places": known.indices, "distances": known.distances},
        **({} if recall is None else {"search_recall": asdict(recall)}),
        "learned": learned_tree(model),
    }


def _store_tree(items: Items, lists: tuple[Tree, Matrix] | None) -> Tree:
    """The vectors, in the order of the inverted lists if there are any, and the ids."""
    store = items.store
    if store is None:
        return dict.fromkeys(("vectors", "lists", "ids", "next_id"))
    ids: object = None  # just the rows' numbers
    if not np.array_equal(store.ids, np.arange(len(store))):
        ids = store.ids if store.ids.dtype.kind in "iu" else store.ids.tolist()
    tree, vectors = lists or (None, items.vectors)
    return {"vectors": vector_tree(vectors), "lists": tree, "ids": ids, "next_id": store.next_id}


def model_from(model: _Model, tree: Tree, version: int) -> _Model:
    """An unfitted model with what a tree says of it; a ValueError or the like if it is not valid.

    The parameters of the model are those of the tree, checked.
    """
    tree = {key: part if key in _MAPPED else checked_tree(part) for key, part in tree.items()}
    if version < 2:  # it stored the ids of all rows, which were always their numbers
        tree = {**tree, "ids": None}
    labels = csr_from(tree["labels"], "labels")
    n, q = labels.shape
    if tree["labels"]["data"] is not None or not (n > 1 and q > 0):
        raise ValueError("its labels must be a 0/1 matrix")
    learned = tree["learned"].values()
    if q > max((part.size for part in learned if isinstance(part, np.ndarray)), default=0):
        raise ValueError("it has learned nothing about most of its labels")
    most = n if model.needs.all_rows else n - 1
    model.n_neighbors_ = check_integer(tree["neighbors"], "neighbors", low=1, high=most)
    recall = tree.get("search_recall")  # absent for exact searches and in older files
    model.search_recall_ = None if recall is None else stored_recall(recall)
    read_form(model, tree, q)
    metric, search = check_metric(_object(tree["metric"])), _object(tree["search"])
    check_search(search)
    model.items_ = items = Items(labels, metric, search, None)
    items.asked = tree.get("asked", model.n_neighbors)
    if items.asked is not None or not model.needs.all_rows:
        check_integer(items.asked, "asked", low=1)
    history = tree.get("history", {})
    model.history_ = History(**{key: check_integer(history[key], key, low=0) for key in history})
    if tree["vectors"] is not None:
        vectors = vectors_of(tree["vectors"], n)
        if tree.get("lists") is not None:  # the rows are in the order of the lists
            items.index = ListIndex.from_tree(tree["lists"], vectors, str(metric))
            vectors = items.index.vectors
        next_id = tree.get("next_id")
        if next_id is not None:
            check_integer(next_id, "next_id", low=0, high=2**62)
        ids = tree["ids"]
        if isinstance(ids, np.ndarray):
            stored_array(ids, "ids", "iu", 1)
        items.store = VectorStore(vectors, ids, next_id=next_id)
        if tree.get("kept") is not None:
            items.graph = _neighbors_from(tree["kept"], min(model.n_neighbors_, n - 1), n)
        if is_precomputed(metric) and vectors.shape[0] != vectors.shape[1]:
            raise ValueError("its distances must be a square matrix")
        read_features(model, tree, vectors.shape[1])
    read_learned(model, tree["learned"])
    return model


def unfitted_from(kind: Any, parameters: Mapping[str, object]) -> Any:
    """A model with the parameters of a tree, checked."""
    values = checked_tree(parameters)
    model = kind(**{name: _object(value) for name, value in values.items()})
    model.check_parameters()
    return model


def form_tree(model: LabelForms) -> Tree:
    """The form in which the labels and features of a fitted model were given."""
    form = model._form
    return {
        "classes": _class_tree(model.classes_),
        "sparse_output": form.is_sparse,
        **({} if form.tags is None else {"tags": form.tags.tree()}),
        "label_names": None if model.label_names_ is None else model.label_names_.tolist(),
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist() or None,
    }


def read_form(model: LabelForms, tree: Mapping[str, Any], q: int) -> None:
    """Restore the classes and names of q labels, and the form in which they were given."""
    model.classes_ = _classes(tree["classes"], q)
    tags = TagForm.of_tree(tree["tags"]) if "tags" in tree else None
    model.label_names_ = (stored_names if tags is None else stored_tags)(tree["label_names"], q)
    model._form = LabelForm(check_flag(tree["sparse_output"], "sparse_output"), tags)


def read_features(model: Any, tree: Mapping[str, Any], d: int) -> None:
    """Restore the number of features, and their names if any."""
    model.n_features_in_ = d
    names = stored_names(tree["feature_names"], d)
    if names is not None:
        model.feature_names_in_ = names.astype(object)


def custom_class(model: object) -> TypeError:
    """The error about a class that cannot be saved."""
    return TypeError(
        f"cannot save the custom class {type(model).__name__}: model files support nearlabel's own "
        "estimators (joblib or pickle can save any object)"
    )


def parameter_tree(model: Any) -> Tree:
    """The parameters of a model as plain values and arrays."""
    parameters = model.get_params(deep=False)
    return {name: _plain(name, value) for name, value in parameters.items()}


def _plain(name: str, value: Any) -> Any:
    """A parameter as a JSON value, an array, or the tree of an estimator."""
    if type(value) in _SEARCHES.values():
        return {type(value).__name__: asdict(value)}
    if name == "readings" and value is not None:
        return {"estimators": [_plain("estimator", reading) for reading in value]}
    if name == "estimator":
        if type(value).__name__ not in METHODS or method(type(value).__name__) is not type(value):
            raise custom_class(value)
        return {"class": type(value).__name__, "parameters": parameter_tree(value)}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value)
        return array if array.dtype == bool else array.astype(np.float64)  # a mask stays a mask
    raise TypeError(
        f"{name}={value!r} cannot be saved: model files support numbers, strings, arrays and "
        "nearlabel's own search objects (joblib or pickle can save any object)"
    )


def _object(value: Any) -> Any:
    """A parameter from the result of `_plain`."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"class", "parameters"}:
        parameters = {key: _object(parameter) for key, parameter in value["parameters"].items()}
        return method(value["class"])(**parameters)
    ((name, parameters),) = value.items()
    if name == "estimators":
        return [_object(reading) for reading in parameters]
    if name not in _SEARCHES:
        raise ValueError(f"its search {name!r} is unknown")
    search = _SEARCHES[name](**parameters)
    search.build(np.zeros((2, 1)))  # checks its parameters
    return search


def vector_tree(vectors: Matrix) -> Tree:
    """Vectors as a tree."""
    return csr_tree(vectors) if sparse.issparse(vectors) else {"dense": vectors}


def vectors_of(tree: Tree, n: int) -> Matrix:
    """The vectors of a tree, of n rows."""
    is_dense = "dense" in tree
    vectors = (
        stored_array(tree["dense"], "vectors", "biuf", 2)
        if is_dense
        else csr_from(checked_tree(tree), "vectors")
    )
    if vectors.shape[0] != n or not vectors.shape[1]:
        raise ValueError(f"its vectors have shape {vectors.shape}, but its labels {n} rows")
    values: Any = vectors if is_dense else vectors.data
    # Mapped vectors stay on disk: their checksums are compared on access.
    if not isinstance(values, MappedArray) and not all_finite(values):
        raise ValueError("its vectors must be finite")
    return vectors


def _neighbors_from(tree: Tree, k: int, n: int) -> NeighborGraph:
    """The neighbors of a tree; those of a mapped file are checked when a change needs them.

    Files of version 1.0 have spare neighbors behind the first k.
    """
    places = stored_array(tree["places"], "kept neighbors", "i", 2)
    distances = stored_array(tree["distances"], "kept distances", "f", 2)
    if places.shape != distances.shape or len(places) != n or places.shape[1] < k:
        raise ValueError(f"its kept neighbors must have {n} rows and at least {k} columns")
    if places.dtype != np.int32 or distances.dtype not in (np.float32, np.float64):
        raise TypeError("its kept neighbors have unexpected types")
    return NeighborGraph.unchecked(places, distances, n)


def _class_tree(classes: LabelClasses | Array) -> list[object] | None:
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
        raise ValueError("its classes have the wrong type")
    with np.errstate(all="ignore"):
        classes = np.array(values, dtype=name)
    if classes.shape != (2,) or q != 1 or classes.tolist() != values or not values[0] < values[1]:
        raise ValueError("its classes must be two, in sorted order")
    return classes
