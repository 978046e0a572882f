"""Queries to the model of a collection, which follows the store before it answers.

Every query, in any process, reads one state of the store. The model is first updated to it with the
items that the log of changes lists since the last query.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from nearlabel.collection.change_log import last_change, touched_after
from nearlabel.collection.database import Database
from nearlabel.collection.folder_checks import CollectionError, index_files, index_path, remove
from nearlabel.collection.learned_rows import LearnedRows
from nearlabel.collection.learner import FEWEST_UNSAVED, Learner
from nearlabel.collection.records import Settings
from nearlabel.common.files import FileError
from nearlabel.common.threads import ForkSafeLock


class LearnedAnswers:
    """The learner of a collection, created on first use."""

    def __init__(
        self,
        database: Database,
        source: LearnedRows,
        settings: Callable[[], Settings],
        notes: list[str],
    ) -> None:
        self._database, self._source, self._notes = database, source, notes
        self._folder, self._settings = database.folder, settings
        self._learner: Learner | None = None
        self._followed = 0  # the last change the learner has followed
        self._lock = ForkSafeLock()  # held while the learner is updated
        self._saving = ForkSafeLock()  # held while a file is written; acquired before all others
        self._held = threading.local()  # the learner that this thread uses

    @contextmanager
    def asking(self) -> Iterator[Learner]:
        """The model of the state that is read inside, whatever changes meanwhile.

        It nests within a thread: all queries inside are answered from the same state.
        """
        held = getattr(self._held, "learner", None)
        if held is not None:
            yield held
            return
        self._database.refuse_part()  # what is rolled back must not be learned
        for tries_left in (2, 1, 0):
            with ExitStack() as read:
                with self._lock.held():  # the learner must not advance beyond the state read
                    connection = read.enter_context(self._database.reading())
                    if self._is_replaced(connection) and tries_left:
                        continue  # another process replaced the file; read the newer state
                    self._held.learner = self._current(connection).as_it_is()
                try:
                    yield self._held.learner
                finally:
                    self._held.learner = None
                return

    def is_worth_saving(self, *, closing: bool = False) -> bool:
        """Whether the next opening would take long without a new file."""
        with self._lock.held():
            if self._learner is not None:
                return self._learner.is_worth_saving(closing=closing)
        if not closing:
            return False
        with self._database.reading() as connection:
            return len(touched_after(connection, _stored(connection)[0] or 0)) >= FEWEST_UNSAVED

    def save(self, *, tidy: bool = True) -> bool:
        """Write the model to a file, and remove the previous one.

        Queries do not wait for the writing. Without `tidy`, removed rows stay in memory, and rows
        keep their search method: enough if nothing is queried any more.

        Returns
        -------
        bool
            Whether such a file exists: not if another method was chosen meanwhile.
        """
        self._database.refuse_changes()
        self._database.refuse_part()
        with self._saving.held():
            with self._lock.held():
                with self._database.reading() as connection:
                    learner = self._current(connection)
                change, still = self._followed, learner.at_rest()
            digest = still.save(change)
            is_worth_loading = False

            def job(connection: sqlite3.Connection) -> bool:
                nonlocal is_worth_loading
                with self._lock.held():
                    is_wanted = learner is self._learner and learner.is_by(self._settings().method)
                    if is_wanted:
                        is_worth_loading = learner.saved(still)
                        self._record(connection, None if digest is None else change, digest)
                    return is_wanted

            is_wanted = self._database.write(job)
            if is_wanted and tidy and is_worth_loading and digest is not None:
                self._load_again(learner, change, digest)
        self.remove_others()
        return is_wanted

    def _load_again(self, learner: Learner, change: int, digest: str) -> None:
        """Replace the learner by the one loaded from the file it wrote."""
        loaded = self._new_learner(self._settings())
        loaded.notes = self._notes
        self._notes.extend(loaded.opened(change, digest))
        with self._lock.held(), self._database.reading() as connection:
            if learner is self._learner:
                loaded.follow(touched_after(connection, change))
                self._learner, self._followed = loaded, last_change(connection)

    def set_method(self, method: str) -> None:
        """Store another method, as JSON, in the settings and drop everything of the old one."""

        def job(connection: sqlite3.Connection) -> bool:
            with self._lock.held():  # no file is recorded meanwhile
                connection.execute("UPDATE settings SET value = ? WHERE name = 'method'", (method,))
                self._record(connection, None, None)
            return True

        self._database.write(job)
        if not self._database.is_writing:
            self.remove_others()

    def forget(self) -> None:
        """Rewrite the file without forgotten items, if there was a file or a model."""
        with self._saving.held():
            with self._database.reading() as connection:
                index, _ = _stored(connection)
            if self._learner is not None or index is not None:
                with suppress(OSError, FileError):  # it can be rebuilt
                    if self.save():
                        return
            self._database.write(lambda writer: self._record(writer, None, None))
        self.remove_others()

    def _record(
        self, connection: sqlite3.Connection, change: int | None, digest: str | None
    ) -> bool:
        """Name the index file in the database."""
        update = "UPDATE state SET index_change = ?, index_digest = ?"
        connection.execute(update, (change, digest))
        return True

    def differences(self) -> list[str]:
        """How the model differs from a fresh one, in words."""
        with self._database.reading() as connection, self._lock.held():
            learner = self._current(connection)
            return list(learner.verify().differences)

    def compact(self) -> None:
        """Rebuild the model, if there is one, and write it."""
        with self._lock.held():
            if self._learner is not None:
                self._learner.compact()
        self.save()

    def remove_others(self) -> None:
        """Remove all index files except the current one."""
        with self._database.reading() as connection:
            current, _ = _stored(connection)
        for change, path in index_files(self._folder):
            if change != current:
                remove(path)

    def _is_replaced(self, connection: sqlite3.Connection) -> bool:
        index, _ = _stored(connection)
        if self._learner is not None or index is None:
            return False
        return not index_path(self._folder, index).exists()

    def _current(self, connection: sqlite3.Connection) -> Learner:
        """The learner, updated to the state that is being read."""
        with self._lock.held():
            last, settings = last_change(connection), self._settings()
            learner, followed = self._learner, self._followed
            if learner is not None and followed > last:  # an older state, for this reader only
                learner = self._new_learner(settings)
                learner.opened(None)
                return learner
            self._learner = None  # until the update has succeeded
            if learner is not None and not learner.is_by(settings.method):
                learner = None
            if learner is None:
                learner = self._new_learner(settings)
                learner.notes = self._notes
                index, digest = _stored(connection)
                notes = learner.opened(index, digest)
                self._notes.extend(notes)
                followed = last if notes or index is None else index
            if followed < last:
                learner.follow(touched_after(connection, followed))
            self._learner, self._followed = learner, last
            return learner

    def _new_learner(self, settings: Settings) -> Learner:
        try:
            return Learner(self._folder, settings, self._source, self._lock)
        except (TypeError, ValueError):
            why = "is damaged: its settings name an unknown method"
            raise CollectionError(why, self._folder) from None


def _stored(connection: sqlite3.Connection) -> tuple[int | None, str | None]:
    """The change after which the index file was written, and its digest."""
    index, digest = connection.execute("SELECT index_change, index_digest FROM state").fetchone()
    return index, digest
