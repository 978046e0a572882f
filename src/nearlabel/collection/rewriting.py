"""Rewriting the database: nothing is left in it of rows that were deleted."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from nearlabel.collection.folder_checks import DATABASE, remove
from nearlabel.collection.write_ahead_log import commit, emptied_log


def rewrite_small_tables(writer: sqlite3.Connection) -> bool:
    """Overwrite what deleted rows have left; returns whether the log has nothing of it, either.

    SQLite leaves copies of rows in pages that it has rearranged. So all tables are written again
    but that of the vectors, whose rows never move; pages that become free are overwritten. The
    write-ahead log cannot be emptied while another process reads an older state.
    """
    select = (
        "SELECT name, sql FROM sqlite_schema WHERE tbl_name NOT LIKE 'sqlite%' "
        "AND tbl_name != 'vectors' AND sql IS NOT NULL ORDER BY type DESC"
    )
    schema = writer.execute(select).fetchall()
    writer.execute("PRAGMA foreign_keys = OFF")  # so that rows are deleted by whole pages
    try:
        writer.execute("ATTACH ':memory:' AS copy")
        writer.execute("BEGIN IMMEDIATE")
        # With the same definitions SQLite copies whole records, in their order.
        for name, definition in schema:
            writer.execute(definition.replace(f" {name} ", f" copy.{name} ", 1))
        for name, definition in schema:
            if definition.startswith("CREATE TABLE"):
                writer.execute(f"INSERT INTO copy.{name} SELECT * FROM main.{name}")
                writer.execute(f"DELETE FROM main.{name}")
                writer.execute(f"INSERT INTO main.{name} SELECT * FROM copy.{name}")
        commit(writer)
    finally:
        if writer.in_transaction:
            writer.execute("ROLLBACK")
        writer.execute("PRAGMA foreign_keys = ON")
        if len(writer.execute("PRAGMA database_list").fetchall()) > 1:
            writer.execute("DETACH copy")
    return emptied_log(writer)


def rewrite_file(writer: sqlite3.Connection, folder: Path) -> bool:
    """Rewrite the whole file without free space; returns the same as `rewrite_small_tables`.

    A plain VACUUM would have its copy in memory, or outside of the folder.
    """
    part = folder / f".{DATABASE}.{secrets.token_hex(4)}.part"
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        writer.execute("VACUUM INTO ?", (str(part),))
        with closing(sqlite3.connect(part)) as copy:
            copy.backup(writer)
    finally:
        remove(part)
        remove(part.with_name(f"{part.name}-journal"))  # of a VACUUM that failed
    return emptied_log(writer)
