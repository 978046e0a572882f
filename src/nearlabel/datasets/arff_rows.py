"""The rows of ARFF files, dense or sparse, and how values and names are quoted in them."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.messages import shown
from nearlabel.datasets.column_values import Column, SparseRows, plain_row
from nearlabel.datasets.text_lines import TextFile

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# Nothing is tried twice (++ and *+ give nothing back), so that no line takes long to refuse.
_VALUE = re.compile(rf"(?:\s*+({QUOTED})\s*+|([^,'\"]*+))(,|$)", re.DOTALL)
_PAIR = re.compile(rf"\s*+([0-9]++)\s++(?:({QUOTED})\s*+|([^,'\"]*+))(?:,|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_PLAIN = re.compile(r"[A-Za-z0-9_.:=/+-]+")


def read_rows(file: TextFile, lines: Iterator[str], columns: list[Column]) -> Any:
    """All rows as they are: numbers, and codes of nominal values, shape (n, attributes)."""
    reader: _DenseRows | _SparseRows | None = None
    for line in lines:
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if reader is None:
            reader = (_SparseRows if text.startswith("{") else _DenseRows)(file, columns)
        reader.add(text)
    if reader is None:
        raise file.error("there is no row after @data")
    return reader.matrix()


class _DenseRows:
    def __init__(self, file: TextFile, columns: list[Column]) -> None:
        self._file, self._columns = file, columns
        self._fast = [column.reader(strict=False) for column in columns]
        self._cells = array("d")

    def add(self, text: str) -> None:
        if text.count(",") < len(self._columns) - 1:  # not all are there, quoted or not
            found = text.count(",") + 1
            raise self._file.error(f"a row of {len(self._columns)} values expected; got {found}")
        values = values_between_commas(text)
        if values is None:
            raise self._file.error("a quoted value does not end, or something follows it")
        if len(values) != len(self._columns):
            raise self._file.error(
                f"a row of {len(self._columns)} values expected; got {len(values)}"
            )
        row = plain_row(self._fast, values)
        if row is None:
            row = [
                _cell(self._file, column, value)
                for column, value in zip(self._columns, values, strict=True)
            ]
        self._cells.extend(row)

    def matrix(self) -> Array:
        return np.frombuffer(self._cells).reshape(-1, len(self._columns))


class _SparseRows:
    """Rows of pairs {column value, …}; a nominal value that is left out is the first one."""

    def __init__(self, file: TextFile, columns: list[Column]) -> None:
        self._file, self._columns = file, columns
        self._fast = [column.reader(strict=False) for column in columns]
        self._rows = SparseRows()

    def add(self, text: str) -> None:
        if not (text.startswith("{") and text.endswith("}")):
            raise self._file.error(f"a row {{column value, …}} expected; got {shown(text)}")
        row = self._plain(text)
        if row is None:
            row = self._strict(text)
        self._rows.add(row.keys(), row.values())

    def _plain(self, text: str) -> dict[int, float] | None:
        """A row of plain pairs; None where it must be read more carefully."""
        if "_" in text or "'" in text or '"' in text or not text.isascii():
            return None
        try:
            pairs = [pair.split() for pair in text[1:-1].split(",")]
            row = {int(place): self._fast[int(place)](value) for place, value in pairs}
        except (ValueError, KeyError, IndexError):
            return None
        is_sound = len(row) == len(pairs) and min(row) >= 0 and sum(row.values()) * 0 == 0
        return row if is_sound else None

    def _strict(self, text: str) -> dict[int, float]:
        """A row of pairs, or an error about the first one that is none."""
        row: dict[int, float] = {}
        place, end = 1, len(text) - 1
        if not text[place:end].strip():
            place = end
        while place < end:
            pair = _PAIR.match(text, place, end)
            column = -1 if pair is None or len(pair[1]) > 9 else int(pair[1])
            if pair is None or not 0 <= column < len(self._columns):
                raise self._file.error(
                    f"a column from 0 to {len(self._columns) - 1} and a value expected; "
                    f"got {shown(text[place:end])}"
                )
            if column in row:
                raise self._file.error(f"column {column} is given twice")
            value = pair[3].strip() if pair[2] is None else unquoted(pair[2])
            row[column] = _cell(self._file, self._columns[column], value)
            place = pair.end()
        return row

    def matrix(self) -> Any:
        return self._rows.matrix(len(self._columns))


def _cell(file: TextFile, column: Column, value: str) -> float:
    try:
        return column.reader(strict=True)(value)
    except (ValueError, KeyError):
        raise file.error(f"{shown(column.name)}: {column.expected()}; got {shown(value)}") from None


def unquoted(text: str) -> str:
    """A name or a value without the quotes around it, if it has some."""
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text[1:-1])
    return text


def values_between_commas(text: str) -> list[str] | None:
    """Values between commas, quoted or not; None where the quotes are wrong."""
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    values, place = [], 0
    while place <= len(text):
        found = _VALUE.match(text, place)
        if found is None:
            return None
        values.append(found[2].strip() if found[1] is None else unquoted(found[1]))
        place = found.end()
        if not found[3]:
            break
    return values


def quoted(name: str) -> str:
    """A name, in quotes where it needs them."""
    if _PLAIN.fullmatch(name):
        return name
    for mark, letter in (("\\", "\\"), ("'", "'"), ("\n", "n"), ("\r", "r"), ("\t", "t")):
        name = name.replace(mark, "\\" + letter)
    return f"'{name}'"
