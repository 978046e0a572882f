"""The sparse text format of the extreme-classification repository.

The first line has the numbers of rows, features and labels; then one row per line: its labels
separated by commas, a blank, and its features as ``column:value`` separated by blanks, columns
counted from 0. It has no names: they are in files beside it, ``NAME.labels.txt`` and
``NAME.features.txt``, one per line, and a split in ``NAME.split.txt``, "train" or "test". The
repository's own ``…_trSplit.txt`` is read, too: row numbers, counted from 1, of the training part,
one random split per column, of which the first is used.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, row_entries, text_array
from nearlabel.common.files import replacing
from nearlabel.common.messages import shown
from nearlabel.datasets.column_values import SparseRows
from nearlabel.datasets.data_files import DataFile
from nearlabel.datasets.dataset import Dataset, too_many_labels
from nearlabel.datasets.text_lines import DataError, TextFile, number

_LARGEST = 2**31 - 1  # columns


def read_sparse_text(source: DataFile) -> Dataset:
    """Read a file of the format, and the names and the split beside it."""
    with source.text() as file:
        data = _read_rows(file)
    split = source.beside(f"{source.stem}.split.txt")
    if split is None:
        own = re.sub("(?i)_data$", "", source.stem).lower() + "_trsplit.txt"
        same = [path.name for path in source.path.parent.iterdir() if path.name.lower() == own]
        split = source.beside(*same) if len(same) == 1 else None
    return replace(
        data,
        label_names=_read_names(source.beside(f"{source.stem}.labels.txt"), data.Y.shape[1]),
        feature_names=_read_names(source.beside(f"{source.stem}.features.txt"), data.X.shape[1]),
        train=_read_split(split, len(data)),
    )


def is_sparse_text(source: DataFile) -> bool:
    """Whether a file begins with three numbers: others contain names, splits or anything."""
    if re.search(r"(?i)[._](labels|features|split|trsplit|tstsplit)\.txt", source.path.name):
        return False
    sizes = source.first_line().split()
    return len(sizes) == 3 and all(map(str.isdigit, sizes))


def _read_rows(file: TextFile) -> Dataset:
    lines = file.lines()
    header = next(lines, "").split()
    if len(header) != 3 or not all(re.fullmatch("[0-9]{1,10}", size) for size in header):
        wanted = "expected the numbers of rows, features and labels, like '7395 1836 159'"
        raise file.error(f"{wanted}; got {shown(' '.join(header))}", 1)
    n, d, q = map(int, header)
    if not n or not 0 < d <= _LARGEST or q > _LARGEST:
        raise file.error(
            f"expected at least 1 row and 1 to {_LARGEST} columns; got {n}, {d}, {q}", 1
        )
    if problem := too_many_labels(q):
        raise file.error(problem, 1)
    features, labels = SparseRows(), SparseRows()
    for line in lines:
        text = line.rstrip("\r\n")
        if len(labels) == n:
            if text.strip():
                raise file.error(f"the first line declares {n} rows, but there are more")
            continue
        try:
            _read_row(text, features, labels, d, q)
        except ValueError as error:
            raise file.error(str(error)) from None
    if len(labels) != n:
        raise file.error(f"the first line declares {n} rows, but there are only {len(labels)}")
    return Dataset(features.matrix(d), labels.matrix(q).astype(np.int8))


def _read_row(text: str, features: SparseRows, labels: SparseRows, d: int, q: int) -> None:
    if not text.isascii():
        raise ValueError("expected plain numbers only")
    head, _, rest = text.partition(" ")
    if ":" in head:  # a row without labels, and without the blank before its features
        head, rest = "", text
    pairs = [token.partition(":") for token in rest.split()]
    if not all(mark for _, mark, _ in pairs):
        raise ValueError(f"expected features as column:value; got {shown(rest)}")
    carried = _columns("label", head.split(",") if head else [], q)
    columns = _columns("feature", [column for column, _, _ in pairs], d)
    labels.add(carried, [1.0] * len(carried))
    features.add(columns, [number(value) for _, _, value in pairs])


def _columns(what: str, texts: list[str], width: int) -> list[int]:
    """The labels or the features of a row by number, distinct and below `width`."""
    places = [int(text) if text.isdigit() and len(text) < 11 else width for text in texts]
    if places and max(places) >= width:
        wrong = next(text for text, place in zip(texts, places, strict=True) if place >= width)
        raise ValueError(f"expected {what}s from 0 to {width - 1}; got {shown(wrong)}")
    if len(set(places)) < len(places):
        raise ValueError(f"a {what} occurs twice")
    return places


def _read_names(file: TextFile | None, count: int) -> Array | None:
    """Names, one per line."""
    if file is None:
        return None
    with file:
        names = [line.rstrip("\r\n") for line in file.lines()]
    if len(names) != count:
        raise DataError(file.name, None, f"expected {count} names, one per line; got {len(names)}")
    return text_array(names)


def _read_split(file: TextFile | None, n: int) -> Array | None:
    """The mask of the training rows, from either of the two kinds of files."""
    if file is None:
        return None
    with file:
        words = [line.split()[:1] for line in file.lines()]
    if all(word in (["train"], ["test"]) for word in words) and len(words) == n:
        return np.array([word == ["train"] for word in words])
    rows = np.zeros(n, bool)
    for line, word in enumerate(words, 1):
        if not word or not re.fullmatch("[0-9]{1,10}", word[0]) or not 0 < int(word[0]) <= n:
            raise file.error(f"expected a row from 1 to {n}; got {shown(' '.join(word))}", line)
        rows[int(word[0]) - 1] = True
    return rows


def write_sparse_text(data: Dataset, path: Path) -> None:
    """Write a data set, with its names and its split in files beside it."""
    X, Y = sparse.csr_array(data.X), data.Y
    split = None if data.train is None else np.where(data.train, "train", "test")
    beside = {"labels": data.label_names, "features": data.feature_names, "split": split}
    targets = {key: path.with_suffix(f".{key}.txt") for key in beside}
    for key, names in beside.items():
        for name in () if names is None else names.tolist():
            if "\n" in name or "\r" in name:
                raise ValueError(f"the name {name!r} cannot be written: it must fit on one line")
        if names is None and targets[key].exists():
            raise ValueError(
                f"{targets[key]} exists and would be read as the {key} of this data set, which "
                "has none; remove it, or write to another file"
            )
    with ExitStack() as files:  # all or none
        for key, names in beside.items():
            if names is not None:
                names_file = files.enter_context(replacing(targets[key]))
                names_file.write("".join(f"{name}\n" for name in names.tolist()).encode())
        file = files.enter_context(replacing(path))
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for row in range(X.shape[0]):
            labels = ",".join(str(label) for label, _ in row_entries(Y, row))
            pairs = "".join(f" {column}:{value!r}" for column, value in row_entries(X, row))
            file.write(f"{labels}{pairs or ' '}\n".encode())
