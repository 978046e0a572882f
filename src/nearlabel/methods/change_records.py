"""Changes as trees of plain values and arrays, for the journal of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.validation import check_choice, check_same_length, label_classes
from nearlabel.methods import changes
from nearlabel.methods.fields import stored_tags
from nearlabel.methods.further_labels import FurtherLabels
from nearlabel.methods.model_trees import vector_tree, vectors_of

_CHANGES = ("add", "forget", "relabel")


def added(before: Any, after: Any) -> dict[str, Any]:
    """The rows that one state of a model has in addition to the previous one."""
    first, last = before._items.n_places, after._items.n_places
    store, places = after._items.store, np.arange(first, last)
    return {
        "change": "add",
        "vectors": vector_tree(store.take(places)),
        "ids": _plain(store.ids[places]),
        **_label_tree(before, after, places),
    }


def forgotten(before: Any, places: Array) -> dict[str, Any]:
    """Rows that were forgotten."""
    return {"change": "forget", "ids": _plain(before._items.ids(places))}


def relabelled(before: Any, after: Any, places: Array) -> dict[str, Any]:
    """Rows that got other labels."""
    ids = _plain(before._items.ids(places))
    return {"change": "relabel", "ids": ids, **_label_tree(before, after, places)}


def replayed(model: Any, tree: Mapping[str, Any]) -> Any:
    """The model after a change from a journal; an error if the change is not valid."""
    change = check_choice(tree["change"], "change", _CHANGES)
    ids = tree["ids"] if isinstance(tree["ids"], list) else np.asarray(tree["ids"])
    if change == "forget":
        return changes.forget(model, model._places_of(ids))
    labels = _labels(model, tree)
    if change == "relabel":
        places = model._places_of(ids)
        check_same_length(ids=len(places), labels=labels.matrix.shape[0])
        return changes.relabel(model, places, labels)
    vectors = vectors_of(tree["vectors"], labels.matrix.shape[0])
    return changes.add(model, vectors, labels, ids)


def _label_tree(before: Any, after: Any, places: Array) -> dict[str, Any]:
    """The labels of some rows, and the names of new labels."""
    q, names = before._items.labels.shape[1], after.label_names_
    labels = csr_tree(after._items.labels[places], only_ones=True)
    return {"labels": labels, "names": None if names is None else names[q:].tolist()}


def _labels(model: Any, tree: Mapping[str, Any]) -> FurtherLabels:
    matrix, names = csr_from(tree["labels"], "labels"), model.label_names_
    known, q = model._items.labels.shape[1], matrix.shape[1]
    if tree["labels"]["data"] is not None or q < known:
        raise ValueError("its labels must be a 0/1 matrix with a column per label")
    if isinstance(model.classes_, np.ndarray):
        if q != 1:
            raise ValueError("it must have exactly one label")
        return FurtherLabels(matrix, names, model.classes_)
    if names is not None:
        names = stored_tags([*names.tolist(), *tree["names"]], q)
    elif tree["names"] is not None:
        raise ValueError("its labels have names, but those of the model have none")
    return FurtherLabels(matrix, names, label_classes(q))


def _plain(ids: Array) -> Any:
    """Ids as stored in a tree."""
    return ids if ids.dtype.kind in "iu" else ids.tolist()
