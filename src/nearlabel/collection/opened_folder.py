"""The folder of an open collection: its lock, recovery, changes and closing."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from weakref import WeakSet

from nearlabel.collection.change_log import ChangeLog, last_change
from nearlabel.collection.choices import KINDS
from nearlabel.collection.database import Database
from nearlabel.collection.erasure import forget_items
from nearlabel.collection.folder_checks import (
    LOCK,
    CollectionError,
    check_folder,
    opened_plainly,
    part_files,
    remove,
    vector_files,
)
from nearlabel.collection.learned_answers import LearnedAnswers
from nearlabel.collection.records import Change, Settings
from nearlabel.collection.removals import (
    remove_listed,
    remove_thumbnails,
    set_uploads,
    uploads_folder,
)
from nearlabel.collection.rewriting import rewrite_file, rewrite_small_tables
from nearlabel.collection.stored_vectors import read_form
from nearlabel.collection.tag_changes import refuse_unknown
from nearlabel.collection.undoing import undo
from nearlabel.common.file_locks import try_lock
from nearlabel.common.validation import check_integer

_Result = TypeVar("_Result")


class OpenedFolder:
    """The database, the vectors and the model of one collection."""

    _all: ClassVar[WeakSet[OpenedFolder]] = WeakSet()
    _of_parents: ClassVar[list[Any]] = []  # what the child of a fork must not close

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.path, self.readonly = path, readonly
        self.notes: list[str] = []
        self._last_group = 0
        self._has_removals = True  # perhaps
        check_folder(path, readonly=readonly)
        self._lock = None if readonly else _locked(path)
        try:
            self.database = Database(path, readonly=readonly)
        except BaseException:
            self._unlock()
            raise
        try:
            self.learned = LearnedAnswers(self.database, self.notes)
            self.kind = self._read_settings().kind  # which never changes
            if not readonly:
                self._recover()
        except BaseException:
            self.database.close()
            self._unlock()
            raise
        self._all.add(self)

    @property
    def settings(self) -> Settings:
        """What the collection was created with, and the form of its vectors."""
        return self._read_settings()

    def change(
        self, kind: str, group: int | None, work: Callable[[ChangeLog], None]
    ) -> Change | None:
        """Make a change: at the end either all of it is on disk, or nothing."""
        if group is not None:
            check_integer(group, "group", low=0, high=2**63 - 1)

        def job(connection: sqlite3.Connection) -> Change | None:
            log = ChangeLog(connection, kind, group)
            work(log)
            return log.settle()

        return self.write(job)

    def undo(self) -> Change | None:
        """Undo the last change, and remove the files that it brought."""

        def job(connection: sqlite3.Connection) -> Change | None:
            self._has_removals = True
            return undo(connection)

        return self.write(job)

    def write(self, job: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run a job, and afterwards what follows from its changes, once it is on disk."""
        result = self.database.write(job)
        if not self.database.is_writing:  # not a part of another one
            with suppress(OSError):  # what follows must not make a committed change fail
                self._remove_files()
            with suppress(OSError):
                if self.learned.is_worth_saving():
                    self.learned.save()
        return result

    def new_group(self) -> int:
        """A number for a run of changes, greater than that of any change or run."""

        def job(connection: sqlite3.Connection) -> int:
            self._last_group = max(last_change(connection), self._last_group) + 1
            return self._last_group

        return self.database.write(job)

    def keep_uploads_in(self, folder: Path) -> None:
        """Use a folder for uploads, if it is another one."""
        with self.database.reading() as connection:
            if uploads_folder(connection) == folder.absolute():
                return
        self.database.write(partial(set_uploads, folder=folder))

    def forget(self, ids: Sequence[int]) -> Change | None:
        """Remove items from the tables and from all files."""
        self.database.refuse_part()
        erase = self._rewrite_file if self._is_erasing() else rewrite_small_tables

        def work(log: ChangeLog) -> None:
            refuse_unknown(log, ids)
            if ids:
                self._has_removals = True
                forget_items(log, ids)

        change = self.change("forget", None, work)
        if change is not None:
            try:
                self._remove_files()  # if it has failed
                self._finish_erasing(erase)
            except OSError as error:
                why = (
                    "the items are forgotten, but not all of their bytes are erased yet "
                    f"({error.strerror}); fix this, then open the collection again"
                )
                raise OSError(error.errno, why, str(self.path)) from error
        return change

    def compact(self) -> None:
        """Rebuild the model, and rewrite the database without unused space."""

        def job(connection: sqlite3.Connection) -> bool:
            connection.execute("DELETE FROM vectors WHERE item = 0")
            connection.execute("UPDATE state SET is_erasing = 1")  # copies of the others remain
            return True

        self.database.refuse_part()
        self.database.alone(partial(remove_thumbnails, self.path))
        self.learned.compact()
        self.database.write(job)
        self._settle_erasing(self._rewrite_file)

    def _finish_erasing(self, erase: Callable[[sqlite3.Connection], bool]) -> None:
        """Erase from files what was removed from the tables, once nobody reads it any more.

        While another process reads an older state, the write-ahead log is left for the next time.
        """
        self.learned.forget()
        self._settle_erasing(erase)

    def _settle_erasing(self, erase: Callable[[sqlite3.Connection], bool]) -> None:
        if self.database.alone(erase):
            self.database.write(lambda writer: writer.execute("UPDATE state SET is_erasing = 0"))

    def _rewrite_file(self, writer: sqlite3.Connection) -> bool:
        return rewrite_file(writer, self.path)

    def _remove_files(self) -> None:
        """Remove files whose items are gone; a note says which are still there."""

        def job(connection: sqlite3.Connection) -> list[OSError]:
            self._has_removals = False
            return remove_listed(connection, self.path)

        if self._has_removals:
            try:
                problems = self.database.write(job)
            except OSError:
                self._has_removals = True
                raise
            for error in problems:
                note = f"{error.filename} is still there, though its item is gone"
                self.notes.extend({f"{note} ({error.strerror})"}.difference(self.notes))

    def close(self, *, save: bool) -> None:
        """Close the folder; others can then write."""
        if self.database.is_closed:
            return
        try:
            if save and not self.readonly:
                with suppress(OSError):  # left for the next opening
                    if self._is_erasing():
                        self._finish_erasing(self._rewrite_file)
                    if self.learned.is_worth_saving(closing=True):
                        self.learned.save(tidy=False)
        finally:
            self.database.close()
            self._unlock()

    @classmethod
    def leave_all(cls) -> None:
        """After a fork, in the child: leave alone what the parent has open."""
        for folder in list(cls._all):
            cls._of_parents.append(folder.database.leave())

    def _recover(self) -> None:
        """Clean up after a process that died."""
        for part in part_files(self.path):
            remove(part)
        for path in vector_files(self.path):  # their vectors are in the database
            remove(path)
        if self.database.n_lost_vectors:
            self.notes.append(self._said_lost(self.database.n_lost_vectors))
        if self.database.was_killed:  # after a change, and before it removed what follows from it
            self.database.alone(partial(remove_thumbnails, self.path))
        self.learned.remove_others()
        self._remove_files()
        if self._is_erasing():
            self._finish_erasing(self._rewrite_file)
            self.notes.append("the traces of forgotten items have now been erased")

    def _said_lost(self, n: int) -> str:
        """What can be done about items that have lost their vectors."""
        again = "'nearlabel index' computes them again"
        if self.settings.kind == "vectors":
            again = "restore a backup, or forget these items"
        many = "1 item has" if n == 1 else f"{n:,} items have"
        return f"{many} no vector any more, as the file of the vectors was damaged: {again}"

    def _is_erasing(self) -> bool:
        """Whether files may still contain bytes of forgotten items."""
        with self.database.reading() as connection:
            (is_erasing,) = connection.execute("SELECT is_erasing FROM state").fetchone()
            return bool(is_erasing)

    def _read_settings(self) -> Settings:
        with self.database.reading() as connection:
            form = read_form(connection)
            settings = dict(connection.execute("SELECT name, value FROM settings").fetchall())
        try:
            kind, features, method = (
                json.loads(settings[name]) for name in ("kind", "features", "method")
            )
            if kind not in KINDS or not isinstance(features, dict) or not isinstance(method, dict):
                raise ValueError
        except (KeyError, TypeError, ValueError, RecursionError):
            raise CollectionError("is damaged: its settings are not valid", self.path) from None
        width, is_sparse = (None, None) if form is None else form
        return Settings(kind, features, method, width, is_sparse)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()


def _locked(folder: Path) -> FileIO:
    """The file that tells other processes who writes."""

    def opener(path: str, flags: int) -> int:
        return opened_plainly(path, flags | os.O_CREAT)

    try:
        file = FileIO(folder / LOCK, "r+", opener=opener)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        why = f"this collection is read-only: its files cannot be written ({error.strerror})"
        raise PermissionError(error.errno, why, str(folder)) from None
    if not try_lock(file):
        owner = file.read(20).decode("ascii", "replace").strip()
        file.close()
        who = f"process {owner}" if owner.isdecimal() else "another process"
        raise BlockingIOError(
            errno.EAGAIN,
            f"{who} has this collection open for writing; try again when it has finished (or open "
            "it with readonly=True)",
            str(folder),
        )
    try:
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
    except OSError:  # on a full disk the owner is not recorded
        pass
    return file


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=OpenedFolder.leave_all)
