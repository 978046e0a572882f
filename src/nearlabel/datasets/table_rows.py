"""Rows of named cells, as CSV tables and JSON lines have them, read into a data set.

A column is a number or a nominal value, as its first cell is. Some columns have a meaning of their
own, by name or because the caller says so: ``tags`` (the labels of a row in one cell),
``label:NAME`` (one label, 0 or 1), ``id`` (the name of a row), ``split`` ("train" or "test").
"""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from nearlabel.common.messages import first_twice, shown, some
from nearlabel.datasets.column_values import Column, assembled, plain_row, source_columns
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.read_options import ReadOptions
from nearlabel.datasets.row_fields import RowFields
from nearlabel.datasets.text_lines import (
    LABEL_MARK,
    DataError,
    TextFile,
    column_names,
    column_texts,
    number,
    truth,
)

FEATURE_MARK = "feature:"  # before a feature whose name would mean something else
_MISSING = {"", "?", "na", "n/a", "#n/a", "nan", "null", "inf", "-inf"}  # as files spell it
_MOST_VALUES = 100  # of a nominal column: one with more is text or a name, not a feature


class Table:
    """Rows of named cells."""

    def __init__(
        self, file: TextFile, columns: list[str], options: ReadOptions, decimal_comma: bool = False
    ) -> None:
        self._file, self._options, self._decimal_comma = file, options, decimal_comma
        self.columns, self.names = columns, set(columns)
        known = None if options.features is None else source_columns(options.features)
        twice = first_twice(name for name in columns if known is None or name in known)
        if twice is not None:
            raise file.error(f"two columns have the name {shown(twice)}")
        self._ignored, self._features = frozenset(options.ignore), frozenset(options.features or ())
        labels, tags = self._find_labels()
        if options.labels is not None and not options.labels:  # they are found to be left out
            self._ignored |= {*labels, *([tags] if tags else [])}
            labels, tags = [], None
        self._labels = frozenset(labels)
        self._tags = self._place(tags)
        self._id = self._place(options.id or self._named("id"), "id")
        if self._id is None and not columns[0]:  # as pandas writes the names of rows
            self._id = 0
        self._split = self._place(self._named("split"))
        self._places, self._names = self._find_cells(known)
        self._codes: list[dict[str, int] | None] = []
        self._fast: list[Callable[[Any], float]] = []
        self._cells = array("d")
        self._unknown: dict[str, str] = {}  # columns and their first value that is not known
        self._rows = RowFields(file, options.separator, split_needed=known is None)

    def _find_labels(self) -> tuple[list[str], str | None]:
        """The columns that are labels, and the one that has all of them in one cell."""
        options = self._options
        for what, wanted in (("labels", options.labels), ("ignore", options.ignore)):
            unknown = next((name for name in wanted or () if name not in self.names), None)
            if unknown is not None:
                raise self._no_column(what, unknown)
        if options.tags is not None or options.labels:
            return list(options.labels or ()), options.tags
        marked = [name for name in self.columns if name.startswith(LABEL_MARK)]
        tags = self._named("tags") or self._named("labels")
        if not marked and tags is None and options.labels is None:
            raise self._file.error(
                "which columns are labels? There is no column 'tags'; give tags= or labels=", 1
            )
        return marked, None if marked else tags

    def _find_cells(self, known: set[str] | None) -> tuple[list[int], list[str]]:
        """Where the features and the labels of one column each stand, and their names."""
        special = {self._tags, self._id, self._split}
        places, names = [], []
        for place, column in enumerate(self.columns):
            if place in special or column in self._ignored:
                continue
            name = column.removeprefix(FEATURE_MARK)
            if known is None or name in known or column in self._labels:
                places.append(place)
                names.append(name)
            if known is None and column not in self._labels and _looks_like_labels(column):
                raise self._file.error(
                    f"the column {shown(column)} looks like labels, too; pass it to ignore= to "
                    "leave it out",
                    1,
                )
        if not places:
            wanted = self._options.features
            missing = f"the feature {some(wanted)}" if wanted else "features"
            raise self._file.error(f"there is no column of {missing}", 1)
        return places, names

    def _named(self, word: str) -> str | None:
        named = (name for name in self.columns if name.lower() == word)
        return next((name for name in named if name not in self._ignored), None)

    def _place(self, name: str | None, what: str = "tags") -> int | None:
        if name is None:
            return None
        if name not in self.names:
            raise self._no_column(what, name)
        return self.columns.index(name)

    def _no_column(self, what: str, name: str) -> DataError:
        there = ", ".join(map(shown, self.columns[:8])) + (", …" if len(self.columns) > 8 else "")
        return self._file.error(
            f"{what}: there is no column {shown(name)}; the columns are {there}", 1
        )

    def add(self, row: Sequence[Any]) -> None:
        """Take up a row: texts, or values of JSON."""
        if len(row) != len(self.columns):
            raise self._file.error(f"{len(self.columns)} cells expected; got {len(row)}")
        cells = [row[place] for place in self._places]
        if not self._rows.count:
            self._begin(cells)
        numbers = plain_row(self._fast, cells)
        if numbers is None:
            numbers = [
                self._number(name, cell) if codes is None else self._code(name, codes, cell)
                for name, codes, cell in zip(self._names, self._codes, cells, strict=True)
            ]
        self._cells.extend(numbers)
        tags, name, split = (
            None if place is None else row[place] for place in (self._tags, self._id, self._split)
        )
        self._rows.add("" if tags is None and self._tags is not None else tags, name, split)

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

    def _first_codes(self, name: str, cell: Any) -> dict[str, int] | None:
        """The values of a nominal column, which will grow; None for a column of numbers."""
        features = self._options.features
        if name in self._labels or name in self._features:
            return None
        if features is not None:
            values = [feature for feature in features if feature.startswith(f"{name}=")]
            return {feature.removeprefix(f"{name}="): code for code, feature in enumerate(values)}
        is_word = isinstance(cell, str) and cell.strip().lower() not in _MISSING
        try:
            self._number(name, cell)
        except DataError:
            if not is_word:
                raise
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
        return name in self._labels or self._options.features is not None

    def _code(self, name: str, codes: dict[str, int], cell: Any) -> float:
        if not isinstance(cell, str) or not cell.strip():
            raise self._file.error(
                f"column {shown(name)}: a text expected, as in the rows before; "
                f"got {shown(str(cell))}"
            )
        if self._options.features is not None:
            code = codes.get(cell.strip(), -1)
            if code < 0:  # a value that the model does not know counts as none
                self._unknown.setdefault(name, cell.strip())
            return code
        code = codes.setdefault(cell.strip(), len(codes))
        if code >= _MOST_VALUES:
            raise self._no_feature(name, codes, f"more than {_MOST_VALUES} different texts")
        return code

    def _no_feature(self, name: str, codes: Mapping[str, int], why: str) -> DataError:
        odd = _odd_one(codes)
        if odd is not None:
            return self._odd_cell(name, odd)
        return DataError(
            self._file.name,
            None,
            f"column {shown(name)} has {why}, so it cannot be a feature; pass it to ignore= "
            "to leave it out, or to id= to name the rows by it",
        )

    def _odd_cell(self, name: str, odd: str) -> DataError:
        why = "most other cells are"
        if odd.replace(",", "").lstrip("-").isdigit():
            why = "a decimal comma is read only where cells are separated by ';'"
        message = f"column {shown(name)}: {shown(odd)} is not a number, but {why}"
        return DataError(self._file.name, None, message)

    def dataset(self) -> Dataset:
        """All rows; nominal columns as one column per value, sorted."""
        n = self._rows.count
        if not n:
            raise self._file.error("there is no row under the names of the columns")
        for name, value in self._unknown.items():
            warnings.warn(
                f"{self._file.name}: column {shown(name)}: the model does not know "
                f"{shown(value)}, and takes it for none of the values",
                stacklevel=2,
            )
        cells = np.frombuffer(self._cells).reshape(n, len(self._places))
        columns = []
        for place, (name, codes) in enumerate(zip(self._names, self._codes, strict=True)):
            if codes is None or self._options.features is not None:
                columns.append(Column(name, codes))
                continue
            if n > 20 and len(codes) > n / 2:
                raise self._no_feature(name, codes, f"{len(codes)} different texts in {n} rows")
            odd = _odd_one(codes)
            if odd is not None:
                raise self._odd_cell(name, odd)
            values = sorted(codes)
            order = {codes[value]: code for code, value in enumerate(values)}
            cells[:, place] = np.array([order[code] for code in range(len(codes))])[
                cells[:, place].astype(np.intp)
            ]
            columns.append(Column(name, {value: code for code, value in enumerate(values)}))
        data = assembled(self._file.name, columns, cells, list(self._labels), ())
        label_names = [name.removeprefix(LABEL_MARK) for name in column_texts(data.label_names)]
        features = column_names(column_texts(data.feature_names))
        return self._rows.finish(Dataset(data.X, data.Y, column_names(label_names), features))


def _looks_like_labels(name: str) -> bool:
    return name.lower() in ("tags", "labels") or name.startswith(LABEL_MARK)


def _odd_one(codes: Mapping[str, int]) -> str | None:
    """A word of a column whose other values look like numbers; None where they do not."""
    numbers = [value for value in codes if _looks_like_a_number(value)]
    if len(numbers) < 3 or 2 * len(numbers) <= len(codes):
        return None
    return next((value for value in codes if value not in set(numbers)), numbers[0])


def _looks_like_a_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
