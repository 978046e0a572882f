"""Rows of named cells, as CSV tables and JSON lines have them, read into a data set.

A column is a number or a nominal value, as its first cell is. Some columns have a meaning of their
own, by name or because the caller says so: ``tags`` (the labels of a row in one cell),
``label:NAME`` (one label, 0 or 1), ``id`` (the name of a row), ``split`` ("train" or "test").
"""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.messages import first_twice, shown, some
from nearlabel.datasets.column_values import (
    Column,
    assembled,
    known_values,
    named_columns,
    no_column,
    numbered,
    plain_row,
    source_columns,
)
from nearlabel.datasets.data_files import ReadOptions
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.row_fields import RowFields
from nearlabel.datasets.text_lines import (
    LABEL_MARK,
    DataError,
    TextFile,
    column_names,
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
        self.columns = columns
        self.places = {name: place for place, name in reversed([*enumerate(columns)])}
        known = None if options.features is None else source_columns(options.features)
        twice = first_twice(name for name in columns if known is None or name in known)
        if twice is not None:
            raise file.error(f"two columns have the name {shown(twice)}")
        self._ignored = frozenset(self._matching("ignore", options.ignore))
        labels, tags = self._find_labels()
        if options.labels is not None and not options.labels:  # they are found to be left out
            self._ignored |= {*labels, *([tags] if tags else [])}
            labels, tags = [], None
        self._labels = frozenset(labels)
        self._tags = self._place("tags", tags)
        self._id = self._place("id", options.id or self._named("id"))
        if self._id is None and not columns[0]:  # as pandas writes the names of rows
            self._id = 0
        self._split = self._place("split", self._named("split"))
        self._places = self._find_cells(known)
        self._columns: list[Column] = []  # at these places, as the first row has them
        self._fast: list[Callable[[Any], float]] = []
        self._cells = array("d")
        self._unknown: dict[str, str] = {}  # columns and their first value that is not known
        self._rows = RowFields(file, options.separator, split_needed=known is None)

    def _find_labels(self) -> tuple[list[str], str | None]:
        """The columns that are labels, and the one that has all of them in one cell."""
        options = self._options
        if options.tags is not None or options.labels:
            return self._matching("labels", options.labels or ()), options.tags
        marked = [name for name in self.columns if name.startswith(LABEL_MARK)]
        tags = self._named("tags") or self._named("labels")
        if not marked and tags is None and options.labels is None:
            raise self._file.error(
                "which columns are labels? There is no column 'tags'; give tags= or labels=", 1
            )
        return marked, None if marked else tags

    def _find_cells(self, known: set[str] | None) -> list[int]:
        """The places of the features, and of labels with a column of their own."""
        special = {self._tags, self._id, self._split}
        places = []
        for place, column in enumerate(self.columns):
            if place in special or column in self._ignored:
                continue
            is_label = column in self._labels
            if known is None or is_label or column.removeprefix(FEATURE_MARK) in known:
                places.append(place)
            marked = column.lower() in ("tags", "labels") or column.startswith(LABEL_MARK)
            if known is None and marked and not is_label:
                raise self._file.error(
                    f"the column {shown(column)} looks like labels, too; pass it to ignore= to "
                    "leave it out",
                    1,
                )
        if not places:
            wanted = self._options.features
            missing = f"the feature {some(wanted)}" if wanted else "features"
            raise self._file.error(f"there is no column of {missing}", 1)
        return places

    def _named(self, word: str) -> str | None:
        named = (name for name in self.columns if name.lower() == word)
        return next((name for name in named if name not in self._ignored), None)

    def _place(self, what: str, name: str | None) -> int | None:
        """The place of a column that an option names."""
        if name is None or name in self.places:
            return None if name is None else self.places[name]
        raise self._file.error(no_column(what, name, self.columns), 1)

    def _matching(self, what: str, names: Sequence[str]) -> list[str]:
        """The columns that an option names, or patterns of names."""
        try:
            return named_columns(what, names, self.columns)
        except ValueError as error:
            raise self._file.error(str(error), 1) from None

    def add(self, row: Sequence[Any]) -> None:
        """Add a row: texts, or values of JSON."""
        if len(row) != len(self.columns):
            raise self._file.error(f"{len(self.columns)} cells expected; got {len(row)}")
        cells = [row[place] for place in self._places]
        if not self._rows.count:
            names = [self.columns[place].removeprefix(FEATURE_MARK) for place in self._places]
            codes = map(self._first_codes, names, cells)
            self._columns = [Column(*pair) for pair in zip(names, codes, strict=True)]
            said = {"0": 0.0, "1": 1.0}.__getitem__
            self._fast = [
                said if column.name in self._labels else column.reader(strict=False)
                for column in self._columns
            ]
        self._cells.extend(plain_row(self._fast, cells) or map(self._cell, self._columns, cells))
        tags, name, split = (
            None if place is None else row[place] for place in (self._tags, self._id, self._split)
        )
        self._rows.add("" if tags is None and self._tags is not None else tags, name, split)

    def _first_codes(self, name: str, cell: Any) -> dict[str, int] | None:
        """The values of a nominal column, which will grow; None for a column of numbers."""
        features = self._options.features
        if name in self._labels or name in (features or ()):
            return None
        if features is not None:
            return numbered(known_values(name, features))
        try:
            self._number(name, cell)
        except DataError:
            if not isinstance(cell, str) or cell.strip().lower() in _MISSING:
                raise
            return {}
        return None

    def _cell(self, column: Column, cell: Any) -> float:
        """A number, or the code of a word."""
        name, codes = column.name, column.codes
        if codes is None:
            return self._number(name, cell)
        if not isinstance(cell, str) or not cell.strip():
            raise self._file.error(
                f"column {shown(name)}: a text expected, as in the rows before; "
                f"got {shown(str(cell))}"
            )
        word = cell.strip()
        if self._options.features is not None:
            if word not in codes:  # what the model does not know is none of the values
                self._unknown.setdefault(name, word)
            return codes.get(word, -1)
        code = codes.setdefault(word, len(codes))
        if code >= _MOST_VALUES:
            self._check_words(column, f"more than {_MOST_VALUES} different texts")
        return code

    def _number(self, name: str, cell: Any) -> float:
        is_label = name in self._labels
        takes_words = is_label or self._options.features is not None  # for 0 and 1
        said = truth(cell) if isinstance(cell, str) and takes_words else None
        if said is not None:
            return float(said)
        if isinstance(cell, str) and self._decimal_comma:  # as spreadsheets in Europe write them
            cell = cell.replace(",", ".")
        if isinstance(cell, str | int | float):
            with suppress(ValueError, OverflowError):
                value = number(cell)
                if not is_label or value in (0, 1):
                    return value
        wanted = "0 or 1" if is_label else "a finite number"
        empty = " (the cell is empty)" if cell in ("", None) else ""
        raise self._file.error(
            f"column {shown(name)}: {wanted} expected; got {shown(str(cell))}{empty}"
        )

    def _check_words(self, column: Column, too_many: str | None) -> None:
        """Refuse words that are no feature: an odd one among numbers, or too many."""
        name, words = shown(column.name), list(column.codes or ())
        numbers = {word for word in words if _looks_like_a_number(word)}
        if len(numbers) >= 3 and 2 * len(numbers) > len(words):
            odd = next((word for word in words if word not in numbers), words[0])
            why = "most other cells are"
            if odd.replace(",", "").lstrip("-").isdigit():
                why = "a decimal comma is read only where cells are separated by ';'"
            raise ValueError(f"column {name}: {shown(odd)} is not a number, but {why}")
        if too_many is not None:
            raise ValueError(
                f"column {name} has {too_many}, so it cannot be a feature; pass it to ignore= "
                "to leave it out, or to id= to name the rows by it"
            )

    def dataset(self) -> Dataset:
        """All rows; nominal columns as one column per value, sorted."""
        n = self._rows.count
        if not n:
            raise self._file.error("there is no row under the names of the columns")
        for name, value in self._unknown.items():
            warnings.warn(
                f"{self._file.name}: column {shown(name)}: {shown(value)} is unknown to the model "
                "and treated as none of its values",
                stacklevel=2,
            )
        cells = np.frombuffer(self._cells).reshape(n, len(self._places))
        columns = [self._sorted(*pair) for pair in zip(self._columns, cells.T, strict=True)]
        X, Y, features, labels = assembled(columns, cells, self._labels)
        labels = [name.removeprefix(LABEL_MARK) for name in labels]
        return self._rows.finish(Dataset(X, Y, column_names(labels), column_names(features)))

    def _sorted(self, column: Column, cells: Array) -> Column:
        """A column whose words are sorted; its cells get the new codes in place."""
        if column.codes is None or self._options.features is not None:
            return column
        count, n = len(column.codes), len(cells)
        too_many = f"{count} different texts in {n} rows" if n > 20 and count > n / 2 else None
        self._check_words(column, too_many)
        codes = numbered(sorted(column.codes))
        cells[:] = np.array([codes[word] for word in column.codes])[cells.astype(np.intp)]
        return Column(column.name, codes)


def _looks_like_a_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
