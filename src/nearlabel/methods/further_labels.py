"""Labels of later rows: in terms of the labels that a model knows, and new ones."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, LabelsLike, canonical_csr
from nearlabel.common.messages import first_twice, some
from nearlabel.common.tag_lists import Tags, stacked_rows, tag_array
from nearlabel.common.validation import (
    ArgumentError,
    LabelClasses,
    known_tags,
    label_classes,
    label_matrix,
    listed_names,
)
from nearlabel.methods.fitted_model import FittedModel


class FurtherLabels(NamedTuple):
    """Labels of some rows, and all labels including new ones.

    Attributes
    ----------
    matrix : csr_array of int8, shape (m, q)
        One column per label of the model, followed by one per new label.
    names : ndarray of shape (q,), or None
    classes : as `classes_` of an estimator
    """

    matrix: Csr
    names: Array | None
    classes: LabelClasses | Array


def further_labels(
    model: FittedModel, y: Any, names: npt.ArrayLike | None, separator: str | None
) -> FurtherLabels:
    """Read labels in any form that `fit` accepts; those that the model does not know come last.

    `names` are the names of the columns of y; by default the columns of a DataFrame.
    """
    known, classes, q = model.label_names_, model.classes_, model.items_.n_labels
    if isinstance(classes, np.ndarray):
        if np.ndim(y) == 1:
            y = _column_of_classes(y, classes)
        matrix = label_matrix(y, "y")
        if matrix.shape[1] != 1:
            raise ValueError(f"y must be 1-d, as in fit; got {matrix.shape[1]} columns")
        return FurtherLabels(matrix, known, classes)
    tags = known_tags(y, "y", known, separator or model._separator_of(y))
    if tags is not None:
        return _of_tags(tags, model, names)
    if known is None and names is not None:
        raise ValueError(
            "label_names: the labels of this model have no names; pass a 0/1 matrix with one "
            "column per label, and further columns for new labels"
        )
    y = stacked_rows(y)
    columns = getattr(y, "columns", None) if names is None else names
    matrix = label_matrix(y, "y")
    given = None if columns is None else [str(name) for name in listed_names(columns)]
    if given is not None and len(given) != matrix.shape[1]:
        raise ValueError(
            f"label_names must have one name per column, {matrix.shape[1]}; got {len(given)}"
        )
    if given is not None and names is None and _are_numbers(given):
        given = None  # columns without names
    if known is None or given is None:
        return _by_column(matrix, known, q, classes)
    twice = first_twice(given)
    if twice is not None:
        raise ValueError(f"label_names must be unique; got {twice!r} twice")
    place = model.items_.columns_of(known)
    if known.dtype.kind != "U":  # some tags are integers
        place = {str(name): column for name, column in place.items()}
    new = [name for name in given if name not in place]
    behind = {name: q + column for column, name in enumerate(new)}
    at = np.array([behind[name] if name in behind else place[name] for name in given], np.int32)
    entries = matrix.tocoo()
    ones, shape = np.ones(matrix.nnz, np.int8), (matrix.shape[0], q + len(new))
    matrix = canonical_csr(sparse.csr_array((ones, (entries.row, at[entries.col])), shape=shape))
    names_now = _joined(known, _alike(known, new))
    return FurtherLabels(matrix, names_now, _classes(classes, shape[1]))


def _alike(known: Array, new: list[str]) -> list[int | str]:
    """New names as integers, if the known tags are integers."""
    if not new or known.dtype.kind == "U" or any(isinstance(name, str) for name in known.tolist()):
        return [*new]
    return [int(name) if name.isdecimal() else name for name in new]


def check_same_classes(model: FittedModel, classes: npt.ArrayLike | None) -> None:
    """Raise an error if classes are not those of a fitted model; later labels may be omitted.

    Later labels are the last ones, so that the first names are the classes of the first call.
    """
    if classes is None:
        return
    has_two, given = isinstance(model.classes_, np.ndarray), np.asarray(classes, object).tolist()
    own = model.classes_ if has_two else model.label_names_
    first = [] if own is None else own.tolist() if has_two else own[: max(1, len(given))].tolist()
    if {*given} != {*first}:
        message = f"classes must be omitted or equal those of the first call; got {some(given)}"
        raise ArgumentError(message, "classes")


def as_one_item(y: Any, separator: str | None) -> Any:
    """The labels of a single item as those of a list of one item; anything else unchanged."""
    if isinstance(y, str):
        return [y] if separator is not None else [[y]]
    if isinstance(y, set | frozenset):
        return [y]
    if isinstance(y, list | tuple) and y and all(isinstance(tag, str) for tag in y):
        return y if separator is not None and len(y) == 1 else [[*y]]
    if not hasattr(y, "columns") and np.ndim(y) == 1 and np.asarray(y).dtype.kind in "biuf":
        return np.reshape(y, (1, -1))
    return y


def _by_column(matrix: Csr, known: Array | None, q: int, classes: LabelClasses) -> FurtherLabels:
    """Labels in the order of the columns."""
    width = matrix.shape[1]
    if width < q:
        raise ValueError(f"y must have at least {q} columns, one per label; got {width}")
    if known is not None and width > q:
        raise ValueError(
            f"y has {width - q} more columns than there are labels, which have names: pass "
            f"label_names with one name per column, {width}, or a DataFrame"
        )
    return FurtherLabels(matrix, known, _classes(classes, width))


def _are_numbers(columns: list[str]) -> bool:
    return all(name == str(column) for column, name in enumerate(columns))


def _of_tags(tags: Tags, model: FittedModel, names: npt.ArrayLike | None) -> FurtherLabels:
    known = model.label_names_
    if known is None:
        raise ValueError(
            "y contains tags, but the labels of this model have no names; pass a 0/1 matrix, as in "
            "fit"
        )
    place = model.items_.columns_of(known)
    listed = [] if names is None else tag_array(listed_names(names)).tolist()
    in_rows = tags.names().tolist() if any(tags.rows) else []
    new = [tag for tag in dict.fromkeys([*listed, *in_rows]) if tag not in place]
    q = len(known)
    behind = {tag: q + column for column, tag in enumerate(new)}
    matrix, _ = tags.matrix(ChainMap(behind, place), q + len(new))
    return FurtherLabels(matrix, _joined(known, new), _classes(model.classes_, q + len(new)))


def _joined(known: Array, new: Sequence[int | str]) -> Array:
    return tag_array([*known.tolist(), *new]) if new else known


def _classes(known: LabelClasses, q: int) -> LabelClasses:
    return known if len(known) == q else label_classes(q)


def _column_of_classes(y: LabelsLike, classes: Array) -> Array:
    """A 0/1 column of a 1-d y with the two classes of a model."""
    given = np.asarray(y)
    is_second = given == classes[1]
    odd = np.flatnonzero(~(is_second | (given == classes[0])))
    if odd.size:
        raise ValueError(
            f"y must contain only the classes {classes.tolist()}; got {given[odd].tolist()[0]!r}"
        )
    return np.asarray(is_second).reshape(-1, 1).astype(np.int8)
