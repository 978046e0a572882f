"""Data sets by name or path: every form that can be read or written, behind a few functions."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nearlabel.datasets.arff import read_arff, read_labels, write_arff
from nearlabel.datasets.dataset import Dataset, checked, unlabeled
from nearlabel.datasets.folder import Archive, Folder, data_folders
from nearlabel.datasets.npz import read_npz, write_npz
from nearlabel.datasets.sparse_text import (
    read_names,
    read_sparse_text,
    read_split,
    write_sparse_text,
)
from nearlabel.datasets.tables import Roles, read_csv, read_json_lines, write_csv, write_json_lines
from nearlabel.datasets.text import DataError, Progress, TextFile
from nearlabel.texts import shown
from nearlabel.validation import check_choice

FORMATS = ("npz", "arff", "csv", "tsv", "jsonl", "sparse")
_SUFFIXES = {
    ".npz": "npz",
    ".arff": "arff",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "sparse",
}
# The options that say something for each form.
_OPTIONS = {
    "npz": set(),
    "arff": {"labels", "ignore", "nominal", "xml", "encoding"},
    "csv": {"labels", "tags", "separator", "id", "ignore", "delimiter", "encoding"},
    "jsonl": {"labels", "tags", "separator", "id", "ignore", "encoding"},
    "sparse": {"encoding"},
}
_OPTIONS["tsv"] = _OPTIONS["csv"]


class _Found(NamedTuple):
    place: Folder | Archive
    names: tuple[str, ...]  # one file, or that of the training part and that of the test part
    format: str

    @property
    def title(self) -> str:
        """For messages."""
        first = self.names[0]
        return "standard input" if first == "-" else str(self.place.path / first)


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
    for key, names in (("labels", labels), ("ignore", ignore), ("features", features)):
        if isinstance(names, str):
            raise TypeError(f"{key} must be a list of names; got the text {names!r}")
    found = _find(source, format)
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
        file = found.place.text(name, encoding, progress)
        if found.format == "arff":
            wanted = labels
            if labels is None:
                listed = (
                    _label_file(found.place, name, encoding)
                    if xml is None
                    else TextFile(xml, encoding)
                )
                wanted = None if listed is None else read_labels(listed)
            return read_arff(file, labels=wanted, ignore=ignore, nominal=nominal, features=features)
        if found.format == "jsonl":
            return read_json_lines(file, roles)
        if found.format == "sparse":
            return _with_files_beside(read_sparse_text(file), found.place, name, encoding)
        mark = "\t" if found.format == "tsv" and delimiter is None else delimiter
        return read_csv(file, roles, mark)

    try:
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


def available() -> dict[str, Path]:
    """The data sets of the data folders: their names and files.

    Where several folders have a name, the first counts.
    """
    found: dict[str, Path] = {}
    for folder in data_folders():
        place = Folder(folder)
        for stem in _stems(place):
            here = _files_of(place, stem)
            if here is not None:
                found.setdefault(stem, folder / here.names[0])
    return dict(sorted(found.items()))


def save(data: Dataset, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a data set to a file, in a form from which `load` gives the same values again.

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
        if path.suffix not in _SUFFIXES:
            raise ValueError(
                f"path must end in one of {', '.join(_SUFFIXES)}, or give format=; got {path}"
            )
        format = _SUFFIXES[path.suffix]
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


def _find(source: str | os.PathLike[str], format: str | None) -> _Found:
    """The files that a name or a path means."""
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source must be a name or a path; got {source!r}")
    if source == "-":
        return _Found(Folder(Path()), ("-",), format or _format_of_input())
    path = Path(source)
    if isinstance(source, str) and re.fullmatch(r"(?!\.)[\w.-]+", source) and not path.is_file():
        for folder in data_folders():
            found = _files_of(Folder(folder), source)
            if found is not None:
                return found
    if path.is_file() and path.suffix == ".zip":
        return _only_set(Archive(path), format)
    if path.is_file():
        return _Found(Folder(path.parent), (path.name,), format or _format_of(path.name, path))
    found = _files_of(Folder(path.parent), path.name)
    if found is not None:
        return found
    looked = ", ".join(map(str, data_folders()))
    raise FileNotFoundError(
        f"no data set {str(source)!r}: there is no such file, and none of that name in {looked}"
    )


def _format_of(name: str, path: Path) -> str:
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(
            f"{path}: format must be given, as the suffix is none of {', '.join(_SUFFIXES)}"
        )
    return _SUFFIXES[suffix]


def _format_of_input() -> str:
    """The form of standard input, by its first character."""
    first = sys.stdin.buffer.peek(1)[:1]  # type: ignore[union-attr]
    return {b"{": "jsonl", b"@": "arff", b"%": "arff"}.get(first, "csv")


def _stems(place: Iterable[str]) -> list[str]:
    """What the data sets of a place may be called."""
    stems = []
    for name in place:
        plain = Path(name.removesuffix(".gz"))
        if plain.suffix in _SUFFIXES:
            stems.append(re.sub(r"[-_](train|test)$", "", plain.stem))
    return sorted(set(stems))


def _files_of(place: Folder | Archive, stem: str) -> _Found | None:
    """The files of a data set in a place: both parts of a split rather than one file without."""
    if f"{stem}.npz" in place and isinstance(place, Folder):
        return _Found(place, (f"{stem}.npz",), "npz")
    suffixes = [suffix + gz for suffix in _SUFFIXES if suffix != ".npz" for gz in ("", ".gz")]
    for suffix in suffixes:
        for mark in "-_":
            parts = (f"{stem}{mark}train{suffix}", f"{stem}{mark}test{suffix}")
            if all(part in place for part in parts):
                return _Found(place, parts, _SUFFIXES[suffix.removesuffix(".gz")])
        if f"{stem}{suffix}" in place:
            return _Found(place, (f"{stem}{suffix}",), _SUFFIXES[suffix.removesuffix(".gz")])
    return None


def _only_set(archive: Archive, format: str | None) -> _Found:
    found = [found for stem in _stems(archive) if (found := _files_of(archive, stem)) is not None]
    found = [one for one in found if format is None or one.format == format]
    if len(found) != 1:
        names = ", ".join(shown(name) for one in found for name in one.names) or "none"
        raise DataError(
            str(archive.path), None, f"one data set expected in the archive; there are: {names}"
        )
    return found[0]


def _label_file(place: Folder | Archive, name: str, encoding: str) -> TextFile | None:
    """The XML file beside an ARFF file: of its name, or of that without "-train" or "-test"."""
    stem = name.removesuffix(".gz").removesuffix(".arff")
    for candidate in (stem, re.sub(r"[-_](train|test)$", "", stem)):
        for suffix in (".xml", ".xml.gz"):
            if name != "-" and candidate + suffix in place:
                return place.text(candidate + suffix, encoding, None)
    return None


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


def _joined(parts: list[Dataset], found: _Found) -> Dataset:
    """The training part and the test part as one data set."""
    if len(parts) == 1:
        return parts[0]
    train, test = parts
    for what in ("label_names", "feature_names"):
        ours, theirs = getattr(train, what), getattr(test, what)
        if not np.array_equal([] if ours is None else ours, [] if theirs is None else theirs):
            raise DataError(
                found.names[1],
                None,
                f"it has other {what} than {found.names[0]}, or in another order",
            )
    for what in ("X", "Y"):
        if getattr(train, what).shape[1] != getattr(test, what).shape[1]:
            raise DataError(found.names[1], None, f"it has another width than {found.names[0]}")
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


def _unlabeled(data: Dataset) -> Dataset:
    none = unlabeled(len(data))
    return Dataset(data.X, none, None, data.feature_names, data.train, data.row_names, data.extra)


def _with_features(data: Dataset, features: Sequence[str], source: str) -> Dataset:
    """A data set with just the given features, in their order."""
    place = {name: column for column, name in enumerate(_texts(data.feature_names))}
    if data.feature_names is None:
        place = {str(column): column for column in range(data.X.shape[1])}
    missing = [name for name in features if name not in place]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise DataError(
            source, None, f"it has no feature {', '.join(map(shown, missing[:3]))}{more}"
        )
    X: Any = data.X[:, [place[name] for name in features]]
    names = np.array(list(features), dtype=np.str_)
    return Dataset(X, data.Y, data.label_names, names, data.train, data.row_names, data.extra)


def _texts(names: Any) -> list[str]:
    return [] if names is None else [str(name) for name in names.tolist()]
