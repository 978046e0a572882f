"""Queries to the model of a collection, which follows the store before it answers.

Every query, in any process, reads one state of the store. The model is first updated to it with the
items that the log of changes lists since the last query.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearlabel.collection.change_log import LISTED, touched_after
from nearlabel.collection.database import Database
from nearlabel.collection.folder_checks import CollectionError, index_files, index_path, remove
from nearlabel.collection.records import FEWEST_UNSAVED, MOST_TAGS, Rows
from nearlabel.collection.stored_vectors import read_vectors
from nearlabel.common.arrays import Matrix
from nearlabel.common.files import FileError
from nearlabel.common.threads import ForkSafeLock

if TYPE_CHECKING:
    from nearlabel.collection.learner import Learner
    from nearlabel.collection.tag_answers import State, StateAnswers


class LearnedAnswers:
    """The learner of a collection, created on first use."""

    def __init__(self, database: Database, notes: list[str]) -> None:
        self._database, self._notes = database, notes
        self._folder, self.source = database.folder, LearnedRows(database)
        self._learner: Learner | None = None
        self._method = ""  # of the learner, as the settings have it
        self._followed = 0  # the last change the learner has followed
        self._lock = ForkSafeLock()  # held while the learner is updated
        self._saving = ForkSafeLock()  # held while a file is written; acquired before all others
        self._held = threading.local()  # the answers that this thread reads

    @contextmanager
    def asking(self) -> Iterator[StateAnswers]:
        """The answers of the state that is read inside, whatever changes meanwhile.

        It nests within a thread: all queries inside are answered from the same state.
        """
        held = getattr(self._held, "answers", None)
        if held is not None:
            yield held
            return
        from nearlabel.collection.tag_answers import StateAnswers  # imports scikit-learn

        self._database.refuse_part()  # what is rolled back must not be learned
        for tries_left in (2, 1, 0):
            with ExitStack() as read:
                with self._lock.held():  # the learner must not advance beyond the state read
                    stored = _stored(read.enter_context(self._database.reading()))
                    if tries_left and self._learner is None and self._lacks_file(stored):
                        continue  # another process replaced it; read the newer state
                    learner = self._current(stored)
                    learn_again = partial(self._learn_again, learner)
                    answers = StateAnswers(learner.state, learner.metric, self.source, learn_again)
                self._held.answers = answers
                try:
                    yield answers
                finally:
                    self._held.answers = None
                return

    def _learn_again(self, learner: Learner, state: State, error: FileError) -> State | None:
        from nearlabel.collection.index_file import said_again

        with self._lock.held():
            if learner.state is state:
                learner.learn_all()
                self._notes.append(said_again(str(error.path), error))
            return learner.state

    def _lacks_file(self, stored: _Stored) -> bool:
        return stored.saved is not None and not index_path(self._folder, stored.saved).exists()

    def is_worth_saving(self, *, closing: bool = False) -> bool:
        """Whether the next opening would take long without a new file."""
        with self._lock.held():
            if self._learner is not None:
                return self._learner.is_worth_saving(closing=closing)
        if not closing:
            return False
        with self._database.reading() as connection:
            saved = _stored(connection).saved
            if saved is not None:
                unsaved = len(touched_after(connection, saved))
            else:
                (unsaved,) = connection.execute("SELECT count(learned) FROM items").fetchone()
        return bool(unsaved >= FEWEST_UNSAVED)

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
                    learner = self._current(_stored(connection))
                change, still = self._followed, learner.at_rest()
            digest = still.save(change)
            is_worth_loading = False

            def job(connection: sqlite3.Connection) -> bool:
                nonlocal is_worth_loading
                with self._lock.held():
                    is_wanted = learner is self._learner
                    is_wanted &= _stored(connection).method == self._method
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
        loaded = self._new_learner(self._method)
        self._notes.extend(loaded.opened(change, digest))
        with self._lock.held(), self._database.reading() as connection:
            if learner is self._learner:
                loaded.follow(touched_after(connection, change))
                self._learner, self._followed = loaded, _stored(connection).last

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
                has_file = _stored(connection).saved is not None
            if self._learner is not None or has_file:
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
            return list(self._current(_stored(connection)).verify().differences)

    def compact(self) -> None:
        """Rebuild the model, if there is one, and write it."""
        with self._lock.held():
            if self._learner is not None:
                self._learner.compact()
        self.save()

    def remove_others(self) -> None:
        """Remove all index files except the current one."""
        with self._database.reading() as connection:
            current = _stored(connection).saved
        for change, path in index_files(self._folder):
            if change != current:
                remove(path)

    def _current(self, stored: _Stored) -> Learner:
        """The learner, updated to the state that is being read; the lock is held."""
        learner, followed = self._learner, self._followed
        if learner is not None and followed > stored.last:  # an older state, for this reader only
            learner = self._new_learner(stored.method)
            learner.opened(None)
            return learner
        self._learner = None  # until the update has succeeded
        if learner is None or stored.method != self._method:
            learner = self._new_learner(stored.method)
            notes = learner.opened(stored.saved, stored.digest)
            self._notes.extend(notes)
            followed = stored.last if notes or stored.saved is None else stored.saved
        if followed < stored.last:
            with self._database.reading() as connection:
                learner.follow(touched_after(connection, followed))
        self._learner, self._method, self._followed = learner, stored.method, stored.last
        return learner

    def _new_learner(self, method: str) -> Learner:
        from nearlabel.collection.learner import Learner  # imports scikit-learn

        try:
            return Learner(self._folder, json.loads(method), self.source)
        except (TypeError, ValueError, RecursionError):
            why = "is damaged: its settings name an unknown method"
            raise CollectionError(why, self._folder) from None


class LearnedRows:
    """The part of the store that the learner reads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, ids: Sequence[int] | None = None) -> Rows:
        """The training items: some by their ids, or all; ordered by `learned`."""
        which, given = "learned IS NOT NULL", ()
        if ids is not None:
            which += f" AND id IN {LISTED}"
            given = (json.dumps([int(item) for item in ids]),)  # type: ignore[assignment]
        with self._database.reading() as connection:
            items = connection.execute(
                f"SELECT id, learned FROM items WHERE {which} ORDER BY learned", given
            ).fetchall()
            tags = connection.execute(
                "SELECT items.learned, decisions.tag FROM items JOIN decisions ON item = items.id "
                f"WHERE is_yes AND {which} ORDER BY items.learned, decisions.tag",
                given,
            ).fetchall()
        examples = np.array(items, np.int64).reshape(-1, 2)
        pairs = np.array(tags, np.int64).reshape(-1, 2)
        # Row numbers in a model are smaller than 2**62.
        if len(examples) and not 0 < examples[0, 1] <= examples[-1, 1] < 2**62:
            why = "is damaged: the order of its examples is not valid; restore a backup"
            raise CollectionError(why, self._database.folder)
        if len(pairs) and not 0 < pairs[:, 1].min() <= pairs[:, 1].max() < MOST_TAGS:
            why = "is damaged: a tag has a number out of range; restore a backup"
            raise CollectionError(why, self._database.folder)
        indptr = np.searchsorted(pairs[:, 0], examples[:, 1])
        ends = np.append(indptr, len(pairs)).astype(np.int64)
        return Rows(examples[:, 0].copy(), examples[:, 1].copy(), ends, pairs[:, 1].copy())

    def vectors(self, ids: Sequence[int]) -> Matrix:
        """The current vectors of items; zeros for removed items."""
        with self._database.reading() as connection:
            return read_vectors(connection, ids, gone="zeros")

    def tag_names(self, tags: Sequence[int]) -> dict[int, str]:
        """The names of tags by their numbers."""
        with self._database.reading() as connection:
            select = f"SELECT id, name FROM tags WHERE id IN {LISTED}"
            return dict(connection.execute(select, (json.dumps(list(tags)),)).fetchall())


class _Stored(NamedTuple):
    """What the database says of the model.

    Attributes
    ----------
    last : int
        The last change.
    method : str
        The chosen method, as JSON.
    saved : int or None
        The change after which the index file was written; None if there is none.
    digest : str or None
        Its checksum.
    """

    last: int
    method: str
    saved: int | None
    digest: str | None


def _stored(connection: sqlite3.Connection) -> _Stored:
    select = (
        "SELECT coalesce((SELECT max(id) FROM changes), 0), "
        "(SELECT value FROM settings WHERE name = 'method'), index_change, index_digest FROM state"
    )
    return _Stored(*connection.execute(select).fetchone())
