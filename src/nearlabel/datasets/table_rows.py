"""Tables of named cells, as in CSV tables, JSON lines and Parquet files, read into a data set.

A column contains numbers or words, as decided by its first nonmissing cell; words are categories
unless an option declares the column as free text. With free text or missing categories, the columns
stay unchanged, in a frame; otherwise words become numbers here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from nearlabel.common.arrays import Array, Matrix, text_array
from nearlabel.common.messages import as_word, shown
from nearlabel.datasets.column_values import (
    Cells,
    Column,
    add_block,
    blocks_of_rows,
    feature_matrix,
    known_values,
    label_matrix,
    numbered,
)
from nearlabel.datasets.data_files import ReadOptions
from nearlabel.datasets.dataset import Dataset, unlabeled
from nearlabel.datasets.frames import frame_of
from nearlabel.datasets.row_fields import RowFields
from nearlabel.datasets.table_columns import FEATURE_MARK, ColumnRoles
from nearlabel.datasets.text_lines import LABEL_MARK, DataError, Source, column_names, number, truth

if TYPE_CHECKING:
    from polars import DataFrame

# The cells of columns: of all of them, or of those that are needed, by their positions.
Columns = Sequence[Sequence[object]] | Mapping[int, Cells]


class TableReader:
    """A table that is read row by row, or column by column."""

    def __init__(
        self, file: Source, columns: list[str], options: ReadOptions, decimal_comma: bool = False
    ) -> None:
        self._file, self._options = file, options
        self.columns = columns
        self.roles = roles = ColumnRoles(file, columns, options)
        self._columns = {  # by their position
            place: TableColumn(file, columns[place], roles, options, decimal_comma)
            for place in roles.cells
        }
        self._texts: dict[int, list[str]] = {place: [] for place in roles.texts}
        self._rows = RowFields(file, options.separator, for_model=options.features is not None)

    def add_rows(self, rows: Iterable[Sequence[object]]) -> None:
        """Add rows: strings, or JSON values."""
        for columns, lines in blocks_of_rows(self._file, rows, len(self.columns)):
            self.add_columns(columns, lines)

    def add_columns(self, columns: Columns, lines: Sequence[int]) -> None:
        """Add rows, given as columns of cells; numbers may be an array, with NaN for no number."""
        cells = ((column, columns[place]) for place, column in self._columns.items())
        add_block(cells, lines)
        for place, texts in self._texts.items():
            for cell, self._file.line in zip(columns[place], lines, strict=True):
                texts.append(self._text(self.columns[place], cell))
        nothing = [None] * len(lines)
        tags, names, split = (
            nothing if place is None else columns[place] for place in self.roles.fields
        )
        if self.roles.tags is not None:
            tags = ["" if cell is None else cell for cell in tags]
        for *fields, self._file.line in zip(tags, names, split, lines, strict=True):
            self._rows.add(*fields)

    def _text(self, name: str, cell: object) -> str:
        """A free text; an empty cell is an empty text."""
        if cell is None or isinstance(cell, str):
            return cell or ""
        if isinstance(cell, int | float):
            return str(cell)
        raise self._file.error(f"column {shown(name)}: expected a string; got {shown(str(cell))}")

    def dataset(self) -> Dataset:
        """All rows; nominal columns as one column per value, sorted."""
        n = self._rows.count
        if not n:
            raise self._file.error("there are no rows below the column names")
        columns = self._columns.values()
        for column in columns:
            if column.unknown is not None:
                warnings.warn(
                    f"{self._file.name}: column {shown(column.name)}: {shown(column.unknown)} is "
                    "unknown to the model and treated as not one of its values",
                    stacklevel=2,
                )
            column.sort_words()
        labels = [column for column in columns if column.is_label]
        Y, label_names = label_matrix(labels) if labels else (unlabeled(n), [])
        label_names = [name.removeprefix(LABEL_MARK) for name in label_names]
        X: Matrix | DataFrame = np.empty((n, 0))
        features: Array | None = None
        if self._options.features != () and self._stays_a_frame():
            X = frame = frame_of(self._unchanged())
            features = text_array(frame.columns)
        elif self._options.features != ():
            X, names = feature_matrix([column for column in columns if not column.is_label])
            features = column_names(names)
        text = tuple(self.columns[place].removeprefix(FEATURE_MARK) for place in self._texts)
        return self._rows.finish(Dataset(X, Y, column_names(label_names), features, text=text))

    def _stays_a_frame(self) -> bool:
        """Whether the columns stay unchanged, since they cannot be converted to vectors here."""
        if self._options.frame or self._texts:
            return True
        words = [column for column in self._columns.values() if column.codes is not None]
        if self._options.gaps == "found":
            return any(np.isnan(column.values).any() for column in words)
        return any(column.accepts_gaps for column in words)

    def _unchanged(self) -> dict[str, Array | Sequence[str | None]]:
        """All features unchanged, in the order of the file."""
        cells: dict[int, Array | Sequence[str | None]] = {**self._texts}
        for place, column in self._columns.items():
            if not column.is_label:
                cells[place] = column.unchanged()
        return {self.columns[at].removeprefix(FEATURE_MARK): cells[at] for at in sorted(cells)}


class TableColumn(Column):
    """A column of a table; NaN stands for a missing cell.

    Its first nonmissing cell decides whether it contains numbers or words, unless it is a label or
    a category, or a model knows it.
    """

    def __init__(
        self,
        file: Source,
        name: str,
        roles: ColumnRoles,
        options: ReadOptions,
        decimal_comma: bool = False,
    ) -> None:
        super().__init__(file, name.removeprefix(FEATURE_MARK))
        features, gaps = options.features, options.gaps
        self._decimal_comma, self._for_model = decimal_comma, features is not None
        self.is_label, self._is_category = name in roles.labels, name in roles.categories
        self._is_closed = self._for_model and not options.frame  # takes no new words
        self._is_decided = self.is_label or self._is_category or self._for_model
        self.accepts_gaps = not self.is_label and bool(
            self.name in gaps if isinstance(gaps, tuple) else gaps
        )
        if self._is_category and not self.is_label:
            self.codes = {}
        elif features is not None and not self.is_label and self.name not in roles.features:
            self.codes = numbered(known_values(self.name, features))
        self.unknown: str | None = None  # the first value that the model does not know

    def add(self, cells: Cells, lines: Sequence[int]) -> None:
        """Add cells, which are on these lines of the file."""
        start = 0
        if isinstance(cells, np.ndarray):  # of numbers
            self._is_decided = True
            are_plain = np.isin(cells, (0, 1)) if self.is_label else np.isfinite(cells)
            if self.accepts_gaps:
                are_plain |= np.isnan(cells)
            if are_plain.all():
                self.values.frombytes(cells.tobytes())
                return
        while start < len(cells) and not self._is_decided:
            self._file.line = lines[start]
            self.values.append(self.read(cells[start]))
            start += 1
        super().add(cells[start:], lines[start:])

    def read(self, cell: object) -> float:
        """A number, or the code of a word; NaN for a missing cell."""
        if self.accepts_gaps and _is_missing(cell):
            return math.nan
        if not self._is_decided:
            try:
                value = self._number(cell)
            except DataError:
                if not isinstance(cell, str) or _is_missing(cell) or _is_infinite(cell):
                    raise
                self.codes = {}
            self._is_decided = True
            if self.codes is None:
                return value
        if self.codes is None:
            return self._number(cell)
        if self._is_category and isinstance(cell, int | float):
            cell = as_word(cell)
        word = cell.strip() if isinstance(cell, str) else ""
        if not word:
            raise self._error("a string, as in the rows before", cell)
        if self._is_closed:
            if word not in self.codes:
                self.unknown = self.unknown or word
            return self.codes.get(word, -1)
        code = self.codes.setdefault(word, len(self.codes))
        if code >= 100 and not self._is_category:
            self._check_words("more than 100 distinct strings")
        return code

    def _number(self, cell: object) -> float:
        if isinstance(cell, str):
            takes_words = self.is_label or self._for_model  # for 0 and 1
            if takes_words and (answer := truth(cell)) is not None:
                return float(answer)
            if self._decimal_comma:
                cell = cell.replace(",", ".")
        if isinstance(cell, str | int | float):
            with suppress(ValueError, OverflowError):
                value = number(cell)
                if not self.is_label or value in (0, 1):
                    return value
        raise self._error("0 or 1" if self.is_label else "a finite number", cell)

    def _error(self, wanted: str, cell: object) -> DataError:
        """An error about a cell, with hints about what would accept it: an option, or a model."""
        hints = ["the cell is empty"] if cell in ("", None) else []
        if self.is_label:
            pass
        elif _is_missing(cell):
            gaps = "gaps=True accepts missing cells"
            for_model = "the model was fitted without imputing missing values"
            hints.append(for_model if self._for_model else gaps)
        elif not self._for_model and isinstance(cell, str) and not _is_infinite(cell):
            hints.append("if the column contains words, pass it to categories= or text=")
        hint = f" ({'; '.join(hints)})" if hints else ""
        message = f"column {shown(self.name)}: expected {wanted}; got {shown(str(cell))}{hint}"
        return self._file.error(message)

    def sort_words(self) -> None:
        """Number the words in their order, or raise an error if they cannot be a feature."""
        if self.codes is None or self._for_model:
            return
        count, n = len(self.codes), len(self.values)
        if not self._is_category:
            is_too_many = n > 20 and count > n / 2
            self._check_words(f"{count} distinct strings in {n} rows" if is_too_many else None)
        codes = numbered(sorted(self.codes))
        new_codes = np.array([codes[word] for word in self.codes])
        values = np.frombuffer(self.values)
        is_word = ~np.isnan(values)
        values[is_word] = new_codes[values[is_word].astype(np.intp)]
        self.codes = codes

    def _check_words(self, too_many: str | None) -> None:
        """Raise an error for words that cannot be a feature: one among numbers, or too many."""
        name, words = shown(self.name), list(self.codes or ())
        numbers = {word for word in words if _as_float(word.replace(",", ".")) is not None}
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

    def unchanged(self) -> Array | list[str | None]:
        """The cells as they were: numbers with NaN, or words with None for a missing one."""
        values = np.array(self.values)
        if self.codes is None:
            return values
        words = [*self.codes, None]
        codes = np.where(np.isnan(values), -1, values).astype(np.intp)
        return [words[code] for code in codes.tolist()]


def _is_missing(cell: object) -> bool:
    """Whether a cell is empty, or contains a word for a missing value."""
    if isinstance(cell, str):
        return cell.strip().lower() in {"", "?", "na", "n/a", "#n/a", "nan", "null"}
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _is_infinite(cell: str) -> bool:
    """Whether a cell is a number that overflows to infinity, which is not a missing value."""
    value = _as_float(cell)
    return value is not None and math.isinf(value)


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
