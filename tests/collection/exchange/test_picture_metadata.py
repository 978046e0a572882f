from __future__ import annotations

import struct
import zlib
from random import Random

import pytest
from drawn_pictures import file_of, png, quadrants

from nearlabel.collection.exchange.iptc_keywords import iptc_keywords
from nearlabel.collection.exchange.keywords import Keywords
from nearlabel.collection.exchange.picture_metadata import picture_keywords
from nearlabel.collection.exchange.xmp_documents import XmpDocument

XMP = XmpDocument().with_tags(["Places|Rome"])


def data_set(record, number, value, *, is_long=False):
    size = struct.pack(">HI", 0x8004, len(value)) if is_long else struct.pack(">H", len(value))
    return struct.pack(">BBB", 0x1C, record, number) + size + value


IPTC = data_set(2, 5, b"title") + data_set(2, 25, b"sea") + data_set(2, 25, b"2024", is_long=True)


def resource(number, content, name=b""):
    padded = bytes([len(name)]) + name + bytes((len(name) + 1) % 2)
    return (
        struct.pack(">4sH", b"8BIM", number)
        + padded
        + struct.pack(">I", len(content))
        + content
        + bytes(len(content) % 2)
    )


PHOTOSHOP = (
    resource(0x03ED, b"odd")
    + resource(0x0404, IPTC, b"name")
    + resource(0x0425, b"16 more bytes...")
)


def jpeg(*segments):
    plain = file_of(quadrants(), "JPEG")
    more = b"".join(
        b"\xff" + bytes([mark]) + struct.pack(">H", len(one) + 2) + one for mark, one in segments
    )
    return plain[:2] + more + plain[2:]


def tiff(order, *tags):
    head = struct.pack(f"{order}2sHIH", b"II" if order == "<" else b"MM", 42, 8, len(tags))
    entries, beyond, end = b"", b"", 8 + 2 + 12 * len(tags) + 4
    for tag, kind, content in tags:
        count = len(content) // (4 if kind == 4 else 1)
        entries += struct.pack(f"{order}HHII", tag, kind, count, end + len(beyond))
        beyond += content
    return head + entries + bytes(4) + beyond


def as_numbers(content, order):
    padded = content + bytes(-len(content) % 4)
    numbers = struct.unpack(f"<{len(padded) // 4}I", padded)
    return struct.pack(f"{order}{len(numbers)}I", *numbers)


def profile(content):
    return b"\niptc\n%8d\n%s\n" % (len(content), content.hex().encode())


PICTURES = {
    "JPEG": jpeg(
        (0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP), (0xED, b"Photoshop 3.0\0" + PHOTOSHOP)
    ),
    "JPEG, in two parts": jpeg(
        (0xE1, b"Exif\0\0MM"),
        (0xED, b"Photoshop 3.0\0" + PHOTOSHOP[:30]),
        (0xED, b"Photoshop 3.0\0" + PHOTOSHOP[30:]),
        (0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP + b"\0"),
    ),
    "TIFF": tiff("<", (700, 1, XMP), (33723, 7, IPTC)),
    "TIFF of Motorola": tiff(">", (700, 7, XMP), (34377, 1, PHOTOSHOP)),
    "TIFF with numbers": tiff("<", (700, 1, XMP), (33723, 4, as_numbers(IPTC, "<"))),
    "TIFF with swapped numbers": tiff(">", (700, 1, XMP), (33723, 4, as_numbers(IPTC, ">"))),
    "PNG": png(
        1,
        1,
        8,
        2,
        [b"abc"],
        (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP),
        (b"tEXt", b"Raw profile type iptc\0" + profile(PHOTOSHOP)),
    ),
    "PNG, packed": png(
        *(1, 1, 8, 2, [b"abc"]),
        (b"iTXt", b"XML:com.adobe.xmp\0\1\0de\0Titel\0" + zlib.compress(XMP)),
        (b"zTXt", b"Raw profile type iptc\0\0" + zlib.compress(profile(IPTC))),
    ),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_keywords_inside_of_pictures(tmp_path, kind):
    picture = tmp_path / "a"
    picture.write_bytes(PICTURES[kind])
    found = picture_keywords(picture)
    assert found.iptc == ("sea", "2024")
    assert found.tags() == ["Places|Rome", "sea", "2024"]
    assert picture.read_bytes() == PICTURES[kind]


def test_character_sets():
    utf_8 = data_set(1, 90, b"\x1b%G")
    assert iptc_keywords(data_set(2, 25, "Zürich".encode("latin-1"))) == ("Zürich",)
    assert iptc_keywords(data_set(2, 25, "Zürich".encode())) == ("Zürich",)
    assert iptc_keywords(utf_8 + data_set(2, 25, b"\xfc")) == ("\ufffd",)
    assert iptc_keywords(data_set(2, 25, b" x\0") + b"\x1c\2\x19\xff\xffcut") == ("x",)
    assert iptc_keywords(b"\x1c\2\x19\xff\xff" + b"\xff" * 40) == ()


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xd8\xff", b"RIFF", b"II*\0\xff\xff\xff\xff", b"text"]
)
def test_other_files_have_none(tmp_path, content):
    picture = tmp_path / "a"
    picture.write_bytes(content)
    assert picture_keywords(picture) == Keywords()


@pytest.mark.parametrize("kind", PICTURES)
def test_damaged_pictures_have_fewer_keywords_and_no_error(tmp_path, kind):
    random, picture = Random(kind), tmp_path / "a"
    content = PICTURES[kind]
    for _ in range(60):
        changed = bytearray(
            content[: random.randrange(len(content))] if random.random() < 0.3 else content
        )
        for _ in range(random.randrange(1, 9)):
            if changed:
                changed[random.randrange(len(changed))] = random.choice([0, 1, 0x1C, 0x7F, 0xFF])
        picture.write_bytes(changed)
        assert len(picture_keywords(picture).all_tags()) <= 12


def test_large_blocks_are_not_read(tmp_path):
    """The same block a thousand times: only part of it is read."""
    picture = tmp_path / "a"
    block = XMP + b" " * 2**22
    picture.write_bytes(tiff("<", (700, 1, block)))
    head = bytearray(picture.read_bytes())
    entry = bytes(head[10:22])
    shifted = struct.unpack("<HHII", entry)
    many = struct.pack("<HHII", *shifted[:3], shifted[3] + 12 * 999) * 1000
    picture.write_bytes(struct.pack("<2sHIH", b"II", 42, 8, 1000) + many + bytes(4) + block)
    assert len(picture_keywords(picture).paths) == 3  # of 16 MiB


def test_many_bytes_before_a_segment(tmp_path):
    picture = tmp_path / "a"
    picture.write_bytes(PICTURES["JPEG"].replace(b"\xff\xe1", b"\xff" * 900 + b"\xe1", 1))
    assert picture_keywords(picture).tags() == ["Places|Rome", "sea", "2024"]
    picture.write_bytes(b"\xff" * 2**20)
    assert picture_keywords(picture) == Keywords()
