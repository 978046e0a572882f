"""The rows of ARFF files, dense or sparse, and the quoting of values and names."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np

from nearlabel.common.messages import shown
from nearlabel.datasets.column_values import Column, SparseRows, plain_row
from nearlabel.datasets.text_lines import TextFile

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# No backtracking (++ and *+ are possessive), so that an invalid line fails quickly.
_VALUE = re.compile(rf"(?:\s*+({QUOTED})\s*+|([^,'\"]*+))(,|$)", re.DOTALL)
_PAIR = re.compile(rf"\s*+([0-9]++)\s++(?:({QUOTED})\s*+|([^,'\"]*+))(?:,|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_PLAIN = re.compile(r"[A-Za-z0-9_.:=/+-]+")


def read_rows(file: TextFile, lines: Iterator[str], columns: list[Column]) -> Any:
    """All rows: numbers, and codes of nominal values, shape (n, attributes)."""
    texts = (text for line in lines if (text := line.strip()) and not text.startswith("%"))
    first = next(texts, None)
    if first is None:
        raise file.error("there are no rows after @data")
    fast = [column.reader(strict=False) for column in columns]
    if first.startswith("{"):
        rows = SparseRows()
        for text in chain([first], texts):
            pairs = _plain_pairs(text, fast) or _pairs(file, text, columns)
            rows.add(pairs.keys(), pairs.values())
        return rows.matrix(len(columns))
    cells = array("d")
    for text in chain([first], texts):
        values = values_between_commas(text)
        if values is None:
            raise file.error("a quoted value is not closed, or something follows it")
        if len(values) != len(columns):
            raise file.error(f"expected a row of {len(columns)} values; got {len(values)}")
        row = plain_row(fast, values)
        cells.extend(row or map(_cell, repeat(file), columns, values))
    return np.frombuffer(cells).reshape(-1, len(columns))


def _plain_pairs(text: str, fast: list[Callable[[str], float]]) -> dict[int, float] | None:
    """A row {column value, …} of plain pairs; None if it must be read more carefully."""
    is_plain = text.startswith("{") and text.endswith("}") and text.isascii()
    if not is_plain or "_" in text or "'" in text or '"' in text:
        return None
    try:
        pairs = [pair.split() for pair in text[1:-1].split(",")]
        row = {int(place): fast[int(place)](value) for place, value in pairs}
    except (ValueError, KeyError, IndexError):
        return None
    is_sound = len(row) == len(pairs) and min(row) >= 0 and sum(row.values()) * 0 == 0
    return row if is_sound else None


def _pairs(file: TextFile, text: str, columns: list[Column]) -> dict[int, float]:
    """A row {column value, …}, or an error; an omitted nominal value is the first one."""
    if not (text.startswith("{") and text.endswith("}")):
        raise file.error(f"expected a row {{column value, …}}; got {shown(text)}")
    row: dict[int, float] = {}
    place, end = 1, len(text) - 1
    if not text[place:end].strip():
        place = end
    while place < end:
        pair = _PAIR.match(text, place, end)
        column = -1 if pair is None or len(pair[1]) > 9 else int(pair[1])
        if pair is None or not 0 <= column < len(columns):
            raise file.error(
                f"expected a column from 0 to {len(columns) - 1} and a value; "
                f"got {shown(text[place:end])}"
            )
        if column in row:
            raise file.error(f"column {column} is given twice")
        value = pair[3].strip() if pair[2] is None else unquoted(pair[2])
        row[column] = _cell(file, columns[column], value)
        place = pair.end()
    return row


def _cell(file: TextFile, column: Column, value: str) -> float:
    try:
        return column.reader(strict=True)(value)
    except (ValueError, KeyError):
        known = ", ".join(map(shown, list(column.codes or ())[:5]))
        wanted = f"one of {known}" if known else "a finite number"
        message = f"{shown(column.name)}: expected {wanted}; got {shown(value)}"
        raise file.error(message) from None


def unquoted(text: str) -> str:
    """A name or a value without the quotes around it, if any."""
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text[1:-1])
    return text


def values_between_commas(text: str) -> list[str] | None:
    """Values between commas, quoted or not; None if the quotes are wrong."""
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
    """A name, in quotes if it needs them."""
    if _PLAIN.fullmatch(name):
        return name
    for mark, letter in (("\\", "\\"), ("'", "'"), ("\n", "n"), ("\r", "r"), ("\t", "t")):
        name = name.replace(mark, "\\" + letter)
    return f"'{name}'"
