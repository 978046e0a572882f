"""Small pictures with known pixels in every format, some written byte by byte."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np

COLORS = ((220, 30, 30), (30, 200, 40), (40, 40, 210), (230, 220, 40))
TURNED_HEIC = Path(__file__).parent / "features" / "quadrants_turned.heic"


def quadrants(height=32, width=48, colors=COLORS):
    """Four colors, arranged so that every rotation or reflection can be detected."""
    pixels = np.empty((height, width, len(colors[0])), np.uint8)
    for number, color in enumerate(colors):
        rows = slice(None, height // 2) if number < 2 else slice(height // 2, None)
        columns = slice(width // 2, None) if number % 2 else slice(None, width // 2)
        pixels[rows, columns] = color
    return pixels


def file_of(pixels, format, mode=None, **options):
    """The content of a file with these pixels, as Pillow writes it."""
    from PIL import Image

    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    content = io.BytesIO()
    (image.convert(mode) if mode else image).save(content, format, **options)
    return content.getvalue()


def exif(orientation):
    from PIL import Image

    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def png(width, height, depth, color_type, rows, *chunks):
    """A PNG file of rows of bytes, with more chunks before the pixels."""

    def chunk(name, content):
        check = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = [(b"IHDR", header), *chunks, (b"IDAT", pixels), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def dng(rgb, turned=1):
    """A RAW photo: one color per pixel, as from a sensor, red at the upper left."""
    height, width, _ = rgb.shape
    mosaic = rgb[..., 1].astype(np.uint16)
    mosaic[::2, ::2], mosaic[1::2, 1::2] = rgb[::2, ::2, 0], rgb[1::2, 1::2, 2]
    srgb = (3.2405, -1.5371, -0.4985, -0.9693, 1.8760, 0.0416, 0.0556, -0.2040, 1.0572)
    tags = {
        254: ("I", [0]),
        256: ("I", [width]),
        257: ("I", [height]),
        258: ("H", [16]),
        259: ("H", [1]),
        262: ("H", [32803]),
        271: ("s", b"nearlabel\0"),
        272: ("s", b"drawn\0"),
        273: ("I", [0]),  # where the pixels are, filled in below
        274: ("H", [turned]),
        277: ("H", [1]),
        278: ("I", [height]),
        279: ("I", [mosaic.nbytes]),
        33421: ("H", [2, 2]),
        33422: ("B", [0, 1, 1, 2]),
        50706: ("B", [1, 4, 0, 0]),
        50708: ("s", b"nearlabel drawn\0"),
        50717: ("I", [255]),
        50721: ("2i", [number for x in srgb for number in (round(x * 10**4), 10**4)]),
        50728: ("2I", [1, 1] * 3),
        50778: ("H", [21]),
    }
    kinds = {"s": 2, "B": 1, "H": 3, "I": 4, "2I": 5, "2i": 10}
    end = 8 + 2 + 12 * len(tags) + 4
    for _ in range(2):  # the second time with the right place of the pixels
        entries, beyond = b"", b""
        for tag, (kind, values) in tags.items():
            packed = values if kind == "s" else struct.pack(f"<{len(values)}{kind[-1]}", *values)
            count = len(values) // (2 if kind[0] == "2" else 1)
            if len(packed) > 4:
                beyond += packed
                packed = struct.pack("<I", end + len(beyond) - len(packed))
            entries += struct.pack("<HHI", tag, kinds[kind], count) + packed.ljust(4, b"\0")
        tags[273] = ("I", [end + len(beyond)])
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags))
    return head + entries + bytes(4) + beyond + mosaic.astype("<u2").tobytes()


def files():
    """One file of every kind by name, for tests that damage them."""
    rgb = quadrants(20, 30)
    clear = quadrants(20, 30, [(*color, 60 * at) for at, color in enumerate(COLORS)])
    frames = [file_frame(quadrants(20, 30, COLORS[at:] + COLORS[:at])) for at in range(3)]
    animated = {"save_all": True, "append_images": frames[1:]}
    grey16 = np.arange(600, dtype=np.uint16).reshape(20, 30) * 109
    return {
        "JPEG": file_of(rgb, "JPEG", exif=exif(6)),
        "progressive JPEG": file_of(rgb, "JPEG", progressive=True),
        "CMYK JPEG": file_of(rgb, "JPEG", "CMYK"),
        "PNG": file_of(clear, "PNG"),
        "16-bit PNG": file_of(grey16, "PNG"),
        "palette PNG": file_of(rgb, "PNG", "P", transparency=b"\x80\xff"),
        "animated PNG": file_of(frames[0], "PNG", **animated),
        "GIF": file_of(frames[0], "GIF", **animated),
        "WebP": file_of(clear, "WEBP", lossless=True),
        "animated WebP": file_of(frames[0], "WEBP", **animated),
        "BMP": file_of(rgb, "BMP"),
        "PPM": file_of(rgb, "PPM"),
        "JPEG 2000": file_of(rgb, "JPEG2000"),
        "TIFF": file_of(rgb, "TIFF", tiffinfo={274: 3}),
        "packed TIFF": file_of(clear, "TIFF", compression="tiff_lzw"),
        "AVIF": file_of(rgb, "AVIF"),
        "HEIC": TURNED_HEIC.read_bytes(),
        "RAW": dng(quadrants(24, 40)),
    }


def file_frame(pixels):
    from PIL import Image

    return Image.fromarray(pixels)
