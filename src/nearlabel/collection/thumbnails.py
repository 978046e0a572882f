"""Small pictures of items, made when they are first asked for, and kept beside the collection.

A thumbnail is known by the content that it shows, as its item is. It is derived: whoever removes
the folder loses nothing.
"""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nearlabel.collection.folder_checks import opened_plainly, thumbnail_path
from nearlabel.common.validation import check_integer
from nearlabel.features.pictures import MOST_BYTES, UnreadablePicture, regular_file, upright_rgb

_KEPT_SIZE = 256  # pixels of the longer side
_MOST_SIZE = 4096
_MOST_KEPT = 2**20  # bytes: a thumbnail has far fewer
_QUALITY = 85
_BEGIN, _END = b"\xff\xd8\xff", b"\xff\xd9"


def thumbnail(
    folder: Path,
    content: bytes,
    files: Iterable[Path],
    size: int = _KEPT_SIZE,
    *,
    readonly: bool = False,
) -> bytes:
    """A small picture of an item as a JPEG file, without what its camera has noted.

    Parameters
    ----------
    folder : Path
        Of the collection.
    content : bytes
        The sha256 of the picture's file.
    files : iterable of Path
        Where that content was seen. One that has another content by now is passed over.
    size : int, default=256
        Pixels of the longer side; of a smaller picture, as many as it has.
    readonly : bool, default=False
        Whether the thumbnail is not kept.

    Raises
    ------
    FileNotFoundError
        Where none of the files is there any more as it was.
    UnreadablePicture
    """
    size = check_integer(size, "size", low=1, high=_MOST_SIZE)
    path = thumbnail_path(folder, content)
    kept = _kept(path)
    if kept is None:
        source = source_of(content, files)
        made = _reduced(source, max(size, _KEPT_SIZE))
        kept = made if size <= _KEPT_SIZE else _reduced(made, _KEPT_SIZE)
        if not readonly:
            _keep(path, kept)
        if size > _KEPT_SIZE:
            return made
    elif size > _KEPT_SIZE:
        return _reduced(source_of(content, files), size)
    return kept if size == _KEPT_SIZE else _reduced(kept, size)


def source_of(content: bytes, files: Iterable[Path]) -> bytes:
    """The bytes of the first file that has this content."""
    for path in files:
        with suppress(UnreadablePicture, OSError), regular_file(path) as file:
            found = file.read(MOST_BYTES + 1)
            if hashlib.sha256(found).digest() == content:
                return found
    raise FileNotFoundError(2, "no file of this item is there as it was when it was indexed")


def _reduced(source: bytes, size: int) -> bytes:
    """A picture as a JPEG file with sides of at most so many pixels."""
    image = upright_rgb(source, at_least=(2 * size, 2 * size))
    image.thumbnail((size, size))
    image.info.clear()
    file = io.BytesIO()
    image.save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()


def _kept(path: Path) -> bytes | None:
    """A thumbnail that was kept; None where there is none, or not all of it."""
    if any(folder.is_symlink() for folder in path.parents[:2]):
        return None
    try:
        with open(path, "rb", opener=opened_plainly) as file:
            found = file.read(_MOST_KEPT)
    except OSError:
        return None
    return found if found.startswith(_BEGIN) and found.endswith(_END) else None


def _keep(path: Path, thumbnail: bytes) -> None:
    """Write a thumbnail, if that is possible: it can be made again."""
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
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
