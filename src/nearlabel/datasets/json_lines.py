"""JSON: objects one per line or in one array, read in one pass, and written.

Either each object has the features of a row as one list or object, or it is a row of a table.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Tree, row_entries
from nearlabel.common.files import replacing
from nearlabel.common.messages import first_twice, plain_json, shown
from nearlabel.datasets.column_values import ColumnNumbers, Columns, SparseRows, names_of, numbered
from nearlabel.datasets.data_files import DataFile, ReadOptions
from nearlabel.datasets.dataset import Dataset, too_many_labels, unlabeled
from nearlabel.datasets.frames import is_frame
from nearlabel.datasets.row_fields import RowFields
from nearlabel.datasets.table_columns import written_columns, written_row
from nearlabel.datasets.table_rows import TableReader
from nearlabel.datasets.text_lines import (
    DataError,
    TextFile,
    names_or_numbers,
    number,
)

_LONGEST_ARRAY = 2**28  # characters
_BLANKS = re.compile(r"[ \t\r\n]*+")  # the only whitespace of JSON


def read_json_lines(source: DataFile) -> Dataset:
    """Read objects, one per line.

    Either each has ``features`` (a list of numbers, or an object of names and numbers of which the
    others are 0), and perhaps ``labels`` (a list of strings), ``id`` and ``split``; or each is a
    row of a table. The first line that `write_json_lines` writes has the names of all columns.
    """
    with source.text() as file:
        lines = filter(str.strip, file.lines())
        return _read_objects(file, (json_object(file, line) for line in lines), source.options)


def read_json_array(source: DataFile) -> Dataset:
    """Read an array of objects, each of the same form as a line of JSON lines."""
    with source.text() as file:
        return _read_objects(file, _elements(file), source.options)


def is_json_array(source: DataFile) -> bool:
    """Whether a file begins with an array; JSON files may contain anything."""
    return source.first_line().lstrip().startswith("[")


def _elements(file: TextFile) -> Iterator[Tree]:
    """The objects of an array, which is read as a whole and decoded one by one."""
    lines, size = [], 0
    for text in file.lines():
        lines.append(text)
        size += len(text)
        if size > _LONGEST_ARRAY:
            raise file.error(f"the array is longer than {_LONGEST_ARRAY // 2**20} MiB")
    text, place, line, expected = "".join(lines), 0, 1, "["
    while True:
        start = _BLANKS.match(text, place).end()  # type: ignore[union-attr]
        line += text.count("\n", place, start)
        place, file.line, mark = start, line, text[start : start + 1]
        if not mark or mark not in expected:
            break
        if mark != "{":
            expected = {"[": "{]", ",": "{", "]": ""}[mark]
            place += 1
            continue
        element, place = _decoded(file, text, start)
        yield element
        line += text.count("\n", start, place)
        expected = ",]"
    if mark or expected:
        wrong = repr(mark) if mark else "the end of the file"
        raise file.error(f"expected an array of objects [{{…}}, {{…}}]; got {wrong}")


def json_object(file: TextFile, line: str) -> Tree:
    """The object of a line, or a `DataError`."""
    text = line.strip(" \t\r\n")
    row, end = _decoded(file, text, 0)
    if not isinstance(row, dict) or end < len(text):
        raise _not_an_object(file, line)
    return row


def _decoded(file: TextFile, text: str, start: int) -> tuple[Tree, int]:
    """What is written at a place, and where it ends; an error for invalid JSON."""
    try:
        return _DECODER.raw_decode(text, start)
    except KeyError as twice:
        raise file.error(f"the key {shown(twice.args[0])} occurs twice") from None
    except (ValueError, RecursionError):
        raise _not_an_object(file, text[start:]) from None


def _not_an_object(file: TextFile, text: str) -> DataError:
    return file.error(f"expected a JSON object; got {shown(text.strip())}")


def _with_distinct_keys(pairs: list[tuple[str, object]]) -> Tree:
    """A JSON object; a repeated key raises an error instead of taking the last value."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise KeyError(first_twice(key for key, _ in pairs))
    return record


# Rejects NaN and infinities like `plain_json`. Made once, since that takes longer than a line.
_DECODER = json.JSONDecoder(object_pairs_hook=_with_distinct_keys, parse_constant=plain_json)


def _read_objects(file: TextFile, objects: Iterator[Tree], options: ReadOptions) -> Dataset:
    first = next(objects, None)
    if first is None:
        raise file.error("expected objects {…}; the file is empty", 1)
    header = first if "nearlabel" in first else {}
    rows = objects if header else chain([first], objects)
    if header or isinstance(first.get("features"), list | dict):
        return _read_vectors(file, header, rows, options)
    table = TableReader(file, list(first), options)
    table.add_rows(_table_rows(file, rows, table.columns, bool(options.gaps)))
    return table.dataset()


def _table_rows(
    file: TextFile, objects: Iterable[Tree], columns: list[str], gaps: bool
) -> Iterator[list[object]]:
    """Objects as rows of cells; with `gaps` they may lack keys."""
    keys = set(columns)
    for row in objects:
        if row.keys() != keys and not (gaps and row.keys() < keys):
            odd = sorted(row.keys() ^ keys)[0]
            raise file.error(f"all rows must have the same keys; some do not have {shown(odd)}")
        yield [row.get(name) for name in columns]


def _read_vectors(
    file: TextFile, header: Tree, rows: Iterable[Tree], options: ReadOptions
) -> Dataset:
    """Read rows with their features as one list or object."""
    if options.ignore or options.labels:
        raise file.error("ignore= and labels= are not supported if features are one list or object")
    labels, columns = _declared(file, header, "label"), _declared(file, header, "feature")
    if options.features and not header:
        columns = numbered(options.features)
    seen: dict[str, int] = {}  # the features of objects, if no columns are declared
    form: type | None = None  # list or dict, as in the first row
    lists, objects = array("d"), SparseRows()
    fields = RowFields(file, options.separator, for_model=options.features is not None)
    tag_keys = ("labels", "tags") if options.tags is None else (options.tags,)
    for row in rows:
        features = row.get("features")
        if isinstance(features, list) and form in (list, None):
            form = list
            lists.extend(_number(file, value) for value in features)
            columns = ColumnNumbers(len(features)) if columns is None else columns
            if len(features) != len(columns) or not features:
                raise file.error(f"expected {len(columns)} features; got {len(features)}")
        elif isinstance(features, dict) and form in (dict, None):
            form = dict
            cells: dict[int, float] = {}
            for name, value in features.items():
                place = seen.setdefault(name, len(seen)) if columns is None else columns.get(name)
                if place is not None:
                    cells[place] = _number(file, value)
                elif options.features is None:  # others are just not known to the model
                    raise file.error(f"{shown(name)} is not one of the features")
            objects.add(cells.keys(), cells.values())
        else:
            wanted = "an object" if form is dict else "a list"
            raise file.error(f"features: expected {wanted}, as in the first row")
        key = next((key for key in tag_keys if key in row), None)
        tags = None if key is None or options.labels is not None else row[key] or []
        fields.add(tags, row.get(options.id or "id"), row.get("split"))
    columns = seen if columns is None else columns
    if not fields.count:
        raise file.error("there are no rows after the first line")
    if not columns:
        raise file.error("no row has a feature")
    X = np.array(lists).reshape(fields.count, -1)
    X = objects.matrix(len(columns)) if form is dict else X
    data = Dataset(X, unlabeled(fields.count), feature_names=names_of(columns))
    return fields.finish(data, labels)


def _number(file: TextFile, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            return number(value)
    raise file.error(f"features: expected finite numbers; got {shown(str(value))}")


def _declared(file: TextFile, header: Tree, what: str) -> Columns | None:
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
    return ColumnNumbers(count)


def write_json_lines(data: Dataset, path: Path) -> None:
    """Write a data set as JSON lines: a first line with the names, then one row per line."""
    write_json_records(path, _records(data))


def write_json_array(data: Dataset, path: Path) -> None:
    """Write a data set as one array: an object with the names, then one object per row."""
    with replacing(path) as file:
        for place, record in enumerate(_records(data)):
            text = json.dumps(record, ensure_ascii=False, allow_nan=False)
            file.write(f"{',' if place else '['}\n{text}".encode())
        file.write(b"\n]\n")


def write_json_records(path: Path | str, records: Iterable[Mapping[str, object]]) -> None:
    """Write objects to a file, one per line."""
    with replacing(path) as file:
        for record in records:
            line = json.dumps(record, ensure_ascii=False, allow_nan=False)
            file.write(f"{line}\n".encode())


def _records(data: Dataset) -> Iterator[Tree]:
    """The objects of a data set: one with the names, then one per row; for a frame only rows."""
    if is_frame(data.X):
        columns = written_columns(data)
        for row in range(len(data)):
            yield dict(zip(columns, written_row(data, row), strict=True))
        return
    d, q = data.X.shape[1], data.Y.shape[1]
    labels = names_or_numbers(data.label_names, q)
    features = names_or_numbers(data.feature_names, d)
    header: Tree = {"nearlabel": 1, "features": d, "labels": q}
    for key in ("feature_names", "label_names"):
        if getattr(data, key) is not None:
            header[key] = getattr(data, key).tolist()
    yield header
    for row in range(len(data)):
        record: Tree = {}
        if data.row_names is not None:
            record["id"] = str(data.row_names[row])
        if data.train is not None:
            record["split"] = "train" if data.train[row] else "test"
        if sparse.issparse(data.X):
            cells = row_entries(data.X, row)
            record["features"] = {features[column]: value for column, value in cells}
        else:
            record["features"] = data.X[row].tolist()
        if q:
            record["labels"] = [labels[label] for label, _ in row_entries(data.Y, row)]
        yield record
