"""Labels of later rows: in terms of the labels that a model knows, and new ones."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, canonical_csr
from nearlabel.common.messages import first_twice, some
from nearlabel.common.tag_lists import Tag, stacked_rows, tag_array
from nearlabel.common.validation import ArgumentError, known_tags, label_matrix, listed_names
from nearlabel.methods.fitted_model import FittedModel


class FurtherLabels(NamedTuple):
    """Labels of some rows, and the names of all labels.

    Attributes
    ----------
    matrix : csr_array of int8, shape (m, q)
        One column per label of the model, followed by one per new label.
    names : ndarray of shape (q,), or None
    """

    matrix: Csr
    names: Array | None


def further_labels(
    model: FittedModel, y: Any, names: npt.ArrayLike | None, separator: str | None
) -> FurtherLabels:
    """Read labels in any form that `fit` accepts; those that the model does not know come last.

    `names` are the names of the columns of y; by default the columns of a DataFrame.
    """
    known, classes = model.label_names_, model.classes_
    if isinstance(classes, np.ndarray):
        if np.ndim(y) == 1:
            given, two = np.asarray(y), classes.tolist()
            y = np.asarray(given == classes[1]).reshape(-1, 1)
            odd = given[~y[:, 0] & (given != classes[0])]
            if odd.size:
                raise ValueError(f"y must contain only the classes {two}; got {odd.tolist()[0]!r}")
        matrix = label_matrix(y, "y")
        if matrix.shape[1] != 1:
            raise ValueError(f"y must be 1-d, as in fit; got {matrix.shape[1]} columns")
        return FurtherLabels(matrix, known)
    tags = known_tags(y, "y", known, separator or model._separator_of(y))
    if known is None and not (tags is None and names is None):
        what = "label_names:" if tags is None else "y contains tags, but"
        raise ValueError(
            f"{what} the labels of this model have no names; pass a 0/1 matrix with one column per "
            "label, and further columns for new labels"
        )
    if tags is not None:
        assert known is not None
        listed = [] if names is None else tag_array(listed_names(names)).tolist()
        in_rows = tags.names().tolist() if any(tags.rows) else []
        place: dict[Tag, int] = model.items_.columns_of(known)
        new: list[Tag] = [tag for tag in dict.fromkeys([*listed, *in_rows]) if tag not in place]
        matrix, _ = tags.matrix(_with_new(place, new), len(known) + len(new))
        return FurtherLabels(matrix, _joined(known, new))
    y = stacked_rows(y)
    columns = getattr(y, "columns", None) if names is None else names
    matrix = label_matrix(y, "y")
    (m, width), q = matrix.shape, model.items_.n_labels
    texts = None if columns is None else [str(name) for name in listed_names(columns)]
    if texts is not None and len(texts) != width:
        raise ValueError(f"label_names must have one name per column, {width}; got {len(texts)}")
    if names is None and texts == [str(place) for place in range(width)]:
        texts = None  # columns without names
    if known is None or texts is None:
        if width < q:
            raise ValueError(f"y must have at least {q} columns, one per label; got {width}")
        if known is not None and width > q:
            raise ValueError(
                f"y has {width - q} more columns than there are labels, which have names: pass "
                f"label_names with one name per column, {width}, or a DataFrame"
            )
        return FurtherLabels(matrix, known)
    twice = first_twice(texts)
    if twice is not None:
        raise ValueError(f"label_names must be unique; got {twice!r} twice")
    place = model.items_.columns_of(known)
    if known.dtype.kind != "U":  # some tags are integers
        place = {str(name): column for name, column in place.items()}
    new = [name for name in texts if name not in place]
    places = _with_new(place, new)
    at = np.array([places[name] for name in texts], np.int32)
    parts, shape = (matrix.data, at[matrix.indices], matrix.indptr), (m, q + len(new))
    matrix = canonical_csr(sparse.csr_array(parts, shape=shape))
    if known.dtype.kind != "U" and all(isinstance(tag, int) for tag in known.tolist()):
        new = [int(name) if str(name).isdecimal() else name for name in new]  # like the known
    return FurtherLabels(matrix, _joined(known, new))


def _with_new(place: dict[Tag, int], new: list[Tag]) -> Mapping[Tag, int]:
    """The columns of known labels, and behind them those of new ones."""
    return ChainMap({name: len(place) + column for column, name in enumerate(new)}, place)


def _joined(known: Array, new: list[Tag]) -> Array:
    return tag_array([*known.tolist(), *new]) if new else known


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
