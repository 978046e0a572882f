"""Copies of a collection, also while somebody changes it.

The database is copied by SQLite, as of one moment; then the vectors that this state speaks of. They
are only ever added to, but for what is forgotten or compacted: then the copy does not agree, and is
made again. A copy is in its place when it is whole, and not before.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sqlite3
from contextlib import closing, suppress
from io import FileIO
from pathlib import Path

import numpy as np

from nearlabel.collection.database import Database
from nearlabel.collection.folder_checks import (
    DATABASE,
    CollectionError,
    index_path,
    opened_plainly,
    vectors_path,
)
from nearlabel.collection.stored_vectors import StoredVectors
from nearlabel.common.files import sync_folder

_TRIES = 5
_AT_ONCE = 2**22  # bytes, and items


def back_up(database: Database, target: Path) -> None:
    """Copy a collection to a folder that is not there yet, or is empty."""
    check_new_folder(target)
    for part in target.parent.glob(f".{target.name}.*.part"):  # of a copy that was not finished
        shutil.rmtree(part, ignore_errors=True)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    part.mkdir(0o700)
    try:
        for last_try in (*(False,) * (_TRIES - 1), True):
            try:
                _copy(database, part)
                break
            except (FileNotFoundError, CollectionError):  # it was compacted, or items forgotten
                if last_try:
                    raise
                for path in part.iterdir():
                    path.unlink()
        shutil.copymode(database.folder, part)
        put_in_place(part, target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def check_new_folder(target: Path) -> None:
    """Refuse to make a folder where something is."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise FileExistsError(errno.EEXIST, "there is something that is no folder", str(target))
    if target.exists() and any(target.iterdir()):
        raise FileExistsError(
            errno.EEXIST, "a folder is needed that is not there yet, or empty", str(target)
        )


def put_in_place(part: Path, target: Path) -> None:
    """Have a folder that is whole take its name; it is on the disk then."""
    sync_folder(part / DATABASE)
    if os.name == "nt" and target.exists():
        target.rmdir()
    part.rename(target)
    sync_folder(target)


def _copy(database: Database, part: Path) -> None:
    with database.reading() as source, closing(sqlite3.connect(part / DATABASE)) as copy:
        source.backup(copy)
    _sync(part / DATABASE)
    with closing(sqlite3.connect(part / DATABASE)) as copy:
        state = "SELECT vectors_file, vectors_end, index_change FROM state"
        number, end, index = copy.execute(state).fetchone()
    if number:
        _copy_file(vectors_path(database.folder, number), vectors_path(part, number), end)
    if index is not None:
        with suppress(FileNotFoundError):  # it can be made again
            _copy_file(index_path(database.folder, index), index_path(part, index))
    _check(part)


def _copy_file(source: Path, target: Path, end: int | None = None) -> None:
    """Copy the first bytes of a file, all by default."""
    with FileIO(source, "r", opener=opened_plainly) as old, FileIO(target, "x") as new:
        left = os.fstat(old.fileno()).st_size if end is None else end
        while left:
            content = old.read(min(left, _AT_ONCE))
            if not content:
                raise CollectionError("is cut off", source)
            left -= len(content)
            rest = memoryview(content)
            while rest:
                rest = rest[new.write(rest) or 0 :]
        os.fsync(new.fileno())


def _check(part: Path) -> None:
    """Refuse a copy of which a vector is not what its item has: it was erased in the meantime."""
    copy = Database(part, readonly=True)
    try:
        vectors = StoredVectors(copy)
        try:
            with copy.reading() as connection:
                ids = np.array(connection.execute("SELECT id FROM items").fetchall(), np.int64)
                for start in range(0, len(ids), 10_000):
                    vectors.read(connection, ids.ravel()[start : start + 10_000].tolist())
        finally:
            vectors.close()
    finally:
        copy.close()
    for path in part.glob(f"{DATABASE}-*"):
        path.unlink()


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
