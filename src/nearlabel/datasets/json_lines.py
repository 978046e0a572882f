"""JSON lines: reading in one pass, and writing.

Either each line has the features of a row as one list or object, or it is a row of a table.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import row_entries
from nearlabel.common.files import replacing
from nearlabel.common.messages import plain_json, shown
from nearlabel.datasets.column_values import SparseRows
from nearlabel.datasets.dataset import Dataset, check_label_count, unlabeled
from nearlabel.datasets.folders_and_archives import DataFile
from nearlabel.datasets.read_options import ReadOptions
from nearlabel.datasets.row_fields import Numbers, RowFields
from nearlabel.datasets.table_rows import Table
from nearlabel.datasets.text_lines import TextFile, column_names, names_or_numbers, number


def read_json_lines(source: DataFile, options: ReadOptions) -> Dataset:
    """Read objects, one per line.

    Either each has ``features`` (a list of numbers, or an object of names and numbers of which the
    others are 0), and perhaps ``labels`` (a list of texts), ``id`` and ``split``; or each is a row
    of a table. A first line that `write_json_lines` made has the names of all columns.
    """
    with source.text() as file:
        return _read(file, options)


def _read(file: TextFile, options: ReadOptions) -> Dataset:
    rows: Table | _Vectors | None = None
    for line in file.lines():
        if not line.strip():
            continue
        row = _json_object(file, line)
        if rows is None and "nearlabel" in row:
            rows = _Vectors(file, row, options)
            continue
        if rows is None:
            nested = isinstance(row.get("features"), list | dict)
            rows = _Vectors(file, {}, options) if nested else Table(file, list(row), options)
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
        row = plain_json(line)
    except (ValueError, RecursionError):
        raise file.error(f"a JSON object expected; got {shown(line.strip())}") from None
    if not isinstance(row, dict):
        raise file.error(f"a JSON object expected; got {shown(line.strip())}")
    return row


class _Vectors:
    """Rows with their features as one list or object."""

    def __init__(self, file: TextFile, header: Mapping[str, Any], options: ReadOptions) -> None:
        self._file = file
        self._width = _size(file, header, "features")
        self._feature_names = _listed(file, header, "feature_names")
        self._label_names = _listed(file, header, "label_names")
        self._label_count = _size(file, header, "labels")
        if options.ignore or options.labels:
            raise file.error("ignore= and labels= say nothing where features are one value")
        self._options = options
        if options.features is not None and not header:
            self._feature_names, self._width = list(options.features), len(options.features)
        self._place = {name: column for column, name in enumerate(self._feature_names or ())}
        self._grows = self._width is None
        self._sparse: bool | None = None
        self._lists, self._objects = array("d"), SparseRows()
        self._rows = RowFields(file, options.separator)

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
            known = {
                self._column(name): value for name, value in zip(features, numbers, strict=True)
            }
            known.pop(-1, None)
            self._objects.add(known.keys(), known.values())
        else:
            self._width = len(values) if self._width is None else self._width
            if len(values) != self._width or not values:
                raise self._file.error(f"{self._width} features expected; got {len(values)}")
            self._lists.extend(numbers)
        self._rows.add(self._labels(row), row.get(self._options.id or "id"), row.get("split"))

    def _labels(self, row: dict[str, Any]) -> Any:
        keys = ("labels", "tags") if self._options.tags is None else (self._options.tags,)
        key = next((key for key in keys if key in row), None)
        if key is None or self._options.labels is not None:
            return None
        return [] if row[key] is None else row[key]

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
        if self._options.features is not None:
            return -1  # one that the model does not know
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
            return self._rows.finish(parts, Numbers(self._label_count))
        return self._rows.finish(parts, self._label_names)


def _size(file: TextFile, header: Mapping[str, Any], key: str) -> int | None:
    size = header.get(key)
    if size is not None and (type(size) is not int or not 0 <= size < 2**31):
        raise file.error(f"{key}: the number of {key} expected; got {shown(str(size))}")
    if size is not None and key == "labels":
        try:
            check_label_count(size)
        except ValueError as error:
            raise file.error(str(error)) from None
    return size


def _listed(file: TextFile, header: Mapping[str, Any], key: str) -> list[str] | None:
    names = header.get(key)
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise file.error(f"{key}: a list of texts expected")
    return names


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
        result["features"] = {features[column]: value for column, value in row_entries(X, row)}
    else:
        result["features"] = X[row].tolist()
    if Y.shape[1]:
        result["labels"] = [labels[label] for label, _ in row_entries(Y, row)]
    return result
