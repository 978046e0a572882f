"""Questions to what was learned: the model follows the store before it answers.

Whoever asks, in whichever process, reads one state of the store. The model is brought up to it
first, by what the log of changes says was touched since the model was last asked.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from nearlabel.collection.change_log import last_change, touched_after
from nearlabel.collection.database import Database
from nearlabel.collection.folder_checks import CollectionError, index_files, index_path, remove
from nearlabel.collection.learned_rows import LearnedRows
from nearlabel.collection.learner import Learner
from nearlabel.collection.records import Settings
from nearlabel.common.files import FileError

_TRIES = 3  # to take up a file that another process may just have replaced
_UNSAVED = 500  # changed items that are worth a new file when a collection is closed


class LearnedAnswers:
    """The learner of a collection, made when it is first asked."""

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
        self._followed = 0  # the last change that the learner knows
        self._lock = threading.RLock()  # held while the learner is brought to a later state
        self._saving = threading.RLock()  # held while a file is written; taken before all others
        self._held = threading.local()  # what this thread asks

    @contextmanager
    def asking(self) -> Iterator[Learner]:
        """What was learned from the state that is read inside, whatever is changed meanwhile.

        Within a thread it nests: what is asked inside is answered from the same state.
        """
        held = getattr(self._held, "learner", None)
        if held is not None:
            yield held
            return
        for last_try in (*(False,) * (_TRIES - 1), True):
            with ExitStack() as read:
                with self._lock:  # nobody else brings the learner to a later state than is read
                    connection = read.enter_context(self._database.reading())
                    if self._is_replaced(connection) and not last_try:
                        continue  # by another process: a newer state has another file
                    self._held.learner = self._current(connection).as_it_is()
                try:
                    yield self._held.learner
                finally:
                    self._held.learner = None
                return

    def is_worth_saving(self, *, closing: bool = False) -> bool:
        """Whether the next opening would take long without a new file."""
        with self._lock:
            if self._learner is not None:
                return self._learner.is_worth_saving(closing=closing)
        if not closing:
            return False
        with self._database.reading() as connection:
            return len(touched_after(connection, _stored(connection)[0] or 0)) >= _UNSAVED

    def save(self, *, tidy: bool = True) -> bool:
        """Write what was learned to a file, and remove the one before.

        Nobody who asks waits for the writing. Without `tidy`, rows that are gone stay in memory,
        as do rows that would be searched in another way by now: nothing is asked any more.

        Returns
        -------
        bool
            Whether there is such a file: not where another method was chosen meanwhile.
        """
        self._database.refuse_changes()
        with self._saving:
            with self._lock:
                with self._database.reading() as connection:
                    learner = self._current(connection)
                change, still = self._followed, learner.at_rest()
            digest = still.save(change)
            with self._database.writing() as connection, self._lock:
                is_wanted = learner is self._learner and learner.is_by(self._settings().method)
                if is_wanted:
                    is_worth_loading = learner.saved(still)
                    connection.execute(
                        "UPDATE state SET index_change = ?, index_digest = ?",
                        (None if digest is None else change, digest),
                    )
            if is_wanted and tidy and is_worth_loading and digest is not None:
                self._load_again(learner, change, digest)
        self.remove_others()
        return is_wanted

    def _load_again(self, learner: Learner, change: int, digest: str) -> None:
        """Have a learner of a file in the place of the one that it was written by."""
        loaded = self._made(self._settings())
        loaded.notes = self._notes
        self._notes.extend(loaded.opened(change, digest))
        with self._lock, self._database.reading() as connection:
            if learner is self._learner:
                loaded.follow(touched_after(connection, change))
                self._learner, self._followed = loaded, last_change(connection)

    def set_method(self, method: str) -> None:
        """Have the settings name another method, in JSON, and nothing be left of the one before."""
        with self._database.writing() as connection, self._lock:  # nobody notes a file meanwhile
            connection.execute("UPDATE settings SET value = ? WHERE name = 'method'", (method,))
            connection.execute("UPDATE state SET index_change = NULL, index_digest = NULL")
        self.remove_others()

    def forget(self) -> None:
        """Have a file without what is forgotten, where there was one, or what was learned."""
        with self._saving:
            with self._database.reading() as connection:
                index, _ = _stored(connection)
            if self._learner is not None or index is not None:
                with suppress(OSError, FileError):  # it can be made again
                    if self.save():
                        return
            with self._database.writing() as connection:
                connection.execute("UPDATE state SET index_change = NULL, index_digest = NULL")
        self.remove_others()

    def differences(self) -> list[str]:
        """What the model has learned otherwise than a fresh one would, in words."""
        with self._database.reading() as connection, self._lock:
            learner = self._current(connection)
            return list(learner.verify().differences)

    def compact(self) -> None:
        """Arrange what was learned anew, if there is something, and write it."""
        with self._lock:
            if self._learner is not None:
                self._learner.compact()
        self.save()

    def remove_others(self) -> None:
        """Remove all files but the one that counts."""
        with self._database.reading() as connection:
            kept, _ = _stored(connection)
        for change, path in index_files(self._folder):
            if change != kept:
                remove(path)

    def drop(self) -> None:
        """Learn everything again when it is next asked."""
        with self._lock:
            self._learner = None

    def leave(self) -> None:
        """In the child of a fork: have locks that nobody holds."""
        self._lock, self._saving = threading.RLock(), threading.RLock()

    def _is_replaced(self, connection: sqlite3.Connection) -> bool:
        index, _ = _stored(connection)
        is_needed = self._learner is None and index is not None
        return is_needed and not index_path(self._folder, index).exists()

    def _current(self, connection: sqlite3.Connection) -> Learner:
        """The learner, which knows all changes of the state that is being read."""
        with self._lock:
            last, settings = last_change(connection), self._settings()
            learner, followed = self._learner, self._followed
            if learner is not None and followed > last:  # of an older state, for its reader alone
                learner = self._made(settings)
                learner.opened(None)
                return learner
            self._learner = None  # until it is known to be right
            if learner is not None and not learner.is_by(settings.method):
                learner = None
            if learner is None:
                learner = self._made(settings)
                learner.notes = self._notes
                index, digest = _stored(connection)
                notes = learner.opened(index, digest)
                self._notes.extend(notes)
                followed = last if notes or index is None else index
            if followed < last:
                learner.follow(touched_after(connection, followed))
            self._learner, self._followed = learner, last
            return learner

    def _made(self, settings: Settings) -> Learner:
        try:
            return Learner(self._folder, settings, self._source)
        except (TypeError, ValueError):
            why = "is damaged: its settings name a method that there is not"
            raise CollectionError(why, self._folder) from None


def _stored(connection: sqlite3.Connection) -> tuple[Any, Any]:
    """The change after which the file of what was learned was written, and its digest."""
    index, digest = connection.execute("SELECT index_change, index_digest FROM state").fetchone()
    return index, digest
