"""Rows of named cells, as in CSV tables and JSON lines, read into a data set.

A column contains numbers or words, as decided by its first nonmissing cell; words are categories
unless an option declares the column as free text. With free text or missing categories, the columns
stay unchanged, in a frame; otherwise words become numbers here.
"""

from __future__ import annotations

import math
import warnings
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.messages import as_word, shown, text_array
from nearlabel.datasets.column_values import (
    Column,
    assembled,
    known_values,
    labels_of,
    numbered,
    plain_row,
)
from nearlabel.datasets.data_files import ReadOptions
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.frames import frame_of
from nearlabel.datasets.row_fields import RowFields
from nearlabel.datasets.table_columns import FEATURE_MARK, ColumnRoles, Source
from nearlabel.datasets.text_lines import LABEL_MARK, DataError, column_names, number, truth

_MISSING = {"", "?", "na", "n/a", "#n/a", "nan", "null"}  # as files spell it
_MOST_VALUES = 100  # of a nominal column: one with more is text or names, not a feature


class Table:
    """Rows of named cells."""

    def __init__(
        self, file: Source, columns: list[str], options: ReadOptions, decimal_comma: bool = False
    ) -> None:
        self._file, self._options, self._decimal_comma = file, options, decimal_comma
        self.columns = columns
        self.roles = ColumnRoles(file, columns, options)
        self._labels, self._places = self.roles.labels, self.roles.cells
        self._known = frozenset(options.features or ())
        self._gaps = frozenset(options.gaps) if isinstance(options.gaps, tuple) else options.gaps
        self._columns: list[Column] = []  # at these positions, as in the first row
        self._undecided: set[int] = set()  # those in which all cells were missing so far
        self._fast: list[Callable[[Any], float]] = []
        self._cells = array("d")  # NaN for a missing cell
        self._texts: dict[int, list[str]] = {place: [] for place in self.roles.texts}
        self._unknown: dict[str, str] = {}  # columns and their first unknown value
        self._rows = RowFields(file, options.separator, for_model=options.features is not None)

    def add(self, row: Sequence[Any]) -> None:
        """Add a row: strings, or JSON values."""
        if len(row) != len(self.columns):
            raise self._file.error(f"expected {len(self.columns)} cells; got {len(row)}")
        cells = [row[place] for place in self._places]
        if not self._rows.count:
            self._begin(cells)
        self._cells.extend(
            plain_row(self._fast, cells) or map(self._cell, range(len(cells)), cells)
        )
        for place, texts in self._texts.items():
            texts.append(self._text(place, row[place]))
        self._add_fields(*(None if at is None else row[at] for at in self.roles.fields))

    def add_columns(self, columns: Sequence[Any]) -> None:
        """Add all rows at once: for each needed column an array of numbers, or a list."""
        n = len(next(values for values in columns if values is not None))
        if not n:
            return
        self._file.line = 1
        self._begin([columns[place][0] for place in self._places])
        cells = np.empty((n, len(self._places)))
        for at, place in enumerate(self._places):
            values = columns[place]
            if isinstance(values, np.ndarray):
                cells[:, at] = self._numbers(at, values)
                continue
            for row, cell in enumerate(values):
                self._file.line = row + 1
                cells[row, at] = self._cell(at, cell)
        self._cells.frombytes(cells.tobytes())
        for place, texts in self._texts.items():
            texts += [self._text(place, cell) for cell in columns[place]]
        none = [None] * n
        fields = (none if place is None else columns[place] for place in self.roles.fields)
        for row, cells_of_row in enumerate(zip(*fields, strict=True)):
            self._file.line = row + 1
            self._add_fields(*cells_of_row)
        self._file.line = 0

    def _numbers(self, at: int, values: Array) -> Array:
        """A column of numbers, with NaN for missing cells."""
        name = self._columns[at].name
        self._columns[at], self._undecided = Column(name), self._undecided - {at}
        known = np.isin(values, (0, 1)) if name in self._labels else np.isfinite(values)
        if known.all():
            return values
        if name not in self._labels and self._accepts_gaps(name):
            known |= np.isnan(values)
        if not known.all():
            row = int(np.argmin(known))
            self._file.line = row + 1
            self._number(name, float(values[row]))
        return values

    def _add_fields(self, tags: Any, name: Any, split: Any) -> None:
        """Add the fields of a row other than features."""
        self._rows.add("" if tags is None and self.roles.tags is not None else tags, name, split)

    def _begin(self, cells: Sequence[Any]) -> None:
        """Infer from the first row what each column contains."""
        names = [self.columns[place].removeprefix(FEATURE_MARK) for place in self._places]
        self._columns = [Column(name) for name in names]
        self._fast = [float] * len(names)
        for at, cell in enumerate(cells):
            self._decide(at, cell)

    def _decide(self, at: int, cell: Any) -> None:
        """Infer from a cell what its column contains, unless the cell is missing."""
        name = self._columns[at].name
        self._undecided.discard(at)
        if name in self._labels:
            self._fast[at] = {"0": 0.0, "1": 1.0}.__getitem__
        elif self._is_gap(name, cell) and not self._is_given(name):
            self._undecided.add(at)
            self._fast[at] = _undecided
        else:
            self._columns[at] = Column(name, self._first_codes(name, cell))
            self._fast[at] = self._columns[at].reader(strict=False)

    def _is_given(self, name: str) -> bool:
        """Whether an option decides what a column contains, not its first cell."""
        return name in self.roles.categories or self._options.features is not None

    def _first_codes(self, name: str, cell: Any) -> dict[str, int] | None:
        """The values of a nominal column, which will grow; None for a column of numbers."""
        features = self._options.features
        if name in self.roles.categories:
            return {}
        if name in self._known:
            return None
        if features is not None:
            return numbered(known_values(name, features))
        try:
            self._number(name, cell)
        except DataError:
            if not isinstance(cell, str) or _is_missing(cell) or _is_infinite(cell):
                raise
            return {}
        return None

    def _is_gap(self, name: str, cell: Any) -> bool:
        """Whether a cell is missing where that is accepted."""
        return name not in self._labels and self._accepts_gaps(name) and _is_missing(cell)

    def _cell(self, at: int, cell: Any) -> float:
        """A number, or the code of a word; NaN for a missing cell."""
        if self._is_gap(self._columns[at].name, cell):
            return math.nan
        if at in self._undecided:
            self._decide(at, cell)
        name, codes = self._columns[at].name, self._columns[at].codes
        if codes is None:
            return self._number(name, cell)
        is_given = name in self.roles.categories
        if is_given and isinstance(cell, int | float):
            cell = as_word(cell)
        if not isinstance(cell, str) or not cell.strip():
            raise self._file.error(
                f"column {shown(name)}: expected a string, as in the rows before; "
                f"got {shown(str(cell))}{self._hint(name, cell)}"
            )
        word = cell.strip()
        if self._options.features is not None and not self._options.frame:
            if word not in codes:  # a value that the model does not know
                self._unknown.setdefault(name, word)
            return codes.get(word, -1)
        code = codes.setdefault(word, len(codes))
        if code >= _MOST_VALUES and not is_given:
            self._check_words(self._columns[at], f"more than {_MOST_VALUES} distinct strings")
        return code

    def _text(self, place: int, cell: Any) -> str:
        """A free text; an empty cell is an empty text."""
        if cell is None or isinstance(cell, str):
            return cell or ""
        if isinstance(cell, int | float):
            return str(cell)
        name = shown(self.columns[place])
        raise self._file.error(f"column {name}: expected a string; got {shown(str(cell))}")

    def _hint(self, name: str, cell: Any) -> str:
        """A hint about what would accept a cell: an option, or another model."""
        hints = ["the cell is empty"] if cell in ("", None) else []
        is_missing, for_model = _is_missing(cell), self._options.features is not None
        if name in self._labels:
            return f" ({hints[0]})" if hints else ""
        if is_missing and for_model:
            hints.append("the model was fitted without imputing missing values")
        elif is_missing:
            hints.append("gaps=True accepts missing cells")
        elif not for_model and isinstance(cell, str) and not _is_infinite(cell):
            hints.append("if the column contains words, pass it to categories= or text=")
        return f" ({'; '.join(hints)})" if hints else ""

    def _number(self, name: str, cell: Any) -> float:
        is_label = name in self._labels
        takes_words = is_label or self._options.features is not None  # for 0 and 1
        said = truth(cell) if isinstance(cell, str) and takes_words else None
        if said is not None:
            return float(said)
        if isinstance(cell, str) and self._decimal_comma:  # as European spreadsheets write numbers
            cell = cell.replace(",", ".")
        if isinstance(cell, str | int | float):
            with suppress(ValueError, OverflowError):
                value = number(cell)
                if not is_label or value in (0, 1):
                    return value
        wanted = "0 or 1" if is_label else "a finite number"
        hint = self._hint(name, cell)
        raise self._file.error(
            f"column {shown(name)}: expected {wanted}; got {shown(str(cell))}{hint}"
        )

    def _check_words(self, column: Column, too_many: str | None) -> None:
        """Raise an error for words that cannot be a feature: one among numbers, or too many."""
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
                f"column {name} has {too_many}, so it cannot be a category; pass it to text= to "
                "learn from its words, to ignore= to leave it out, or to id= to name the rows by it"
            )

    def dataset(self) -> Dataset:
        """All rows; nominal columns as one column per value, sorted."""
        n = self._rows.count
        if not n:
            raise self._file.error("there are no rows below the column names")
        for name, value in self._unknown.items():
            warnings.warn(
                f"{self._file.name}: column {shown(name)}: {shown(value)} is unknown to the model "
                "and treated as not one of its values",
                stacklevel=2,
            )
        cells = np.frombuffer(self._cells) if self._places else np.empty(0)
        cells = cells.reshape(n, len(self._places))
        columns = [self._sorted(*pair) for pair in zip(self._columns, cells.T, strict=True)]
        features: Array | None
        if self._options.features == ():
            Y, labels = labels_of(columns, cells, self._labels)
            X, features = np.empty((n, 0)), None
        elif self._stays_a_frame(columns, cells):
            X = self._frame(columns, cells)
            Y, labels = labels_of(columns, cells, self._labels)
            features = text_array(X.columns)
        else:
            X, Y, names, labels = assembled(columns, cells, self._labels)
            features = column_names(names)
        labels = [name.removeprefix(LABEL_MARK) for name in labels]
        text = tuple(self.columns[place].removeprefix(FEATURE_MARK) for place in self._texts)
        return self._rows.finish(Dataset(X, Y, column_names(labels), features, text=text))

    def _stays_a_frame(self, columns: Sequence[Column], cells: Array) -> bool:
        """Whether the columns stay unchanged, since they cannot be converted to vectors here."""
        if self._options.frame or self._texts:
            return True
        words = [at for at, one in enumerate(columns) if one.codes is not None]
        if self._gaps == "found":
            return bool(np.isnan(cells[:, words]).any())
        return any(self._accepts_gaps(columns[at].name) for at in words)

    def _accepts_gaps(self, name: str) -> bool:
        """Whether cells of a column may be missing."""
        return name in self._gaps if isinstance(self._gaps, frozenset) else bool(self._gaps)

    def _frame(self, columns: Sequence[Column], cells: Array) -> Any:
        """All features unchanged, in the order of the file."""
        found: dict[int, Any] = dict(self._texts)
        for place, column, values in zip(self._places, columns, cells.T, strict=True):
            if column.name in self._labels:
                continue
            found[place] = values.copy()
            if column.codes is not None:
                words = [*column.codes, None]  # the last one for a missing cell
                codes = np.where(np.isnan(values), -1, values).astype(np.intp)
                found[place] = [words[code] for code in codes.tolist()]
        names = {place: self.columns[place].removeprefix(FEATURE_MARK) for place in sorted(found)}
        return frame_of({name: found[place] for place, name in names.items()})

    def _sorted(self, column: Column, cells: Array) -> Column:
        """A column with sorted words; its cells get the new codes in place."""
        if column.codes is None or self._options.features is not None:
            return column
        count, n = len(column.codes), len(cells)
        too_many = f"{count} distinct strings in {n} rows" if n > 20 and count > n / 2 else None
        if column.name not in self.roles.categories:
            self._check_words(column, too_many)
        codes = numbered(sorted(column.codes))
        there = ~np.isnan(cells)
        new_codes = np.array([codes[word] for word in column.codes])
        cells[there] = new_codes[cells[there].astype(np.intp)]
        return Column(column.name, codes)


def _is_missing(cell: Any) -> bool:
    """Whether a cell is empty, or contains a word for a missing value."""
    if isinstance(cell, str):
        return cell.strip().lower() in _MISSING
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _is_infinite(cell: str) -> bool:
    """Whether a cell is a number that overflows to infinity, which is not a missing value."""
    try:
        return math.isinf(float(cell))
    except ValueError:
        return False


def _undecided(cell: Any) -> float:
    """Parse no cell, so that each is read more carefully."""
    raise ValueError(cell)


def _looks_like_a_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
