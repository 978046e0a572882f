"""Keywords inside pictures: the XMP and IPTC blocks of JPEG, TIFF, PNG and WebP files.

This includes RAW photos that are TIFF files. Only these blocks are read, never the pixels, and
nothing is ever written. Damaged files and other formats yield no keywords.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from nearlabel.collection.exchange.iptc_keywords import iptc_keywords, iptc_of_photoshop
from nearlabel.collection.exchange.keywords import Keywords
from nearlabel.collection.exchange.xmp_documents import XmpDocument
from nearlabel.collection.exchange.xmp_parser import MOST_BYTES

_JPEG_XMP, _JPEG_PHOTOSHOP = b"http://ns.adobe.com/xap/1.0/\0", b"Photoshop 3.0\0"
_TIFF_XMP, _TIFF_IPTC, _TIFF_PHOTOSHOP = 700, 33723, 34377
_MOST_BLOCKS, _MOST_PARTS = 100, 10_000  # keyword blocks, and blocks in all

Blocks = Iterator[tuple[str, bytes]]  # "xmp", "iptc" or "photoshop", and the content


def picture_keywords(path: str | os.PathLike[str]) -> Keywords:
    """The keywords inside a picture."""
    keywords, photoshop, left = Keywords(), b"", MOST_BYTES
    if not Path(path).is_file():  # a pipe would block
        return keywords
    with Path(path).open("rb") as file:
        for kind, content in islice(_blocks(file), _MOST_BLOCKS):
            left -= len(content)
            if left < 0:
                break
            if kind == "photoshop":  # long content is split over several blocks
                photoshop += content
            elif kind == "iptc":
                keywords += Keywords(iptc=iptc_keywords(content))
            else:
                with suppress(ValueError):
                    keywords += XmpDocument(content.rstrip(b"\0")).keywords()
    return keywords + Keywords(iptc=iptc_keywords(iptc_of_photoshop(photoshop)))


def _blocks(file: BinaryIO) -> Blocks:
    """The blocks of a file, up to the first damage."""
    head = file.read(12)
    file.seek(0)
    with suppress(struct.error, EOFError, zlib.error, OverflowError, ValueError):
        if head[:3] == b"\xff\xd8\xff":
            yield from _jpeg(file)
        elif head[:8] == b"\x89PNG\r\n\x1a\n":
            yield from _png(file)
        elif head[:4] == b"RIFF" and head[8:] == b"WEBP":
            yield from _webp(file)
        elif head[:4] in (b"II*\0", b"MM\0*"):
            yield from _tiff(file, "<" if head[:1] == b"I" else ">")


def _exactly(file: BinaryIO, size: int) -> bytes:
    """Read exactly `size` bytes; EOFError if there are fewer, or if no block can be that large."""
    content = file.read(size) if size <= MOST_BYTES else b""
    if len(content) < size:
        raise EOFError
    return content


def _jpeg(file: BinaryIO) -> Blocks:
    file.seek(2)
    for _ in range(_MOST_PARTS):
        mark = _exactly(file, 1)
        for _ in range(1000):  # bytes that may fill the gap before a segment
            if mark != b"\xff":
                break
            mark = _exactly(file, 1)
        if mark in b"\xda\xd9":  # start of the pixels, or end of the picture
            return
        (size,) = struct.unpack(">H", _exactly(file, 2))
        content = _exactly(file, max(size - 2, 0))
        if mark == b"\xe1" and content.startswith(_JPEG_XMP):
            yield "xmp", content[len(_JPEG_XMP) :]
        elif mark == b"\xed" and content.startswith(_JPEG_PHOTOSHOP):
            yield "photoshop", content[len(_JPEG_PHOTOSHOP) :]
        if _exactly(file, 1) != b"\xff":
            return


def _png(file: BinaryIO) -> Blocks:
    file.seek(8)
    for _ in range(_MOST_PARTS):
        size, kind = struct.unpack(">I4s", _exactly(file, 8))
        if kind == b"IEND":
            return
        if kind not in (b"iTXt", b"zTXt", b"tEXt"):
            file.seek(size + 4, os.SEEK_CUR)
            continue
        name, _, content = _exactly(file, size).partition(b"\0")
        file.seek(4, os.SEEK_CUR)
        if kind == b"iTXt" and name == b"XML:com.adobe.xmp":
            *_, text = content[2:].split(b"\0", 2)
            yield "xmp", _inflated(text) if content[:1] == b"\1" else text
        elif kind != b"iTXt" and name == b"Raw profile type iptc":
            yield from _raw_profile(_inflated(content[1:]) if kind == b"zTXt" else content)


def _inflated(content: bytes) -> bytes:
    return zlib.decompressobj().decompress(content, MOST_BYTES)


def _raw_profile(content: bytes) -> Blocks:
    """A profile as ImageMagick stores it: its name, its size and hexadecimal digits, on lines."""
    *_, digits = content.split(b"\n", 3)
    profile = bytes.fromhex(digits.decode("ascii"))
    yield "photoshop" if profile.startswith(b"8BIM") else "iptc", profile


def _webp(file: BinaryIO) -> Blocks:
    file.seek(12)
    for _ in range(_MOST_PARTS):
        kind, size = struct.unpack("<4sI", _exactly(file, 8))
        if kind == b"XMP ":
            yield "xmp", _exactly(file, size)
            return
        file.seek(size + size % 2, os.SEEK_CUR)


def _tiff(file: BinaryIO, order: str) -> Blocks:
    """The blocks of the first picture of a file."""
    file.seek(4)
    file.seek(*struct.unpack(f"{order}I", _exactly(file, 4)))
    (count,) = struct.unpack(f"{order}H", _exactly(file, 2))
    entries = _exactly(file, 12 * count)
    for tag, kind, number, place in struct.iter_unpack(f"{order}HHII", entries):
        if tag not in (_TIFF_XMP, _TIFF_IPTC, _TIFF_PHOTOSHOP):
            continue
        # Bytes per value, by type.
        size = {1: 1, 2: 1, 3: 2, 4: 4, 6: 1, 7: 1}.get(kind, 0) * number
        if size <= 4:  # stored inline: no block is that small
            continue
        file.seek(place)
        content = _exactly(file, size)
        if tag == _TIFF_IPTC and content[:1] != b"\x1c":
            content = _swapped(content)
        yield {_TIFF_XMP: "xmp", _TIFF_IPTC: "iptc"}.get(tag, "photoshop"), content


def _swapped(content: bytes) -> bytes:
    """Byte-swapped 32-bit words: some programs write records as such words."""
    return b"".join(content[at : at + 4][::-1] for at in range(0, len(content), 4))
