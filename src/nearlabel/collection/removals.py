"""Files that go with their items: thumbnails, and uploads of the service.

Both are named after the sha256 of a content. The contents that `forget` or `undo` leaves without an
item are listed by the same transaction, and their files are removed after it; what cannot be
removed then is tried again after the next of them, and when the collection is opened.

A collection may come from anybody, and must not make us remove the files of others. So a folder of
uploads counts only for the very database file that the service used it with, neither for a copy nor
for a collection from elsewhere; and only a file with the content that it is named after is removed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nearlabel.collection.folder_checks import (
    THUMBNAILS,
    opened_plainly,
    thumbnail_path,
)
from nearlabel.common.files import sync_folder

_UPLOAD = re.compile(r"([0-9a-f]{64})\.[a-z0-9]+")


def set_uploads(connection: sqlite3.Connection, folder: Path) -> bool:
    """Record the folder of uploads, within a transaction."""
    value = json.dumps([os.fsencode(str(folder.absolute())).hex(), *_database_file(connection)])
    connection.execute("INSERT OR REPLACE INTO settings VALUES ('uploads', ?)", (value,))
    return True


def uploads_folder(connection: sqlite3.Connection) -> Path | None:
    """The folder of uploads; None if there is none, or in a copy of the collection."""
    stored = connection.execute("SELECT value FROM settings WHERE name = 'uploads'").fetchone()
    with suppress(TypeError, ValueError, RecursionError):
        folder, *file = json.loads(stored[0])
        if file == _database_file(connection):
            return Path(os.fsdecode(bytes.fromhex(folder)))
    return None


def list_removals(connection: sqlite3.Connection, contents: Iterable[bytes]) -> None:
    """List contents that may have lost their items, within the transaction of the change."""
    rows = ((content,) for content in contents)
    connection.executemany("INSERT OR IGNORE INTO removals VALUES (?)", rows)


def remove_listed(connection: sqlite3.Connection, folder: Path) -> list[OSError]:
    """Remove the files of listed contents that no item has, within a transaction of their own.

    Returns
    -------
    list of OSError
        Why some are still there.
    """
    unused = "NOT EXISTS (SELECT 1 FROM items WHERE items.content = removals.content)"
    contents = {c for (c,) in connection.execute(f"SELECT content FROM removals WHERE {unused}")}
    thumbnails = [thumbnail_path(folder, content) for content in contents]
    folder_of_uploads = uploads_folder(connection)
    paths = [path for path in thumbnails if not path.parent.is_symlink()]
    paths += _files_of(contents, folder_of_uploads)
    problems, failed = [], []
    for path in paths:
        try:
            if path.parent != folder_of_uploads or _is_as_named(path):
                path.unlink(missing_ok=True)
        except OSError as error:
            problems.append(error)
            failed.append(bytes.fromhex(path.stem))
    for parent in {path.parent for path in paths}:
        sync_folder(parent / "files")  # or a power failure could bring them back
    connection.execute("DELETE FROM removals")
    list_removals(connection, failed)
    return problems


def remove_thumbnails(folder: Path, connection: sqlite3.Connection) -> int:
    """Remove all thumbnails that belong to no item; returns their number."""
    known = {content.hex() for (content,) in connection.execute("SELECT content FROM items")}
    removed = 0
    thumbnails = folder / THUMBNAILS
    if thumbnails.is_symlink() or not thumbnails.is_dir():
        return 0
    for inner in thumbnails.iterdir():
        if inner.is_symlink() or not inner.is_dir():
            continue
        for path in inner.iterdir():
            if path.stem not in known:
                path.unlink(missing_ok=True)
                removed += 1
        with suppress(OSError):  # not empty
            inner.rmdir()
    return removed


def _files_of(contents: set[bytes], folder: Path | None) -> list[Path]:
    """The files in a folder of uploads that are named after some contents."""
    if not contents or folder is None or not os.access(folder, os.R_OK | os.X_OK):
        return []
    named = ((path, _UPLOAD.fullmatch(path.name)) for path in folder.iterdir())
    return [path for path, match in named if match and bytes.fromhex(match[1]) in contents]


def _is_as_named(path: Path) -> bool:
    """Whether an upload has the content that it is named after; links and folders have not."""
    try:
        with open(path, "rb", opener=opened_plainly) as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == path.stem
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EISDIR):
            return False
        raise


def _database_file(connection: sqlite3.Connection) -> list[int]:
    """What identifies the file of a database, and no copy of it."""
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    status = Path(path).stat()
    return [status.st_dev, status.st_ino]
