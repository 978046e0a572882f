"""Changes as trees of plain values and arrays, for the journal of a model file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Tree
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.validation import check_choice, label_classes
from nearlabel.methods.fields import stored_tags
from nearlabel.methods.fitted_model import FittedModel
from nearlabel.methods.further_labels import FurtherLabels
from nearlabel.methods.model_trees import vector_tree


def added(before: FittedModel, after: FittedModel) -> Tree:
    """The rows that one state of a model has in addition to the previous one."""
    first, last = before.items_.n_places, after.items_.n_places
    store, places = after.items_.store, np.arange(first, last)
    assert store is not None
    return {
        "change": "add",
        "vectors": vector_tree(store.take(places)),
        "ids": _plain(store.ids[places]),
        **_label_tree(before, after, places),
    }


def forgotten(before: FittedModel, places: Array) -> Tree:
    """Rows that were forgotten."""
    return {"change": "forget", "ids": _plain(before.items_.ids(places))}


def relabelled(before: FittedModel, after: FittedModel, places: Array) -> Tree:
    """Rows that got other labels."""
    ids = _plain(before.items_.ids(places))
    return {"change": "relabel", "ids": ids, **_label_tree(before, after, places)}


def kind_and_ids(record: Tree) -> tuple[str, Any]:
    """What a record of a journal says was done, "add", "forget" or "relabel", and to which rows."""
    ids = record["ids"]
    change: str = check_choice(record["change"], "change", ("add", "forget", "relabel"))
    return change, ids if isinstance(ids, list) else np.asarray(ids)


def _label_tree(before: FittedModel, after: FittedModel, places: Array) -> Tree:
    """The labels of some rows, and the names of new labels."""
    q, names = before.items_.labels.shape[1], after.label_names_
    labels = csr_tree(after.items_.labels[places], only_ones=True)
    return {"labels": labels, "names": None if names is None else names[q:].tolist()}


def labels_of(model: FittedModel, tree: Tree) -> FurtherLabels:
    """The labels of the rows of a record."""
    matrix, names = csr_from(tree["labels"], "labels"), model.label_names_
    known, q = model.items_.labels.shape[1], matrix.shape[1]
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


def _plain(ids: Array) -> Array | list[str]:
    """Ids as stored in a tree."""
    return ids if ids.dtype.kind in "iu" else ids.tolist()
