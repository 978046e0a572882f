"""The format of a file, by its first bytes, and what opens it.

Suffixes can be wrong, and a library that tries all its formats runs code that nobody intended to
run: the first bytes select one reader, and files of other formats are not opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import IO, TYPE_CHECKING

from nearlabel.common.extras import extra_module
from nearlabel.features.photo_decoder import decoded_photo

if TYPE_CHECKING:
    from PIL.Image import Image

HEAD = 64  # bytes that determine the format
MOST_BYTES = 2**30  # per file

_BEGINNINGS: dict[str, bytes] = {
    "JPEG": rb"\xff\xd8\xff",
    "PNG": rb"\x89PNG\r\n\x1a\n",
    "GIF": rb"GIF8[79]a",
    "WebP": rb"RIFF.{4}WEBP",
    "BMP": rb"BM",
    "JPEG 2000": rb"\x00\x00\x00\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51",
    "PPM": rb"P[456]\s",
    "AVIF": rb".{4}ftyp(?:avi[fs]|mi[fa]1.{4,40}?avi[fs])",
    "HEIC": rb".{4}ftyp(?:hei[cmsx]|hev[cmsx]|mif1|msf1)",
    "RAW": (
        rb".{4}ftypcrx |(?:II\*\x00|MM\x00\*).{4}CR\x02|IIR[OS]|MMOR|IIU\x00"
        rb"|FUJIFILMCCD-RAW|FOVb|\x00MRM"
    ),
    "TIFF": rb"II\*\x00|MM\x00\*|II\+\x00|MM\x00\+",
}
_PATTERNS = {name: re.compile(begin, re.DOTALL) for name, begin in _BEGINNINGS.items()}
_PLUGINS = {
    "JPEG": ("JpegImagePlugin", "JpegImageFile"),
    "PNG": ("PngImagePlugin", "PngImageFile"),
    "GIF": ("GifImagePlugin", "GifImageFile"),
    "WebP": ("WebPImagePlugin", "WebPImageFile"),
    "BMP": ("BmpImagePlugin", "BmpImageFile"),
    "JPEG 2000": ("Jpeg2KImagePlugin", "Jpeg2KImageFile"),
    "PPM": ("PpmImagePlugin", "PpmImageFile"),
    "AVIF": ("AvifImagePlugin", "AvifImageFile"),
    "TIFF": ("TiffImagePlugin", "TiffImageFile"),
}
_PHOTOS = {"HEIC": ("pi-heif", "HEIC pictures"), "RAW": ("rawpy", "RAW photos")}
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
_NEW_SUBFILE_TYPE, _PHOTOMETRIC, _SUB_FILES, _DNG_VERSION = 254, 262, 330, 50706
_MOSAICS = (32803, 34892)  # sensor colors, before and after demosaicing


def format_of(head: bytes, name: str = "") -> str | None:
    """The format by the first bytes of a file; its name separates RAW photos from other TIFF."""
    for found, pattern in _PATTERNS.items():
        if pattern.match(head):
            is_raw = found == "TIFF" and PurePath(name).suffix.lower() in RAW_SUFFIXES
            return "RAW" if is_raw else found
    return None


def opened(file: IO[bytes], found: str) -> Image:
    """A picture whose header has been read; `load` reads the rest.

    Calls the plugin classes instead of `PIL.Image.open`, which has limits of its own.
    """
    if found == "TIFF" and _is_of_a_sensor(file):
        found = "RAW"
    if found in _PHOTOS:
        package, what = _PHOTOS[found]
        extra_module(package.replace("-", "_"), f"{what} need {package}", "photos")
        return decoded_photo(file.read(), found)
    module, plugin = _PLUGINS[found]
    return getattr(import_module(f"PIL.{module}"), plugin)(file)  # type: ignore[no-any-return]


def _is_of_a_sensor(file: IO[bytes]) -> bool:
    """Whether a TIFF file is a RAW photo: the values of a sensor, perhaps preceded by a preview."""
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    head = file.read(8)
    tags = ImageFileDirectory_v2(head + file.read(8) if 43 in head[2:4] else head)
    file.seek(tags.next)
    tags.load(file)
    file.seek(0)
    is_preview = tags.get(_NEW_SUBFILE_TYPE) == 1 and _SUB_FILES in tags
    return is_preview or _DNG_VERSION in tags or tags.get(_PHOTOMETRIC) in _MOSAICS


@dataclass(frozen=True)
class FileKind:
    """The files to look for: by suffix, or else by their first bytes."""

    suffixes: frozenset[str]
    most_bytes: int
    begins: Callable[[bytes, str], bool]  # called with the first bytes of a file and its name

    def has_suffix(self, name: str) -> bool:
        """Whether the suffix of a name is of this kind."""
        return os.path.splitext(name)[1].lower() in self.suffixes  # noqa: PTH122

    def includes(self, name: str, read: Callable[[int], bytes]) -> bool:
        """Whether a file is of this kind; its first bytes are read if the suffix does not say."""
        try:
            return self.has_suffix(name) or self.begins(read(HEAD), name)
        except (OSError, ValueError):
            return False


PICTURES = FileKind(SUFFIXES, MOST_BYTES, lambda head, name: format_of(head, name) is not None)
