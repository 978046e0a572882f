"""The rows of ARFF files, dense or sparse, and the quoting of values and names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain

from nearlabel.common.arrays import Csr
from nearlabel.common.messages import shown
from nearlabel.datasets.column_values import Column, SparseRows, add_block, blocks_of_rows
from nearlabel.datasets.text_lines import TextFile

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# No backtracking (++ and *+ are possessive), so that an invalid line fails quickly.
_VALUE = re.compile(rf"(?:\s*+({QUOTED})\s*+|([^,'\"]*+))(,|$)", re.DOTALL)
_PAIR = re.compile(rf"\s*+([0-9]++)\s++(?:({QUOTED})\s*+|([^,'\"]*+))(?:,|$)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def read_rows(file: TextFile, lines: Iterator[str], columns: list[Column]) -> Csr | None:
    """Read dense rows into the columns, or sparse ones as a matrix of numbers and codes."""
    texts = (text for line in lines if (text := line.strip()) and not text.startswith("%"))
    first = next(texts, None)
    if first is None:
        raise file.error("there are no rows after @data")
    rows = chain([first], texts)
    if not first.startswith("{"):
        values = (_values(file, text) for text in rows)
        for cells, row_lines in blocks_of_rows(file, values, len(columns)):
            add_block(zip(columns, cells, strict=True), row_lines)
        return None
    fast, matrix = [column.parser() for column in columns], SparseRows()
    for text in rows:
        pairs = _plain_pairs(text, fast) or _pairs(file, text, columns)
        matrix.add(pairs.keys(), pairs.values())
    return matrix.matrix(len(columns))


def _values(file: TextFile, text: str) -> list[str]:
    values = values_between_commas(text)
    if values is None:
        raise file.error("a quoted value is not closed, or something follows it")
    return values


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
        row[column] = columns[column].read(value)
        place = pair.end()
    return row


def unquoted(text: str) -> str:
    """A name or a value without the quotes around it, if any."""
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"(?s)\\(.)", lambda mark: _ESCAPED.get(mark[1], mark[1]), text[1:-1])
    return text


def values_between_commas(text: str) -> list[str] | None:
    """Values between commas, quoted or not; None if the quotes are wrong."""
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    values, place = [], 0
    while place <= len(text):
        value = _VALUE.match(text, place)
        if value is None:
            return None
        values.append(value[2].strip() if value[1] is None else unquoted(value[1]))
        place = value.end()
        if not value[3]:
            break
    return values


def quoted(name: str) -> str:
    """A name, in quotes if it needs them."""
    if re.fullmatch("[A-Za-z0-9_.:=/+-]+", name):
        return name
    for letter, mark in {"\\": "\\", "'": "'", **_ESCAPED}.items():
        name = name.replace(mark, "\\" + letter)
    return f"'{name}'"
