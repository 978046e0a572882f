"""The format of a file, by its first bytes, and what opens it.

Suffixes can be wrong, and a library that tries all its formats runs code that nobody intended to
run: the first bytes select one reader, and files of other formats are not opened.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import PurePath
from typing import IO, TYPE_CHECKING

from nearlabel.common.extras import extra_module
from nearlabel.features.photo_decoder import decoded_photo

if TYPE_CHECKING:
    from PIL.Image import Image

HEAD = 64  # bytes that determine the format
MOST_BYTES = 2**30  # per file

# How files begin, and what the names of Pillow's plugin and its class begin with.
_FORMATS = {
    "JPEG": (rb"\xff\xd8\xff", "Jpeg"),
    "PNG": (rb"\x89PNG\r\n\x1a\n", "Png"),
    "GIF": (rb"GIF8[79]a", "Gif"),
    "WebP": (rb"RIFF.{4}WEBP", "WebP"),
    "BMP": (rb"BM", "Bmp"),
    "JPEG 2000": (rb"\x00\x00\x00\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51", "Jpeg2K"),
    "PPM": (rb"P[456]\s", "Ppm"),
    "AVIF": (rb".{4}ftyp(?:avi[fs]|mi[fa]1.{4,40}?avi[fs])", "Avif"),
    "HEIC": (rb".{4}ftyp(?:hei[cmsx]|hev[cmsx]|mif1|msf1)", ""),
    "RAW": (
        rb".{4}ftypcrx |(?:II\*\x00|MM\x00\*).{4}CR\x02|IIR[OS]|MMOR|IIU\x00"
        rb"|FUJIFILMCCD-RAW|FOVb|\x00MRM",
        "",
    ),
    "TIFF": (rb"II\*\x00|MM\x00\*|II\+\x00|MM\x00\+", "Tiff"),
}
# Most of these files are also TIFF files, of which Pillow would read the small preview.
RAW_SUFFIXES = frozenset(
    (
        *(".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".fff", ".iiq", ".kdc"),
        *(".mef", ".mos", ".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl"),
        *(".sr2", ".srf", ".srw", ".x3f"),
    )
)
SUFFIXES = RAW_SUFFIXES.union(
    (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".gif", ".webp", ".bmp", ".dib"),
    (".jp2", ".j2k", ".jpf", ".jpx", ".ppm", ".pgm", ".pbm", ".pnm", ".avif", ".heic", ".heif"),
    (".hif", ".tif", ".tiff"),
)


def format_of(head: bytes, name: str = "") -> str | None:
    """The format by the first bytes of a file; its name separates RAW photos from other TIFF."""
    for kind, (beginning, _) in _FORMATS.items():
        if re.match(beginning, head, re.DOTALL):
            is_raw = kind == "TIFF" and PurePath(name).suffix.lower() in RAW_SUFFIXES
            return "RAW" if is_raw else kind
    return None


def opened(file: IO[bytes], kind: str) -> Image:
    """A picture whose header has been read; `load` reads the rest.

    Calls the plugin classes instead of `PIL.Image.open`, which has limits of its own.
    """
    if kind == "TIFF" and _is_of_a_sensor(file):
        kind = "RAW"
    if kind == "HEIC":
        extra_module("pi_heif", "HEIC pictures need pi-heif", "photos")
    elif kind == "RAW":
        extra_module("rawpy", "RAW photos need rawpy", "photos")
    if kind in ("HEIC", "RAW"):
        return decoded_photo(file.read(), kind)
    _, plugin = _FORMATS[kind]
    image: Image = getattr(import_module(f"PIL.{plugin}ImagePlugin"), f"{plugin}ImageFile")(file)
    return image


def _is_of_a_sensor(file: IO[bytes]) -> bool:
    """Whether a TIFF file is a RAW photo: the values of a sensor, perhaps preceded by a preview."""
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    head = file.read(8)
    tags = ImageFileDirectory_v2(head + file.read(8) if 43 in head[2:4] else head)
    file.seek(tags.next)
    tags.load(file)
    file.seek(0)
    is_preview = tags.get(254) == 1 and 330 in tags  # NewSubfileType, SubIFDs
    is_mosaic = tags.get(262) in (32803, 34892)  # PhotometricInterpretation of a sensor's colors
    return is_preview or is_mosaic or 50706 in tags  # DNGVersion
