"""The bytes of a journal: its head, its records, and a last record torn by a crash.

A journal is a head of 64 bytes (mark, version, the digest of the model file that it belongs to,
checksum) and records one after the other: mark, length and their checksum in 32 bytes, a tree as
`write_tree` writes it, and the sha256 of all that. The checksums cover the head and the place of
the record, so that none can be omitted, moved, or taken from another journal unnoticed.

Each record is on disk before the next one is written. So a crash leaves at most the last one
incomplete: the file ends within it, or pages that were never written read as zeros. It was not
acknowledged, and is dropped with a warning. Anything else is damage, and raises an error.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from nearlabel.common.file_locks import try_lock
from nearlabel.common.files import FileError, get_tree, put_tree

_VERSION = 1
_MARK = b"\x89nljournal\r\n\x1a\n"  # see that of model files
_HEAD = struct.Struct("<14sH32s")  # mark, version, digest of the model file; a checksum follows
_RECORD_MARK = b"\x89change\n"
_START = struct.Struct("<8sQ")  # mark, bytes of the tree; a checksum follows
_SHORT, _LONG = 16, 32  # bytes of a checksum: of a head or a start, and of a whole record
HEAD_SIZE, _START_SIZE = _HEAD.size + _SHORT, _START.size + _SHORT
_PAGE = 4096  # records begin at multiples of 64 bytes, so that no start is in two pages


def head_bytes(digest: str) -> bytes:
    """The head of a journal of the model file with this digest."""
    start = _HEAD.pack(_MARK, _VERSION, bytes.fromhex(digest))
    return start + _sum(start, 0)


def digest_in(head: bytes) -> str | None:
    """The digest of the model file that a journal belongs to; None if it has no head yet."""
    return _HEAD.unpack_from(head)[2].hex() if head else None


def read_head(file: FileIO, path: Path) -> bytes:
    """The head of a journal; empty if it has none yet, and so no records."""
    file.seek(0)
    head = file.read(HEAD_SIZE) or b""
    if not any(head) and file.seek(0, os.SEEK_END) <= HEAD_SIZE:
        return b""
    if not head.startswith(_MARK[: len(head)]):
        raise FileError("is not a nearlabel journal: its first bytes are different", path)
    if len(head) < HEAD_SIZE:
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


def record_bytes(head: bytes, place: int, changes: tuple[Mapping[str, Any], ...]) -> bytes:
    """The bytes of a record to be written at `place`."""
    content = io.BytesIO()
    put_tree(content, {"changes": changes})
    tree = content.getvalue()
    start = _START.pack(_RECORD_MARK, len(tree))
    start += _sum(head, place, start)
    return start + tree + _sum(head, place, start, tree, size=_LONG)


def read_records(
    file: FileIO, path: Path, head: bytes, *, alone: bool = True
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The end and the changes of each record of a journal, except a torn last one.

    A reader is not `alone`: what looks torn may be a record that is being written.
    """
    place, size = HEAD_SIZE, file.seek(0, os.SEEK_END)
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
        is_last = not _holds_record(head, place, rest)
        if is_last and not alone:
            if _has_writer(file):
                return
            alone, size = True, file.seek(0, os.SEEK_END)  # no one can write while this is open
            continue
        if not is_last or not _is_torn(place, rest, length):
            raise FileError(f"is altered: the record at byte {place} is not as written", path)
        warnings.warn(
            f"{path}: the last change was not written completely and is dropped; it was never "
            "confirmed to its caller",
            stacklevel=4,
        )
        return


def _is_torn(place: int, rest: bytes, length: int | None) -> bool:
    """Whether the last bytes of a journal can be a record of this length torn by a crash."""
    if len(rest) < _START_SIZE:
        return True
    if length is None:  # the start of a record is written completely or not at all
        return not any(rest[:_START_SIZE])
    missing = _START_SIZE + length + _LONG - len(rest)
    pages = (rest[max(at, 0) : at + _PAGE] for at in range(-(place % _PAGE), len(rest), _PAGE))
    return missing > 0 or (missing == 0 and not all(map(any, pages)))


def _holds_record(head: bytes, place: int, rest: bytes) -> bool:
    """Whether a record begins later in `rest`: then the one before it had been complete."""
    at = rest.find(_RECORD_MARK, 1)
    while at > 0:
        if _length(head, place + at, rest[at : at + _START_SIZE]) is not None:
            return True
        at = rest.find(_RECORD_MARK, at + 1)
    return False


def _length(head: bytes, place: int, start: bytes) -> int | None:
    """The length of the tree in the record at `place`; None if no record starts there."""
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
    """Bytes of a file, fewer at its end."""
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


def _sum(head: bytes, place: int, *parts: bytes, size: int = _SHORT) -> bytes:
    """The checksum of bytes at a place of the journal with this head."""
    digest = hashlib.sha256(head + place.to_bytes(8, "little"))
    for part in parts:
        digest.update(part)
    return digest.digest()[:size]
