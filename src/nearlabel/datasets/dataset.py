"""A multi-label data set in memory, and its description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import (
    Array,
    Csr,
    MatrixLike,
    canonical_csr,
    csr_of_known,
    row_entries,
    text_array,
    with_data,
)
from nearlabel.common.messages import first_twice, shown
from nearlabel.common.validation import check_same_length, physical_memory
from nearlabel.datasets.frames import checked_frame, is_frame, number_columns


@dataclass(frozen=True, eq=False)
class Dataset:
    """Items with vectors and labels.

    Attributes
    ----------
    X : ndarray, csr_array or polars.DataFrame, shape (n, d)
        A frame has the columns of a table unchanged: numbers, in which NaN is a missing value, and
        strings, in which null is one.
    Y : csr_array of int8, shape (n, q)
        Without columns if the items have no labels.
    label_names, feature_names : ndarray of str or None
    train : ndarray of bool, shape (n,), or None
        The rows of the training part, if there is a split.
    row_names : ndarray of str, shape (n,), or None
    extra : mapping of str to ndarray, each of length n
        Further arrays of a file with one entry per row, by their names.
    text : tuple of str
        The columns of a frame that contain free text; its other string columns are categories.
    """

    X: Any
    Y: Csr
    label_names: Array | None = None
    feature_names: Array | None = None
    train: Array | None = None
    row_names: Array | None = None
    extra: Mapping[str, Array] = field(default_factory=dict)
    text: tuple[str, ...] = ()

    def __repr__(self) -> str:
        (n, d), q = self.X.shape, self.Y.shape[1]
        mean = self.Y.nnz / max(n, 1)
        return f"Dataset({n} items, {d} features, {q} labels, {mean:.2f} labels per item)"

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def test(self) -> Array | None:
        """The rows of the test part, shape (n,), if there is a split.

        If a file divides its rows into more than two parts (``extra["part"]``: 0 train, 1 test,
        2 another test), the test part is the second.
        """
        if self.train is None:
            return None
        return self.extra["part"] == 1 if "part" in self.extra else ~self.train

    def rows(self, rows: Array) -> Dataset:
        """A data set of some rows, by number or mask, without a split."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        names = None if self.row_names is None else self.row_names[rows]
        extra = {name: values[rows] for name, values in self.extra.items()}
        parts = {"X": self.X[rows], "Y": self.Y[rows], "row_names": names, "extra": extra}
        return replace(self, train=None, **parts)


def checked(data: Dataset, gaps: bool = False, features: bool = True) -> Dataset:
    """A data set with all its parts as `Dataset` documents them, or a ValueError.

    A missing number, NaN, is accepted in a frame, and with `gaps` in an array, too. There may be no
    features unless `features` requires some.
    """
    for key in ("label_names", "feature_names", "row_names", "train"):
        if getattr(data, key) is not None:
            data = replace(data, **{key: np.asarray(getattr(data, key))})  # type: ignore[arg-type]
    X = data.X
    if features or X.shape[1]:
        X = checked_frame(X) if is_frame(X) else _finite(X, gaps)
    Y = _ones(data.Y)
    check_same_length(X=X.shape[0], Y=Y.shape[0])
    (n, q), d = Y.shape, X.shape[1]
    for key, length in (("label_names", q), ("feature_names", d), ("row_names", n)):
        names = getattr(data, key)
        if names is None:
            continue
        if names.shape != (length,):
            raise ValueError(f"{key} must have length {length}; got shape {names.shape}")
        if names.dtype.kind != "U":
            raise ValueError(f"{key} must be an array of str; got {names.dtype}")
        text_array(names.tolist())
        twice = None if key == "row_names" else first_twice(names.tolist())
        if twice is not None:
            raise ValueError(f"{key} must be unique; got {shown(twice)} twice")
    if is_frame(X) and (data.feature_names is None or data.feature_names.tolist() != X.columns):
        raise ValueError("feature_names must be the columns of the frame X")
    train = data.train
    if train is not None and (train.dtype != bool or train.shape != (n,)):
        message = f"train must be a boolean mask of length {n}"
        raise ValueError(f"{message}; got {train.dtype} of shape {train.shape}")
    for key, values in data.extra.items():
        if values.shape[:1] != (n,):
            raise ValueError(f"{shown(key)} must have length {n}; got shape {values.shape}")
    return replace(data, X=X, Y=Y)


def _finite(X: Any, gaps: bool) -> Any:
    """As `check_vectors`, but without importing scikit-learn, which takes a second."""
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a matrix of numbers; got {X.dtype} of shape {X.shape}")
    dtype = X.dtype.newbyteorder("=")
    # Not every file or sparse matrix supports these types.
    if dtype.kind == "b" or dtype == np.float16:
        dtype = np.dtype(np.uint8 if dtype.kind == "b" else np.float32)
    elif dtype == np.longdouble:  # the same as float64 on some machines
        dtype = np.dtype(np.float64)
    X = X if X.dtype == dtype else X.astype(dtype)
    values = X.data if sparse.issparse(X) else X
    if not (~np.isinf(values) if gaps else np.isfinite(values)).all():
        raise ValueError("X must contain only finite numbers; one is infinite or missing")
    return _narrow(canonical_csr(X)) if sparse.issparse(X) else X


def _ones(Y: MatrixLike) -> Csr:
    csr = _narrow(canonical_csr(Y))
    if not np.all(csr.data):
        csr = csr.copy()
        csr.eliminate_zeros()
    if not np.all(csr.data == 1):
        raise ValueError("Y must contain only 0 and 1")
    return with_data(csr, np.ones(csr.nnz, np.int8))


def _narrow(csr: Csr) -> Csr:
    """A canonical matrix with 32-bit indices if they fit: much code accepts no others."""
    return csr_of_known(csr.data, csr.indices, csr.indptr, csr.shape)


def too_many_labels(count: int) -> str | None:
    """A message if a model of that many labels would take a large part of the memory."""
    each = 64  # bytes of a fitted model, measured, for labels that no row carries
    memory = physical_memory()
    most = 2**31 - 1 if memory is None else min(2**31 - 1, memory // 4 // each)
    if count <= most:
        return None
    return (
        f"{count} labels are declared; at most {most} are accepted, since a model takes about "
        f"{each} bytes per label, which may use up to a quarter of the memory"
    )


def dense_row(data: Dataset, row: int) -> list[object]:
    """All features and labels of a row, as Python numbers and strings."""
    cells: list[object] = []
    for matrix in (data.X, data.Y):
        if sparse.issparse(matrix):
            start = len(cells)
            cells += [0] * matrix.shape[1]
            for column, value in row_entries(matrix, row):
                cells[start + column] = value
        elif is_frame(matrix):
            cells += [None if cell != cell else cell for cell in matrix.row(row)]
        else:
            cells += matrix[row].tolist()
    return cells


def unlabeled(n: int) -> Csr:
    """The label matrix of n items without labels."""
    return sparse.csr_array((n, 0), dtype=np.int8)


@dataclass(frozen=True)
class Description:
    """The statistics of a data set that papers report.

    Attributes
    ----------
    instances, features, labels : int
    cardinality : float
        Labels per item, on average.
    density : float
        Cardinality as a share of all labels.
    distinct_label_sets : int
    without_labels : int
        Items that carry no label.
    train, test : int or None
        Sizes of the parts, if there is a split.
    other : int
        Rows of a split that are in neither part.
    sparse : bool
        Whether the features are a CSR matrix.
    dtype : str
        Of X; for a frame, how many columns are numbers, categories and texts.
    """

    instances: int
    features: int
    labels: int
    cardinality: float
    density: float
    distinct_label_sets: int
    without_labels: int
    train: int | None
    test: int | None
    other: int
    sparse: bool
    dtype: str


def describe(data: Dataset) -> Description:
    """Compute the statistics of a data set that papers report.

    Examples
    --------
    >>> from nearlabel.datasets import make_local_labels
    >>> described = describe(make_local_labels(100, 5, 12))
    >>> described.instances, described.labels, described.cardinality, described.distinct_label_sets
    (100, 12, 2.92, 43)
    """
    (n, d), q = data.X.shape, data.Y.shape[1]
    ends = data.Y.indptr
    if is_frame(data.X):
        numbers, texts = len(number_columns(data.X)), len(data.text)
        dtype = f"numbers {numbers}, categories {d - numbers - texts}, texts {texts}"
    else:
        dtype = str(data.X.dtype)
    sets = {data.Y.indices[a:b].tobytes() for a, b in pairwise(ends)}
    train, test = (None if mask is None else int(mask.sum()) for mask in (data.train, data.test))
    return Description(
        instances=n,
        features=d,
        labels=q,
        cardinality=data.Y.nnz / n,
        density=data.Y.nnz / n / q if q else 0.0,
        distinct_label_sets=len(sets),
        without_labels=int(np.sum(np.diff(ends) == 0)),
        train=train,
        test=test,
        other=0 if train is None or test is None else n - train - test,
        sparse=bool(sparse.issparse(data.X)),
        dtype=dtype,
    )
