"""Tables with a header (CSV, TSV) and JSON lines: reading in one pass, and writing.

A column is a number or a nominal value, as its first cell is. Some columns have a meaning of their
own, by name or because the caller says so: ``tags`` (the labels of a row in one cell),
``label:NAME`` (one label, 0 or 1), ``id`` (the name of a row), ``split`` ("train" or "test").
"""

from __future__ import annotations

import csv
import io
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.arrays import Array, Csr
from nearlabel.datasets.columns import Column, SparseRows, assembled, source_columns
from nearlabel.datasets.dataset import Dataset, unlabeled
from nearlabel.datasets.text import (
    DataError,
    TextFile,
    column_names,
    names_or_numbers,
    number,
    truth,
)
from nearlabel.persistence import replacing
from nearlabel.texts import shown, text_array

_LABEL, _FEATURE = "label:", "feature:"
_SEPARATORS = (";", "|", ",")
_MOST_VALUES = 100  # of a nominal column: one with more is a text or a name, no feature


@dataclass(frozen=True)
class Roles:
    """Which columns of a table are what; None where their names are to tell.

    Attributes
    ----------
    labels : sequence of str or None
        Columns of 0 and 1. Empty: no labels are wanted.
    tags : str or None
        The column that has all labels of a row.
    separator : str or None
        Between two tags. None: the first of ``;``, ``|`` and ``,`` that occurs in any row.
    id : str or None
    ignore : sequence of str
    features : sequence of str or None
        The features that a model knows: only these are read.
    """

    labels: Sequence[str] | None = None
    tags: str | None = None
    separator: str | None = None
    id: str | None = None
    ignore: Sequence[str] = ()
    features: Sequence[str] | None = None


def read_csv(file: TextFile, roles: Roles, delimiter: str | None = None) -> Dataset:
    """Read a table whose first row has the names of the columns.

    Where ``;`` stands between its cells, numbers may have a decimal comma.
    """
    lines = file.lines()
    header = next(lines, "")
    if not header.strip():
        raise file.error("a first row with the names of the columns expected", 1)
    if delimiter is None:
        delimiter = max(",;\t", key=lambda mark: _outside_quotes(header).count(mark))
    rows = csv.reader(chain([header], lines), delimiter=delimiter, strict=True)
    table: _Table | None = None
    try:
        for row in rows:
            if table is None:
                names = [_stripped(name) for name in row]
                table = _Table(file, names, roles, decimal_comma=delimiter == ";")
            elif row:
                table.add(row)
    except csv.Error as error:
        raise file.error(f"this is no row of a table: {error}") from None
    assert table is not None
    return table.dataset()


def read_json_lines(file: TextFile, roles: Roles) -> Dataset:
    """Read objects, one a line.

    Either each has ``features`` (a list of numbers, or an object of names and numbers of which the
    others are 0), and perhaps ``labels`` (a list of texts), ``id`` and ``split``; or each is a row
    of a table. A first line that `write_json_lines` made has the names of all columns.
    """
    rows: _Table | _Vectors | None = None
    for line in file.lines():
        if not line.strip():
            continue
        row = _json_object(file, line)
        if rows is None and "nearlabel" in row:
            rows = _Vectors(file, row, roles)
            continue
        if rows is None:
            nested = isinstance(row.get("features"), list | dict)
            rows = _Vectors(file, {}, roles) if nested else _Table(file, list(row), roles)
        if isinstance(rows, _Vectors):
            rows.add(row)
        else:
            if row.keys() != rows.names:
                odd = sorted(row.keys() ^ rows.names)[0]
                raise file.error(
                    f"all rows must have the same keys; {shown(odd)} is not in all of them"
                )
            rows.add([row[name] for name in rows.columns])
    if rows is None:
        raise file.error("an object {…} a line expected; the file is empty", 1)
    return rows.dataset()


def _json_object(file: TextFile, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise file.error(f"a JSON object expected; got {shown(line.strip())}") from None
    if not isinstance(row, dict):
        raise file.error(f"a JSON object expected; got {shown(line.strip())}")
    return row


def _no_number(name: str) -> float:
    raise ValueError(name)


def _stripped(name: str) -> str:
    """The name of a column without blanks around it, which are part only of a marked name."""
    return name if name.startswith((_LABEL, _FEATURE)) else name.strip()


def _outside_quotes(text: str) -> str:
    return "".join(text.split('"')[::2])


class _RowParts:
    """What rows have beside features: labels, names and the split."""

    def __init__(self, file: TextFile, separator: str | None) -> None:
        self._file, self._separator = file, separator
        self._sets: dict[Any, int] = {}  # each distinct cell of tags, and its number
        self._set_of = array("q")
        self._names: list[str] = []
        self._train = bytearray()
        self.count = 0

    def add(self, tags: Any, name: Any, split: Any) -> None:
        self.count += 1
        if tags is not None:
            if isinstance(tags, list):
                if not all(isinstance(tag, str) for tag in tags):
                    raise self._file.error("labels as a list of texts expected")
                tags = tuple(tags)
            elif not isinstance(tags, str):
                raise self._file.error(f"labels as text expected; got {shown(str(tags))}")
            self._set_of.append(self._sets.setdefault(tags, len(self._sets)))
        if name is not None:
            self._names.append(str(name))
        if split is not None:
            if split not in ("train", "test"):
                raise self._file.error(f"split: train or test expected; got {shown(str(split))}")
            self._train.append(split == "train")

    def finish(self, data: Dataset, label_names: Sequence[str] | _Numbers | None) -> Dataset:
        """The data set with what the rows had; with labels of its own where they had none."""
        for what, count in (
            ("labels", len(self._set_of)),
            ("id", len(self._names)),
            ("split", len(self._train)),
        ):
            if count not in (0, self.count):
                raise DataError(self._file.name, None, f"not all rows have {what}")
        Y, names = data.Y, data.label_names
        if self._set_of:
            Y, names = self._labels(label_names)
        return Dataset(
            data.X,
            Y,
            names,
            data.feature_names,
            np.array(self._train, dtype=bool) if self._train else None,
            text_array(self._names) if self._names else None,
        )

    def _labels(self, label_names: Sequence[str] | _Numbers | None) -> tuple[Csr, Array | None]:
        texts = [cell for cell in self._sets if isinstance(cell, str)]
        separator = self._separator or next(
            (mark for mark in _SEPARATORS if any(mark in text for text in texts)), None
        )
        sets = [_tags(cell, separator) for cell in self._sets]
        known = sorted({tag for tags in sets for tag in tags})
        names = known if label_names is None else label_names
        place: _Numbers | dict[str, int]
        if isinstance(names, _Numbers):
            place = names
        else:
            place = {name: column for column, name in enumerate(names)}
        unknown = next((tag for tag in known if place.get(tag) is None), None)
        if unknown is not None:
            raise DataError(self._file.name, None, f"{shown(unknown)} is none of its labels")
        if not len(names):
            raise DataError(self._file.name, None, "no row has a label")
        columns = [np.array(sorted(map(place.get, tags)), np.int32) for tags in sets]  # type: ignore[type-var]
        sizes = np.array([len(part) for part in columns])
        of = np.array(self._set_of)
        indices = np.concatenate([columns[number] for number in of.tolist()])
        indptr = np.concatenate([[0], np.cumsum(sizes[of])])
        ones = np.ones(len(indices), np.int8)
        Y = sparse.csr_array((ones, indices, indptr), (len(of), len(names)))
        return Y, None if isinstance(names, _Numbers) else column_names(list(names))


def _tags(cell: str | tuple[str, ...], separator: str | None) -> set[str]:
    parts = cell if isinstance(cell, tuple) else cell.split(separator) if separator else [cell]
    return set(parts) if isinstance(cell, tuple) else {tag.strip() for tag in parts} - {""}


class _Table:
    """Rows of named cells."""

    def __init__(
        self, file: TextFile, columns: list[str], roles: Roles, decimal_comma: bool = False
    ) -> None:
        self._file, self._roles, self._decimal_comma = file, roles, decimal_comma
        self.columns, self.names = columns, set(columns)
        if len(self.names) < len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            raise file.error(f"the column {shown(twice)} is there twice")
        self._labels, tags = self._find_labels()
        self._tags = self._place(tags)
        self._id = self._place(roles.id or self._named("id"))
        self._split = self._place(self._named("split"))
        special = {self._tags, self._id, self._split}
        ignored = set(roles.ignore)
        self._places: list[int] = []  # of features and labels
        self._names: list[str] = []
        known = None if roles.features is None else source_columns(roles.features)
        for place, name in enumerate(columns):
            wanted = known is None or name in self._labels or name.removeprefix(_FEATURE) in known
            if place not in special and name not in ignored and wanted:
                self._places.append(place)
                self._names.append(name.removeprefix(_FEATURE))
        if not self._places:
            raise file.error("there is no column of features", 1)
        self._codes: list[dict[str, int] | None] = []
        self._fast: list[Callable[[Any], float]] = []
        self._cells = array("d")
        self._rows = _RowParts(file, roles.separator)

    def _find_labels(self) -> tuple[list[str], str | None]:
        """The columns that are labels, and the one that has all of them in one cell."""
        roles = self._roles
        for what, wanted in (("labels", roles.labels), ("ignore", roles.ignore)):
            unknown = next((name for name in wanted or () if name not in self.names), None)
            if unknown is not None:
                raise self._no_column(what, unknown)
        if roles.tags is not None or roles.labels is not None:
            return list(roles.labels or ()), roles.tags
        marked = [name for name in self.columns if name.startswith(_LABEL)]
        tags = self._named("tags") or self._named("labels")
        if not marked and tags is None:
            raise self._file.error(
                "which columns are labels? There is no column 'tags'; give tags= or labels=", 1
            )
        return marked, None if marked else tags

    def _named(self, word: str) -> str | None:
        return next((name for name in self.columns if name.lower() == word), None)

    def _place(self, name: str | None) -> int | None:
        if name is None:
            return None
        if name not in self.names:
            raise self._no_column("tags or id", name)
        return self.columns.index(name)

    def _no_column(self, what: str, name: str) -> DataError:
        there = ", ".join(map(shown, self.columns[:8])) + (", …" if len(self.columns) > 8 else "")
        return self._file.error(f"{what}: there is no column {shown(name)}; there are {there}", 1)

    def add(self, row: Sequence[Any]) -> None:
        """Take up a row: texts, or values of JSON."""
        if len(row) != len(self.columns):
            raise self._file.error(f"{len(self.columns)} cells expected; got {len(row)}")
        cells = [row[place] for place in self._places]
        if not self._rows.count:
            self._begin(cells)
        numbers = self._plain(cells)
        if numbers is None:
            numbers = [
                self._number(name, cell) if codes is None else self._code(name, codes, cell)
                for name, codes, cell in zip(self._names, self._codes, cells, strict=True)
            ]
        self._cells.extend(numbers)
        special = (self._tags, self._id, self._split)
        self._rows.add(*(None if place is None else row[place] for place in special))

    def _begin(self, cells: list[Any]) -> None:
        """Say by the first row how each column is read."""
        self._codes = [
            self._first_codes(name, cell) for name, cell in zip(self._names, cells, strict=True)
        ]
        said = {"0": 0.0, "1": 1.0}.__getitem__
        self._fast = [
            said if name in self._labels else float if codes is None else codes.__getitem__
            for name, codes in zip(self._names, self._codes, strict=True)
        ]

    def _plain(self, cells: list[Any]) -> list[float] | None:
        """A row of plain numbers and known values; None where it must be read more carefully."""
        try:
            numbers = [read(cell) for read, cell in zip(self._fast, cells, strict=True)]
            text = "".join(cells)
        except (ValueError, KeyError, TypeError, OverflowError):
            return None
        is_sound = sum(numbers) * 0 == 0 and "_" not in text and text.isascii()
        return numbers if is_sound else None

    def _first_codes(self, name: str, cell: Any) -> dict[str, int] | None:
        """The values of a nominal column, which will grow; None for a column of numbers."""
        features = self._roles.features
        if name in self._labels or (features is not None and name in features):
            return None
        if features is not None:
            values = [feature for feature in features if feature.startswith(f"{name}=")]
            return {feature.removeprefix(f"{name}="): code for code, feature in enumerate(values)}
        try:
            self._number(name, cell)
        except DataError:
            return {}
        return None

    def _number(self, name: str, cell: Any) -> float:
        said = truth(cell) if isinstance(cell, str) and self._takes_words(name) else None
        if said is not None:
            return float(said)
        if isinstance(cell, str) and self._decimal_comma:  # as spreadsheets in Europe write them
            cell = cell.replace(",", ".")
        if isinstance(cell, str | int | float):
            with suppress(ValueError, OverflowError):
                value = number(cell)
                if name not in self._labels or value in (0, 1):
                    return value
        wanted = "0 or 1" if name in self._labels else "a finite number"
        empty = " (the cell is empty)" if cell in ("", None) else ""
        raise self._file.error(
            f"column {shown(name)}: {wanted} expected; got {shown(str(cell))}{empty}"
        )

    def _takes_words(self, name: str) -> bool:
        """Whether a column of 0 and 1 may have words for them."""
        return name in self._labels or self._roles.features is not None

    def _code(self, name: str, codes: dict[str, int], cell: Any) -> float:
        if not isinstance(cell, str) or not cell.strip():
            raise self._file.error(
                f"column {shown(name)}: a text expected, as in the rows before; "
                f"got {shown(str(cell))}"
            )
        if self._roles.features is not None:
            return codes.get(cell.strip(), -1)  # a value that the model does not know is no value
        code = codes.setdefault(cell.strip(), len(codes))
        if code >= _MOST_VALUES:
            raise self._no_feature(name, f"more than {_MOST_VALUES} different texts")
        return code

    def _no_feature(self, name: str, why: str) -> DataError:
        return DataError(
            self._file.name,
            None,
            f"column {shown(name)} has {why}: it is no feature; leave it out (ignore=), "
            "or take it as the rows' name (id=)",
        )

    def dataset(self) -> Dataset:
        """All rows; nominal columns as one column a value, in the order of the values."""
        n = self._rows.count
        if not n:
            raise self._file.error("there is no row under the names of the columns")
        cells = np.frombuffer(self._cells).reshape(n, len(self._places))
        columns = []
        for place, (name, codes) in enumerate(zip(self._names, self._codes, strict=True)):
            if codes is None or self._roles.features is not None:
                columns.append(Column(name, codes))
                continue
            if n > 20 and len(codes) > n / 2:
                raise self._no_feature(name, f"{len(codes)} different texts in {n} rows")
            values = sorted(codes)
            order = {codes[value]: code for code, value in enumerate(values)}
            cells[:, place] = np.array([order[code] for code in range(len(codes))])[
                cells[:, place].astype(np.intp)
            ]
            columns.append(Column(name, {value: code for code, value in enumerate(values)}))
        data = assembled(self._file.name, columns, cells, self._labels, ())
        label_names = [name.removeprefix(_LABEL) for name in _texts(data.label_names)]
        features = column_names(_texts(data.feature_names))
        return self._rows.finish(Dataset(data.X, data.Y, column_names(label_names), features), None)


def _texts(names: Array | None) -> list[str]:
    return [] if names is None else [str(name) for name in names.tolist()]


class _Numbers:
    """The names 0, 1, 2 … of labels without names, however many they are."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def get(self, name: str) -> int | None:
        """The label of a name."""
        is_number = len(name) < 11 and name.isascii() and name.isdigit()
        return int(name) if is_number and int(name) < self._count else None


class _Vectors:
    """Rows with their features as one list or object."""

    def __init__(self, file: TextFile, header: Mapping[str, Any], roles: Roles) -> None:
        self._file = file
        self._width = _size(file, header, "features")
        self._feature_names = _listed(file, header, "feature_names")
        self._label_names = _listed(file, header, "label_names")
        self._label_count = _size(file, header, "labels")
        self._wants_labels = roles.labels is None
        self._place = {name: column for column, name in enumerate(self._feature_names or ())}
        self._grows = self._width is None
        self._sparse: bool | None = None
        self._lists, self._objects = array("d"), SparseRows()
        self._rows = _RowParts(file, roles.separator)

    def add(self, row: dict[str, Any]) -> None:
        """Take up a row."""
        features = row.get("features")
        if not isinstance(features, list | dict) or isinstance(features, dict) is not (
            isinstance(features, dict) if self._sparse is None else self._sparse
        ):
            form = "an object" if self._sparse else "a list"
            raise self._file.error(f"features: {form} expected, as in the first row")
        self._sparse = isinstance(features, dict)
        values = list(features.values()) if isinstance(features, dict) else features
        numbers = [self._number(value) for value in values]
        if isinstance(features, dict):
            self._objects.add([self._column(name) for name in features], numbers)
        else:
            self._width = len(values) if self._width is None else self._width
            if len(values) != self._width or not values:
                raise self._file.error(f"{self._width} features expected; got {len(values)}")
            self._lists.extend(numbers)
        labels = row.get("labels", row.get("tags")) if self._wants_labels else None
        self._rows.add(labels, row.get("id"), row.get("split"))

    def _number(self, value: Any) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            with suppress(ValueError, OverflowError):
                return number(value)
        raise self._file.error(f"features: finite numbers expected; got {shown(str(value))}")

    def _column(self, name: str) -> int:
        if self._grows:
            return self._place.setdefault(name, len(self._place))
        if self._feature_names is not None and name in self._place:
            return self._place[name]
        is_number = len(name) < 10 and name.isascii() and name.isdigit()
        if self._feature_names is None and is_number and int(name) < (self._width or 0):
            return int(name)
        raise self._file.error(f"{shown(name)} is none of the features")

    def dataset(self) -> Dataset:
        """All rows."""
        n = self._rows.count
        if not n:
            raise self._file.error("there is no row after the first line")
        names = list(self._place) if self._sparse and self._grows else self._feature_names
        width = len(self._place) if self._grows else self._width
        if self._sparse and not width:
            raise self._file.error("no row has a feature")
        X = self._objects.matrix(width or 0) if self._sparse else np.array(self._lists)
        X = X.reshape(n, -1) if X.ndim == 1 else X
        feature_names = None if names is None else column_names(names)
        parts = Dataset(X, unlabeled(n), None, feature_names)
        if self._label_names is None and self._label_count is not None:
            return self._rows.finish(parts, _Numbers(self._label_count))
        return self._rows.finish(parts, self._label_names)


def _size(file: TextFile, header: Mapping[str, Any], key: str) -> int | None:
    size = header.get(key)
    if size is not None and (type(size) is not int or not 0 <= size < 2**31):
        raise file.error(f"{key}: the number of {key} expected; got {shown(str(size))}")
    return size


def _listed(file: TextFile, header: Mapping[str, Any], key: str) -> list[str] | None:
    names = header.get(key)
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise file.error(f"{key}: a list of texts expected")
    return names


def write_csv(data: Dataset, path: Path, delimiter: str = ",") -> None:
    """Write a data set as a table, a label a column of 0 and 1."""
    n, d = data.X.shape
    features = [
        _FEATURE + name if _needs_mark(name) else name
        for name in names_or_numbers(data.feature_names, d)
    ]
    labels = [_LABEL + name for name in names_or_numbers(data.label_names, data.Y.shape[1])]
    before = {"id": data.row_names is not None, "split": data.train is not None}
    header = [name for name, is_there in before.items() if is_there] + features + labels

    def rows() -> Iterator[list[Any]]:
        yield header
        for row in range(n):
            first = [] if data.row_names is None else [data.row_names[row]]
            first += [] if data.train is None else ["train" if data.train[row] else "test"]
            yield [*first, *_dense_row(data.X, row), *_dense_row(data.Y, row)]

    # A mark that is none here would be taken for the delimiter where it stands in a name.
    odd = any(mark in name for name in header for mark in ",;\t\r")
    write_rows(path, rows(), delimiter, csv.QUOTE_NONNUMERIC if odd else csv.QUOTE_MINIMAL)


def _needs_mark(name: str) -> bool:
    """Whether a feature's name would be read as something else."""
    special = name.lower() in ("", "id", "split", "tags", "labels")
    return special or name.startswith((_LABEL, _FEATURE)) or name != name.strip()


def write_rows(
    path: Path | str,
    rows: Iterable[Sequence[Any]],
    delimiter: str = ",",
    quoting: Any = csv.QUOTE_MINIMAL,
) -> None:
    """Write a table to a file."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=quoting)
        writer.writerows(rows)
        text.detach()


def write_json_lines(data: Dataset, path: Path) -> None:
    """Write a data set as JSON lines: a first line with the names, then a row a line."""
    d, q = data.X.shape[1], data.Y.shape[1]
    labels = names_or_numbers(data.label_names, q)
    features = names_or_numbers(data.feature_names, d)
    header: dict[str, Any] = {"nearlabel": 1, "features": d, "labels": q}
    for key in ("feature_names", "label_names"):
        if getattr(data, key) is not None:
            header[key] = getattr(data, key).tolist()
    rows = (_json_row(data, row, features, labels) for row in range(len(data)))
    write_json_records(path, chain([header], rows))


def write_json_records(path: Path | str, records: Iterable[Mapping[str, Any]]) -> None:
    """Write objects to a file, one a line."""
    with replacing(path) as file:
        for record in records:
            line = json.dumps(record, ensure_ascii=False, allow_nan=False)
            file.write(f"{line}\n".encode())


def _json_row(data: Dataset, row: int, features: list[str], labels: list[str]) -> dict[str, Any]:
    X, Y = data.X, data.Y
    result: dict[str, Any] = {}
    if data.row_names is not None:
        result["id"] = str(data.row_names[row])
    if data.train is not None:
        result["split"] = "train" if data.train[row] else "test"
    if sparse.issparse(X):
        inside = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = X.indices[inside].tolist(), X.data[inside].tolist()
        pairs = zip(columns, values, strict=True)
        result["features"] = {features[column]: value for column, value in pairs}
    else:
        result["features"] = X[row].tolist()
    if Y.shape[1]:
        carried = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
        result["labels"] = [labels[label] for label in carried]
    return result


def _dense_row(matrix: Any, row: int) -> list[Any]:
    if not sparse.issparse(matrix):
        return list(matrix[row].tolist())
    cells = np.zeros(matrix.shape[1], matrix.dtype)
    inside = slice(matrix.indptr[row], matrix.indptr[row + 1])
    cells[matrix.indices[inside]] = matrix.data[inside]
    return list(cells.tolist())
