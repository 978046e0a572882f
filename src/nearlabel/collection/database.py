"""The open database of a collection: who writes, and who reads.

A single thread writes, with a connection of its own; readers borrow connections from a pool. Within
a thread `reading` and `write` nest: the code inside sees the same state.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar
from urllib.parse import quote

from nearlabel.collection.folder_checks import DATABASE, CollectionError, ReadOnlyError
from nearlabel.collection.schema import updated
from nearlabel.collection.store_errors import readable_errors
from nearlabel.collection.write_ahead_log import commit, sync_log

_Result = TypeVar("_Result")
_PATIENCE = 30  # seconds to wait for another process that reads or copies


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
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._jobs = ThreadPoolExecutor(1, "collection")  # a thread that writes
        self._pool = threading.Lock()  # of the readers, which never wait for a writer
        self._current = threading.local()
        self._is_closed = False
        self._failure: BaseException | None = None  # of a part of the running job
        with readable_errors(self.folder):
            self.was_killed = not readonly and sync_log(folder)  # the last process that wrote
            first = self._connect("ro" if readonly else "rw")
            try:
                self.n_lost_vectors = updated(first, folder, readonly=readonly)
                if not readonly:
                    _log_ahead(first)
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
                commit(writer)
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


def _log_ahead(connection: sqlite3.Connection) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise CollectionError("is on a file system without support for SQLite's write-ahead log")
