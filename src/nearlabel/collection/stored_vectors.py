"""The vectors of items: which file has them, where in it, and what is unused there."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from scipy import sparse

from nearlabel.collection.change_log import LISTED, What, repacked, unpacked
from nearlabel.collection.database import Database
from nearlabel.collection.folder_checks import (
    CollectionError,
    DamagedVectorsError,
    NotInCollectionError,
    remove,
    vector_files,
    vectors_path,
)
from nearlabel.collection.vector_file import HEAD_SIZE, Form, VectorFile, form_of, stacked
from nearlabel.common.arrays import Array, Matrix, MatrixLike

_VECTOR = 3  # position of the vector in a logged item


class StoredVectors:
    """The current vector file of a collection; the writer appends to it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.folder: Path = database.folder
        self._file: tuple[int, VectorFile] | None = None
        self.damage: DamagedVectorsError | None = None  # why the file cannot be used

    def check(self, connection: sqlite3.Connection) -> None:
        """Check the header and the length of the file."""
        try:
            self.file(connection)
        except DamagedVectorsError as error:
            self.damage = error

    def form(self, connection: sqlite3.Connection) -> Form | None:
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
            raise CollectionError(
                "is damaged: the form of its vectors is not valid", self.folder
            ) from None
        return Form(width, is_sparse)

    def append(
        self, connection: sqlite3.Connection, ids: Sequence[int], vectors: Sequence[MatrixLike]
    ) -> list[int]:
        """Append vectors of items in a transaction; returns their places, valid once it commits."""
        if not ids:
            return []
        form = self.form(connection)
        if form is None:
            form = form_of(vectors[0])
            if not form.width:
                raise ValueError("vectors must have at least 1 feature; got 0")
        rows = stacked(vectors, form)
        file = self.file(connection) or self._first(connection, form)
        (file.end,) = connection.execute("SELECT vectors_end FROM state").fetchone()
        places, end = file.append(ids, rows)
        connection.execute("UPDATE state SET vectors_end = ?", (end,))
        return places

    def cut(self) -> int:
        """Cut off the bytes of a change that failed or was interrupted."""
        with self._database.alone() as connection:
            file = self.file(connection)
            return 0 if file is None else file.cut()

    def read(
        self, connection: sqlite3.Connection, ids: Sequence[int], gone: str = "refused"
    ) -> Matrix:
        """The vectors of items; with `gone`, zeros for items that do not exist."""
        form = self.form(connection) or Form(0, False)
        wanted = np.asarray(ids, np.int64)
        select = "SELECT id, vector FROM items"
        if len(wanted) < 10_000:  # for more, reading all items is faster
            cursor = connection.execute(
                f"{select} WHERE id IN {LISTED} ORDER BY id",
                (json.dumps(wanted.tolist()),),
            )
        else:
            cursor = connection.execute(f"{select} ORDER BY id")
        known = np.array(cursor.fetchall(), np.int64).reshape(-1, 2)
        at = np.searchsorted(known[:, 0], wanted)
        is_there = at < len(known)
        is_there[is_there] = known[at[is_there], 0] == wanted[is_there]
        if gone != "zeros" and not is_there.all():
            raise NotInCollectionError(f"has no item {wanted[~is_there][0]}", self.folder)
        file = self.file(connection)
        if file is None:
            return np.zeros((len(wanted), form.width), np.float32)
        rows = file.read(wanted[is_there], known[at[is_there], 1])
        return rows if is_there.all() else _spread(rows, is_there)

    def file(self, connection: sqlite3.Connection) -> VectorFile | None:
        """The vector file of this state of the database."""
        number, end = connection.execute("SELECT vectors_file, vectors_end FROM state").fetchone()
        if number == 0:
            return None
        held = self._file
        if held is None or held[0] != number:
            form = self.form(connection)
            if form is None:
                raise CollectionError("is damaged: its vectors have no form", self.folder)
            path, writable = vectors_path(self.folder, number), not self._database.readonly
            held = number, VectorFile(path, form, end, writable=writable)
            self._file = held
        held[1].end = max(held[1].end, end)
        return held[1]

    def tidy(self) -> int:
        """Remove leftovers of interrupted changes; returns the bytes of vectors cut off."""
        with self._database.alone() as connection:
            number, _ = connection.execute("SELECT vectors_file, vectors_end FROM state").fetchone()
            for other, path in vector_files(self.folder):
                if other != number:
                    remove(path)
        return self.cut()

    def used(self, connection: sqlite3.Connection) -> Array:
        """The places of vectors that an item has, or would have after `undo`; ascending."""
        return np.array(sorted(self._owners(connection)), np.int64)

    def _owners(self, connection: sqlite3.Connection) -> dict[int, int]:
        """The items of all places in use."""
        now = connection.execute("SELECT vector, id FROM items").fetchall()
        noted = connection.execute(
            "SELECT before, key FROM differences WHERE what = ? AND before IS NOT NULL",
            (int(What.ITEM),),
        )
        before = [(unpacked(What.ITEM, row)[_VECTOR], item) for row, item in noted]
        return dict([*before, *now])

    def unused(self, connection: sqlite3.Connection) -> list[int]:
        """The places of unreferenced records."""
        file = self.file(connection)
        if file is None:
            return []
        used = set(self.used(connection).tolist())
        return [place for place in file.places() if place not in used]

    def garbage(self, connection: sqlite3.Connection) -> int:
        """The number of bytes that `compact` would free."""
        file = None if self.damage else self.file(connection)
        if file is None:
            return 0
        (end,) = connection.execute("SELECT vectors_end FROM state").fetchone()
        if file.form.is_sparse:
            return sum(file.size_of(place) for place in self.unused(connection) if place < end)
        return int(end) - HEAD_SIZE - len(self.used(connection)) * file.stride

    def erase_unused(self) -> int:
        """Overwrite all unreferenced records; returns their number."""
        with self._database.alone() as connection:
            file = self.file(connection)
            return 0 if file is None else file.erase(self.unused(connection))

    def compact(self) -> None:
        """Replace the file by one without gaps."""
        with self._database.writing() as connection:
            file = self.file(connection)
            if file is None or not self.unused(connection):
                return
            (number,) = connection.execute("SELECT vectors_file FROM state").fetchone()
            places = self.used(connection).tolist()
            copy, moved = file.copy_to(vectors_path(self.folder, number + 1), places)
            now = dict(zip(places, moved, strict=True))
            self._move(connection, now)
            connection.execute(
                "UPDATE state SET vectors_file = ?, vectors_end = ?", (number + 1, copy.end)
            )
        self._database.wait_for_readers()
        self._file = number + 1, copy
        file.close()
        remove(file.path)

    def salvage(self) -> list[int]:
        """Replace damaged records by zeros, in a new file; returns their items."""
        lost: set[int] = set()
        with self._database.writing() as connection:
            form = self.form(connection)
            number, end = connection.execute(
                "SELECT vectors_file, vectors_end FROM state"
            ).fetchone()
            assert form is not None
            places = sorted(self._owners(connection).items())
            path = vectors_path(self.folder, number)
            copy = VectorFile.create(vectors_path(self.folder, number + 1), form)
            moved: list[int] = []
            for start in range(0, len(places), 1000):
                batch = places[start : start + 1000]
                rows = _whole_rows(path, form, end, batch)
                lost.update(item for (_, item), row in zip(batch, rows, strict=True) if row is None)
                empty = (
                    sparse.csr_array((1, form.width)) if form.is_sparse else np.zeros(form.width)
                )
                given = [empty if row is None else row for row in rows]
                at, copy.end = copy.append([item for _, item in batch], stacked(given, form))
                moved += at
            self._move(connection, dict(zip([place for place, _ in places], moved, strict=True)))
            connection.execute(
                "UPDATE state SET vectors_file = ?, vectors_end = ?, index_change = NULL, "
                "index_digest = NULL",
                (number + 1, copy.end),
            )
            # so that the files are read again
            again = f"UPDATE files SET mtime_ns = 0 WHERE item IN {LISTED}"
            connection.execute(again, (json.dumps(sorted(lost)),))
        self.close()
        self._file, self.damage = (number + 1, copy), None
        remove(path)
        return sorted(lost)

    def close(self) -> None:
        """Close the file."""
        held, self._file = self._file, None
        if held is not None:
            held[1].close()

    def _first(self, connection: sqlite3.Connection, form: Form) -> VectorFile:
        value = json.dumps({"width": form.width, "is_sparse": form.is_sparse})
        connection.execute("INSERT OR REPLACE INTO settings VALUES ('form', ?)", (value,))
        connection.execute("UPDATE state SET vectors_file = 1, vectors_end = ?", (HEAD_SIZE,))
        self.close()
        file = VectorFile.create(vectors_path(self.folder, 1), form)
        self._file = 1, file
        return file

    def _move(self, connection: sqlite3.Connection, now: dict[int, int]) -> None:
        items = connection.execute("SELECT vector, id FROM items").fetchall()
        connection.executemany(
            "UPDATE items SET vector = ? WHERE id = ?", [(now[at], item) for at, item in items]
        )
        noted = connection.execute(
            "SELECT before, change, place FROM differences WHERE what = ? AND before IS NOT NULL",
            (int(What.ITEM),),
        ).fetchall()
        for text, change, place in noted:
            row = list(unpacked(What.ITEM, text))
            row[_VECTOR] = now[row[_VECTOR]]
            connection.execute(
                "UPDATE differences SET before = ? WHERE change = ? AND place = ?",
                (repacked(What.ITEM, tuple(row)), change, place),
            )


def _whole_rows(
    path: Path, form: Form, end: int, places: Sequence[tuple[int, int]]
) -> list[Matrix | None]:
    """The vectors of records in a damaged file; None for damaged ones."""
    rows: list[Matrix | None] = [None] * len(places)
    try:
        file = VectorFile(path, form, end, writable=False, is_whole=False)
    except DamagedVectorsError:
        return rows
    for at, (place, item) in enumerate(places):
        with suppress(DamagedVectorsError, ValueError):
            rows[at] = file.read(np.array([item]), np.array([place]))[[0]]
    file.close()
    return rows


def _spread(rows: Matrix, is_there: Array) -> Matrix:
    """Rows at their positions, and zeros elsewhere."""
    if not isinstance(rows, np.ndarray):
        sizes = np.zeros(len(is_there), np.int64)
        sizes[is_there] = np.diff(rows.indptr)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return sparse.csr_array((rows.data, rows.indices, indptr), (len(is_there), rows.shape[1]))
    spread = np.zeros((len(is_there), rows.shape[1]), np.float32)
    spread[is_there] = rows
    return spread
