"""Copies of a collection, made while others may change it.

SQLite copies the database as of one moment. A copy gets its name only when it is complete, and its
vectors are as they were written.
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

from nearlabel.collection.database import Database
from nearlabel.collection.folder_checks import (
    DATABASE,
    LOCK,
    CollectionError,
    index_path,
    opened_plainly,
)
from nearlabel.collection.store_errors import readable_error
from nearlabel.collection.stored_vectors import vector_differences
from nearlabel.common.file_locks import try_lock
from nearlabel.common.files import naming, sync, sync_folder


def back_up(database: Database, target: Path) -> None:
    """Copy a collection into a new or empty folder."""
    with new_folder(target) as part:
        _copy(database, part, target)
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
        with naming(target):
            with FileIO(part / LOCK, "x") as lock:
                try_lock(lock)
                yield part
            sync_folder(part / DATABASE)
            if os.name == "nt" and target.exists():
                target.rmdir()
            part.rename(target)
        sync_folder(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _remove_unfinished(target: Path) -> None:
    """Remove unfinished folders for `target` that no process is filling any more."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.part")
    for part in target.parent.iterdir():
        if pattern.fullmatch(part.name) and part.is_dir() and not part.is_symlink():
            with suppress(OSError), FileIO(part / LOCK, "r+", opener=opened_plainly) as lock:
                if try_lock(lock):
                    shutil.rmtree(part, ignore_errors=True)


def _copy(database: Database, part: Path, target: Path) -> None:
    with database.reading() as source, closing(sqlite3.connect(part / DATABASE)) as copy:
        try:
            source.backup(copy)
        except sqlite3.OperationalError as error:  # the other disk is full, or fails
            raise readable_error(error, target) from error
        copy.execute("DELETE FROM settings WHERE name = 'uploads'")  # they are not copied
        copy.execute("DELETE FROM removals")
        copy.commit()
        (index,) = source.execute("SELECT index_change FROM state").fetchone()
    with (part / DATABASE).open("rb") as file:
        sync(file.fileno())
    if index is not None:
        with suppress(FileNotFoundError):  # it can be rebuilt
            _copy_file(index_path(database.folder, index), index_path(part, index))
    copied = Database(part, readonly=True)
    try:
        with copied.reading() as connection:
            for problem in vector_differences(connection):
                raise CollectionError(problem)
    finally:
        copied.close()
    for path in part.glob(f"{DATABASE}-*"):
        path.unlink()


def _copy_file(source: Path, target: Path) -> None:
    with open(source, "rb", opener=opened_plainly) as old, target.open("xb") as new:
        shutil.copyfileobj(old, new, 2**22)
        new.flush()
        sync(new.fileno())
