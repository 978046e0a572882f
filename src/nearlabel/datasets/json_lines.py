"""JSON lines: reading in one pass, and writing.

Either each line has the features of a row as one list or object, or it is a row of a table.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import row_entries
from nearlabel.common.files import replacing
from nearlabel.common.messages import first_twice, plain_json, shown
from nearlabel.datasets.column_values import Columns, Numbers, SparseRows, names_of, numbered
from nearlabel.datasets.data_files import DataFile, ReadOptions
from nearlabel.datasets.dataset import Dataset, too_many_labels, unlabeled
from nearlabel.datasets.frames import is_frame
from nearlabel.datasets.row_fields import RowFields
from nearlabel.datasets.table_rows import Table
from nearlabel.datasets.text_lines import TextFile, names_or_numbers, number
from nearlabel.datasets.written_tables import table_columns, table_row


def read_json_lines(source: DataFile) -> Dataset:
    """Read objects, one per line.

    Either each has ``features`` (a list of numbers, or an object of names and numbers of which the
    others are 0), and perhaps ``labels`` (a list of strings), ``id`` and ``split``; or each is a
    row of a table. The first line that `write_json_lines` writes has the names of all columns.
    """
    with source.text() as file:
        return read_objects(file, filter(str.strip, file.lines()), source.options)


def read_objects(file: TextFile, texts: Iterable[str], options: ReadOptions) -> Dataset:
    """Read the objects of a file, given as strings."""
    objects = (json_object(file, text) for text in texts)
    first = next(objects, None)
    if first is None:
        raise file.error("expected objects {…}; the file is empty", 1)
    header = first if "nearlabel" in first else {}
    rows = objects if header else chain([first], objects)
    if header or isinstance(first.get("features"), list | dict):
        return _read_vectors(file, header, rows, options)
    table, keys = Table(file, list(first), options), first.keys()
    for row in rows:
        if row.keys() != keys and not (options.gaps and row.keys() < keys):
            odd = sorted(row.keys() ^ keys)[0]
            raise file.error(f"all rows must have the same keys; some do not have {shown(odd)}")
        table.add([row.get(name) for name in table.columns])
    return table.dataset()


def json_object(file: TextFile, line: str) -> dict[str, Any]:
    """The object of a line, or a `DataError`."""
    row = None
    try:
        row = _decode(line)
    except KeyError as twice:
        raise file.error(f"the key {shown(twice.args[0])} occurs twice") from None
    except (ValueError, RecursionError):
        pass
    if not isinstance(row, dict):
        raise file.error(f"expected a JSON object; got {shown(line.strip())}")
    return row


def _with_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a repeated key raises an error instead of taking the last value."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise KeyError(first_twice(key for key, _ in pairs))
    return made


# Rejects NaN and infinities like `plain_json`. Made once, since that takes longer than a line.
_decode = json.JSONDecoder(object_pairs_hook=_with_distinct_keys, parse_constant=plain_json).decode


def _read_vectors(
    file: TextFile, header: dict[str, Any], rows: Iterable[dict[str, Any]], options: ReadOptions
) -> Dataset:
    """Read rows with their features as one list or object."""
    if options.ignore or options.labels:
        raise file.error("ignore= and labels= are not supported if features are one list or object")
    labels, columns = _declared(file, header, "label"), _declared(file, header, "feature")
    if options.features and not header:
        columns = numbered(options.features)
    found: dict[str, int] = {}  # the features of objects, if no columns are declared
    kind: type | None = None  # list or dict, as in the first row
    lists, objects = array("d"), SparseRows()
    fields = RowFields(file, options.separator, for_model=options.features is not None)
    for row in rows:
        features: Any = row.get("features")
        if type(features) not in ((list, dict) if kind is None else (kind,)):
            form = "an object" if kind is dict else "a list"
            raise file.error(f"features: expected {form}, as in the first row")
        kind = type(features)
        if isinstance(features, list):
            lists.extend(_number(file, value) for value in features)
            columns = Numbers(len(features)) if columns is None else columns
            if len(features) != len(columns) or not features:
                raise file.error(f"expected {len(columns)} features; got {len(features)}")
        else:
            cells: dict[Any, float] = {}
            for name, value in features.items():
                place = found.setdefault(name, len(found)) if columns is None else columns.get(name)
                if place is None and options.features is None:
                    raise file.error(f"{shown(name)} is not one of the features")
                cells[place] = _number(file, value)
            cells.pop(None, None)  # features that the model does not know
            objects.add(cells.keys(), cells.values())
        fields.add(_tags(row, options), row.get(options.id or "id"), row.get("split"))
    columns = found if columns is None else columns
    if not fields.count:
        raise file.error("there are no rows after the first line")
    if not columns:
        raise file.error("no row has a feature")
    is_sparse = kind is dict
    X = objects.matrix(len(columns)) if is_sparse else np.array(lists).reshape(fields.count, -1)
    data = Dataset(X, unlabeled(fields.count), feature_names=names_of(columns))
    return fields.finish(data, labels)


def _number(file: TextFile, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            return number(value)
    raise file.error(f"features: expected finite numbers; got {shown(str(value))}")


def _tags(row: dict[str, Any], options: ReadOptions) -> Any:
    keys = ("labels", "tags") if options.tags is None else (options.tags,)
    key = next((key for key in keys if key in row), None)
    if key is None or options.labels is not None:
        return None
    return [] if row[key] is None else row[key]


def _declared(file: TextFile, header: Mapping[str, Any], what: str) -> Columns | None:
    """The labels or the features that the first line names or counts, if it does."""
    count, named = header.get(f"{what}s"), header.get(f"{what}_names")
    if count is not None and (type(count) is not int or not 0 <= count < 2**31):
        raise file.error(f"{what}s: expected the number of {what}s; got {shown(str(count))}")
    if named is not None:
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise file.error(f"{what}_names must be a list of strings")
        if (twice := first_twice(named)) is not None:
            raise file.error(f"{what}_names must be unique; got {shown(twice)} twice")
        if count not in (None, len(named)):
            raise file.error(f"{what}_names has {len(named)} names, but {what}s is {count}")
        return numbered(named)
    if count is None:
        return None
    if what == "label" and (problem := too_many_labels(count)):
        raise file.error(problem)
    return Numbers(count)


def write_json_lines(data: Dataset, path: Path) -> None:
    """Write a data set as JSON lines: a first line with the names, then one row per line."""
    write_json_records(path, json_records(data))


def json_records(data: Dataset) -> Iterator[dict[str, Any]]:
    """The objects of a data set: one with the names, then one per row; for a frame only rows."""
    if is_frame(data.X):
        columns = table_columns(data)
        yield from (
            dict(zip(columns, table_row(data, row), strict=True)) for row in range(len(data))
        )
        return
    d, q = data.X.shape[1], data.Y.shape[1]
    labels = names_or_numbers(data.label_names, q)
    features = names_or_numbers(data.feature_names, d)
    header: dict[str, Any] = {"nearlabel": 1, "features": d, "labels": q}
    for key in ("feature_names", "label_names"):
        if getattr(data, key) is not None:
            header[key] = getattr(data, key).tolist()
    yield header
    yield from (_json_row(data, row, features, labels) for row in range(len(data)))


def write_json_records(path: Path | str, records: Iterable[Mapping[str, Any]]) -> None:
    """Write objects to a file, one per line."""
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
