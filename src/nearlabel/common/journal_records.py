"""The bytes of a journal: its head, its records, and a last record torn by a crash.

A journal is a head of 64 bytes (mark, version, the digest of the model file that it belongs to,
checksum) and records one after the other: mark, length and their checksum in 32 bytes, a tree as
`write_tree` writes it, and the sha256 of all that. The checksums cover the head and the place of
the record, so that none can be omitted, moved, or taken from another journal unnoticed.

Each record is on disk before the next one is written. So a crash leaves at most the last one
incomplete: the file ends within it, or sectors that were never written read as zeros. It was not
acknowledged, and is dropped with a warning. Anything else is damage, and raises an error.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Mapping
from pathlib import Path

from nearlabel.common.arrays import Tree
from nearlabel.common.files import FileError, get_tree, put_tree

_MARK = b"\x89nljournal\r\n\x1a\n"  # see that of model files
_HEAD = struct.Struct("<14sH32s")  # mark, version, digest of the model file; a checksum follows
_RECORD_MARK = b"\x89change\n"
_START = struct.Struct("<8sQ")  # mark, bytes of the tree; a checksum follows
_SHORT, _LONG = 16, 32  # bytes of a checksum: of a head or a start, and of a whole record
HEAD_SIZE, _START_SIZE = _HEAD.size + _SHORT, _START.size + _SHORT


def head_bytes(digest: str) -> bytes:
    """The head of a journal of the model file with this digest."""
    start = _HEAD.pack(_MARK, 1, bytes.fromhex(digest))
    return start + _sum(start, 0)


def digest_in(head: bytes) -> str | None:
    """The digest of the model file that a journal belongs to; None if it has no head yet."""
    return _HEAD.unpack_from(head)[2].hex() if head else None


def checked_head(content: bytes, path: Path) -> bytes:
    """The head of a journal; empty if it has none yet, and so no records."""
    head = content[:HEAD_SIZE]
    if not any(head) and len(content) <= HEAD_SIZE:
        return b""
    if not head.startswith(_MARK[: len(head)]):
        raise FileError("is not a nearlabel journal: its first bytes are different", path)
    if len(head) < HEAD_SIZE:
        return b""
    version = _HEAD.unpack_from(head)[1]
    if version > 1:
        raise FileError(
            f"has version {version}; this nearlabel reads journals of version 1: update nearlabel "
            "to read it",
            path,
        )
    if head[_HEAD.size :] != _sum(head[: _HEAD.size], 0):
        raise FileError("is altered: the checksum of its head does not match", path)
    return head


def record_bytes(head: bytes, place: int, changes: tuple[Mapping[str, object], ...]) -> bytes:
    """The bytes of a record to be written at `place`."""
    content = io.BytesIO()
    put_tree(content, {"changes": changes})
    tree = content.getvalue()
    start = _START.pack(_RECORD_MARK, len(tree))
    start += _sum(head, place, start)
    return start + tree + _sum(head, place, start, tree, size=_LONG)


def whole_records(content: bytes, head: bytes, path: Path) -> tuple[list[Tree], int]:
    """The changes in a journal, oldest first, and the end of its last whole record.

    What follows is a torn record. Anything else that is not as written raises an error.
    """
    changes: list[Tree] = []
    place = min(HEAD_SIZE, len(content))
    while place < len(content):
        length = _length(head, place, content[place : place + _START_SIZE])
        stop = place + _START_SIZE + (length or 0)
        parts = content[place : place + _START_SIZE], content[place + _START_SIZE : stop]
        total = content[stop : stop + _LONG]
        if length is None or _sum(head, place, *parts, size=_LONG) != total:
            rest = content[place:]
            if _holds_record(head, place, rest) or not _is_torn(place, rest, length):
                raise FileError(f"is altered: the record at byte {place} is not as written", path)
            break
        changes += _changes(parts[1], path)
        place = stop + _LONG
    return changes, place


def _is_torn(place: int, rest: bytes, length: int | None) -> bool:
    """Whether the last bytes of a journal can be a record of this length torn by a crash."""
    if len(rest) < _START_SIZE:
        return True
    if length is None:  # the start of a record is written completely or not at all
        return not any(rest[:_START_SIZE])
    missing = _START_SIZE + length + _LONG - len(rest)
    # Sectors have 512 bytes. Records begin at multiples of 64, so that no start is in two sectors.
    starts = range(-(place % 512), len(rest), 512)
    sectors = (rest[max(start, 0) : start + 512] for start in starts)
    return missing > 0 or (missing == 0 and not all(map(any, sectors)))


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


def _changes(tree: bytes, path: Path) -> list[Tree]:
    changes = get_tree(io.BytesIO(tree), path).tree.get("changes")
    if not isinstance(changes, list) or not all(isinstance(change, dict) for change in changes):
        raise FileError("is damaged: a record has no changes", path)
    return changes


def _sum(head: bytes, place: int, *parts: bytes, size: int = _SHORT) -> bytes:
    """The checksum of bytes at a place of the journal with this head."""
    digest = hashlib.sha256(head + place.to_bytes(8, "little"))
    for part in parts:
        digest.update(part)
    return digest.digest()[:size]
