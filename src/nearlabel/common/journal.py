"""Changes to a model, kept in a journal beside its file until the file is rewritten.

A change is on disk when `append` returns. A journal belongs to one file, identified by its digest.
A rewritten file records the digest of its predecessor, so that a journal that outlives its file is
recognized as contained in the new one.
"""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, Self

from nearlabel.common.arrays import Tree
from nearlabel.common.file_locks import is_file_of, try_lock
from nearlabel.common.files import (
    FileError,
    naming,
    remove_parts,
    stored_digest,
    sync,
    sync_folder,
    write_tree,
)
from nearlabel.common.journal_records import (
    HEAD_SIZE,
    checked_head,
    digest_in,
    head_bytes,
    record_bytes,
    whole_records,
)
from nearlabel.common.threads import RenewedByFork


def journal_path(model_path: str | os.PathLike[str]) -> Path:
    """The file of changes that belongs to a model file."""
    return Path(os.path.realpath(model_path) + ".journal")


class Journal(RenewedByFork):
    """The journal of a model file, open for one writer; others can read it meanwhile."""

    fold: Callable[[Any], None]
    """Rewrites the file from the given model, which has all changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _locked(path)
        super().__init__()
        try:
            self._head = checked_head(self._content(), path)
        except BaseException:
            self.close()
            raise
        self._end = 0  # of the last record; negative while a write has not succeeded

    @classmethod
    def create_or_open(
        cls, model_path: str | os.PathLike[str], digest: str, replaces: str | None = None
    ) -> tuple[Self, list[Tree]]:
        """Open the journal of the model file with this digest; create it if there is none.

        Returns the changes in it, too. The journal of the file that this one `replaces` is
        contained in it, and is emptied. One of any other file raises a `FileError`, one that
        another writer has open a `BlockingIOError`.
        """
        journal = cls(journal_path(model_path))
        try:
            with naming(journal.path):
                sync(journal._file.fileno())  # what a killed process left counts from now on
            sync_folder(journal.path)
            if stored_digest(model_path) != digest:
                raise FileError("was rewritten while it was being read", model_path)
            if _is_of(journal.digest, journal.path, digest, replaces):
                changes = journal.records()
            else:
                changes = []
                journal.restart(digest)
                shutil.copymode(model_path, journal.path)  # both have the same readers
        except BaseException:
            journal.close()
            raise
        return journal, changes

    @property
    def digest(self) -> str | None:
        """The digest of the model file that the changes belong to; None if there are none."""
        return digest_in(self._head)

    @property
    def closed(self) -> bool:
        """Whether it can no longer be written."""
        return self._file.closed

    def refuse_closed(self) -> None:
        """Raise an error if the journal is closed."""
        if self.closed:
            raise FileError(
                "is closed, by close() or in the child of a fork; load the model again to change "
                "it",
                self.path,
            )

    def append(self, *changes: Mapping[str, object]) -> None:
        """Write changes, each a tree. On return all of them are on disk; after an error, none."""
        with self.appended(lambda: True, *changes):
            pass

    @contextmanager
    def appended(
        self, is_made: Callable[[], bool], *changes: Mapping[str, object]
    ) -> Iterator[None]:
        """Write changes before they are made; if an interrupt prevents that, remove them."""
        self.refuse_closed()
        start = self._end
        if start < 0:
            why = "could not be repaired after an error; load the model again"
            raise OSError(errno.EIO, why, str(self.path))
        if not is_file_of(self._file, self.path):
            raise FileError("was removed or replaced while it was open", self.path)
        record = record_bytes(self._head, start, changes)
        try:
            self._end = -1
            self._write(record)
            self._end = start + len(record)
            yield
        except BaseException:
            if self._end < 0 or not is_made():
                self._cut(start)
            raise

    @contextmanager
    def replaced(self, model_path: str | os.PathLike[str]) -> Iterator[None]:
        """Rewrite the model file and `restart`; if only the former succeeds, refuse changes.

        They would belong to a file that no longer exists.
        """
        before, end, self._end = stored_digest(model_path), self._end, -1
        try:
            yield
        except BaseException:
            self._end = end if stored_digest(model_path) == before else -1
            raise

    def records(self) -> list[Tree]:
        """All changes, oldest first; a torn record behind them is cut off, with a warning."""
        content = self._content()
        changes, self._end = whole_records(content, self._head, self.path)
        if self._end < len(content):
            warnings.warn(
                f"{self.path}: the last change was not written completely and is dropped; it was "
                "never confirmed to its caller",
                stacklevel=5,  # where the model is loaded
            )
            self._cut(self._end)
        return changes

    def restart(self, digest: str) -> None:
        """Remove all changes; later ones belong to the file with this digest."""
        self._cut(0)
        self._end = -1
        self._head = head_bytes(digest)
        self._write(self._head)
        sync_folder(self.path)
        self._end = HEAD_SIZE

    def remove(self) -> None:
        """Remove the journal itself."""
        self._cut(0)
        with suppress(PermissionError):  # Windows keeps open files; an empty one does no harm
            self.path.unlink()
        sync_folder(self.path)
        self.close()

    def close(self) -> None:
        """Let others write."""
        self._file.close()

    def finish(self) -> None:
        """Close it; one without changes is removed."""
        if self._end in (0, HEAD_SIZE) and not self.closed:
            self.remove()
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()

    def renew(self) -> None:
        """Close it: the child of a fork must not write to its parent's files."""
        self.close()

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """None in a copy of a model: there is one writer."""
        return type(None), ()

    def _content(self) -> bytes:
        self._file.seek(0)
        return self._file.readall()

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        with naming(self.path):
            while left:
                left = left[self._file.write(left) :]
            sync(self._file.fileno())

    def _cut(self, end: int) -> None:
        self._end = -1
        with naming(self.path):
            self._file.truncate(end)
            sync(self._file.fileno())
        self._end = end


def read_changes(
    model_path: str | os.PathLike[str], digest: str, replaces: str | None = None
) -> list[Tree]:
    """The changes in the journal of a model file, oldest first; others may be writing to it.

    What follows the last whole record is being written now, or was never confirmed.
    """
    path = journal_path(model_path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    head = checked_head(content, path)
    if not _is_of(digest_in(head), path, digest, replaces):
        return []
    return whole_records(content, head, path)[0]


def save_tree(
    path: str | os.PathLike[str], tree: Mapping[str, object], journal: Journal | None = None
) -> None:
    """Write a model file with all changes, and empty the journal beside it.

    The new file names the one that the journal belonged to, so that a crash before the journal is
    emptied does no harm. `journal` is the model's own, if any; it stays open if it is beside this
    file.
    """
    beside = journal_path(path)
    is_own = journal is not None and journal.path == beside and not journal.closed
    if not is_own and not beside.exists():
        write_tree(path, tree)
        return
    held = journal if journal is not None and is_own else Journal(beside)
    try:
        replaced = {} if held.digest is None else {"replaces": held.digest}
        remove_parts(path)  # no other process is writing
        with held.replaced(path):
            digest = write_tree(path, {**tree, **replaced})
            if is_own:
                held.restart(digest)
            else:
                with suppress(OSError):  # it is known to be contained in the file
                    held.remove()
    finally:
        if not is_own:
            held.close()


def _locked(path: Path) -> FileIO:
    """The journal at `path`, created if there is none, open for one writer."""
    while True:
        file = FileIO(path, "a+")  # what is written goes to the end, and the file is made for it
        if not try_lock(file):
            file.close()
            why = (
                "the model is being changed by another process; try again when it has finished "
                "(or another model loaded with journal=True is still open)"
            )
            raise BlockingIOError(errno.EAGAIN, why, str(path))
        if is_file_of(file, path):
            return file
        file.close()  # it was removed before it was locked


def _is_of(belongs_to: str | None, path: Path, digest: str, replaces: str | None) -> bool:
    """Whether a journal has changes to the file with this digest."""
    if belongs_to not in (None, digest, replaces):
        raise FileError(
            "belongs to a different model file than the one beside it: restore that file, or "
            "remove the journal and the changes in it",
            path,
        )
    return belongs_to == digest
