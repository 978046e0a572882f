"""The wire format of protocol buffers, as far as network files need it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MOST_SHIFT = 63  # of a varint: ten bytes
_WORD = 2**64


def fields(message: bytes | memoryview) -> Iterator[tuple[int, int | float | memoryview]]:
    """The fields of a message in order: field numbers, each with a value.

    A value is an integer, a float, or the bytes of a string, an array or another message. A
    truncated message, or one with a length beyond its end, is a ValueError.
    """
    view, place = memoryview(message), 0
    while place < len(view):
        key, place = _varint(view, place)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, place = _varint(view, place)
            yield number, value
            continue
        size, place = _varint(view, place) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), place)
        if size < 0 or size > len(view) - place:
            raise ValueError("a message is truncated, or not a protocol buffer")
        content = view[place : place + size]
        place += size
        yield (
            number,
            content if kind == 2 else struct.unpack("<d" if kind == 1 else "<f", content)[0],
        )


def _varint(view: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _MOST_SHIFT + 1, 7):
        if place >= len(view):
            raise ValueError("a number is truncated")
        byte = view[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value % _WORD, place
    raise ValueError("a number is too long")


def signed(value: int) -> int:
    """A varint as a signed 64-bit integer."""
    return value - _WORD if value >> 63 else value


def text(value: int | float | memoryview) -> str:
    """The string of a field; ValueError if it is not one."""
    if not isinstance(value, memoryview):
        raise ValueError("a field has a number instead of a string")
    return bytes(value).decode()


def part(value: int | float | memoryview) -> memoryview:
    """The bytes of a field; ValueError if it has none."""
    if not isinstance(value, memoryview):
        raise ValueError("a field has a number instead of a message")
    return value


def whole(value: int | float | memoryview) -> int:
    """The integer of a field; ValueError if it is not one."""
    if not isinstance(value, int):
        raise ValueError("a field does not have an integer")
    return signed(value)


def field(number: int, value: int | str | bytes) -> bytes:
    """A field as bytes: an integer, a string, or the bytes of another message."""
    if isinstance(value, int):
        return _number(number << 3) + _number(value % _WORD)
    content = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | 2) + _number(len(content)) + content


def float_field(number: int, value: float) -> bytes:
    """A field with a 32-bit float as bytes."""
    return _number(number << 3 | 5) + struct.pack("<f", value)


def _number(value: int) -> bytes:
    """A varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
