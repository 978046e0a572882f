"""Fitted models as trees of plain values and arrays, and back: what a model file holds.

A tree has the model's parameters and what it keeps: labels, vectors and what the method learned.
Everything is checked on the way back, as if it came from a stranger: an index out of range would
crash the interpreter later.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.files import csr_from, csr_tree, write_tree
from nearlabel.common.messages import text_array
from nearlabel.common.validation import LabelClasses, all_finite, check_flag, check_integer
from nearlabel.common.versions import package_versions
from nearlabel.graph import Recall, stored_recall
from nearlabel.labels.counts import label_totals
from nearlabel.search import (
    ExactSearch,
    Index,
    InvertedLists,
    VectorStore,
    check_metric,
    check_search,
    is_precomputed,
)

_SEARCHES = {kind.__name__: kind for kind in (ExactSearch, InvertedLists)}
_CLASS_TYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_CLASS_TYPES += ["float16", "float32", "float64"]


class StoredModel:
    """A model that can be written to a file of `nearlabel.common.files`."""

    n_neighbors_: int
    classes_: LabelClasses | Array
    label_names_: Array | None
    n_features_in_: int
    feature_names_in_: Array
    search_recall_: Recall | None
    _sparse_output: bool
    _labels: Csr
    _by_label: Csr | None  # the same by columns, where something has asked for it
    _store: VectorStore | None
    _index: Index | None
    _metric: Any
    _search: Any

    @abstractmethod
    def _learned(self) -> Mapping[str, Any]:
        """What the method learned: a tree of plain values and arrays."""

    @abstractmethod
    def _recall(self, learned: Mapping[str, Any]) -> None:
        """Take up again what `_learned` gave; a ValueError or the like where it makes no sense."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file of arrays and JSON; `nearlabel.load` reads it.

        The file is complete or it is not there: it is written under another name first.

        Parameters
        ----------
        path : path of the file
        """
        write_tree(path, self._tree())

    def _tree(self) -> dict[str, Any]:
        check_is_fitted(self)
        if not type(self).__module__.startswith("nearlabel."):
            raise TypeError(
                f"a {type(self).__name__}, a class of yours, cannot be written to a file: "
                "nearlabel would not know it again (joblib or pickle keep any object)"
            )
        store, recall = self._store, self.search_recall_
        return {
            "class": type(self).__name__,
            "versions": package_versions(),
            "parameters": self._stored_parameters(),
            "neighbors": self.n_neighbors_,
            "metric": _plain("metric", self._metric),
            "search": _plain("search", self._search),
            "classes": _class_tree(self.classes_),
            "sparse_output": self._sparse_output,
            "label_names": None if self.label_names_ is None else self.label_names_.tolist(),
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist() or None,
            "labels": csr_tree(self._labels, only_ones=True),
            "vectors": None if store is None else _vector_tree(store.vectors),
            "ids": _ids_tree(store),
            **({} if recall is None else {"search_recall": asdict(recall)}),
            "learned": self._learned(),
        }

    def _stored_parameters(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {name: self._stored_parameter(name, value) for name, value in parameters.items()}

    def _stored_parameter(self, name: str, value: Any) -> Any:
        """A parameter as plain values and arrays."""
        return _plain(name, value)

    @classmethod
    def _parameter(cls, name: str, stored: Any) -> Any:  # noqa: ARG003
        """A parameter of what `_stored_parameter` gave."""
        return _object(stored)

    @classmethod
    def _from_tree(cls, tree: Mapping[str, Any], version: int) -> Self:
        """The model of a tree; a ValueError or the like where the tree makes no sense."""
        if version < 2:  # it kept the ids of all rows, of which none had a name then
            tree = {**tree, "ids": None}
        parameters = {
            name: cls._parameter(name, value) for name, value in tree["parameters"].items()
        }
        model = cls(**parameters)
        model._check_parameters()  # type: ignore[attr-defined]
        model._labels = csr_from(tree["labels"], "labels")
        n, q = model._labels.shape
        if tree["labels"]["data"] is not None or not (n > 1 and q > 0):
            raise ValueError("its labels are no 0/1 matrix")
        learned = tree["learned"].values()
        if q > max((part.size for part in learned if isinstance(part, np.ndarray)), default=0):
            raise ValueError("it has learned nothing of most of its labels")
        most = n if model._all_rows_allowed else n - 1  # type: ignore[attr-defined]
        model.n_neighbors_ = check_integer(tree["neighbors"], "neighbors", low=1, high=most)
        model._metric = check_metric(_object(tree["metric"]))
        model._search = _object(tree["search"])
        check_search(model._search)
        recall = tree.get("search_recall")  # files of exact searches, and older ones, have none
        model.search_recall_ = None if recall is None else stored_recall(recall)
        model.classes_ = _classes(tree["classes"], q)
        model._sparse_output = check_flag(tree["sparse_output"], "sparse_output")
        model.label_names_ = stored_names(tree["label_names"], q)
        model._store, model._index, model._by_label = None, None, None
        if tree["vectors"] is not None:
            vectors = _vectors(tree["vectors"], n)
            model._store = VectorStore(vectors, _ids(tree))
            model.n_features_in_ = vectors.shape[1]
            if is_precomputed(model._metric) and vectors.shape[0] != vectors.shape[1]:
                raise ValueError("its distances are not square")
            feature_names = stored_names(tree["feature_names"], vectors.shape[1])
            if feature_names is not None:
                model.feature_names_in_ = feature_names.astype(object)
        model._recall(tree["learned"])
        return model


def stored_array(tree: Mapping[str, Any], key: str, kinds: str, ndim: int) -> Array:
    """An array of a tree with the number of axes and the kind of numbers that are expected."""
    array = tree[key]
    if not isinstance(array, np.ndarray) or array.ndim != ndim or array.dtype.kind not in kinds:
        raise TypeError(f"its {key} are no array of {ndim} axes")
    return array


def stored_counts(tree: Mapping[str, Any], key: str) -> Array:
    """A 1-d array of a tree that holds whole numbers from 0 up."""
    counts = stored_array(tree, key, "i", 1)
    if counts.size and counts.min() < 0:
        raise ValueError(f"its {key} hold a negative number")
    return counts


def stored_totals(tree: Mapping[str, Any], labels: Csr) -> Array:
    """Numbers of rows that carry each label, of a tree that must have them as they are."""
    totals = stored_counts(tree, "totals")
    if not np.array_equal(totals, label_totals(labels)):
        raise ValueError("its totals are not those of its labels")
    return totals


def _plain(name: str, value: Any) -> Any:
    """A parameter as a value of JSON."""
    if type(value) in _SEARCHES.values():
        return {type(value).__name__: asdict(value)}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"{name}={value!r} cannot be written to a file: only numbers, texts and nearlabel's own "
        "search objects can (joblib or pickle keep any object)"
    )


def _object(value: Any) -> Any:
    """A parameter of a value of JSON."""
    if not isinstance(value, dict):
        return value
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
    vectors = stored_array(tree, "dense", "biuf", 2) if is_dense else csr_from(tree, "vectors")
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


def _ids(tree: Mapping[str, Any]) -> Any:
    ids = tree["ids"]
    return stored_array(tree, "ids", "iu", 1) if isinstance(ids, np.ndarray) else ids


def _class_tree(classes: LabelClasses | Array) -> Any:
    if isinstance(classes, LabelClasses):
        return None
    if classes.dtype.kind not in "biufU":
        raise TypeError(f"classes of type {classes.dtype} cannot be written to a file")
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


def stored_names(stored: Any, count: int) -> Array | None:
    """Names of a tree, or None where it has none."""
    if stored is None:
        return None
    if not isinstance(stored, list) or len(stored) != count:
        raise ValueError(f"its names are not {count} texts")
    return text_array(stored)
