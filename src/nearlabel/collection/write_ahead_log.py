"""SQLite's write-ahead log: what was confirmed is on the disk, and what was refused is not."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from nearlabel.collection.folder_checks import DATABASE, opened_plainly
from nearlabel.common.files import sync, sync_folder


def sync_log(folder: Path) -> bool:
    """Sync the write-ahead log that a killed process left, before anything is read from it.

    Returns whether there was one; another process that reads keeps it, too.

    Only its owner knew whether the last commits were on the disk. What SQLite recovers from the log
    is then there for good: it empties the log only after it has synced the database.
    """
    try:
        log = opened_plainly(folder / f"{DATABASE}-wal", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        sync(log)
    finally:
        os.close(log)
    sync_folder(folder / DATABASE)
    return True


def commit(connection: sqlite3.Connection) -> None:
    """Commit; if that fails, nothing of it can come back.

    When the sync of the write-ahead log fails, the log has the whole commit, and recovery after a
    kill would take it for valid, although it was refused. The frames of a log are read in order up
    to the first invalid one, so another commit, which overwrites the first, removes all.
    """
    try:
        connection.execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):  # otherwise the next change does the same
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            connection.execute(f"PRAGMA user_version = {version}")  # this writes
        raise


def emptied_log(connection: sqlite3.Connection) -> bool:
    """Empty the write-ahead log; returns whether nobody reads it any more."""
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy
