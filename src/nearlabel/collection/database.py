"""The database of a collection: schema, connections, and SQLite's errors as readable messages.

A single thread writes, with a connection of its own; readers borrow connections from a pool. Within
a thread `reading` and `write` nest: the code inside sees the same state.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from threading import Event
from typing import Any, TypeVar
from urllib.parse import quote

from nearlabel.collection.first_format import move_vectors
from nearlabel.collection.folder_checks import (
    DATABASE,
    CollectionError,
    OldVersionError,
    ReadOnlyError,
    opened_plainly,
    remove,
    vectors_path,
)
from nearlabel.common.files import sync, sync_folder

_Result = TypeVar("_Result")
_APPLICATION = 0x4E4C636F  # "NLco", shown by `file`
_PAGE_SIZE = 2**14  # wastes less space than 4 KiB on rows with vectors
_PATIENCE = 30  # seconds to wait for another process that reads or copies

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


class Database:
    """The open database of a collection."""

    def __init__(self, folder: Path, *, readonly: bool) -> None:
        oldest = (3, 38, 0)
        if sqlite3.sqlite_version_info < oldest:
            wanted = ".".join(map(str, oldest))
            version = sqlite3.sqlite_version
            raise ImportError(
                f"collections need SQLite {wanted} or newer; this Python has {version}"
            )
        self.folder, self.readonly = folder, readonly
        self.n_lost_vectors = 0  # of items, in the file of an earlier version
        self._mode = "ro" if readonly else "rw"
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._jobs = ThreadPoolExecutor(1, "collection")  # a thread that writes
        self._pool = threading.Lock()  # of the readers, which never wait for a writer
        self._current = threading.local()
        self._is_closed = False
        self._failure: BaseException | None = None  # of a part of the running job
        with readable_errors(self.folder):
            self.was_killed = not readonly and _sync_log(folder)  # the last process that wrote
            first = self._connect(self._mode)
            try:
                first = self._checked(first)
            except BaseException:
                first.close()
                raise
        self._place = (folder / DATABASE).absolute()
        self._file = self._identity()
        if readonly:
            self._idle.append(first)
        else:
            self._writer = first

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that reads one state of the collection throughout."""
        held = getattr(self._current, "connection", None)
        if held is not None:
            yield held
            return
        with readable_errors(self.folder):
            connection = self._taken()
            try:
                connection.execute("BEGIN")
                self._current.connection = connection
                yield connection
            finally:
                self._current.connection = None
                self._given_back(connection)

    def write(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run a job in a transaction: at the end either everything is on disk, or nothing.

        Jobs of all threads run one after the other, in one thread. Within a job another one is a
        part of it, and an error of a part is one of the whole. A job or a part that returns None
        has changed nothing: what it did is taken back.
        """
        self.refuse_changes()
        if self.is_writing:
            return self._part(work)
        return self._run(partial(self._transact, work))

    def alone(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run a job outside of a transaction, while nobody else writes."""
        return self._run(lambda writer, _: work(writer))

    def refuse_changes(self) -> None:
        """Refuse early what `write` would refuse."""
        if self.readonly:
            raise ReadOnlyError("was opened with readonly=True", self.folder)
        if getattr(self._current, "connection", None) is not None and not self.is_writing:
            raise RuntimeError("a collection cannot be changed while this thread reads it")

    def refuse_part(self) -> None:
        """Refuse what cannot be a part of a job, as it waits for others or for the whole job."""
        if self.is_writing:
            raise RuntimeError("this is not possible among changes that are made together")

    @property
    def is_writing(self) -> bool:
        """Whether this is the thread that writes, within a job."""
        return getattr(self._current, "is_writer", False)

    def _run(self, job: Callable[[sqlite3.Connection, Event], _Result]) -> _Result:
        """Run a job in the thread that writes.

        After an interrupt it is withdrawn or, if it has begun, taken back at its end.
        """
        interrupted = Event()
        self._refuse_closed()
        try:
            running = self._jobs.submit(self._with_writer, job, interrupted)
        except RuntimeError:  # the interpreter ends, and with it all other threads
            return self._with_writer(job, interrupted)
        try:
            return running.result()
        except BaseException:
            if not running.cancel() and not running.done():
                interrupted.set()
                wait([running])
            raise

    def _with_writer(
        self, job: Callable[[sqlite3.Connection, Event], _Result], interrupted: Event
    ) -> _Result:
        """Run a job in this thread, with the connection that writes."""
        self._refuse_closed()
        if self._identity() != self._file:
            raise FileNotFoundError(
                errno.ENOENT,
                "this collection was moved or removed while it was open; nothing was changed",
                str(self.folder),
            )
        assert self._writer is not None
        self._current.connection, self._current.is_writer = self._writer, True
        try:
            with readable_errors(self.folder):
                return job(self._writer, interrupted)
        finally:
            self._current.connection, self._current.is_writer = None, False

    def _transact(
        self,
        work: Callable[[sqlite3.Connection], _Result],
        writer: sqlite3.Connection,
        interrupted: Event,
    ) -> _Result:
        self._failure = None
        writer.execute("BEGIN IMMEDIATE")
        try:
            writer.execute("PRAGMA defer_foreign_keys = ON")
            result = work(writer)
            if self._failure is not None:
                raise self._failure
            if result is not None and not interrupted.is_set():
                _commit(writer)
            return result
        finally:
            with suppress(sqlite3.Error):
                if writer.in_transaction:
                    writer.execute("ROLLBACK")

    def _part(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run a part of the job that is running."""
        assert self._writer is not None
        try:
            with readable_errors(self.folder):
                self._writer.execute("SAVEPOINT part")
                result = work(self._writer)
                if result is None:
                    self._writer.execute("ROLLBACK TO part")
                self._writer.execute("RELEASE part")
                return result
        except BaseException as error:
            self._failure = error
            raise

    def erase(self) -> bool:
        """Overwrite what deleted rows have left; returns whether the log has nothing of it, either.

        SQLite leaves copies of rows in pages that it has rearranged. So all tables are written
        again but that of the vectors, whose rows never move; pages that become free are
        overwritten. The write-ahead log cannot be emptied while another process reads an older
        state.
        """
        return self.alone(self._erase)

    def _erase(self, writer: sqlite3.Connection) -> bool:
        select = (
            "SELECT name, sql FROM main.sqlite_schema WHERE tbl_name NOT LIKE 'sqlite%' "
            "AND tbl_name != 'vectors' AND sql IS NOT NULL ORDER BY type DESC"
        )
        schema = writer.execute(select).fetchall()
        writer.execute("PRAGMA foreign_keys = OFF")  # rows are deleted by pages
        writer.execute("ATTACH ':memory:' AS copy")
        try:
            writer.execute("BEGIN IMMEDIATE")
            # With the same definitions SQLite copies the pages, not single rows.
            for name, definition in schema:
                writer.execute(definition.replace(f" {name} ", f" copy.{name} ", 1))
            for name, definition in schema:
                if definition.startswith("CREATE TABLE"):
                    writer.execute(f"INSERT INTO copy.{name} SELECT * FROM main.{name}")
                    writer.execute(f"DELETE FROM main.{name}")
                    writer.execute(f"INSERT INTO main.{name} SELECT * FROM copy.{name}")
            _commit(writer)
        finally:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            writer.execute("DETACH copy")
            writer.execute("PRAGMA foreign_keys = ON")
        return _emptied_log(writer)

    def rewrite(self) -> bool:
        """Rewrite the whole file without free space; returns the same as `erase`.

        A plain VACUUM would have its copy in memory, or outside of the folder.
        """
        return self.alone(self._rewrite)

    def _rewrite(self, writer: sqlite3.Connection) -> bool:
        part = self.folder / f".{DATABASE}.{secrets.token_hex(4)}.part"
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            writer.execute("VACUUM INTO ?", (str(part),))
            with closing(sqlite3.connect(part)) as copy:
                copy.backup(writer)
        finally:
            remove(part)
            remove(part.with_name(f"{part.name}-journal"))  # of a VACUUM that failed
        return _emptied_log(writer)

    def close(self) -> None:
        """Finish the jobs that were given, and close all idle connections."""
        self._jobs.shutdown()
        with self._pool:
            self._is_closed = True
            connections = [*self._idle, *([self._writer] if self._writer else [])]
            self._idle, self._writer = [], None
            for connection in connections:
                with suppress(sqlite3.Error):
                    connection.close()

    def leave(self) -> list[object]:
        """After a fork, in the child: stop using the parent's connections, but keep them open.

        Closing one would release locks that the parent holds.
        """
        left: list[object] = [self._idle, self._writer, self._current, self._jobs]
        self._pool, self._is_closed = threading.Lock(), True
        self._idle, self._writer, self._current = [], None, threading.local()
        return left

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def _taken(self) -> sqlite3.Connection:
        with self._pool:
            self._refuse_closed()
            if self._idle:
                return self._idle.pop()
        return self._connect("ro")

    def _given_back(self, connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        with self._pool:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise CollectionError("is closed; open it again", self.folder)

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = self._place.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _connect(self, mode: str) -> sqlite3.Connection:
        where = f"file:{quote(str((self.folder / DATABASE).absolute()))}?mode={mode}"
        if self.readonly and self._is_unchangeable():
            where += "&immutable=1"
        connection = sqlite3.connect(
            where, _PATIENCE, isolation_level=None, check_same_thread=False, uri=True
        )
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2**28)
            for name, value in (
                ("trusted_schema", "OFF"),
                ("cell_size_check", "ON"),
                ("foreign_keys", "ON"),
                ("temp_store", "MEMORY"),  # write nothing outside of the folder
                ("secure_delete", "ON"),
                ("synchronous", "FULL"),
                ("fullfsync", "ON"),  # of macOS
                ("checkpoint_fullfsync", "ON"),
            ):
                connection.execute(f"PRAGMA {name} = {value}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_unchangeable(self) -> bool:
        """Whether the folder is on a medium where SQLite cannot even create the log for reading."""
        wal = self.folder / f"{DATABASE}-wal"
        return not os.access(self.folder, os.W_OK) and not wal.exists()

    def _checked(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Refuse an unknown schema before anything else; migrate an old one."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise CollectionError("is not a collection: its database is another one", self.folder)
        if version > len(MIGRATIONS):
            raise CollectionError(
                f"has version {version}; this nearlabel reads versions up to {len(MIGRATIONS)}: "
                "update nearlabel to open it",
                self.folder,
            )
        if version < 1 or schema_of(connection) != schema(version):
            raise CollectionError(
                "is refused: the tables of its database are not those of a collection", self.folder
            )
        # Types and limits are checked, too. Vectors are checked when they are read: all of them
        # would take as long as reading the file.
        for table in {table for kind, table, *_ in schema(version) if kind == "table"} - {
            "vectors"
        }:
            (verdict,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
            if verdict != "ok":
                what = verdict.splitlines()[-1]
                raise CollectionError(
                    f"is damaged: its database failed the integrity check ({what}); restore a "
                    "backup",
                    self.folder,
                )
        (count,) = connection.execute("SELECT count(*) FROM state").fetchone()
        if count != 1:
            raise CollectionError("is damaged: its database has no state", self.folder)
        if version < len(MIGRATIONS):
            if self.readonly:
                raise OldVersionError(
                    f"has version {version} of {len(MIGRATIONS)}: open it for writing once "
                    "to update it",
                    self.folder,
                )
            self.n_lost_vectors = migrate(connection, version, self.folder)
        if not self.readonly:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise CollectionError(
                    "is on a file system without support for SQLite's write-ahead log", self.folder
                )
        return connection


def create_database(folder: Path, settings: Iterable[tuple[str, str]]) -> None:
    """Create the empty database of a collection with these settings."""
    with (
        readable_errors(folder),
        closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as connection,
    ):
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        migrate(connection, 0, folder)
        connection.executemany("INSERT INTO settings VALUES (?, ?)", settings)


def _sync_log(folder: Path) -> bool:
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


def _commit(connection: sqlite3.Connection) -> None:
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
            # This writes, although the number stays the same.
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        raise


def _emptied_log(connection: sqlite3.Connection) -> bool:
    """Empty the write-ahead log; returns whether nobody reads it any more."""
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


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


def migrate(connection: sqlite3.Connection, version: int, folder: Path) -> int:
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


def schema_of(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """All tables, indexes, views and triggers, as defined in the database."""
    cursor = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return sorted(cursor.fetchall(), key=repr)


@cache
def schema(version: int) -> list[tuple[Any, ...]]:
    """The schema of a version."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript("".join(MIGRATIONS[:version]))
        return schema_of(connection)
    finally:
        connection.close()


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
