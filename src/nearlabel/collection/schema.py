"""The tables of a collection: created, converted from earlier versions, and checked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from nearlabel.collection.first_format import move_vectors
from nearlabel.collection.folder_checks import (
    DATABASE,
    CollectionError,
    OldVersionError,
    vectors_path,
)
from nearlabel.collection.store_errors import readable_errors

_APPLICATION = 0x4E4C636F  # "NLco", shown by `file`
_PAGE_SIZE = 2**14  # wastes less space than 4 KiB on rows with vectors

# A collection of version n has run the first n of these. None is ever edited: schema changes are
# appended.
MIGRATIONS = (
    """
CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    vectors_file INTEGER NOT NULL CHECK (vectors_file >= 0),
    vectors_end INTEGER NOT NULL CHECK (vectors_end >= 0),
    learned INTEGER NOT NULL CHECK (learned >= 0),
    index_change INTEGER CHECK (index_change >= 0),
    index_digest TEXT,
    is_erasing INTEGER NOT NULL CHECK (is_erasing IN (0, 1))
) STRICT;
INSERT INTO state VALUES (1, 0, 0, 0, NULL, NULL, 0);
CREATE TABLE items (
    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
    content BLOB NOT NULL UNIQUE CHECK (length(content) = 32),
    name TEXT NOT NULL,
    text TEXT,
    vector INTEGER NOT NULL CHECK (vector > 0),
    learned INTEGER UNIQUE CHECK (learned > 0)
) STRICT;
CREATE TABLE roots (
    id INTEGER PRIMARY KEY,
    path BLOB NOT NULL UNIQUE
) STRICT;
CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root INTEGER NOT NULL REFERENCES roots (id),
    path BLOB NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    item INTEGER NOT NULL REFERENCES items (id),
    is_missing INTEGER NOT NULL CHECK (is_missing IN (0, 1)),
    UNIQUE (root, path)
) STRICT;
CREATE INDEX files_of_item ON files (item);
CREATE TABLE tags (
    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE decisions (
    item INTEGER NOT NULL REFERENCES items (id),
    tag INTEGER NOT NULL REFERENCES tags (id),
    is_yes INTEGER NOT NULL CHECK (is_yes IN (0, 1)),
    by TEXT NOT NULL CHECK (by IN ('person', 'suggestion')),
    at INTEGER NOT NULL CHECK (at BETWEEN 0 AND 253402300799999),
    PRIMARY KEY (item, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX decisions_of_tag ON decisions (tag, is_yes);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL CHECK (at BETWEEN 0 AND 253402300799999),
    run INTEGER,
    items INTEGER NOT NULL,
    is_undone INTEGER NOT NULL CHECK (is_undone IN (0, 1))
) STRICT;
CREATE TABLE differences (
    change INTEGER NOT NULL REFERENCES changes (id),
    place INTEGER NOT NULL,
    what INTEGER NOT NULL,
    key INTEGER NOT NULL,
    tag INTEGER NOT NULL,
    before TEXT,
    PRIMARY KEY (change, place)
) STRICT, WITHOUT ROWID;
""",
    """
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
    item INTEGER NOT NULL,
    data BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX erased_vectors ON vectors (length(data)) WHERE item = 0;
CREATE TABLE removals (
    content BLOB NOT NULL PRIMARY KEY CHECK (length(content) = 32)
) STRICT, WITHOUT ROWID;
ALTER TABLE changes ADD COLUMN summary TEXT;
ALTER TABLE changes ADD COLUMN summary_tags TEXT;
ALTER TABLE state DROP COLUMN vectors_file;
ALTER TABLE state DROP COLUMN vectors_end;
""",
)


def create_database(folder: Path, settings: Iterable[tuple[str, str]]) -> None:
    """Create the empty database of a collection with these settings."""
    with (
        readable_errors(folder),
        closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as connection,
    ):
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        _migrate(connection, 0, folder)
        connection.executemany("INSERT INTO settings VALUES (?, ?)", settings)


def updated(connection: sqlite3.Connection, folder: Path, *, readonly: bool) -> int:
    """Refuse tables that are not ours, before anything else; convert those of earlier versions.

    Returns
    -------
    int
        How many items have lost their vectors, because the file that had them is damaged.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    newest = len(MIGRATIONS)
    if application != _APPLICATION:
        raise CollectionError("is not a collection: its database is another one")
    if version > newest:
        raise CollectionError(
            f"has version {version}; this nearlabel reads versions up to {newest}: "
            "update nearlabel to open it"
        )
    if version < 1 or _schema_of(connection) != schema(version):
        raise CollectionError(
            "is refused: the tables of its database are not those of a collection"
        )
    # Types and limits are checked, too. Vectors are checked when they are read: all of them would
    # take as long as reading the file.
    tables = {table for kind, table, *_ in schema(version) if kind == "table"}
    for table in tables - {"vectors"}:
        (verdict,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if verdict != "ok":
            what = verdict.splitlines()[-1]
            raise CollectionError(
                f"is damaged: its database failed the integrity check ({what}); restore a backup"
            )
    (count,) = connection.execute("SELECT count(*) FROM state").fetchone()
    if count != 1:
        raise CollectionError("is damaged: its database has no state")
    if version < newest and readonly:
        raise OldVersionError(
            f"has version {version} of {newest}: open it for writing once to update it"
        )
    return _migrate(connection, version, folder) if version < newest else 0


def _migrate(connection: sqlite3.Connection, version: int, folder: Path) -> int:
    """Migrate a database from a version to the current one, in one transaction.

    Returns
    -------
    int
        How many items have lost their vectors, because the file that had them is damaged.
    """
    n_lost = number = 0
    if version == 1:
        (number,) = connection.execute("SELECT vectors_file FROM state").fetchone()
    try:
        connection.executescript("BEGIN IMMEDIATE;" + "".join(MIGRATIONS[version:]))
        if number:
            n_lost = move_vectors(connection, vectors_path(folder, number))
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return n_lost


def _schema_of(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """All tables, indexes, views and triggers, as defined in the database."""
    cursor = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return sorted(cursor.fetchall(), key=repr)


@cache
def schema(version: int) -> list[tuple[Any, ...]]:
    """The schema of a version."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript("".join(MIGRATIONS[:version]))
        return _schema_of(connection)
    finally:
        connection.close()
