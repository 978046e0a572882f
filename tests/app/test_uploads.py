"""Untrusted uploads: only pictures and texts are kept, under names of our own."""

from __future__ import annotations

import hashlib
import struct
import zlib
from random import Random

import pytest
from collection_lives import picture
from drawn_pictures import file_of, files, png, quadrants
from fuzzing.limits import limits
from fuzzing.mutations import mutated_bytes

from nearlabel.app.uploads import shown_as

SECONDS = 5.0  # of computing, for one upload
RGB = quadrants(20, 30)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HTML = b"<!DOCTYPE html><script>alert(1)</script>"


def jpeg_of(width, height):
    """A JPEG file with a header that declares many pixels."""
    content = file_of(RGB, "JPEG")
    at = content.index(b"\xff\xc0") + 5
    return content[:at] + struct.pack(">HH", height, width) + content[at + 4 :]


def gif_of(width, height, frame=(1, 1)):
    """A GIF file with a large screen, or a large frame on it."""
    screen = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    image = b"," + struct.pack("<HHHHB", 0, 0, *frame, 0) + b"\x02\x02\x4c\x01\x00"
    return screen + image + b";"


def bmp_of(width, height):
    content = file_of(RGB, "BMP")
    return content[:18] + struct.pack("<ii", width, height) + content[26:]


def webp_of(width, height):
    """The header of an extended WebP file, and the frame of a small one."""
    small = file_of(RGB, "WEBP", lossless=True)[12:]
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + sizes + small
    return b"RIFF" + struct.pack("<I", len(body)) + body


def with_text_of(size):
    """A PNG file with a compressed comment that is very long."""
    comment = b"Comment\0\0" + zlib.compress(bytes(size), 9)
    return png(2, 2, 8, 0, [b"\0\0", b"\0\0"], (b"zTXt", comment))


BOMBS = {
    "PNG": png(100_000, 100_000, 8, 2, [bytes(1000)]),
    "PNG in one row": png(2**31 - 1, 1, 1, 0, [b""]),
    "GIF": gif_of(65_535, 65_535),
    "JPEG": jpeg_of(65_500, 65_500),
    "BMP": bmp_of(100_000, 100_000),
    "BMP upside down": bmp_of(100_000, -100_000),
    "PPM": b"P6 100000 100000 255\n" + bytes(1000),
}
NO_PICTURES = {
    "nothing": b"",
    "SVG": SVG,
    "SVG with a declaration": b'<?xml version="1.0"?>\n' + SVG,
    "HTML": HTML,
    "a text": b"just a text",
    "PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "ZIP": b"PK\x03\x04" + bytes(100),
    "ELF": b"\x7fELF\x02\x01\x01" + bytes(100),
    "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "WMF": b"\xd7\xcd\xc6\x9a" + bytes(40),
    "ICO": b"\0\0\x01\0\x01\0" + bytes(40),
    "zeros": bytes(1000),
}
DISGUISED = {
    "HTML that begins as a JPEG": b"\xff\xd8\xff" + HTML,
    "HTML that begins as a GIF": b"GIF89a" + HTML,
    "HTML that begins as a PNG": b"\x89PNG\r\n\x1a\n" + HTML,
    "HTML that begins as a bitmap": b"BM" + HTML,
    "an empty PPM": b"P6 0 0 255\n",
    "a GIF whose frame is larger than itself": gif_of(1, 1, (65_535, 65_535)),
    "a small WebP in a large one": webp_of(16_000, 16_000),
}


@pytest.fixture(scope="module")
def client(module_serving):
    return module_serving("pictures")


@pytest.fixture(scope="module")
def texts(module_serving):
    return module_serving("texts")


def refused(client, content, name="new.jpg", kind="image/jpeg"):
    """How an upload is refused, as a query and as a new item; nothing of it may remain."""
    before = client.collection.last_change()
    request = {"files": {"file": (name, content, kind)}}
    with limits(False, SECONDS):
        answers = {client.code("POST", f"/api/{what}", **request) for what in ("items", "tag")}
    assert client.collection.last_change() == before
    assert not client.uploads.exists() or [*client.uploads.iterdir()] == []
    (answer,) = answers
    return answer


@pytest.mark.parametrize("name", NO_PICTURES)
def test_not_a_picture(client, name):
    assert refused(client, NO_PICTURES[name]) == (415, "unsupported")


@pytest.mark.parametrize("name", DISGUISED)
def test_files_that_only_begin_like_a_picture(client, name):
    assert refused(client, DISGUISED[name]) == (415, "unsupported")


@pytest.mark.parametrize("name", BOMBS)
def test_pictures_that_would_exhaust_memory(client, name):
    assert refused(client, BOMBS[name]) == (413, "too_large")


def test_long_texts_within_pictures_are_not_unpacked(client):
    assert refused(client, with_text_of(2**24)) == (415, "unsupported")


@pytest.mark.parametrize("name", files())
def test_truncated_pictures(client, name):
    content = files()[name]
    for end in (12, len(content) // 3):
        assert refused(client, content[:end]) in {(415, "unsupported"), (413, "too_large")}


@pytest.mark.parametrize("name", files())
def test_every_format_is_kept_as_it_is(client, name):
    content = files()[name]
    answer = client.post("/api/items", files={"file": ("x.html", content, "text/html")})
    assert answer.status_code == 201
    (path,) = client.uploads.iterdir()
    assert path.read_bytes() == content
    assert path.stem == hashlib.sha256(content).hexdigest()
    assert path.suffix in {
        *(".jpg", ".png", ".gif", ".webp", ".bmp", ".ppm", ".jp2", ".tiff", ".avif", ".heic"),
    }
    shown = client.get(answer.json()["item"]["thumbnail"])
    assert shown.headers["content-type"] == "image/jpeg"
    assert shown.content.startswith(b"\xff\xd8\xff")
    client.delete(f"/api/items/{answer.json()['id']}")
    assert not path.exists()


def test_markup_behind_the_pixels_is_not_shown(serving):
    client = serving("pictures")
    content = file_of(RGB, "JPEG", comment=HTML) + HTML
    new = client.post("/api/items", content=content, headers={"content-type": "image/svg+xml"})
    assert new.status_code == 201
    for address in ("/thumbnails/11", "/previews/11"):
        answer = client.get(address)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "image/jpeg"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert b"script" not in answer.content


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("beach.jpg", "beach.jpg"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\windows\\system.ini", "system.ini"),
        ("C:\\photos\\beach.jpg", "beach.jpg"),
        ("/", ""),
        ("..", ".."),
        ("a/..", ".."),
        ("", ""),
        ("a\0b.jpg", "a?b.jpg"),
        ("a\r\nb\x1b[2J.jpg", "a??b?[2J.jpg"),
        ("\u202egpj.exe", "?gpj.exe"),
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
        ("été 日本.jpg", "été 日本.jpg"),
        ("\ud800.jpg", "?.jpg"),
        ("x" * 10_000 + ".jpg", "x" * 196 + ".jpg"),
        (" . ", "."),
    ],
)
def test_client_file_names_are_only_displayed(given, shown):
    assert shown_as(given) == shown


@pytest.mark.parametrize(
    "name",
    [
        "../../../outside.png",
        "..\\..\\outside.png",
        "/etc/outside.png",
        "..",
        "a\0.png",
        "a\x1b[2J\r\n.png",
        "x" * 1000,
        "con.png",
        "%2e%2e%2foutside.png",
        'a"; filename="outside.png',
        "日本.png",
    ],
)
def test_names_of_uploads_never_become_paths(client, name):
    content, top = picture(50), client.uploads.parent
    before = {*top.rglob("*")}
    item = client.post("/api/items", files={"file": (name, content)}).json()["item"]
    new = {path for path in top.rglob("*") if path.is_file()} - before
    digest = hashlib.sha256(content).hexdigest()
    assert new - {*client.collection.path.iterdir()} == {client.uploads / f"{digest}.png"}
    assert item["name"].isprintable()
    assert 0 < len(item["name"]) <= 200
    assert item["files"] == [f"{digest}.png"]
    asked = client.post("/api/tag", files={"file": (name, picture(51))}).json()
    assert asked["name"].isprintable()
    assert len(asked["name"]) <= 200
    client.delete(f"/api/items/{item['id']}")


def test_a_name_that_is_far_too_long_is_refused(client):
    assert refused(client, picture(50), "x" * 10_000) == (400, "bad_request")


@pytest.mark.parametrize(
    "content", [b"", b" \n\t ", b"\xff\xfe\x00", b"a\0b", "é".encode("latin-1"), picture(1)]
)
def test_not_a_text(texts, content):
    for what in ("items", "tag"):
        request = {"files": {"file": ("a.txt", content)}}
        assert texts.code("POST", f"/api/{what}", **request) == (415, "unsupported")
    assert not texts.uploads.exists()


def test_a_text_with_markup_is_kept_and_never_shown_as_a_page(texts):
    text = "\ufeff" + HTML.decode()
    item = texts.post("/api/items", json={"name": "x.html", "text": text}).json()["item"]
    (path,) = texts.uploads.iterdir()
    assert (path.suffix, path.read_text(encoding="utf-8")) == (".txt", text)
    assert item["text"] == HTML.decode()
    texts.delete(f"/api/items/{item['id']}")
    assert [*texts.uploads.iterdir()] == []
    texts.uploads.rmdir()


def test_an_upload_folder_that_cannot_be_written(serving, tmp_path):
    client = serving("pictures")
    client.uploads.write_text("a file")
    request = {"files": {"file": ("new.png", picture(50))}}
    assert client.code("POST", "/api/items", **request) == (500, "internal")
    assert len(client.collection.ids()) == 10


def test_a_file_that_is_there_already_is_replaced(serving):
    client, content = serving("pictures"), picture(50)
    client.uploads.mkdir()
    path = client.uploads / f"{hashlib.sha256(content).hexdigest()}.png"
    path.write_bytes(b"half of an upload that was interrupted")
    assert client.post("/api/items", files={"file": ("a", content)}).status_code == 201
    assert path.read_bytes() == content


def test_a_link_in_place_of_an_upload_is_not_followed(serving, tmp_path):
    client, content = serving("pictures"), picture(50)
    client.uploads.mkdir()
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    path = client.uploads / f"{hashlib.sha256(content).hexdigest()}.png"
    path.symlink_to(outside)
    assert client.post("/api/items", files={"file": ("a", content)}).status_code == 201
    assert outside.read_text() == "untouched"
    assert path.read_bytes() == content


# Small pictures.


def test_pictures_are_shown_in_two_sizes_and_kept_by_browsers(client):
    item = client.get("/api/items/1").json()
    for address in (item["thumbnail"], item["thumbnail"].replace("thumbnails", "previews")):
        answer = client.get(address)
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        again = client.get(address, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    other = client.get("/thumbnails/1?0123456789abcdef")
    assert other.headers["cache-control"] == "private, no-cache"


def test_pictures_that_cannot_be_shown(serving, tmp_path):
    client = serving("pictures")
    (tmp_path / "pictures" / "0.png").unlink()
    (tmp_path / "pictures" / "1.png").write_bytes(picture(77))
    for address in ("/thumbnails/1", "/previews/1", "/previews/2", "/thumbnails/99"):
        assert client.code("GET", address) == (404, "not_found")
    for id in ("0", "x", "-1", "9223372036854775808", "1.jpg"):
        assert client.code("GET", f"/thumbnails/{id}") == (422, "invalid")
    for id in ("..%2f1", "%2e%2e/1"):
        assert client.code("GET", f"/thumbnails/{id}")[0] in (404, 422)


def test_vectors_have_no_pictures(serving):
    client = serving("vectors")
    for address in ("/thumbnails/1", "/previews/1"):
        assert client.code("GET", address) == (404, "not_found")


# Random uploads.


def campaign(client, runs, seed):
    """Send damaged pictures; each is answered, or refused with one sentence."""
    random, seeds, statuses = Random(seed), [*files().values()], set()
    for _ in range(runs):
        content = mutated_bytes(random.choice(seeds), b"", random)
        with limits(False, SECONDS):
            answer = client.post(
                "/api/tag", content=content, headers={"content-type": "image/jpeg"}
            )
        assert answer.status_code in (200, 413, 415), content
        statuses.add(answer.status_code)
    return statuses


def test_altered_pictures(client):
    assert campaign(client, 60, seed=1) >= {200, 415}


@pytest.mark.slow
def test_many_altered_pictures(client):
    assert campaign(client, 5000, seed=0) == {200, 413, 415}
