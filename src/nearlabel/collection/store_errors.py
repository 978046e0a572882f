"""SQLite's errors as ours, each one sentence that names the folder."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nearlabel.collection.folder_checks import DATABASE, CollectionError


@contextmanager
def readable_errors(folder: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, one sentence that names the folder."""
    try:
        yield
    except sqlite3.Error as error:
        raise readable_error(error, folder) from error
    except UnicodeDecodeError:  # even an error message may not be valid UTF-8
        why = "is damaged: its database contains invalid text; restore a backup"
        raise CollectionError(why, folder) from None
    except CollectionError as error:
        raise error.of(folder) from None


def readable_error(error: sqlite3.Error, folder: Path) -> Exception:
    """An SQLite error as a readable exception of the expected type."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    where = str(folder / DATABASE)
    if code == sqlite3.SQLITE_FULL:
        return OSError(errno.ENOSPC, "the disk is full; nothing was changed", where)
    if code == sqlite3.SQLITE_BUSY:
        return BlockingIOError(errno.EAGAIN, "another process is using it; try again", where)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return OSError(errno.EIO, f"the database cannot be used ({error})", where)
    if isinstance(error, sqlite3.DatabaseError):
        return CollectionError(
            f"is damaged: its database cannot be read ({error}); restore a backup", folder
        )
    return CollectionError(f"cannot be used: {error}", folder)
