"""Columns of a file as features and labels: numbers, yes/no words, and nominal values."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, canonical_csr
from nearlabel.common.messages import did_you_mean, shown
from nearlabel.datasets.dataset import unlabeled
from nearlabel.datasets.text_lines import column_names, number, truth

_COMPARED = 1000  # columns whose names are compared with one that does not exist


class Numbers:
    """The names 0, 1, 2 … of columns without names, however many they are."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def get(self, name: str) -> int | None:
        """The column with this name."""
        is_number = len(name) < 11 and name.isascii() and name.isdigit()
        return int(name) if is_number and int(name) < self._count else None


Columns = dict[str, int] | Numbers  # by the names of labels or features


def numbered(names: Iterable[str]) -> dict[str, int]:
    """The columns of names, in their order."""
    return {name: column for column, name in enumerate(names)}


def names_of(columns: Columns) -> Array | None:
    """The names of columns; None if they are just numbers."""
    return None if isinstance(columns, Numbers) else column_names(list(columns))


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


def plain_row(
    readers: Iterable[Callable[[Any], float]], cells: Sequence[Any]
) -> list[float] | None:
    """A row of plain numbers and known values; None if it must be read more carefully.

    That is the case if a cell cannot be read, or if `float` accepts more than a plain number.
    """
    try:
        row = [read(cell) for read, cell in zip(readers, cells, strict=True)]
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    text = "".join(map(str, cells))
    return row if sum(row) * 0 == 0 and "_" not in text and text.isascii() else None


@dataclass(frozen=True)
class Column:
    """A column of a file: its cells are numbers, codes of nominal values, or text."""

    name: str
    codes: dict[str, int] | None = None  # the nominal values and their codes 0, 1, 2 …
    is_text: bool = False  # free text cannot be a feature

    def reader(self, strict: bool) -> Callable[[str], float]:
        """A function that parses a cell; unless strict, it accepts more than plain numbers."""
        if self.is_text:
            return lambda _: 0.0
        if self.codes is not None:
            return self.codes.__getitem__
        return number if strict else float

    def truths(self) -> list[float] | None:
        """Each nominal value as 0 or 1; None if one is not a word for yes or no."""
        said = [truth(value) for value in self.codes or ()]
        return None if None in said or len(set(said)) < len(said) else list(map(float, said))  # type: ignore[arg-type]

    def numbers(self, is_coded: bool) -> list[float] | None:
        """Each nominal value as a number; None if each gets its own column."""
        said = self.truths()
        if said is not None or not is_coded:
            return said
        try:
            return [number(value) for value in self.codes or ()]
        except ValueError:
            return list(map(float, range(len(self.codes or ()))))


def named_columns(option: str, names: Iterable[str], columns: Sequence[str]) -> list[str]:
    """The columns that an option names, by name or by a pattern such as ``tag_*``."""
    found: dict[str, None] = {}
    there = set(columns)
    for name in names:
        matching = [name] if name in there else [one for one in columns if fnmatchcase(one, name)]
        if not matching:
            raise ValueError(no_column(option, name, columns))
        found.update(dict.fromkeys(matching))
    return list(found)


def no_column(option: str, name: str, columns: Sequence[str]) -> str:
    """The message about an option that matches no column."""
    there = ", ".join(map(shown, columns[:8])) + (", …" if len(columns) > 8 else "")
    if set(name) & set("*?["):
        return f"{option}={shown(name)}: no column matches; the columns are {there}"
    hint = did_you_mean(name, columns[:_COMPARED])
    return f"{option}={shown(name)}: no such column; the columns are {there}{hint}"


def source_columns(features: Sequence[str], columns: Iterable[str]) -> set[str]:
    """The columns of a file that features come from: ``color=red`` comes from ``color``."""
    there = set(columns)
    lengths, found = set(map(len, there)), there.intersection(features)
    for feature in features:
        for mark in re.finditer("=", feature):
            if mark.start() in lengths and feature[: mark.start()] in there:
                found.add(feature[: mark.start()])
    return found


def known_values(column: str, features: Sequence[str]) -> list[str]:
    """The values of a nominal column that features stand for."""
    prefix = f"{column}="
    return [name.removeprefix(prefix) for name in features if name.startswith(prefix)]


def assembled(
    columns: Sequence[Column],
    cells: Any,
    labels: Collection[str],
    ignore: Collection[str] = (),
    coded: Collection[str] = (),
) -> tuple[Any, Csr, list[str], list[str]]:
    """The features and the labels of a file as matrices, then the names of both.

    The cells are numbers and codes, shape (n, columns), dense or CSR. Nominal columns in `coded`
    become one column of numbers, the others one column per value.
    """
    left_out = {*labels, *ignore}
    kept = [place for place, column in enumerate(columns) if column.name not in left_out]
    if not kept:
        raise ValueError("there are no feature columns")
    for place in kept:
        if columns[place].is_text:
            name = shown(columns[place].name)
            raise ValueError(f"{name} is text; pass it to ignore= to leave it out")
    X, features = _matrix(columns, cells, kept, coded)
    Y, names = labels_of(columns, cells, labels)
    return X, Y, features, names


def labels_of(
    columns: Sequence[Column], cells: Any, labels: Collection[str]
) -> tuple[Csr, list[str]]:
    """The columns of a file that are labels, as a matrix, and their names."""
    wanted = set(labels)
    carried = [place for place, column in enumerate(columns) if column.name in wanted]
    if not carried:
        return unlabeled(cells.shape[0]), []
    for place in carried:
        if columns[place].codes is not None and columns[place].truths() is None:
            raise ValueError(
                f"the label {shown(columns[place].name)} must have the values 0 and 1; "
                f"got {', '.join(map(shown, columns[place].codes or ()))}"
            )
    Y, names = _matrix(columns, cells, carried, ())
    Y = canonical_csr(Y)
    for place in np.flatnonzero(Y.data != 1)[:1]:
        name, value = shown(names[Y.indices[place]]), Y.data[place]
        raise ValueError(f"the label {name} must contain only 0 and 1; got {value:g}")
    return Y.astype(np.int8), names


def _matrix(
    columns: Sequence[Column], cells: Any, places: Sequence[int], coded: Collection[str]
) -> tuple[Any, list[str]]:
    """Some columns as numbers, and their names; a nominal one may become several."""
    is_sparse, names = sparse.issparse(cells), []
    plain: list[int] = []  # columns that stay unchanged
    tables = {}  # what each code of the other columns becomes, one row per code
    for place in places:
        codes, name = columns[place].codes, columns[place].name
        values = None if codes is None else columns[place].numbers(name in coded)
        if codes is not None and values is None:  # the last row is for -1, an unknown value
            tables[place] = sparse.eye_array(len(codes) + 1, len(codes), format="csr")
            names += [f"{name}={value}" for value in codes]
            continue
        names.append(name)
        if values is None or values == list(range(len(values))):
            plain.append(place)
        else:
            tables[place] = sparse.csr_array(np.array(values)[:, None])
    blocks, sources = [cells[:, plain]], [*plain]
    if not tables:
        return blocks[0], names
    by_column = cells.tocsc() if is_sparse else cells
    for place, table in tables.items():
        cell = by_column[:, [place]].toarray() if is_sparse else cells[:, place]
        block = table[cell.ravel().astype(np.intp)]
        blocks.append(block if is_sparse else block.toarray())
        sources += [place] * table.shape[1]
    joined = sparse.hstack(blocks, format="csr") if is_sparse else np.hstack(blocks)
    return joined[:, np.argsort(sources, kind="stable")], names  # in the order of the file
