"""Columns of a file as features and labels: numbers, words for yes and no, and nominal values."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.messages import shown
from nearlabel.datasets.dataset import Dataset, unlabeled
from nearlabel.datasets.text_lines import DataError, number, truth


class SparseRows:
    """A CSR matrix that grows row by row, in little more memory than it takes."""

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
        if len(data) < 2**31:  # SciPy would widen the indices to what the ends have
            ends = ends.astype(np.int32)
        matrix = sparse.csr_array((data, indices, ends), shape=(len(self), width))
        matrix.sort_indices()
        matrix.eliminate_zeros()
        return matrix


def plain_row(
    readers: Iterable[Callable[[Any], float]], cells: Sequence[Any]
) -> list[float] | None:
    """A row of plain numbers and known values; None where it must be read more carefully.

    That is where a cell cannot be read, and where Python's `float` reads more than plain numbers.
    """
    try:
        row = [read(cell) for read, cell in zip(readers, cells, strict=True)]
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    text = "".join(map(str, cells))
    return row if sum(row) * 0 == 0 and "_" not in text and text.isascii() else None


@dataclass(frozen=True)
class Column:
    """A column of a file: its cells are numbers, codes of nominal values, or text.

    Attributes
    ----------
    name : str
    codes : dict of str to int, or None
        The nominal values and their codes 0, 1, 2 …
    is_text : bool
        Whether the cells are free text, which cannot be a feature.
    """

    name: str
    codes: dict[str, int] | None = None
    is_text: bool = False

    def reader(self, strict: bool) -> Callable[[str], float]:
        """A function that reads a cell; unless strict, it lets pass more than plain numbers."""
        if self.is_text:
            return lambda _: 0.0
        if self.codes is not None:
            return self.codes.__getitem__
        return number if strict else float

    def expected(self) -> str:
        """What a cell must hold, for messages."""
        if self.codes is None:
            return "a finite number expected"
        return f"one of {', '.join(map(shown, list(self.codes)[:5]))} expected"

    def truths(self) -> Array | None:
        """What each code says as 0 or 1; None where a value is not a word for yes or no."""
        said = [truth(value) for value in self.codes or ()]
        odd = None in said or len(set(said)) < len(said)
        return None if odd else np.array(said, dtype=np.float64)

    def numbers(self, coded: bool) -> Array | None:
        """What each code is as a number; None where each value takes a column of its own."""
        said = self.truths()
        if said is not None or not coded:
            return said
        try:
            return np.array([number(value) for value in self.codes or ()])
        except ValueError:
            return np.arange(float(len(self.codes or ())))


def source_columns(features: Sequence[str]) -> set[str]:
    """The columns from which features come: ``color=red`` is made of ``color``."""
    names = set(features)
    for feature in features:
        parts = feature.split("=")
        names.update("=".join(parts[:count]) for count in range(1, len(parts)))
    return names


def assembled(
    file: str,
    columns: Sequence[Column],
    cells: Any,
    labels: Sequence[str],
    ignore: Sequence[str],
    coded: Collection[str] = (),
) -> Dataset:
    """A data set of all cells of a file.

    Parameters
    ----------
    file : str
        For messages.
    columns : sequence of Column
    cells : ndarray or csr_array, shape (n, columns)
        Numbers and codes. Where a CSR matrix stores nothing, the number or the code is 0.
    labels, ignore : sequence of str
        Names of columns.
    coded : collection of str
        Nominal columns that are to be one column of numbers, not one column per value.
    """
    wanted, left_out = set(labels), set(ignore)
    label_places = [place for place, column in enumerate(columns) if column.name in wanted]
    feature_places = [
        place for place, column in enumerate(columns) if column.name not in wanted | left_out
    ]
    text = next((columns[place].name for place in feature_places if columns[place].is_text), None)
    if text is not None:
        raise DataError(
            file, None, f"{shown(text)} is text, not a feature; pass it to ignore= to leave it out"
        )
    if not feature_places:
        raise DataError(file, None, "there is no column of features")
    by_column = cells.tocsc() if sparse.issparse(cells) else cells
    Y = _labels(file, columns, by_column, label_places)
    X, feature_names = _features(columns, cells, by_column, feature_places, coded)
    label_names = [columns[place].name for place in label_places]
    return Dataset(X, Y, np.array(label_names, np.str_), np.array(feature_names, np.str_))


def _labels(file: str, columns: Sequence[Column], by_column: Any, places: list[int]) -> Csr:
    if not places:
        return unlabeled(by_column.shape[0])
    blocks = []
    for place in places:
        column, values = columns[place], _dense_column(by_column, place)
        if column.codes is not None:
            said = column.truths()
            if said is None:
                raise DataError(
                    file,
                    None,
                    f"the label {shown(column.name)} must have the values 0 and 1; "
                    f"it is declared with {', '.join(map(shown, column.codes))}",
                )
            values = said[values.astype(np.intp)]
        elif not np.isin(values, (0, 1)).all():
            wrong = values[~np.isin(values, (0, 1))][0]
            raise DataError(
                file, None, f"the label {shown(column.name)} must hold 0 and 1; got {wrong:g}"
            )
        blocks.append(np.flatnonzero(values))
    column_of = np.repeat(np.arange(len(places)), [len(rows) for rows in blocks])
    rows = np.concatenate(blocks)
    ones = np.ones(len(rows), np.int8)
    return sparse.csr_array((ones, (rows, column_of)), shape=(by_column.shape[0], len(places)))


def _features(
    columns: Sequence[Column],
    cells: Any,
    by_column: Any,
    places: list[int],
    coded: Collection[str],
) -> tuple[Any, list[str]]:
    blocks: list[Any] = []
    names: list[str] = []
    plain: list[int] = []  # a run of columns that stay as they are

    def close() -> None:
        if plain:
            blocks.append(cells[:, plain])
            plain.clear()

    for place in places:
        column = columns[place]
        values = None if column.codes is None else column.numbers(column.name in coded)
        if column.codes is None or (
            values is not None and np.array_equal(values, np.arange(len(values)))
        ):
            plain.append(place)
            names.append(column.name)
            continue
        close()
        codes = _dense_column(by_column, place).astype(np.intp)
        if values is not None:
            block = values[codes][:, None]
            block = sparse.csr_array(block) if sparse.issparse(cells) else block
            names.append(column.name)
        else:
            block = _indicators(codes, len(column.codes), bool(sparse.issparse(cells)))
            names += [f"{column.name}={value}" for value in column.codes]
        blocks.append(block)
    close()
    if len(blocks) == 1:
        return blocks[0], names
    if sparse.issparse(cells):
        return sparse.csr_array(sparse.hstack(blocks, format="csr")), names
    return np.hstack(blocks), names


def _indicators(codes: Array, count: int, is_sparse: bool) -> Any:
    """One column per code, with a one where it is that of the row; none for a code below 0."""
    known = codes >= 0
    ends = np.concatenate([[0], np.cumsum(known)])
    ones = sparse.csr_array((np.ones(ends[-1]), codes[known], ends), (len(codes), count))
    return ones if is_sparse else ones.toarray()


def _dense_column(by_column: Any, place: int) -> Array:
    """All cells of one column of an array or a CSC matrix, shape (n,)."""
    if not sparse.issparse(by_column):
        return np.asarray(by_column[:, place])
    column = np.zeros(by_column.shape[0])
    inside = slice(*by_column.indptr[place : place + 2])
    column[by_column.indices[inside]] = by_column.data[inside]
    return column
