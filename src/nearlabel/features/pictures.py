"""Any picture, upright and in red, green and blue.

Handles everything that cameras, scanners and people produce: rotated pictures, grey and CMYK, 16
bits per channel, palettes, transparency, animations. Files that are not pictures, or would fill the
memory, are refused with a reason.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Self

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.extras import extra_module
from nearlabel.common.messages import one_line
from nearlabel.features.picture_formats import HEAD, MOST_BYTES, SUFFIXES, format_of, opened

if TYPE_CHECKING:
    from PIL.Image import Image

Size = tuple[int, int]

# What turns a picture upright, by its orientation: names of Pillow's transpositions.
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}


class UnreadablePicture(ValueError):  # noqa: N818
    """A file or an object that cannot be read as a picture.

    Attributes
    ----------
    name : str
        The name of the file; empty for anything else.
    reason : str
        The rest of a sentence that begins with the name.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def of(self, name: str) -> Self:
        """The same error of a file with this name."""
        return type(self)(name, self.reason)

    def __str__(self) -> str:
        name = self.name or "the picture"
        return one_line(f"{name if len(name) <= 200 else '…' + name[-199:]} {self.reason}")


class PictureTooLarge(UnreadablePicture):
    """A picture with too many pixels."""


def upright_rgb(source: object, *, at_least: Size | Callable[[Size], Size] | None = None) -> Image:
    """A picture in mode RGB, upright, transparent parts white; the first frame of an animation.

    Parameters
    ----------
    source : path, bytes, binary file, PIL.Image.Image or ndarray
        Bytes are the content of a file. An array has the shape (height, width), or (height, width,
        1, 3 or 4), and integers of 8 or 16 bits, or floats from 0 to 1.
    at_least : (width, height), or callable, optional
        A JPEG may be decoded to a half, a quarter or an eighth of its size, but not below this
        size, which saves most of the time. A callable computes it from the size of the picture.

    Raises
    ------
    UnreadablePicture
    """
    extra_module("PIL.Image", "reading pictures needs Pillow", "pictures")
    from PIL.Image import Transpose

    name = name_of(source)
    try:
        with _opened(source, name) as (image, kind):
            reduced_to = at_least if kind == "JPEG" else None
            width, height = image.size
            # Some phones take 200 million pixels, which a picture decoded in full may not have.
            most = 120_000_000 if reduced_to is None else 2**28
            if width * height > most:  # it would fill the memory
                reason = f"has {width:,} x {height:,} pixels; at most {most:,} are read"
                raise PictureTooLarge("", reason)
            if reduced_to is not None:
                size = _upright(image.size, orientation(image))
                wanted = reduced_to(size) if callable(reduced_to) else reduced_to
                image.draft(None, _upright(wanted, orientation(image)))
            image.load()
            # Pillow rotates TIFF files on loading; in PNG the orientation may be at the end.
            turn = _TURNS.get(orientation(image))
            rgb = _rgb(image)
            return rgb.transpose(Transpose[turn]) if turn else rgb
    except UnreadablePicture as error:
        raise error.of(name) from error.__cause__
    except MemoryError:
        raise UnreadablePicture(name, "does not fit into memory") from None


def name_of(source: object) -> str:
    """The name of the file that a picture comes from, or an empty string."""
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    name = getattr(source, "name", None) or getattr(source, "filename", None)
    return name if isinstance(name, str) else ""


@contextmanager
def _opened(source: object, name: str) -> Iterator[tuple[Image, str]]:
    """A picture and its format; whatever Pillow raises becomes a reason."""
    from PIL import Image as Images

    if isinstance(source, np.ndarray):
        yield Images.fromarray(_bytes_of(source)), "array"
        return
    with _content(source) as content:
        kind = "picture" if isinstance(content, Images.Image) else _format(content, name)
        try:
            image = content if isinstance(content, Images.Image) else opened(content, kind)
            yield image, kind
        except (UnreadablePicture, MemoryError):
            raise
        except ImportError as error:  # the extra for photos is missing
            raise UnreadablePicture("", f"cannot be read: {error}") from None
        except Exception as error:  # Pillow raises errors of any kind for a damaged file
            raise UnreadablePicture("", f"is a damaged {kind}: {_message(error)}") from error


@contextmanager
def _content(source: object) -> Iterator[IO[bytes] | Image]:
    """A Pillow image as it is, or the content to read of any other picture."""
    from PIL import Image as Images

    if isinstance(source, Images.Image):
        yield source
    elif isinstance(source, str | os.PathLike):
        with regular_file(source) as file:
            yield file
    elif isinstance(source, bytes | bytearray | memoryview):
        yield io.BytesIO(source)
    elif hasattr(source, "read"):
        content = source.read(MOST_BYTES + 1)
        if not isinstance(content, bytes):
            raise TypeError(f"a picture must be opened in binary mode; got {source!r}")
        yield io.BytesIO(content)
    else:
        raise TypeError(
            "a picture must be a path, bytes, a binary file, a PIL.Image or an array; "
            f"got one of type {type(source).__name__}"
        )


@contextmanager
def regular_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a regular file; others may be endless, or block until somebody writes."""
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(path, flags), "rb")
    except (OSError, ValueError) as error:
        raise UnreadablePicture("", f"cannot be opened: {_message(error)}") from None
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnreadablePicture("", "is not a regular file")
        yield file


@dataclass(frozen=True)
class FileKind:
    """The files to look for: by suffix, or else by their first bytes."""

    suffixes: frozenset[str]
    most_bytes: int
    begins: Callable[[bytes, str], bool]  # called with the first bytes of a file and its name

    def has_suffix(self, name: str) -> bool:
        """Whether the suffix of a name is of this kind."""
        return os.path.splitext(name)[1].lower() in self.suffixes  # noqa: PTH122

    def includes(self, path: str) -> bool:
        """Whether a file is of this kind; its first bytes are read if the suffix does not say."""
        if self.has_suffix(path):
            return True
        with suppress(OSError, ValueError), regular_file(path) as file:
            return self.begins(file.read(HEAD), path)
        return False


PICTURES = FileKind(SUFFIXES, MOST_BYTES, lambda head, name: format_of(head, name) is not None)


def _format(file: IO[bytes], name: str) -> str:
    """The format by the first bytes; files of unknown formats are not read any further."""
    size = file.seek(0, os.SEEK_END)
    if not size:
        raise UnreadablePicture("", "is empty")
    if size > MOST_BYTES:
        raise UnreadablePicture("", f"has {size:,} bytes; at most {MOST_BYTES:,} are read")
    file.seek(0)
    head = file.read(HEAD)
    file.seek(0)
    kind = format_of(head, name)
    if head.startswith(b"PK\3\4"):
        raise UnreadablePicture("", "is a zip archive; unpack it first")
    if kind is None:
        raise UnreadablePicture(
            "", f"is not a picture of a known format; it starts with {head[:8].decode('latin-1')!a}"
        )
    return kind


def orientation(image: Image) -> int:
    """The orientation of a picture, from 1 to 8; 1, upright, if damaged data do not say."""
    with suppress(Exception):
        value = image.getexif().get(0x0112)  # the tag "Orientation"
        return value if isinstance(value, int) else 1
    return 1


def _upright(size: Size, turned: int) -> Size:
    return (size[1], size[0]) if turned >= 5 else size


def _rgb(image: Image) -> Image:
    """A picture of any mode in red, green and blue, on white where it is transparent."""
    from PIL import Image as Images

    if image.mode.startswith("I;16"):
        return Images.fromarray(_eight_bits(np.asarray(image))).convert("RGB")
    if image.mode in ("I", "F"):
        return Images.fromarray(_bytes_of(np.asarray(image))).convert("RGB")
    if image.mode == "LAB":
        raise UnreadablePicture("", "has colors in L*a*b*, which are not supported")
    if not image.has_transparency_data:
        return image if image.mode == "RGB" else image.convert("RGB")
    clear = image.convert("RGBA")
    rgb = Images.new("RGB", image.size, "white")
    rgb.paste(clear, mask=clear.getchannel("A"))
    return rgb


def _bytes_of(pixels: Array) -> Array:
    """Pixels as integers from 0 to 255."""
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (1, 3, 4)):
        shape = f"has the shape {pixels.shape}; expected (height, width) or (height, width, 3)"
        raise UnreadablePicture("", shape)
    if not pixels.size:
        raise UnreadablePicture("", "has no pixels")
    pixels = pixels[..., 0] if pixels.shape[2:] == (1,) else pixels
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels)
    if pixels.dtype == np.uint16:
        return _eight_bits(pixels)
    most = {"b": 1, "f": 1, "i": 65535, "u": 65535}.get(pixels.dtype.kind)
    if most is None:
        raise UnreadablePicture("", f"has values of type {pixels.dtype}; expected numbers")
    low, high = pixels.min(), pixels.max()
    if not (low >= 0 and high <= most):  # also refuses NaN
        expected = f"expected 0 to {most} for type {pixels.dtype}"
        raise UnreadablePicture("", f"has values from {low:g} to {high:g}; {expected}")
    if most == 1:
        return np.rint(pixels * np.float32(255)).astype(np.uint8)
    return _eight_bits(pixels)


def _eight_bits(sixteen: Array) -> Array:
    """Values from 0 to 65,535 scaled to 0 to 255, rounded."""
    return ((sixteen.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)


def _message(error: Exception) -> str:
    """The message of an error, in one line."""
    return one_line(getattr(error, "strerror", None) or str(error) or type(error).__name__, 200)
