import io
import os
import socket
import struct
import sys

import numpy as np
import pytest
from drawn_pictures import COLORS, TURNED_HEIC, dng, exif, file_of, files, png, quadrants

from nearlabel.features import UnreadablePicture
from nearlabel.features import pictures as module
from nearlabel.features.pictures import upright_rgb

Image = pytest.importorskip("PIL.Image")


def pixels(source, **options):
    image = upright_rgb(source, **options)
    assert image.mode == "RGB"
    return np.asarray(image)


def close(found, expected, within=0):
    assert found.shape == expected.shape
    assert np.abs(found.astype(int) - expected).max() <= within


def centers(found):
    """The colors in the middles of the four quadrants: codecs blur what is between these."""
    height, width, _ = found.shape
    return [
        found[y, x].tolist() for y in (height // 4, -height // 4) for x in (width // 4, -width // 4)
    ]


def assert_upright(found, within):
    assert np.abs(np.subtract(centers(found), COLORS)).max() <= within


# The pixels in a file of each orientation; the standard defines in which corner its first row
# and first column are displayed.
STORED = {
    1: lambda upright: upright,
    2: lambda upright: upright[:, ::-1],
    3: lambda upright: upright[::-1, ::-1],
    4: lambda upright: upright[::-1],
    5: lambda upright: upright.swapaxes(0, 1),
    6: lambda upright: upright.swapaxes(0, 1)[::-1],
    7: lambda upright: upright.swapaxes(0, 1)[::-1, ::-1],
    8: lambda upright: upright.swapaxes(0, 1)[:, ::-1],
}
FORMATS = {"PNG": {}, "TIFF": {}, "WEBP": {"lossless": True}, "JPEG": {"quality": 95}, "AVIF": {}}


@pytest.mark.parametrize("turned", STORED)
@pytest.mark.parametrize("format", FORMATS)
def test_turned_pictures(format, turned):
    upright = quadrants()
    stored = np.ascontiguousarray(STORED[turned](upright))
    content = file_of(stored, format, exif=exif(turned), **FORMATS[format])
    found = pixels(content)
    assert found.shape == upright.shape
    assert_upright(found, 0 if format in ("PNG", "TIFF", "WEBP") else 12)


@pytest.mark.parametrize("format", ["PNG", "JPEG", "TIFF"])
def test_grey(format):
    grey = np.arange(0, 240, 5, dtype=np.uint8).repeat(8).reshape(16, 24)
    expected = np.stack([grey] * 3, axis=-1)
    close(pixels(file_of(grey, format)), expected, 4 if format == "JPEG" else 0)


def test_black_and_white():
    marks = np.eye(9, dtype=bool)
    close(pixels(file_of(marks, "PNG")), np.stack([marks * 255] * 3, axis=-1))


@pytest.mark.parametrize("format", ["JPEG", "TIFF"])
def test_cmyk(format):
    """Adobe's programs store ink in JPEG files the other way round, in TIFF files as it is."""
    inks = ((0, 0, 0, 0), (255, 0, 0, 0), (0, 255, 255, 0), (0, 0, 0, 128))
    expected = [[255, 255, 255], [0, 255, 255], [255, 0, 0], [127, 127, 127]]
    image = Image.frombytes("CMYK", (48, 32), quadrants(colors=inks).tobytes())
    content = file_of(image, format)
    if format == "JPEG":
        assert b"Adobe" in content
    assert np.abs(np.subtract(centers(pixels(content)), expected)).max() <= 3


def test_16_bits():
    grey = np.linspace(0, 65535, 600).astype(np.uint16).reshape(20, 30)
    expected = np.stack([np.rint(grey / 257)] * 3, axis=-1)
    for content in (file_of(grey, "PNG"), file_of(grey, "TIFF")):
        close(pixels(content), expected)
    rows = [grey[row, :27].astype(">u2").tobytes() for row in range(20)]
    colors = np.rint(grey[:, :27].reshape(20, 9, 3) / 257)
    close(pixels(png(9, 20, 16, 2, rows)), colors, 1)  # Pillow keeps the upper eight bits


def test_16_bits_of_a_pgm():
    grey = np.array([[0, 257, 65535]], ">u2")
    close(pixels(b"P5 3 1 65535\n" + grey.tobytes())[..., 0], np.array([[0, 1, 255]]))


def test_palettes():
    palette = (b"PLTE", bytes(range(10, 19)))
    rows = [b"\x00\x01\x02"]
    expected = np.array([[[10, 11, 12], [13, 14, 15], [16, 17, 18]]])
    close(pixels(png(3, 1, 8, 3, rows, palette)), expected)
    expected[0, 1] = 255  # transparent: white
    close(pixels(png(3, 1, 8, 3, rows, palette, (b"tRNS", b"\xff\x00"))), expected)
    expected[0, 0] = np.rint(np.array([10, 11, 12]) * 0.2 + 255 * 0.8)
    expected[0, 1] = [13, 14, 15]
    close(pixels(png(3, 1, 8, 3, rows, palette, (b"tRNS", b"\x33"))), expected, 1)


def test_transparent_parts_are_white():
    alpha = (0, 51, 204, 255)
    clear = quadrants(colors=[(*color, a) for color, a in zip(COLORS, alpha, strict=True)])
    expected = [
        np.rint(np.array(c) * a / 255 + 255 - a) for c, a in zip(COLORS, alpha, strict=True)
    ]
    for format in ("PNG", "WEBP", "TIFF"):
        lossless = {"lossless": True} if format == "WEBP" else {}
        assert (
            np.abs(np.subtract(centers(pixels(file_of(clear, format, **lossless))), expected)).max()
            <= 1
        )
    grey = png(2, 1, 8, 4, [b"\x50\x00\x50\xff"])
    close(pixels(grey), np.array([[[255] * 3, [80] * 3]]))
    one_color = png(2, 1, 8, 2, [b"\x01\x02\x03\x04\x05\x06"], (b"tRNS", b"\0\1\0\2\0\3"))
    close(pixels(one_color), np.array([[[255] * 3, [4, 5, 6]]]))


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_picture_of_several(format):
    frames = [Image.fromarray(quadrants(colors=COLORS[at:] + COLORS[:at])) for at in range(3)]
    options = {"lossless": True} if format == "WEBP" else {}
    content = file_of(frames[0], format, save_all=True, append_images=frames[1:], **options)
    assert Image.open(io.BytesIO(content)).n_frames == 3
    assert_upright(pixels(content), 0)


def test_heic():
    pytest.importorskip("pi_heif")
    found = pixels(TURNED_HEIC)
    assert found.shape == (48, 32, 3)
    stored = [COLORS[at] for at in (2, 0, 3, 1)]
    assert np.abs(np.subtract(centers(found), stored)).max() <= 2


@pytest.mark.parametrize("name", ["", ".dng"])
def test_raw(name, tmp_path):
    """By its name or by its tags; the camera's brightness is raised, the order of colors stays."""
    pytest.importorskip("rawpy")
    content = dng(quadrants(64, 96), turned=8)
    source = content
    if name:
        source = tmp_path / f"photo{name}"
        source.write_bytes(content)
    found = pixels(source)
    assert found.shape == (48, 32, 3)
    upright = np.array([COLORS[at] for at in (1, 3, 0, 2)])
    assert (np.argmax(centers(found), axis=1) == np.argmax(upright, axis=1)).all()


@pytest.mark.parametrize(("module", "content"), [("pi_heif", "HEIC"), ("rawpy", "RAW")])
def test_photos_without_their_decoders(module, content, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnreadablePicture, match=r"pip install 'nearlabel\[photos\]'"):
        upright_rgb(files()[content])


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r"needs Pillow: pip install 'nearlabel\[pictures\]'"):
        upright_rgb(b"")


def test_every_kind_of_source(tmp_path):
    expected = quadrants()
    content = file_of(expected, "PNG")
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with path.open("rb") as file:
        for source in (path, str(path), content, bytearray(content), file, io.BytesIO(content)):
            close(pixels(source), expected)
    close(pixels(Image.open(path)), expected)
    close(pixels(Image.fromarray(expected)), expected)
    for array in (expected, expected.astype(np.uint16) * 257, expected / 255, expected[..., ::1]):
        close(pixels(array), expected)
    close(pixels(expected[..., :1]), expected[..., [0, 0, 0]])
    close(pixels(expected[..., 0].astype(int) * 257), expected[..., [0, 0, 0]])
    with pytest.raises(TypeError, match="binary mode"):
        upright_rgb(io.StringIO("text"))
    with pytest.raises(TypeError, match="type float"):
        upright_rgb(1.5)


@pytest.mark.parametrize(
    "array",
    [
        *(np.zeros(5), np.zeros((5, 5, 2)), np.zeros((0, 5)), np.zeros((2, 2), complex)),
        *(np.full((2, 2), value) for value in (1.5, np.nan, -1, 70000, "a")),
    ],
)
def test_arrays_that_are_not_pictures(array):
    with pytest.raises(UnreadablePicture, match=r"^the picture has"):
        upright_rgb(array)


def test_large_jpegs_are_decoded_at_a_reduced_size():
    wide = np.kron(quadrants(64, 96), np.ones((8, 8, 1), np.uint8))
    content = file_of(wide, "JPEG", exif=exif(6))  # 768 x 512, seen as 512 x 768
    sizes = []

    def at_least(size):
        sizes.append(size)
        return 200, 100

    assert upright_rgb(content, at_least=at_least).size == (256, 384)
    assert sizes == [(512, 768)]
    assert upright_rgb(content, at_least=(64, 96)).size == (64, 96)
    assert upright_rgb(content, at_least=(65, 96)).size == (128, 192)
    assert upright_rgb(content, at_least=(5000, 96)).size == (512, 768)
    turned = [COLORS[at] for at in (2, 0, 3, 1)]
    found = centers(pixels(content, at_least=(64, 96)))
    assert np.abs(np.subtract(found, turned)).max() <= 8


def bomb(format, side=60_000):
    """A file with a header that declares many pixels, but without any."""
    if format == "PNG":
        return png(side, side, 8, 2, [])
    if format == "BMP":
        return b"BM" + struct.pack(
            "<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, side, side, 1, 24, *[0] * 6
        )
    if format == "GIF":
        return (
            b"GIF89a"
            + struct.pack("<HHBBB", side, side, 0, 0, 0)
            + b","
            + struct.pack("<HHHHB", 0, 0, side, side, 0)
            + b"\x02\x00;"
        )
    if format == "PPM":
        return f"P6 {side} {side} 255\n".encode()
    small = file_of(quadrants(16, 16), "JPEG")
    place = small.index(b"\xff\xc0") + 5
    return small[:place] + struct.pack(">HH", side, side) + small[place + 4 :]


@pytest.mark.parametrize("format", ["PNG", "BMP", "GIF", "PPM", "JPEG"])
def test_bombs(format):
    with pytest.raises(UnreadablePicture, match=r"60,000 x 60,000 pixels"):
        upright_rgb(bomb(format), at_least=(100, 100))
    if format == "JPEG":  # fewer pixels, but incomplete
        with pytest.raises(UnreadablePicture, match=r"16,000 x 16,000 pixels"):
            upright_rgb(bomb(format, 16_000))


NO_PICTURES = {
    "nothing": (b"", "is empty"),
    "text": (b"Dear diary", "is not a picture"),
    "a page": (b"<html><body>404</body></html>", "is not a picture"),
    "a drawing in text": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is not a picture"),
    "PostScript": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is not a picture"),
    "a program": (b"\x7fELF\x02\x01\x01", "is not a picture"),
    "a film": (b"\0\0\0\x20ftypisom" + bytes(64), "is not a picture"),
    "half a mark": (b"\x89PNG", "is not a picture"),
    "only a mark": (b"\xff\xd8\xff", "is a damaged JPEG"),
    "zeros": (bytes(999), "is not a picture"),
}


@pytest.mark.parametrize("what", NO_PICTURES)
def test_not_a_picture(what, tmp_path):
    content, reason = NO_PICTURES[what]
    path = tmp_path / "holiday.jpg"
    path.write_bytes(content)
    for source in (path, content):
        with pytest.raises(UnreadablePicture, match=reason) as caught:
            upright_rgb(source)
        assert caught.value.name == ("" if source is content else str(path))


@pytest.mark.parametrize("kind", [name for name in files() if name != "RAW"])
def test_half_a_file(kind):
    """The first half of the bytes is refused; half a GIF may hold its first picture."""
    content = files()[kind]
    if kind == "HEIC":
        pytest.importorskip("pi_heif")
    upright_rgb(content)
    cut = content[: len(content) // (8 if "GIF" in kind or "animated" in kind else 2)]
    with pytest.raises(UnreadablePicture, match="damaged"):
        upright_rgb(cut)


def test_special_files(tmp_path):
    with pytest.raises(UnreadablePicture, match=r"none\.jpg cannot be opened: No such file"):
        upright_rgb(tmp_path / "none.jpg")
    with pytest.raises(UnreadablePicture, match="cannot be opened: "):
        upright_rgb("a\0b.jpg")
    with pytest.raises(UnreadablePicture, match=r"cannot be opened|not a regular file"):
        upright_rgb(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has none")
def test_endless_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    os.mkfifo("pipe.jpg")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.jpg")
        for path in ("pipe.jpg", "socket.jpg", "/dev/zero", "/dev/null"):
            with pytest.raises(UnreadablePicture, match=r"not a regular file|cannot be opened"):
                upright_rgb(path)


def test_large_files_are_not_read(tmp_path, monkeypatch):
    path = tmp_path / "large.jpg"
    path.write_bytes(file_of(quadrants(), "JPEG"))
    os.truncate(path, 2**33)  # takes no room on the disk
    with pytest.raises(UnreadablePicture, match="8,589,934,592 bytes"):
        upright_rgb(path)


def test_broken_metadata_do_not_break_a_picture():
    tags = exif(6)[:-6] + b"\xff" * 4  # an entry that ends too early
    content = file_of(quadrants(), "JPEG", exif=tags, quality=95)
    assert sorted(pixels(content).shape) == [3, 32, 48]


def test_messages_are_one_line():
    error = UnreadablePicture("a\nb\udcff.jpg", "is empty")
    assert str(error) == "a?b?.jpg is empty"
    assert (error.name, error.reason) == ("a\nb\udcff.jpg", "is empty")


def test_pictures_that_need_too_much_memory_are_refused(monkeypatch):
    def full(image):
        raise MemoryError

    monkeypatch.setattr(module, "_rgb", full)
    with pytest.raises(UnreadablePicture, match="memory"):
        upright_rgb(quadrants())
