"""The vectors of items, in the table `vectors`, a row each.

The data are float32 numbers, preceded by int32 columns for sparse rows. Each row has a checksum of
its item and data, checked whenever it is read: neither SQLite nor the disk notices a flipped bit. A
row is named by its item or, once it is replaced, by the log of changes. A row that nothing names
any more is overwritten with zeros and has no item; `compact` removes it. Numbers of rows are never
used again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from scipy import sparse

from nearlabel.collection.change_log import LISTED, ItemRow, What, next_id, unpacked
from nearlabel.collection.folder_checks import (
    CollectionError,
    DamagedVectorsError,
    NotInCollectionError,
)
from nearlabel.common.arrays import Array, Matrix, MatrixLike, canonical_csr, csr_of_known

_ROWS_AT_ONCE = 1024


class Form(NamedTuple):
    """The length of vectors, and whether only nonzero numbers are stored."""

    width: int
    is_sparse: bool

    def __str__(self) -> str:
        return f"{'sparse' if self.is_sparse else 'dense'} vectors with {self.width} features"

    def is_length(self, size: int) -> bool:
        """Whether the data of a vector can have this many bytes."""
        return size % 8 == 0 if self.is_sparse else size == 4 * self.width

    def is_whole(self, item: int, content: bytes, total: int) -> bool:
        """Whether the data of a vector are as they were written for this item."""
        return self.is_length(len(content)) and checksum(item, content) == total


def read_form(connection: sqlite3.Connection) -> Form | None:
    """The form of all vectors; None before the first item."""
    stored = connection.execute("SELECT value FROM settings WHERE name = 'form'").fetchone()
    if stored is None:
        return None
    try:
        form = json.loads(stored[0])
        width, is_sparse = form["width"], form["is_sparse"]
        if type(width) is not int or type(is_sparse) is not bool or not 0 < width < 2**31:
            raise ValueError
    except (TypeError, KeyError, ValueError, RecursionError):
        raise CollectionError("is damaged: the form of its vectors is not valid") from None
    return Form(width, is_sparse)


def append_vectors(
    connection: sqlite3.Connection, ids: Sequence[int], vectors: Sequence[MatrixLike]
) -> list[int]:
    """Store vectors of items in a transaction; returns the numbers of their rows."""
    if not ids:
        return []
    form = read_form(connection)
    if form is None:
        form = _form_of(vectors[0])
        if not form.width:
            raise ValueError("vectors must have at least 1 feature; got 0")
        value = json.dumps({"width": form.width, "is_sparse": form.is_sparse})
        connection.execute("INSERT INTO settings VALUES ('form', ?)", (value,))
    first = next_id(connection, "vectors")
    contents = _contents(_stacked(vectors, form))
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?, ?, ?)",
        (
            (first + place, item, content, checksum(item, content))
            for place, (item, content) in enumerate(zip(ids, contents, strict=True))
        ),
    )
    return list(range(first, first + len(ids)))


def read_vectors(
    connection: sqlite3.Connection, ids: Sequence[int], *, gone: str = "refused"
) -> Matrix:
    """The vectors of items, in their order; with `gone="zeros"`, zeros for unknown items."""
    form = read_form(connection) or Form(0, False)
    given = np.asarray(ids, np.int64)
    wanted, places = np.unique(given, return_inverse=True)
    known: list[int] = []
    rows = np.zeros((0 if form.is_sparse else len(wanted), form.width), np.float32)
    contents = [b""] * len(wanted) if form.is_sparse else []
    for items, parts in _checked_rows(connection, wanted.tolist(), form):
        if None in parts:
            raise _damaged(items[parts.index(None)])
        known += items
        at = np.searchsorted(wanted, items)
        if form.is_sparse:
            for place, content in zip(at.tolist(), parts, strict=True):
                contents[place] = content or b""
        else:
            numbers = np.frombuffer(b"".join(parts), "<f4")  # type: ignore[arg-type]
            rows[at] = _finite(numbers).reshape(-1, form.width)
    if gone != "zeros" and len(known) < len(wanted):
        raise NotInCollectionError(f"has no item {min({*wanted.tolist()}.difference(known))}")
    matrix: Matrix = _sparse_rows(contents, form.width) if form.is_sparse else rows
    return matrix if np.array_equal(wanted, given) else matrix[places]


def without_vectors(connection: sqlite3.Connection, ids: Sequence[int]) -> set[int]:
    """Those of some items whose vectors are missing, altered, or nothing but zeros."""
    form = read_form(connection) or Form(0, False)
    return {
        item
        for items, contents in _checked_rows(connection, ids, form)
        for item, content in zip(items, contents, strict=True)
        if not (content or b"").strip(b"\0")
    }


def named_vectors(connection: sqlite3.Connection) -> dict[int, int]:
    """The rows that an item has, or would have after `undo`, and their items."""
    logged = connection.execute(
        "SELECT before, key FROM differences WHERE what = ? AND before IS NOT NULL",
        (int(What.ITEM),),
    )
    before = {ItemRow(*unpacked(What.ITEM, row)).vector: item for row, item in logged}
    if not all(type(vector) is int for vector in before):
        raise CollectionError("is damaged: its log of changes is not valid")
    return before | dict(connection.execute("SELECT vector, id FROM items").fetchall())


def vector_differences(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong in the vectors, those in the log included; nothing after the first problem."""
    form = read_form(connection) or Form(0, False)
    owners: dict[int, int] = {}
    cursor = connection.execute("SELECT id, item, data, checksum FROM vectors WHERE item != 0")
    try:
        while block := cursor.fetchmany(_ROWS_AT_ONCE):
            for number, item, content, total in block:
                if not form.is_whole(item, content, total):
                    raise _damaged(item)
                owners[number] = item
            contents = [content for _, _, content, _ in block]
            if form.is_sparse:
                _sparse_rows(contents, form.width)
            else:
                _finite(np.frombuffer(b"".join(contents), "<f4"))
        for item, number in connection.execute("SELECT id, vector FROM items"):
            if owners.get(number) != item:
                raise _damaged(item)
    except DamagedVectorsError as error:
        yield str(error)


def _damaged(item: int) -> DamagedVectorsError:
    why = "is damaged: a vector is missing or altered, that of item"
    return DamagedVectorsError(f"{why} {item}; index its file again, or restore a backup")


def checksum(item: int, content: bytes) -> int:
    """The checksum of a vector and of whom it belongs to."""
    return crc32(content, crc32(item.to_bytes(8, "little", signed=True)))


def _checked_rows(
    connection: sqlite3.Connection, ids: Sequence[int], form: Form
) -> Iterator[tuple[list[int], list[bytes | None]]]:
    """Some of the items that exist, and their data, in blocks; None for damaged ones."""
    cursor = connection.execute(
        "SELECT items.id, vectors.item, data, checksum FROM items "
        f"LEFT JOIN vectors ON vectors.id = items.vector WHERE items.id IN {LISTED}",
        (json.dumps([*ids]),),
    )
    while block := cursor.fetchmany(_ROWS_AT_ONCE):
        contents = [
            content if owner == item and form.is_whole(item, content, total) else None
            for item, owner, content, total in block
        ]
        yield [row[0] for row in block], contents


def _form_of(vector: Any) -> Form:
    if sparse.issparse(vector):
        return Form(int(vector.shape[-1]), True)
    return Form(int(np.asarray(vector).size), False)


def _stacked(vectors: Sequence[Any], form: Form) -> Matrix:
    """Vectors as the rows of one float32 array or CSR matrix; refuses another form."""
    for vector in vectors:
        other = _form_of(vector)
        if other != form or (sparse.issparse(vector) and vector.shape[0] != 1 and vector.ndim == 2):
            raise ValueError(f"vectors: this collection has {form}; got {other}")
    with np.errstate(over="ignore"):
        if form.is_sparse:
            rows = [canonical_csr(v.reshape(1, -1) if v.ndim == 1 else v) for v in vectors]
            matrix = canonical_csr(sparse.vstack([row.astype(np.float32) for row in rows], "csr"))
        else:
            matrix = np.array([np.asarray(v, np.float32).ravel() for v in vectors], np.float32)
    if not np.isfinite(matrix.data if form.is_sparse else matrix).all():
        raise ValueError("vectors must be finite and within the range of float32")
    return matrix


def _contents(rows: Matrix) -> Iterator[bytes]:
    """The data of each row."""
    for row in range(rows.shape[0]):
        if isinstance(rows, np.ndarray):
            yield rows[row].astype("<f4", copy=False).tobytes()
        else:
            inside = slice(rows.indptr[row], rows.indptr[row + 1])
            columns = rows.indices[inside].astype("<i4").tobytes()
            yield columns + rows.data[inside].astype("<f4").tobytes()


def _sparse_rows(contents: Sequence[bytes], width: int) -> Matrix:
    sizes = np.array([len(content) // 8 for content in contents], np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    columns = b"".join(content[: len(content) // 2] for content in contents)
    values = b"".join(content[len(content) // 2 :] for content in contents)
    column = np.frombuffer(columns, "<i4").astype(np.int32)
    # Rising within a row: as one number with the row they rise everywhere.
    rising = np.repeat(np.arange(len(sizes)), sizes) * width + column
    if len(column) and (column.min() < 0 or column.max() >= width or (np.diff(rising) <= 0).any()):
        raise DamagedVectorsError("is damaged: the columns of a sparse row are not in order")
    value = _finite(np.frombuffer(values, "<f4")).astype(np.float32)
    return csr_of_known(value, column, ends, (len(sizes), width))


def _finite(numbers: Array) -> Array:
    if not np.isfinite(numbers).all():
        raise DamagedVectorsError("is damaged: a number of a vector is not finite")
    return numbers
