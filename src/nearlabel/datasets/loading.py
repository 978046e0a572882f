"""Data sets by name or path, in any format: `load` and `save`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array
from nearlabel.common.messages import some
from nearlabel.common.validation import ArgumentError, check_choice
from nearlabel.datasets.column_values import ColumnNumbers, numbered
from nearlabel.datasets.data_files import DataFile, ReadOptions
from nearlabel.datasets.dataset import Dataset, checked, unlabeled
from nearlabel.datasets.formats import FORMATS, SUFFIXES, Format
from nearlabel.datasets.frames import frame_of, is_frame
from nearlabel.datasets.source_files import find
from nearlabel.datasets.text_lines import DataError, Progress


def load(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    progress: Progress | None = None,
    **options: Any,  # the types of `ReadOptions`
) -> Dataset:
    """Read a data set: by its name in the data folder, or from a file.

    Parameters
    ----------
    source : str or path
        A name of `available`; a file in one of the formats below, plain or gzipped (but for
        ``.npz`` and ``.parquet``); a path without suffix, ``data/scene``, for the files
        ``scene.arff`` and ``scene.xml``, or ``scene-train.arff``, ``scene-test.arff`` and
        ``scene.xml``; "-" for standard input.
    format : {"npz", "arff", "csv", "tsv", "jsonl", "json", "parquet", "sparse"}, optional
        By default as the suffix says: ``.npz``, ``.arff``, ``.csv``, ``.tsv``, ``.jsonl``,
        ``.json`` for one array of objects, ``.parquet``, and ``.txt`` for the sparse text of the
        extreme-classification repository.
    progress : callable, optional
        Called from time to time with the bytes read and the total, or with the lines read and None
        if the size is unknown.
    **options
        How to read the file; an option that its format does not support is an error.

    Other Parameters
    ----------------
    labels : sequence of str, optional
        Names of the columns that are labels, with values 0 and 1; a pattern such as ``"tag_*"``
        stands for all columns that match it, unless one has exactly that name. By default as given
        by the file or the XML file beside it. If empty, no labels are read.
    tags : str, optional
        The column of a table with all labels of a row; by default ``tags`` or ``labels``.
    separator : str, optional
        Between two tags; by default the first of ``;``, ``|`` and ``,`` that occurs in any row.
    id : str, optional
        The column of a table with the names of the rows; by default ``id``.
    ignore : sequence of str, optional
        Columns to leave out, or patterns of them; they may be labels, too.
    features : sequence of str, optional
        The features to read, in this order, such as those of a model; all others are left out. If
        empty, no features are read. If given, no row needs to have a label.
    text : sequence of str, optional
        Columns of a table with free text.
    categories : sequence of str, optional
        Columns of a table with categories, even if they look like numbers.
    gaps : bool, "found" or sequence of str, default=False
        Whether cells of a table may be missing, in all columns or in those named: empty cells,
        ``?``, ``NA``, ``null`` and the like. A missing number is NaN. "found" is for methods that
        take NaN: as True, but categories become numbers unless one is missing, and NaN is accepted
        in ``.npz`` files, too.
    frame : bool, default=False
        Whether X is a polars DataFrame with the columns of the table unchanged: numbers, and
        strings for categories. It always is if there is free text, or if categories may be missing.
    nominal : {"onehot", "code"}, default="onehot"
        Nominal attributes of an ARFF file as one column per value, or as one column of numbers.
        With both, words for yes and no become one column of 1 and 0.
    xml : path, optional
        The XML file that lists the labels of an ARFF file; by default the one beside it.
    delimiter : str, optional
        Between two cells of a table; by default found from its first line, which may declare it
        as Excel does, ``sep=;``.
    encoding : str, default="utf-8"
        Of text files; UTF-16 and UTF-32 are recognized by a byte-order mark.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        A ValueError with the file, the line and what was expected.
    FileNotFoundError
    """
    if format is not None:
        check_choice(format, "format", FORMATS)
    known = [option.name for option in fields(ReadOptions)]
    if unknown := [name for name in options if name not in known]:
        raise TypeError(f"load() has no option {unknown[0]!r}; its options are {', '.join(known)}")
    how = ReadOptions(**options)
    paths, format = find(source, format)
    row = FORMATS[format]
    how.check_supported(row.options, format)
    files = [DataFile(path, how, progress) for path in paths]
    data = _joined([_read(file, row) for file in files], files)
    title = files[0].title
    if how.labels == ():
        data = replace(data, Y=unlabeled(len(data)), label_names=None)
    if how.features is not None:
        data = with_features(data, how.features, title)
        if how.frame and not is_frame(data.X):
            X = data.X.toarray() if sparse.issparse(data.X) else data.X
            data = replace(data, X=frame_of(dict(zip(how.features, X.T, strict=True))))
    try:
        return checked(data, bool(how.gaps), features=how.features != ())
    except ValueError as error:
        raise DataError(title, None, f"this is not a data set: {error}") from None


def _read(file: DataFile, row: Format) -> Dataset:
    """Read a file; errors about the whole file get its name, as errors about a line have."""
    try:
        return row.read(file)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(file.title, None, str(error)) from None


def save(data: Dataset, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a data set to a file, from which `load` reads the same values again.

    A table without labels must be read with ``labels=()``.

    Parameters
    ----------
    data : Dataset
    path : path
        Additional files are written beside it: ``NAME.xml`` with the labels for ``NAME.arff``;
        names and split for the sparse text format.
    format : {"npz", "arff", "csv", "tsv", "jsonl", "json", "parquet", "sparse"}, optional
        By default as the suffix says.

    Warns
    -----
    UserWarning
        If the format cannot store something that the data set has.
    """
    path = Path(path)
    if format is None and path.suffix.lower() not in SUFFIXES:
        message = f"path must end in one of {', '.join(SUFFIXES)}, or pass format=; got {path}"
        raise ArgumentError(message, "path")
    format = SUFFIXES[path.suffix.lower()] if format is None else format
    row = FORMATS[check_choice(format, "format", FORMATS)]
    data = checked(data, gaps="gaps" in row.keeps)
    if is_frame(data.X) and "frames" not in row.keeps:
        others = ", ".join(name for name in FORMATS if "frames" in FORMATS[name].keeps)
        message = f"format must be one of {others} for categories and text columns; got {format!r}"
        raise ArgumentError(message, "format")
    lost = [] if data.row_names is None or "row_names" in row.keeps else ["the names of rows"]
    lost += [] if "extra" in row.keeps else list(data.extra)
    if lost:
        listed = ", ".join(lost)
        warnings.warn(f"the format {format!r} cannot store {listed}", stacklevel=2)
    row.write(data, path)


def _joined(parts: list[Dataset], files: list[DataFile]) -> Dataset:
    """The training part and the test part as one data set."""
    if len(parts) == 1:
        return parts[0]
    train, test = parts
    for what, ours, theirs in (
        ("label_names", train.Y.shape[1], test.Y.shape[1]),
        ("feature_names", train.X.shape[1], test.X.shape[1]),
    ):
        if ours != theirs or not np.array_equal(getattr(train, what), getattr(test, what)):
            message = f"its {what} differ from those of {files[0].path.name}"
            raise DataError(files[1].title, None, message)
    stack = sparse.vstack if sparse.issparse(train.X) else np.vstack
    return replace(
        train,
        X=stack([train.X, test.X]),
        Y=sparse.vstack([train.Y, test.Y], format="csr"),
        train=np.repeat([True, False], [len(train), len(test)]),
    )


def with_features(data: Dataset, features: Sequence[str], source: str) -> Dataset:
    """A data set with just the given features, in that order."""
    names = data.feature_names
    columns = ColumnNumbers(data.X.shape[1]) if names is None else numbered(names.tolist())
    places = [columns.get(name) for name in features]
    missing = [name for name, place in zip(features, places, strict=True) if place is None]
    if missing:
        raise DataError(source, None, f"no column for the feature {some(missing)}")
    X = _columns(data.X, np.array(places, dtype=np.int64))
    return replace(data, X=X, feature_names=np.array(features, dtype=np.str_))


def _columns(X: Any, places: Array) -> Any:
    """Some columns of a matrix; SciPy's own indexing takes memory for every column."""
    if is_frame(X):
        return X[:, places.tolist()]
    if not sparse.issparse(X) or not len(places):
        return X[:, places]
    order = np.argsort(places)
    at = np.searchsorted(places[order][:-1], X.indices)
    is_wanted = places[order][at] == X.indices
    ends = np.concatenate([[0], np.cumsum(is_wanted)])[X.indptr]
    parts = (X.data[is_wanted], order[at[is_wanted]], ends)
    return sparse.csr_array(parts, (X.shape[0], len(places)))
