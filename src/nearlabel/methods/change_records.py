"""Changes of a model as they are in a journal: what is needed to replay them, and no more."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from nearlabel.common.arrays import Array, Tree
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.validation import check_choice, check_same_length
from nearlabel.methods.changes import with_labels, with_rows, without_rows
from nearlabel.methods.fields import stored_tags
from nearlabel.methods.fitted_model import FittedModel
from nearlabel.methods.further_labels import FurtherLabels
from nearlabel.methods.model_trees import vector_tree, vectors_of

_Model = TypeVar("_Model", bound=FittedModel)


def change_record(change: str, before: FittedModel, after: FittedModel, places: Array) -> Tree:
    """The record of a change: "add", "forget" or "relabel" rows, which have or had these places."""
    store, names = after.items_.store, after.label_names_
    assert store is not None
    ids = store.ids[places]
    record = {"change": change, "ids": ids if ids.dtype.kind in "iu" else ids.tolist()}
    if change == "add":
        record["vectors"] = vector_tree(store.take(places))
    if change != "forget":
        q = before.items_.n_labels  # names of new labels are behind those of known ones
        record["labels"] = csr_tree(after.items_.labels[places], only_ones=True)
        record["names"] = None if names is None else names[q:].tolist()
    return record


def replayed(model: _Model, record: Tree) -> _Model:
    """The model after the change of a record; an error if the change is not valid."""
    change = check_choice(record["change"], "change", ("add", "forget", "relabel"))
    ids = record["ids"] if change == "add" else model.items_.checked_places(record["ids"])
    if change == "forget":
        return without_rows(model, ids)
    labels = _labels_of(model, record)
    m = labels.matrix.shape[0]
    if change == "add":
        return with_rows(model, vectors_of(record["vectors"], m), labels, ids)
    check_same_length(ids=len(ids), labels=m)
    return with_labels(model, ids, labels)


def _labels_of(model: FittedModel, record: Tree) -> FurtherLabels:
    matrix, names = csr_from(record["labels"], "labels"), model.label_names_
    known, q = model.items_.n_labels, matrix.shape[1]
    if record["labels"]["data"] is not None or q < known:
        raise ValueError("its labels must be a 0/1 matrix with a column per label")
    if isinstance(model.classes_, np.ndarray):
        if q != 1:
            raise ValueError("it must have exactly one label")
    elif names is not None:
        names = stored_tags([*names.tolist(), *record["names"]], q)
    elif record["names"] is not None:
        raise ValueError("its labels have names, but those of the model have none")
    return FurtherLabels(matrix, names)
