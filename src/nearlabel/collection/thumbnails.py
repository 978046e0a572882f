"""Thumbnails of items, created on first use and cached in the collection.

A thumbnail is identified by its content, as its item is. It is derived: the folder of thumbnails
can be removed without loss.
"""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nearlabel.collection.folder_checks import opened_plainly, thumbnail_path
from nearlabel.common.files import sync
from nearlabel.common.validation import check_integer
from nearlabel.features.picture_formats import MOST_BYTES
from nearlabel.features.pictures import UnreadablePicture, regular_file, upright_rgb

THUMBNAIL_SIZE = 256
"""Pixels of the longer side of the thumbnails that are stored."""


def thumbnail(
    folder: Path,
    content: bytes,
    files: Iterable[Path],
    size: int = THUMBNAIL_SIZE,
    *,
    readonly: bool = False,
) -> bytes:
    """A thumbnail of an item as a JPEG file, without the metadata of the camera.

    Parameters
    ----------
    folder : Path
        The folder of the collection.
    content : bytes
        The sha256 of the picture's file.
    files : iterable of Path
        Where that content was seen. Files that have changed since are skipped.
    size : int, default=256
        Pixels of the longer side; smaller pictures keep their size.
    readonly : bool, default=False
        If true, the thumbnail is not cached.

    Raises
    ------
    FileNotFoundError
        If none of the files has that content any more.
    UnreadablePicture
    """
    size = check_integer(size, "size", low=1, high=4096)
    path = thumbnail_path(folder, content)
    cached = _cached(path)
    if cached is None:
        source = source_of(content, files)
        reduced = _reduced(source, max(size, THUMBNAIL_SIZE))
        cached = reduced if size <= THUMBNAIL_SIZE else _reduced(reduced, THUMBNAIL_SIZE)
        if not readonly:
            _keep(path, cached)
        if size > THUMBNAIL_SIZE:
            return reduced
    elif size > THUMBNAIL_SIZE:
        return _reduced(source_of(content, files), size)
    return cached if size == THUMBNAIL_SIZE else _reduced(cached, size)


def source_of(content: bytes, files: Iterable[Path]) -> bytes:
    """The bytes of the first file with this content."""
    for path in files:
        with suppress(UnreadablePicture, OSError), regular_file(path) as file:
            data = file.read(MOST_BYTES + 1)
            if hashlib.sha256(data).digest() == content:
                return data
    raise FileNotFoundError(2, "no file of this item is unchanged since it was indexed")


def _reduced(source: bytes, size: int) -> bytes:
    """A picture as a JPEG file with sides of at most this many pixels."""
    image = upright_rgb(source, at_least=(2 * size, 2 * size))
    image.thumbnail((size, size))
    image.info.clear()
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def _cached(path: Path) -> bytes | None:
    """A cached thumbnail; None if there is none, or it is incomplete."""
    if any(folder.is_symlink() for folder in path.parents[:2]):
        return None
    try:
        with open(path, "rb", opener=opened_plainly) as file:
            data = file.read(2**20)  # thumbnails are far smaller
    except OSError:
        return None
    return data if data.startswith(b"\xff\xd8\xff") and data.endswith(b"\xff\xd9") else None


def _keep(path: Path, thumbnail: bytes) -> None:
    """Write a thumbnail if possible: it can be created again."""
    inner, outer = path.parents[:2]
    part = outer.with_name(f".thumbnail.{secrets.token_hex(4)}.part")  # the next writer removes it
    with suppress(OSError):
        for folder in (outer, inner):
            if folder.is_symlink():
                return
            folder.mkdir(exist_ok=True)
        try:
            with part.open("xb") as file:
                file.write(thumbnail)
                file.flush()
                sync(file.fileno())  # after a power failure, the middle could be missing
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
