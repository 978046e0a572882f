"""The wire format of protocol buffers, as far as network files need it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | float | memoryview
_WORD = 2**64


def fields(message: Value | bytes) -> Iterator[tuple[int, Value]]:
    """The fields of a message in order: field numbers, each with a value.

    A value is a signed integer, a float, or the bytes of a string, an array or another message. A
    truncated message, or one with a length beyond its end, is a ValueError.
    """
    if isinstance(message, int | float):
        raise ValueError("a field has a number instead of a message")
    view, place = memoryview(message), 0
    while place < len(view):
        key, place = _varint(view, place)
        number, kind = key >> 3, key & 7
        if kind == 0:
            integer, place = _varint(view, place)
            yield number, integer - _WORD if integer >> 63 else integer
            continue
        size, place = _varint(view, place) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), place)
        if size < 0 or size > len(view) - place:
            raise ValueError("a message is truncated, or not a protocol buffer")
        content = view[place : place + size]
        place += size
        if kind == 2:
            yield number, content
        else:
            yield number, struct.unpack("<d" if kind == 1 else "<f", content)[0]


def _varint(view: memoryview, place: int) -> tuple[int, int]:
    """An integer of up to ten bytes, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(view):
            raise ValueError("a number is truncated")
        byte = view[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value % _WORD, place
    raise ValueError("a number is too long")


def text(value: Value) -> str:
    """The string of a field."""
    if isinstance(value, memoryview):
        return bytes(value).decode()
    raise ValueError("a field has a number instead of a string")


def field(number: int, value: int | str | bytes) -> bytes:
    """A field as bytes: an integer, a string, or the bytes of another message."""
    if isinstance(value, int):
        return _varint_bytes(number << 3) + _varint_bytes(value % _WORD)
    content = value.encode() if isinstance(value, str) else value
    return _varint_bytes(number << 3 | 2) + _varint_bytes(len(content)) + content


def float_field(number: int, value: float) -> bytes:
    """A field with a 32-bit float as bytes."""
    return _varint_bytes(number << 3 | 5) + struct.pack("<f", value)


def _varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
