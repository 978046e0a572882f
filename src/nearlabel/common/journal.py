"""Changes of a model, kept in a journal beside its file until the file is written again.

A journal is a head of 64 bytes (mark, version, the digest of the model file that it belongs to,
checksum) and records one after the other: mark, length and their checksum in 32 bytes, a tree as
`write_tree` writes it, and the sha256 of all that. The checksums cover the head and the place of
the record, so that none can be left out, moved, or taken from another journal unnoticed.

Each record is on the disk before the next one is written. So a crash leaves at most the last one
incomplete: the file ends within it, or pages of it that never arrived read as zeros. It was not
acknowledged, and is dropped with a warning. Anything else is damage, and refused.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import struct
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Self

from nearlabel.common.file_locks import is_file_of, try_lock
from nearlabel.common.files import (
    FileError,
    get_tree,
    put_tree,
    stored_digest,
    sync_folder,
    write_tree,
)

_VERSION = 1
_MARK = b"\x89nljournal\r\n\x1a\n"  # see that of model files
_HEAD = struct.Struct("<14sH32s")  # mark, version, digest of the model file; a checksum follows
_RECORD_MARK = b"\x89change\n"
_START = struct.Struct("<8sQ")  # mark, bytes of the tree; a checksum follows
_SHORT, _LONG = 16, 32  # bytes of a checksum: of a head or a start, and of a whole record
_HEAD_SIZE, _START_SIZE = _HEAD.size + _SHORT, _START.size + _SHORT
_PAGE = 4096  # records begin at multiples of 64 bytes, so that no start is in two pages


def journal_path(model_path: str | os.PathLike[str]) -> Path:
    """The file of changes that belongs to a model file."""
    return Path(os.path.realpath(model_path) + ".journal")


class Journal:
    """The journal of a model file, open for one writer; others can read it meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _locked(path)
        try:
            self._head = _head_of(self._file, path)
        except BaseException:
            self.close()
            raise
        self._end = 0  # of the last record; negative while a write has not succeeded

    @classmethod
    def create_or_open(
        cls, model_path: str | os.PathLike[str], digest: str, replaces: str | None = None
    ) -> Self:
        """Open the journal of the model file with this digest, a new one where there is none.

        One of the file that this file `replaces` has become part of it, and is emptied. One of any
        other file is a `FileError`, one that somebody else has open a `BlockingIOError`.
        """
        journal = cls(journal_path(model_path))
        try:
            if stored_digest(model_path) != digest:
                raise FileError("was written anew while it was read", model_path)
            if _is_of(journal._head, journal.path, digest, replaces):
                journal._cut_off_torn_record()
            else:
                journal.restart(digest)
                shutil.copymode(model_path, journal.path)  # who may read the one, reads the other
        except BaseException:
            journal.close()
            raise
        return journal

    @property
    def digest(self) -> str | None:
        """The digest of the model file that the changes belong to; None where there are none."""
        return _HEAD.unpack_from(self._head)[2].hex() if self._head else None

    @property
    def closed(self) -> bool:
        """Whether it can no longer be written."""
        return self._file.closed

    def append(self, *changes: Mapping[str, Any]) -> None:
        """Write changes, each a tree. On return all of them are on the disk; on error, none is."""
        if not changes:
            return
        start = self._end
        if start < 0:
            why = "could not be mended after an error; load the model again"
            raise OSError(errno.EIO, why, str(self.path))
        if not is_file_of(self._file, self.path):
            raise FileError("was removed or replaced while it was open", self.path)
        record = _record(self._head, start, changes)
        try:
            self._end = -1
            self._write(start, record)
            self._end = start + len(record)
        except BaseException as error:
            self._cut(start)
            if isinstance(error, OSError) and error.filename is None:
                error.filename = str(self.path)
            raise

    def records(self) -> Iterator[dict[str, Any]]:
        """All changes, oldest first."""
        for _, changes in _records(self._file, self.path, self._head):
            yield from changes

    def restart(self, digest: str) -> None:
        """Remove all changes: those to come belong to the file with this digest."""
        self._cut(0)
        self._end = -1
        start = _HEAD.pack(_MARK, _VERSION, bytes.fromhex(digest))
        self._head = start + _sum(start, 0)
        self._write(0, self._head)
        sync_folder(self.path)
        self._end = _HEAD_SIZE

    def remove(self) -> None:
        """Remove the journal itself."""
        self._cut(0)
        with suppress(PermissionError):  # Windows keeps open files; an empty one says nothing
            self.path.unlink()
        sync_folder(self.path)
        self.close()

    def close(self) -> None:
        """Let others write."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()

    def __reduce__(self) -> Any:  # a copy of a model has no journal: there is one writer
        return type(None), ()

    def _write(self, start: int, content: bytes) -> None:
        self._file.seek(start)
        left = memoryview(content)
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())

    def _cut(self, end: int) -> None:
        self._end = -1
        self._file.truncate(end)
        os.fsync(self._file.fileno())
        self._end = end

    def _cut_off_torn_record(self) -> None:
        self._end = _HEAD_SIZE
        for end, _ in _records(self._file, self.path, self._head):
            self._end = end
        if self._file.seek(0, os.SEEK_END) > self._end:
            self._cut(self._end)


def read_changes(
    model_path: str | os.PathLike[str], digest: str, replaces: str | None = None
) -> list[dict[str, Any]]:
    """The changes in the journal of a model file, oldest first, while somebody may be writing."""
    path = journal_path(model_path)
    try:
        file = FileIO(path)
    except FileNotFoundError:
        return []
    with file:
        head = _head_of(file, path)
        if not _is_of(head, path, digest, replaces):
            return []
        records = _records(file, path, head, alone=False)
        return [change for _, changes in records for change in changes]


def save_tree(
    path: str | os.PathLike[str], tree: Mapping[str, Any], journal: Journal | None = None
) -> None:
    """Write a model file with all that was changed; a journal beside it is done with.

    The file names the one whose journal that was, so that a crash before it is emptied does no
    harm. `journal` is that of the model, if it has one: it goes on where it is beside this file.
    """
    beside = journal_path(path)
    is_own = journal is not None and journal.path == beside and not journal.closed
    if not is_own and not beside.exists():
        write_tree(path, tree)
        return
    held = journal if journal is not None and is_own else Journal(beside)
    try:
        replaced = {} if held.digest is None else {"replaces": held.digest}
        digest = write_tree(path, {**tree, **replaced})
        if is_own:
            held.restart(digest)
        else:
            held.remove()
    finally:
        if not is_own:
            held.close()


def _locked(path: Path) -> FileIO:
    """The journal at `path`, made if there is none, open for one writer."""
    while True:
        file = FileIO(path, "r+", opener=_made_if_missing)
        if not try_lock(file):
            file.close()
            why = "is open for changes already, in another process or in this one"
            raise BlockingIOError(errno.EAGAIN, why, str(path))
        if is_file_of(file, path):
            return file
        file.close()  # it was removed before it was locked


def _made_if_missing(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o666)


def _sum(head: bytes, place: int, *parts: bytes, size: int = _SHORT) -> bytes:
    """The checksum of bytes at a place of the journal with this head."""
    digest = hashlib.sha256(head + place.to_bytes(8, "little"))
    for part in parts:
        digest.update(part)
    return digest.digest()[:size]


def _head_of(file: FileIO, path: Path) -> bytes:
    """The head of a journal; empty where it has none yet, and so no records."""
    file.seek(0)
    head = file.read(_HEAD_SIZE) or b""
    if not any(head) and file.seek(0, os.SEEK_END) <= _HEAD_SIZE:
        return b""
    if not head.startswith(_MARK[: len(head)]):
        raise FileError("is not a journal of nearlabel: it begins with other bytes", path)
    if len(head) < _HEAD_SIZE:
        return b""
    version = _HEAD.unpack_from(head)[1]
    if version > _VERSION:
        raise FileError(
            f"has version {version}; this nearlabel reads journals of version {_VERSION}: "
            "update nearlabel to read it",
            path,
        )
    if head[_HEAD.size :] != _sum(head[: _HEAD.size], 0):
        raise FileError("is altered: the checksum of its head does not match", path)
    return head


def _is_of(head: bytes, path: Path, digest: str, replaces: str | None) -> bool:
    """Whether a journal has changes of the file with this digest."""
    belongs_to = _HEAD.unpack_from(head)[2].hex() if head else None
    if belongs_to not in (None, digest, replaces):
        raise FileError(
            "belongs to another model file than the one beside it: bring that back, or remove the "
            "journal and the changes in it",
            path,
        )
    return belongs_to == digest


def _record(head: bytes, place: int, changes: tuple[Mapping[str, Any], ...]) -> bytes:
    """The bytes of a record that is written at `place`."""
    content = io.BytesIO()
    put_tree(content, {"changes": changes})
    tree = content.getvalue()
    start = _START.pack(_RECORD_MARK, len(tree))
    start += _sum(head, place, start)
    return start + tree + _sum(head, place, start, tree, size=_LONG)


def _records(
    file: FileIO, path: Path, head: bytes, *, alone: bool = True
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The end and the changes of each record of a journal, but for a torn last one.

    A reader is not `alone`: what looks torn may be what somebody is writing.
    """
    place, size = _HEAD_SIZE, file.seek(0, os.SEEK_END)
    while place < size:
        start = _bytes_at(file, place, _START_SIZE)
        length = _length(head, place, start)
        end = place + _START_SIZE + (length or 0) + _LONG
        if length is not None and end <= size:
            tree = _bytes_at(file, place + _START_SIZE, length)
            if _sum(head, place, start, tree, size=_LONG) == _bytes_at(file, end - _LONG, _LONG):
                yield end, _changes(tree, path)
                place = end
                continue
        rest = _bytes_at(file, place, size - place)
        if not _holds_record(head, place, rest) and not alone and _has_writer(file):
            return
        if _holds_record(head, place, rest) or not _is_torn(place, rest, length):
            raise FileError(f"is altered: the record at byte {place} is not as written", path)
        warnings.warn(
            f"{path}: the last change was not written completely, and is dropped; whoever made it "
            "was not told that it is kept",
            stacklevel=4,
        )
        return


def _is_torn(place: int, rest: bytes, length: int | None) -> bool:
    """Whether the last bytes of a journal are what a crash leaves of a record of this length."""
    if len(rest) < _START_SIZE:
        return True
    if length is None:  # a start arrives as a whole or not at all
        return not any(rest[:_START_SIZE])
    missing = _START_SIZE + length + _LONG - len(rest)
    pages = (rest[max(at, 0) : at + _PAGE] for at in range(-(place % _PAGE), len(rest), _PAGE))
    return missing > 0 or (missing == 0 and not all(map(any, pages)))


def _holds_record(head: bytes, place: int, rest: bytes) -> bool:
    """Whether a record begins later in `rest`: then what is before it had been complete."""
    at = rest.find(_RECORD_MARK, 1)
    while at > 0:
        if _length(head, place + at, rest[at : at + _START_SIZE]) is not None:
            return True
        at = rest.find(_RECORD_MARK, at + 1)
    return False


def _length(head: bytes, place: int, start: bytes) -> int | None:
    """The length of the tree in the record at `place`; None where these bytes start no record."""
    if len(start) < _START_SIZE or start[_START.size :] != _sum(head, place, start[: _START.size]):
        return None
    mark, length = _START.unpack_from(start)
    return int(length) if mark == _RECORD_MARK else None


def _changes(tree: bytes, path: Path) -> list[dict[str, Any]]:
    changes = get_tree(io.BytesIO(tree), path).tree.get("changes")
    if not isinstance(changes, list) or not all(isinstance(one, dict) for one in changes):
        raise FileError("is damaged: a record has no changes", path)
    return changes


def _bytes_at(file: FileIO, place: int, size: int) -> bytes:
    """Bytes of a file, fewer where it ends."""
    file.seek(place)
    parts = []
    while size and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _has_writer(file: FileIO) -> bool:
    with suppress(OSError):  # a file system without locks
        return not try_lock(file)
    return False
