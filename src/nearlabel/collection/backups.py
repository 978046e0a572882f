"""Copies of a collection, made while others may change it.

SQLite copies the database as of one moment; then the vectors that this state refers to are copied.
Vectors are only appended, except when items are forgotten or the collection is compacted: then the
copy is inconsistent and is made again. A copy gets its name only when it is complete.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from io import FileIO
from pathlib import Path

import numpy as np

from nearlabel.collection.database import Database
from nearlabel.collection.folder_checks import (
    DATABASE,
    LOCK,
    CollectionError,
    index_path,
    opened_plainly,
    vectors_path,
)
from nearlabel.collection.stored_vectors import StoredVectors
from nearlabel.common.file_locks import try_lock
from nearlabel.common.files import sync_folder


def back_up(database: Database, target: Path) -> None:
    """Copy a collection into a new or empty folder."""
    with new_folder(target) as part:
        for tries_left in (4, 3, 2, 1, 0):
            try:
                _copy(database, part)
                break
            except (FileNotFoundError, CollectionError):  # compacted, or items forgotten, meanwhile
                if not tries_left:
                    raise
                for path in part.iterdir():
                    if path.name != LOCK:
                        path.unlink()
        shutil.copymode(database.folder, part)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to be filled, renamed to `target` once it is complete.

    It is removed on an error; leftovers of a process that died are removed by the next one.
    """
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise FileExistsError(errno.EEXIST, "the path exists and is not a folder", str(target))
    if target.exists() and any(target.iterdir()):
        raise FileExistsError(errno.EEXIST, "the folder must be new or empty", str(target))
    _remove_unfinished(target)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    part.mkdir()
    try:
        with FileIO(part / LOCK, "x") as lock:
            try_lock(lock)
            yield part
        sync_folder(part / DATABASE)
        if os.name == "nt" and target.exists():
            target.rmdir()
        part.rename(target)
        sync_folder(target)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(target)
        raise


def _remove_unfinished(target: Path) -> None:
    """Remove unfinished folders for `target` that no process is filling any more."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.part")
    for part in target.parent.iterdir():
        if pattern.fullmatch(part.name) and part.is_dir() and not part.is_symlink():
            with suppress(OSError), FileIO(part / LOCK, "r+", opener=opened_plainly) as lock:
                if try_lock(lock):
                    shutil.rmtree(part, ignore_errors=True)


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
        with suppress(FileNotFoundError):  # it can be rebuilt
            _copy_file(index_path(database.folder, index), index_path(part, index))
    _check(part)


def _copy_file(source: Path, target: Path, end: int | None = None) -> None:
    """Copy the first bytes of a file, or all of it."""
    with FileIO(source, "r", opener=opened_plainly) as old, FileIO(target, "x") as new:
        left = os.fstat(old.fileno()).st_size if end is None else end
        while left:
            content = old.read(min(left, 2**22))
            if not content:
                raise CollectionError("is truncated", source)
            left -= len(content)
            rest = memoryview(content)
            while rest:
                rest = rest[new.write(rest) or 0 :]
        os.fsync(new.fileno())


def _check(part: Path) -> None:
    """Refuse a copy with vectors that do not belong to their items: they were erased meanwhile."""
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
