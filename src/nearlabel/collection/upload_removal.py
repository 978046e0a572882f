"""Uploaded files, which belong to a collection: they are removed with their items.

The service keeps uploads in one folder, each under the sha256 of its content. What `forget` or
`undo` leaves without an item is listed by the same transaction and removed after it; what cannot be
removed then is tried again after the next change, and when the collection is opened.

A collection may come from anybody, and must not make us remove the files of others. So a folder
counts only for the very database file that the service used it with, neither for a copy nor for a
collection from elsewhere; and only a file with the content that it is named after is removed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nearlabel.collection.folder_checks import opened_plainly, path_bytes, path_text
from nearlabel.common.files import sync_folder

_NAME = re.compile(r"[0-9a-f]{64}\.[a-z0-9]+")


def set_uploads(connection: sqlite3.Connection, folder: Path) -> bool:
    """Record the folder of uploads, within a transaction."""
    value = json.dumps([path_bytes(str(folder.absolute())).hex(), *_database_file(connection)])
    connection.execute("INSERT OR REPLACE INTO settings VALUES ('uploads', ?)", (value,))
    return True


def uploads_folder(connection: sqlite3.Connection) -> Path | None:
    """The folder of uploads; None if there is none, or in a copy of the collection."""
    stored = connection.execute("SELECT value FROM settings WHERE name = 'uploads'").fetchone()
    with suppress(TypeError, ValueError, RecursionError):
        folder, *file = json.loads(stored[0])
        if file == _database_file(connection):
            return Path(path_text(bytes.fromhex(folder)))
    return None


def list_uploads(connection: sqlite3.Connection, files: Iterable[tuple[int, bytes]]) -> None:
    """List those of some files (root, path) that are uploads, to be removed after the change."""
    folder = uploads_folder(connection)
    if folder is None:
        return
    root = connection.execute("SELECT id FROM roots WHERE path = ?", (path_bytes(str(folder)),))
    number = root.fetchone()
    listed = [(path_bytes(str(folder / path_text(path))),) for at, path in files if (at,) == number]
    connection.executemany("INSERT OR IGNORE INTO removals VALUES (?)", listed)


def remove_uploads(connection: sqlite3.Connection) -> list[OSError]:
    """Remove the listed files that no item has, within a transaction of their own.

    Returns
    -------
    list of OSError
        Why some are still there.
    """
    folder = uploads_folder(connection)
    if folder is None:
        return []
    done, problems = [], []
    for (stored,) in connection.execute("SELECT path FROM removals").fetchall():
        path = Path(path_text(stored))
        try:
            if path.parent == folder and not _is_used(connection, path):
                _remove(path)
            done.append((stored,))
        except OSError as error:
            problems.append(error)
    sync_folder(folder / "files")  # or a power failure could bring them back
    connection.executemany("DELETE FROM removals WHERE path = ?", done)
    return problems


def _is_used(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether an item has this file or its content, or it is not named like an upload."""
    if not _NAME.fullmatch(path.name):
        return True
    select = (
        "SELECT 1 FROM items WHERE content = ? UNION ALL SELECT 1 FROM files JOIN roots "
        "ON roots.id = root WHERE roots.path = ? AND files.path = ?"
    )
    given = bytes.fromhex(path.stem), path_bytes(str(path.parent)), path_bytes(path.name)
    return connection.execute(select, given).fetchone() is not None


def _remove(path: Path) -> None:
    """Remove a file if it has the content that it is named after."""
    try:
        with open(path, "rb", opener=opened_plainly) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest == path.stem:
            path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR):  # a link or a folder is not ours
            raise


def _database_file(connection: sqlite3.Connection) -> list[int]:
    """What identifies the file of a database, and no copy of it."""
    (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
    status = Path(path).stat()
    return [status.st_dev, status.st_ino]
