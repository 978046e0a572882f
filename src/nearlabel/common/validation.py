"""Validation of user input, and its error messages.

All input is validated here once. Afterwards arrays are trusted: vectors are a numeric array or a
canonical ``csr_array``, labels are a canonical ``csr_array`` of ones.
"""

from __future__ import annotations

import math
import numbers
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, MatrixLike, canonical_csr, with_data
from nearlabel.common.messages import did_you_mean, first_twice, some
from nearlabel.common.tag_lists import (
    TagForm,
    Tags,
    holds_texts,
    read_tags,
    stacked_rows,
    tag_array,
)

_NUMBERS_AT_ONCE = 2**22  # numbers checked together
_EXTREME = 1e300  # a bound beyond it only keeps numbers finite
SMALLEST = float(np.nextafter(0, 1))  # the lower bound of numbers greater than 0


class _AnyArgumentError(Exception):
    """An error about one argument; the message begins with its name."""

    def __init__(self, message: str, argument: str) -> None:
        super().__init__(message, argument)
        self.argument = argument

    def __str__(self) -> str:
        return str(self.args[0])


class ArgumentError(_AnyArgumentError, ValueError):
    """An argument has an invalid value."""


class ArgumentTypeError(_AnyArgumentError, TypeError):
    """An argument has an invalid type."""


class UnsuitableDataError(ValueError):
    """Data of a kind that a method is not made for."""


class LabelClasses(list[Array]):
    """The classes [0, 1] of each of q labels, as scikit-learn's list of arrays for multi-output.

    It has a shape because scikit-learn's `cross_val_predict` asks for one if `predict_proba`
    returns a single array for all labels.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Number of labels, and of classes per label."""
        return len(self), 2


@dataclass(frozen=True)
class Labels:
    """The user's y as a matrix, and what is needed to predict in the same form."""

    matrix: Csr  # of int8, (n, q): row i has a one in the columns of its labels
    classes: LabelClasses | Array  # [0, 1] for each column; the two classes if y was 1-d
    names: Array | None  # of the columns, if y had names
    sparse: bool = False  # whether y was sparse; predictions then are, too
    tags: TagForm | None = None  # the form of tags, if y had tags; predictions then have it, too


def check_integer(value: object, name: str, *, low: int, high: int | None = None) -> int:
    """`value` as an int within [low, high], or an error that names the argument."""
    wanted = f"an integer from {low} up" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise _wrong_type(value, name, wanted)
    number = int(value)
    if number < low or (high is not None and number > high):
        raise _wrong_value(value, name, wanted)
    return number


def check_real(value: object, name: str, *, low: float, high: float = math.inf) -> float:
    """`value` as a finite float within [low, high], or an error that names the argument."""
    span = _span(low, high)
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise _wrong_type(value, name, f"a number{span}")
    number = float(value)
    if not (math.isfinite(number) and low <= number <= high):
        raise _wrong_value(value, name, f"a finite number{span}")
    return number


def _span(low: float, high: float) -> str:
    """A range as people write it, with a space before: " from 0 up", " greater than 0"."""
    least, most = (re.sub(r"e\+?(-?)0*", r"e\1", f"{end:.10g}") for end in (low, high))
    has_end = high < _EXTREME
    if 0 < low < 1 / _EXTREME:
        return f" greater than 0 and at most {most}" if has_end else " greater than 0"
    if low <= -_EXTREME:
        return f" of at most {most}" if has_end else ""
    return f" from {least} to {most}" if has_end else f" from {least} up"


def check_choice(value: Any, name: str, choices: Collection[Any], also: str = "") -> Any:
    """`value` if it is one of `choices`, or an error that lists them, after what `also` says."""
    if not isinstance(value, str) or value not in choices:
        words = [word for word in choices if not word[-1:].isdigit()]  # another number is no typo
        hint = did_you_mean(value, words) if isinstance(value, str) else ""
        raise _wrong_value(
            f"{value!r}{hint}", name, f"{also}one of {', '.join(map(repr, choices))}"
        )
    return value


def check_flag(value: object, name: str) -> bool:
    """`value` as a bool, or an error that names the argument."""
    if not isinstance(value, bool | np.bool_):
        raise _wrong_type(value, name, "True or False")
    return bool(value)


def _wrong_value(value: object, name: str, wanted: str) -> ArgumentError:
    """An error about an argument; `name` may continue with what else is accepted."""
    return ArgumentError(f"{name} must be {wanted}; got {value}", name.split()[0])


def _wrong_type(value: object, name: str, wanted: str) -> ArgumentTypeError:
    got = f"{value!r} of type {type(value).__name__}"
    return ArgumentTypeError(f"{name} must be {wanted}; got {got}", name.split()[0])


def check_n_jobs(n_jobs: int | None) -> int:
    """Number of threads: None means 1, -1 all cores that this process may use, -2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, numbers.Integral) and n_jobs < 0:
        affinity = getattr(os, "sched_getaffinity", None)
        cores = len(affinity(0)) if affinity else (os.cpu_count() or 1)
        return max(1, cores + 1 + int(n_jobs))
    return check_integer(n_jobs, "n_jobs (or None, or a negative number)", low=1)


def check_vectors(X: MatrixLike, name: str) -> Any:
    """Feature vectors as a numeric 2-d array or a canonical ``csr_array``; finite, not empty."""
    from sklearn.utils import check_array

    return checked_vectors(partial(check_array, input_name=name), X, name)


def checked_vectors(check: Callable[..., Any], X: Any, name: str) -> Any:
    """Vectors as returned by one of scikit-learn's checks, with sorted CSR rows."""
    from sklearn.utils import assert_all_finite

    if not (isinstance(X, np.ndarray) and X.dtype == np.float16):
        return canonical_vectors(check(X, accept_sparse="csr"))
    # To find non-finite numbers, scikit-learn would make masks as large as the array.
    X = check(X, accept_sparse="csr", ensure_all_finite=False)
    step = max(1, _NUMBERS_AT_ONCE // X.shape[1])
    for start in range(0, len(X), step):
        assert_all_finite(X[start : start + step], input_name=name)
    return X


def canonical_vectors(X: Any) -> Any:
    """Checked vectors with sorted CSR rows and no duplicates; the user's matrix is unchanged."""
    return canonical_csr(X) if sparse.issparse(X) else X


def all_finite(values: Array) -> bool:
    """Whether all numbers of an array are finite, checked in runs of rows."""
    step = max(1, _NUMBERS_AT_ONCE // max(1, math.prod(values.shape[1:])))
    return all(
        bool(np.isfinite(values[start : start + step]).all())
        for start in range(0, len(values), step)
    )


def check_labels(
    y: Any, names: object = None, separator: str | None = None, classes: object = None
) -> Labels:
    """Read y: a 0/1 matrix of shape (n, q), in any form; the tags of each row; or two classes, 1-d.

    `names` are the names of the labels, if y has none or others are wanted. `classes` are names,
    too, or the two classes of a 1-d y, which may then contain only one of them.
    """
    from sklearn.utils import check_array
    from sklearn.utils.multiclass import check_classification_targets, type_of_target

    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    if separator is not None or not _holds_numbers(y):
        tags = read_tags(y, separator)
        if tags is not None:
            return _labels_of_tags(tags, names if classes is None else classes)
        y = stacked_rows(y)
    if not hasattr(y, "shape"):
        if isinstance(y, Iterator | str):
            raise TypeError(
                f"y must be a matrix or a list with one entry per row; got {type(y).__name__}"
            )
        y = np.asarray(y)
    if len(y.shape) == 2:
        matrix = label_matrix(y, "y")
        names = classes if names is None else names
        names = getattr(y, "columns", None) if names is None else names
        names = _label_names(names, matrix.shape[1])
        return Labels(matrix, label_classes(matrix.shape[1]), names, bool(sparse.issparse(y)))
    column = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    try:
        check_classification_targets(column)
        two, codes = np.unique(column, return_inverse=True)
    except TypeError:
        raise ValueError("a 1-d y must have classes of one type; got a mix of types") from None
    if len(two) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(column)}: a 1-d y with {len(two)} classes. Pass several labels "
            "as lists of tags, [['sea', 'sunset'], ['sea'], …] ([[tag] for tag in y] if each row "
            "has one), as strings with fit(…, separator=…), or as a 0/1 matrix with one column "
            "per label."
        )
    if classes is not None:
        two, codes = _in_classes(column, classes)
    elif len(two) < 2:
        raise ValueError(f"a 1-d y must have two classes; got one class: {two[0]!r}")
    matrix = canonical_csr(codes.reshape(-1, 1).astype(np.int8))
    return Labels(matrix, two, _label_names(two[1:] if names is None else names, 1))


def _in_classes(column: Array, classes: object) -> tuple[Array, Array]:
    """The two classes of a 1-d y, and which of them each row has."""
    two = np.unique(np.asarray(classes))
    if len(two) != 2:
        message = f"classes must be the two classes of a 1-d y; got {some(two.tolist())}"
        raise ArgumentError(message, "classes")
    odd = column[~np.isin(column, two)]
    if len(odd):
        raise ValueError(f"y contains {odd[0]!r}, which is not in classes: {two.tolist()}")
    return two, np.searchsorted(two, column)


def _labels_of_tags(tags: Tags, names: object) -> Labels:
    """The labels that tags stand for: those that occur, unless `names` lists them."""
    labels = tags.names() if names is None else tag_array(listed_names(names))
    if odd := [name for name in labels.tolist() if type(name) not in (str, int)]:
        message = f"label_names must be strings or integers; got {some(odd)}"
        raise ArgumentTypeError(message, "label_names")
    _refuse_twice(labels)
    matrix, unknown = tags.matrix_of(labels)
    if unknown:
        message = f"label_names must contain every tag of y; missing: {some(unknown)}"
        raise ArgumentError(message, "label_names")
    return Labels(matrix, label_classes(len(labels)), labels, tags=tags.form)


def label_classes(q: int) -> LabelClasses:
    """`classes_` of q labels: 0 and 1 for each."""
    return LabelClasses([np.array([0, 1])] * q)


def label_matrix(
    Y: Any, name: str, label_names: object = None, separator: str | None = None
) -> Csr:
    """A 0/1 matrix in any form as a canonical ``csr_array`` of int8 ones, shape (n, q).

    If the labels have names, Y may be tags as well; a warning lists those that are not labels.
    """
    from sklearn.utils import check_array

    names = None if label_names is None else tag_array(listed_names(label_names))
    if separator is not None or not _holds_numbers(Y):
        if separator is None and holds_texts(Y):
            raise ValueError(
                f"{name} contains strings: split them into lists, [row.split(';') for row in "
                f"{name}], or use a model's label_matrix(…)"
            )
        tags = known_tags(Y, name, names, separator)
        if tags is not None:
            if names is None:
                raise ValueError(
                    f"{name} contains tags, so label_names must list the labels, for example "
                    "label_names=model.label_names_"
                )
            matrix, unknown = tags.matrix_of(names)
            if unknown:
                warnings.warn(
                    f"{name} has tags that are not labels and are ignored: {some(unknown)}",
                    UserWarning,
                    stacklevel=4,
                )
            return matrix
        Y = stacked_rows(Y)
    if names is not None:
        Y = _with_columns(Y, name, names)
    if hasattr(Y, "dtypes") and hasattr(Y, "to_numpy"):  # a DataFrame, of pandas or polars
        Y = Y.to_numpy()
    if getattr(Y, "dtype", None) == np.dtype(object):
        Y = _numbers(Y, name)
    matrix = check_array(Y, accept_sparse="csr", dtype=None, input_name=name)
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} must contain only 0 and 1; got values of type {matrix.dtype}")
    if matrix.dtype == np.float16 or not matrix.dtype.isnative:  # unsupported in sparse matrices
        matrix = matrix.astype(np.float64)
    csr = canonical_csr(matrix)
    if not csr.data.all():
        csr = csr.copy()
        csr.eliminate_zeros()
    wrong = np.flatnonzero(csr.data != 1)
    if wrong.size:
        row = np.searchsorted(csr.indptr, wrong[0], side="right") - 1
        raise ValueError(
            f"a 2-d {name} must contain only 0 and 1 (1: the row has the column's label); "
            f"got {csr.data[wrong[0]]} at row {row}, column {csr.indices[wrong[0]]}"
        )
    return with_data(csr, np.ones(csr.nnz, np.int8))


def _holds_numbers(y: object) -> bool:
    """Whether y is a matrix of numbers, sparse or an array, and so cannot hold tags."""
    if isinstance(y, np.ndarray):
        return y.ndim == 2 and y.dtype.kind in "biuf"
    return bool(sparse.issparse(y))


def _numbers(Y: Array, name: str) -> Array:
    """Python objects as floats."""
    text = next((value for value in Y.flat if isinstance(value, str)), None)
    if text is not None:
        raise ValueError(f"{name} must contain only 0 and 1; got {text!r}")
    try:
        return Y.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must contain only 0 and 1; a value is missing or not a number"
        ) from None


def _label_names(names: object, q: int) -> Array | None:
    if names is None:
        return None
    texts = np.array([str(name) for name in listed_names(names)])
    if len(texts) != q:
        raise ValueError(f"label_names must have one name per label, {q}; got {len(texts)}")
    _refuse_twice(texts)
    return texts


def known_tags(
    Y: object, name: str, names: Array | None, separator: str | None = None
) -> Tags | None:
    """The tags of Y among labels with these names, if Y contains tags."""
    numbered = None
    if names is not None and any(isinstance(name, int) for name in names.tolist()):
        numbered = len(names)
    return read_tags(Y, separator, name, numbered)


def listed_names(names: object) -> list[object]:
    """Names of labels, in order; an unordered collection raises an error."""
    if isinstance(names, str | Set | Mapping) or not isinstance(names, Iterable):
        message = f"label_names must be a list of names; got {type(names).__name__}"
        raise ArgumentTypeError(message, "label_names")
    return list(names)


def _with_columns(Y: Any, name: str, names: Array) -> Any:
    """A label matrix with a column for each of `names`: those of a DataFrame in their order."""
    shape = getattr(Y, "shape", None)
    if shape is None:
        Y = np.asarray(Y)
        shape = Y.shape
    if len(shape) == 2 and shape[1] != len(names):
        wanted = f"one column per label name, {len(names)}"
        raise ValueError(f"{name} must have {wanted}; got {shape[1]}")
    in_order = [str(name) for name in names.tolist()]
    columns = [] if not hasattr(Y, "columns") else list(Y.columns)
    known = {str(column): column for column in columns}
    if not columns or list(known) == in_order or list(known) == [str(i) for i in range(len(names))]:
        return Y
    if {*known} != {*in_order}:
        odd = [column for column in columns if str(column) not in in_order]
        raise ValueError(f"{name} has columns that are not labels: {some(odd)}")
    return Y[[known[name] for name in in_order]]


def _refuse_twice(names: Array) -> None:
    twice = first_twice(names.tolist())
    if twice is not None:
        message = f"label_names must be unique; got {some([twice])} twice"
        raise ArgumentError(message, "label_names")


def refuse_arguments(function: str, unknown: Iterable[str]) -> None:
    """Raise an error for unknown keywords; explain why sample_weight is not supported."""
    for name in unknown:
        if name == "sample_weight":
            raise ArgumentTypeError(
                f"sample_weight is not supported: every training row has one vote; {function}() "
                "takes no weights (drop rows, or repeat them)",
                name,
            )
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def check_same_length(**lengths: int) -> None:
    """Raise an error if arguments have different numbers of rows."""
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"inconsistent numbers of rows: {given}; they must be equal")


def check_dense_size(what: str, shape: tuple[int, int], itemsize: int, instead: str) -> None:
    """Raise an error for a dense matrix that would not fit into this machine's memory."""
    need = shape[0] * shape[1] * itemsize
    memory = physical_memory()
    if memory is not None and need > memory:
        raise MemoryError(
            f"{what} would be a dense matrix of {shape[0]:,} x {shape[1]:,} = "
            f"{need / 2**30:,.1f} GiB, more than the {memory / 2**30:,.1f} GiB of this machine; "
            f"use {instead}"
        )


def physical_memory() -> int | None:
    """Bytes of memory that this machine has, if known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # unknown on this platform
        return None
