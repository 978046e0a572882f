"""Data sets by name or path: every form that can be read or written, behind a few functions."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.messages import some
from nearlabel.common.validation import check_choice
from nearlabel.datasets.arff import read_arff, write_arff
from nearlabel.datasets.csv_tables import read_csv, write_csv
from nearlabel.datasets.data_folder import Archive, Folder
from nearlabel.datasets.dataset import Dataset, checked, unlabeled
from nearlabel.datasets.finding import SUFFIXES, Found, find
from nearlabel.datasets.json_lines import read_json_lines, write_json_lines
from nearlabel.datasets.mulan_xml import read_labels
from nearlabel.datasets.npz import read_npz, write_npz
from nearlabel.datasets.row_fields import Roles
from nearlabel.datasets.sparse_text import (
    read_names,
    read_sparse_text,
    read_split,
    write_sparse_text,
)
from nearlabel.datasets.text_lines import (
    DataError,
    Progress,
    TextFile,
    check_encoding,
    column_names,
    names_or_numbers,
)

FORMATS = ("npz", "arff", "csv", "tsv", "jsonl", "sparse")
# The options that say something for each form.
_OPTIONS = {
    "npz": set(),
    "arff": {"labels", "ignore", "nominal", "xml", "encoding"},
    "csv": {"labels", "tags", "separator", "id", "ignore", "delimiter", "encoding"},
    "jsonl": {"labels", "tags", "separator", "id", "ignore", "encoding"},
    "sparse": {"encoding"},
}
_OPTIONS["tsv"] = _OPTIONS["csv"]


def load(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    labels: Sequence[str] | None = None,
    tags: str | None = None,
    separator: str | None = None,
    id: str | None = None,
    ignore: Sequence[str] = (),
    features: Sequence[str] | None = None,
    nominal: str = "onehot",
    xml: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    progress: Progress | None = None,
) -> Dataset:
    """Read a data set: by its name in the data folder, or from a file.

    Parameters
    ----------
    source : str or path
        A name of `available`; a file in one of the forms below, plain, gzipped (but for ``.npz``)
        or in a zip archive; a path without suffix, ``data/scene``, for the files ``scene.arff``
        and ``scene.xml``, or ``scene-train.arff``, ``scene-test.arff`` and ``scene.xml``; "-" for
        standard input.
    format : {"npz", "arff", "csv", "tsv", "jsonl", "sparse"}, optional
        By default as the suffix says: ``.npz``, ``.arff``, ``.csv``, ``.tsv``, ``.jsonl``, and
        ``.txt`` for the sparse text of the extreme-classification repository.
    labels : sequence of str, optional
        Names of the columns that are labels, holding 0 and 1. By default as the file or the XML
        file beside it says. Empty: no labels are wanted.
    tags : str, optional
        The column of a table that holds all labels of a row; by default ``tags`` or ``labels``.
    separator : str, optional
        Between two tags; by default the first of ``;``, ``|`` and ``,`` that occurs in any row.
    id : str, optional
        The column of a table with the names of the rows; by default ``id``.
    ignore : sequence of str, optional
        Columns to leave out.
    features : sequence of str, optional
        The features to be read, in this order, whatever else the file has: those of a model.
    nominal : {"onehot", "code"}, default="onehot"
        Nominal attributes of an ARFF file as one column a value, or as one column of numbers.
        Words for yes and no are one column of 1 and 0 in both.
    xml : path, optional
        The XML file that lists the labels of an ARFF file; by default the one beside it.
    delimiter : str, optional
        Between two cells of a table; by default the one that its first line has.
    encoding : str, default="utf-8"
        Of text files.
    progress : callable, optional
        Called now and then with the bytes read and the bytes in all; with the lines read and None
        where the size is not known.

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
    check_choice(nominal, "nominal", ("onehot", "code"))
    check_encoding(encoding)
    delimiter = "\t" if delimiter == "\\t" else delimiter
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"delimiter must be one character; got {delimiter!r}")
    for key, names in (("labels", labels), ("ignore", ignore), ("features", features)):
        if isinstance(names, str):
            raise TypeError(f"{key} must be a list of names; got the text {names!r}")
    if tags is not None and labels:
        raise ValueError("tags= and labels= exclude each other: labels stand in one column or many")
    found = find(source, format)
    given = {
        "labels": labels is not None and len(labels) > 0,
        "tags": tags,
        "separator": separator,
        "id": id,
        "ignore": len(ignore),
        "nominal": nominal != "onehot",
        "xml": xml,
        "delimiter": delimiter,
        "encoding": encoding != "utf-8",
    }
    idle = [key for key, value in given.items() if value and key not in _OPTIONS[found.format]]
    if idle:
        raise ValueError(f"{idle[0]}= says nothing for a file of the form {found.format!r}")
    roles = Roles(labels, tags, separator, id, ignore, features)

    def read(name: str) -> Dataset:
        if found.format == "npz":
            return read_npz(found.place.path / name)
        with closing(found.place.text(name, encoding, progress)) as file:
            if found.format == "arff":
                return read_arff(
                    file,
                    labels=labels or _listed_labels(found.place, name, xml, encoding),
                    ignore=ignore,
                    nominal=nominal,
                    features=features,
                    labels_needed=labels is None,
                )
            if found.format == "jsonl":
                return read_json_lines(file, roles)
            if found.format == "sparse":
                return _with_files_beside(read_sparse_text(file), found.place, name, encoding)
            mark = "\t" if found.format == "tsv" and delimiter is None else delimiter
            return read_csv(file, roles, mark)

    try:
        with found.place:
            data = _joined([read(name) for name in found.names], found)
    except DataError:
        raise
    except ValueError as error:  # a name that is no text, say
        raise DataError(found.title, None, str(error)) from None
    if labels is not None and not len(labels):
        data = _unlabeled(data)
    if features is not None:
        data = _with_features(data, features, found.title)
    try:
        return checked(data)
    except ValueError as error:
        raise DataError(found.title, None, f"this is not a data set: {error}") from None


def save(data: Dataset, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a data set to a file, in a form from which `load` gives the same values again.

    A table without any labels is read again with ``labels=()``.

    Parameters
    ----------
    data : Dataset
    path : path
        Files that belong to it stand beside it: ``NAME.xml`` with the labels for ``NAME.arff``;
        names and split for the sparse text form.
    format : {"npz", "arff", "csv", "tsv", "jsonl", "sparse"}, optional
        By default as the suffix says.

    Warns
    -----
    UserWarning
        If the form has no place for something that the data set has.
    """
    path = Path(path)
    if format is None:
        if path.suffix.lower() not in SUFFIXES:
            raise ValueError(
                f"path must end in one of {', '.join(SUFFIXES)}, or give format=; got {path}"
            )
        format = SUFFIXES[path.suffix.lower()]
    check_choice(format, "format", FORMATS)
    data = checked(data)
    if format in ("arff", "sparse") and data.row_names is not None:
        warnings.warn(f"the form {format!r} has no place for the names of rows", stacklevel=2)
    if format != "npz" and data.extra:
        listed = ", ".join(data.extra)
        warnings.warn(f"the form {format!r} has no place for {listed}", stacklevel=2)
    writers: dict[str, Callable[[Dataset, Path], None]] = {
        "npz": write_npz,
        "arff": write_arff,
        "csv": write_csv,
        "tsv": lambda data, path: write_csv(data, path, "\t"),
        "jsonl": write_json_lines,
        "sparse": write_sparse_text,
    }
    writers[format](data, path)


def _listed_labels(
    place: Folder | Archive, name: str, xml: str | os.PathLike[str] | None, encoding: str
) -> list[str] | None:
    """The labels by an XML file: a given one, or the one beside an ARFF file, if there is one.

    That has its name, or the name without "-train" or "-test".
    """
    stem = name.removesuffix(".gz").removesuffix(".arff")
    stems = (stem, re.sub(r"[-_](train|test)$", "", stem))
    beside = (one + suffix for one in stems for suffix in (".xml", ".xml.gz"))
    found = next((one for one in beside if name != "-" and one in place), None)
    if xml is None and found is None:
        return None
    listed = TextFile(xml, encoding) if xml is not None else place.text(str(found), encoding, None)
    with closing(listed):
        return read_labels(listed)


def _with_files_beside(data: Dataset, place: Folder | Archive, name: str, encoding: str) -> Dataset:
    """A data set of the sparse text form with the names and the split that stand beside it."""
    if name == "-":
        return data
    stem = name.removesuffix(".gz").removesuffix(".txt")

    def beside(suffix: str) -> TextFile | None:
        return place.text(stem + suffix, encoding, None) if stem + suffix in place else None

    labels, features = beside(".labels.txt"), beside(".features.txt")
    split = beside(".split.txt")
    if split is None:
        own = re.sub("(?i)_data$", "", stem).lower() + "_trsplit.txt"
        same = [other for other in place if other.lower() == own]
        split = place.text(same[0], encoding, None) if len(same) == 1 else None
    return Dataset(
        data.X,
        data.Y,
        None if labels is None else read_names(labels, data.Y.shape[1]),
        None if features is None else read_names(features, data.X.shape[1]),
        None if split is None else read_split(split, len(data)),
    )


def _joined(parts: list[Dataset], found: Found) -> Dataset:
    """The training part and the test part as one data set."""
    if len(parts) == 1:
        return parts[0]
    train, test = parts
    if found.format in ("csv", "tsv", "jsonl"):  # a part has the tags that occur in it
        names = list(dict.fromkeys([*_label_texts(train), *_label_texts(test)]))
        train, test = _with_labels(train, names), _with_labels(test, names)
    for what in ("label_names", "feature_names"):
        ours, theirs = getattr(train, what), getattr(test, what)
        if not np.array_equal([] if ours is None else ours, [] if theirs is None else theirs):
            raise DataError(
                str(found.place.path / found.names[1]),
                None,
                f"it has other {what} than {found.names[0]}, or in another order",
            )
    for what in ("X", "Y"):
        if getattr(train, what).shape[1] != getattr(test, what).shape[1]:
            second = str(found.place.path / found.names[1])
            raise DataError(second, None, f"it has another width than {found.names[0]}")
    stack = sparse.vstack if sparse.issparse(train.X) else np.vstack
    rows = None
    if train.row_names is not None and test.row_names is not None:
        rows = np.concatenate([train.row_names, test.row_names])
    return Dataset(
        stack([train.X, test.X]),
        sparse.csr_array(sparse.vstack([train.Y, test.Y], format="csr")),
        train.label_names,
        train.feature_names,
        np.repeat([True, False], [len(train), len(test)]),
        rows,
    )


def _with_labels(data: Dataset, names: list[str]) -> Dataset:
    """A data set with labels of these names, of which it has some."""
    place = {name: column for column, name in enumerate(names)}
    own = np.array([place[name] for name in _label_texts(data)], dtype=np.int32)
    Y = sparse.csr_array((data.Y.data, own[data.Y.indices], data.Y.indptr), (len(data), len(names)))
    Y.sort_indices()
    return replace(data, Y=Y, label_names=column_names(names))


def _label_texts(data: Dataset) -> list[str]:
    return names_or_numbers(data.label_names, data.Y.shape[1])


def _unlabeled(data: Dataset) -> Dataset:
    return replace(data, Y=unlabeled(len(data)), label_names=None)


def _with_features(data: Dataset, features: Sequence[str], source: str) -> Dataset:
    """A data set with just the given features, in their order."""
    names = names_or_numbers(data.feature_names, data.X.shape[1])
    place = {name: column for column, name in enumerate(names)}
    missing = [name for name in features if name not in place]
    if missing:
        raise DataError(source, None, f"it has no feature {some(missing)}")
    X: Any = data.X[:, [place[name] for name in features]]
    return replace(data, X=X, feature_names=np.array(list(features), dtype=np.str_))
