"""Keywords in IPTC's older format (IIM), as stored in the Photoshop blocks of pictures."""

from __future__ import annotations

import struct
from collections.abc import Iterator


def iptc_keywords(content: bytes) -> tuple[str, ...]:
    """The keywords of IIM records; a damaged end is ignored, as other tools do.

    Without a declared character set, text is decoded as UTF-8 if valid, and as Windows-1252
    otherwise.
    """
    is_utf_8 = False
    values: list[bytes] = []
    for data_set, value in _data_sets(content):
        if data_set == (1, 90):  # the character set
            is_utf_8 = value == b"\x1b%G"  # the escape sequence of UTF-8
        elif data_set == (2, 25) and len(values) < 10_000:
            values.append(value)
    return tuple(text for value in values if (text := _text(value, is_utf_8)))


def _data_sets(content: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    at = 0
    while at + 5 <= len(content) and content[at] == 0x1C:  # the mark of a record
        _, record, number, size = struct.unpack_from(">BBBH", content, at)
        at += 5
        if size & 0x8000:  # the size takes this many bytes
            digits = size & 0x7FFF
            size = int.from_bytes(content[at : at + digits], "big") if digits <= 8 else 2**62
            at += digits
        if at + size > len(content):
            return
        yield (record, number), content[at : at + size]
        at += size


def _text(value: bytes, is_utf_8: bool) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("utf-8" if is_utf_8 else "cp1252", "replace")
    return text.rstrip("\0").strip()


def iptc_of_photoshop(content: bytes) -> bytes:
    """The IIM records in Photoshop resources; empty if there are none."""
    at = 0
    while content[at : at + 4] == b"8BIM" and at + 7 <= len(content):
        number, name = struct.unpack_from(">HB", content, at + 4)
        at += 6 + name + 1 + (name + 1) % 2
        if at + 4 > len(content):
            break
        (size,) = struct.unpack_from(">I", content, at)
        at += 4
        if number == 0x0404:  # IPTC
            return content[at : at + size]
        at += size + size % 2
    return b""
