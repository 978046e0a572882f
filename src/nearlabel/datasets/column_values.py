"""Columns of a file as features and labels: numbers, yes/no words, and nominal values."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Floats, Matrix, canonical_csr
from nearlabel.common.messages import did_you_mean, shown
from nearlabel.datasets.text_lines import DataError, Source, column_names, number, truth

_CELLS_AT_ONCE = 2**13  # of a table, as Python objects
Cells = Sequence[object] | Floats


class ColumnNumbers:
    """The names 0, 1, 2 … of columns without names, however many they are."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def get(self, name: str) -> int | None:
        """The column with this name."""
        is_number = len(name) < 11 and name.isascii() and name.isdigit()
        return int(name) if is_number and int(name) < self._count else None


Columns = dict[str, int] | ColumnNumbers  # by the names of labels or features


def numbered(names: Iterable[str]) -> dict[str, int]:
    """The columns of names, in their order."""
    return {name: column for column, name in enumerate(names)}


def names_of(columns: Columns) -> Array | None:
    """The names of columns; None if they are just numbers."""
    return None if isinstance(columns, ColumnNumbers) else column_names(list(columns))


class SparseRows:
    """A CSR matrix that grows row by row, with little extra memory."""

    def __init__(self) -> None:
        self._data, self._indices, self._ends = array("d"), array("i"), array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, indices: Iterable[int], values: Iterable[float]) -> None:
        """Add a row; its columns are distinct, in any order."""
        self._indices.extend(indices)
        self._data.extend(values)
        self._ends.append(len(self._data))

    def matrix(self, width: int) -> Csr:
        """All rows, columns in order, without stored zeros."""
        parts = (self._data, self._indices, self._ends)
        data, indices, ends = (np.frombuffer(part, part.typecode) for part in parts)  # no copy
        if len(data) < 2**31:  # SciPy would widen the indices to the type of the ends
            ends = ends.astype(np.int32)
        matrix = sparse.csr_array((data, indices, ends), shape=(len(self), width))
        matrix.sort_indices()
        matrix.eliminate_zeros()
        return matrix


def blocks_of_rows(
    file: Source, rows: Iterable[Sequence[object]], width: int
) -> Iterator[tuple[list[tuple[object, ...]], list[int]]]:
    """Divide a table into blocks: the cells of each column, and the line of each row."""
    block: list[Sequence[object]] = []
    lines: list[int] = []
    problem = None
    try:
        for row in rows:
            if len(row) != width:
                raise file.error(f"expected {width} cells; got {len(row)}")
            block.append(row)
            lines.append(file.line)
            if len(block) * width >= _CELLS_AT_ONCE:
                yield list(zip(*block, strict=True)), lines
                file.line = lines[-1]  # those who read the block set it
                block, lines = [], []
    except DataError as error:  # a cell of the rows before it may be wrong, too
        problem = error
    if block:
        yield list(zip(*block, strict=True)), lines
    if problem is not None:
        raise problem


class Column:
    """A column of a file while it is read: its cells as numbers, or as codes of nominal values.

    Free text cannot be a feature; its cells count as zeros. Those of a label are 0 and 1.
    """

    is_label = False

    def __init__(
        self, file: Source, name: str, codes: dict[str, int] | None = None, is_text: bool = False
    ) -> None:
        self._file, self.name, self.is_text = file, name, is_text
        self.codes = codes  # 0, 1, 2 … of the nominal values
        self.values = array("d")  # the numbers or codes of the cells so far

    def add(self, cells: Cells, lines: Sequence[int]) -> None:
        """Add cells, which are on these lines of the file."""
        values = self.plain_values(cells)
        if values is not None:
            self.values.frombytes(values.tobytes())
        elif len(cells) > 16:  # one that must be read with more care does not slow down the others
            half = len(cells) // 2
            self.add(cells[:half], lines[:half])
            self.add(cells[half:], lines[half:])
        else:
            for cell, self._file.line in zip(cells, lines, strict=True):
                self.values.append(self.read(cell))

    def plain_values(self, cells: Cells) -> Floats | None:
        """Cells that are all plain numbers or known values; None if one may be something else.

        `float` accepts more than a plain number.
        """
        parse = self.parser()
        try:
            values = np.fromiter(map(parse, cells), float, len(cells))
        except (ValueError, KeyError, TypeError, OverflowError):
            return None
        if parse is float:
            text = "".join(cell for cell in cells if isinstance(cell, str))
            if "_" in text or not text.isascii() or not np.isfinite(values).all():
                return None
        return values

    def parser(self) -> Callable[..., float]:
        """A function that parses plain cells."""
        if self.is_text:
            return lambda _: 0.0
        if self.is_label:
            return {"0": 0.0, "1": 1.0}.__getitem__
        return float if self.codes is None else self.codes.__getitem__

    def read(self, cell: Any) -> float:
        """The number or the code of a cell, or an error."""
        parse = self.parser()
        try:
            return number(cell) if parse is float else parse(cell)
        except (ValueError, KeyError):
            known = ", ".join(map(shown, list(self.codes or ())[:5]))
            wanted = f"one of {known}" if known else "a finite number"
            raise self._file.error(
                f"column {shown(self.name)}: expected {wanted}; got {shown(str(cell))}"
            ) from None

    def truths(self) -> list[float] | None:
        """Each nominal value as 0 or 1; None if one is not a word for yes or no."""
        truths = [truth(value) for value in self.codes or ()]
        distinct = set(truths)
        is_binary = None not in distinct and len(distinct) == len(truths)
        return [float(value or 0) for value in truths] if is_binary else None

    def numbers(self, is_coded: bool) -> list[float] | None:
        """Each nominal value as a number; None if each gets its own column."""
        truths = self.truths()
        if truths is not None or not is_coded:
            return truths
        try:
            return [number(value) for value in self.codes or ()]
        except ValueError:
            return list(map(float, range(len(self.codes or ()))))


def add_block(columns: Iterable[tuple[Column, Cells]], lines: Sequence[int]) -> None:
    """Add a block of cells to each column; of several errors the first in the file is raised."""
    errors = []
    for column, cells in columns:
        try:
            column.add(cells, lines)
        except DataError as error:
            errors.append(error)
    if errors:
        raise min(errors, key=lambda error: error.line or 0)


def named_columns(option: str, names: Iterable[str], columns: Sequence[str]) -> list[str]:
    """The columns that an option names, by name or by a pattern such as ``tag_*``."""
    named: dict[str, None] = {}
    known = set(columns)
    for name in names:
        matching = [name] if name in known else [c for c in columns if fnmatchcase(c, name)]
        if not matching:
            raise ValueError(no_column(option, name, columns))
        named.update(dict.fromkeys(matching))
    return list(named)


def no_column(option: str, name: str, columns: Sequence[str]) -> str:
    """The message about an option that matches no column."""
    listed = ", ".join(map(shown, columns[:8])) + (", …" if len(columns) > 8 else "")
    if set(name) & set("*?["):
        return f"{option}={shown(name)}: no column matches; the columns are {listed}"
    hint = did_you_mean(name, columns[:1000])  # it compares with each
    return f"{option}={shown(name)}: no such column; the columns are {listed}{hint}"


def source_columns(features: Sequence[str], columns: Iterable[str]) -> set[str]:
    """The columns of a file that features come from: ``color=red`` comes from ``color``."""
    known = set(columns)
    lengths, sources = set(map(len, known)), known.intersection(features)
    for feature in features:
        for mark in re.finditer("=", feature):
            if mark.start() in lengths and feature[: mark.start()] in known:
                sources.add(feature[: mark.start()])
    return sources


def known_values(column: str, features: Sequence[str]) -> list[str]:
    """The values of a nominal column that features stand for."""
    prefix = f"{column}="
    return [name.removeprefix(prefix) for name in features if name.startswith(prefix)]


def feature_matrix(
    columns: Sequence[Column], cells: Csr | None = None, coded: Collection[str] = ()
) -> tuple[Matrix, list[str]]:
    """Columns as a matrix of features, and their names.

    The numbers and codes are the values of the columns, or `cells`, shape (n, columns). Nominal
    columns in `coded` become one column of numbers, the others one column per value.
    """
    if not columns:
        raise ValueError("there are no feature columns")
    for column in columns:
        if column.is_text:
            raise ValueError(f"{shown(column.name)} is text; pass it to ignore= to leave it out")
    names: list[str] = []
    tables: dict[int, Csr] = {}  # what each code of a column becomes, if not a number: one row each
    for place, column in enumerate(columns):
        values = None if column.codes is None else column.numbers(column.name in coded)
        if column.codes is None or values is not None:
            names.append(column.name)
        else:
            names += [f"{column.name}={value}" for value in column.codes]
            size = len(column.codes)  # the last row is for -1, an unknown value
            tables[place] = sparse.eye_array(size + 1, size, format="csr")
        if values is not None and values != list(range(len(values))):
            tables[place] = sparse.csr_array(np.array(values)[:, None])
    if cells is None:
        dense: list[Array | array[float]] = []
        for place, column in enumerate(columns):
            if place in tables:
                dense += list(tables[place][np.array(column.values, np.intp)].toarray().T)
            else:
                dense.append(column.values)
        return np.array(dense).T, names
    if not tables:
        return cells, names
    plain = [place for place in range(len(columns)) if place not in tables]
    blocks, sources, by_column = [cells[:, plain]], plain, cells.tocsc()
    for place, table in tables.items():
        blocks.append(table[by_column[:, [place]].toarray().ravel().astype(np.intp)])
        sources += [place] * table.shape[1]
    joined = sparse.hstack(blocks, format="csr")
    return joined[:, np.argsort(sources, kind="stable")], names  # in the order of the file


def label_matrix(columns: Sequence[Column], cells: Csr | None = None) -> tuple[Csr, list[str]]:
    """Columns of 0 and 1 as a matrix of labels, and their names."""
    for column in columns:
        if column.codes is not None and column.truths() is None:
            raise ValueError(
                f"the label {shown(column.name)} must have the values 0 and 1; "
                f"got {', '.join(map(shown, column.codes))}"
            )
    Y, names = feature_matrix(columns, cells)
    Y = canonical_csr(Y)
    for place in np.flatnonzero(Y.data != 1)[:1]:
        name, value = shown(names[Y.indices[place]]), Y.data[place]
        raise ValueError(f"the label {name} must contain only 0 and 1; got {value:g}")
    return Y.astype(np.int8), names
