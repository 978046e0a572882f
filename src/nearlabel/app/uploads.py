"""Uploaded files: checked before they are decoded, and stored by their content.

A client's name for a file is only displayed, and never becomes a path: a file is stored under the
sha256 of its content. So uploading it twice gives one file and one item.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import NamedTuple

from nearlabel.app.responses import Refusal
from nearlabel.app.served import Served
from nearlabel.collection import FileState, NewItem
from nearlabel.collection.folder_scan import FileStamp
from nearlabel.collection.indexing import beginning_of
from nearlabel.collection.records import vector_content
from nearlabel.common.arrays import Array
from nearlabel.common.files import replacing, sync_folder
from nearlabel.common.messages import one_line
from nearlabel.features.picture_formats import HEAD, format_of, opened
from nearlabel.features.pictures import PictureTooLarge, UnreadablePicture
from nearlabel.features.texts import text_of

_SUFFIXES = {"JPEG": ".jpg", "JPEG 2000": ".jp2"}  # of others, their names


class StoredItem(NamedTuple):
    """An uploaded item, and whether it is new."""

    id: int
    is_new: bool


def other_kind(served: Served, status: int = 422) -> Refusal:
    """The refusal of a request that has no item of the collection's kind."""
    send = {"pictures": "a picture", "texts": '{"text": …}', "vectors": '{"vector": …}'}
    return Refusal(status, f"this collection holds {served.kind}: send {send[served.kind]}")


def check_content(served: Served, content: bytes) -> str:
    """Refuse a file of another kind than the collection, or too large; returns its suffix."""
    if served.kind == "vectors":
        raise other_kind(served, 415)
    if served.kind == "texts":
        if not text_of(content).strip():
            raise Refusal(415, "the file is empty")
        return ".txt"
    kind = format_of(content[:HEAD])
    if kind is None:
        what = "is empty" if not content else "is not a picture in a known format"
        raise Refusal(415, f"the file {what}")
    if kind not in ("HEIC", "RAW"):  # decoded in a process of their own, with limits
        width, height = _size(content, kind)
        if width * height > served.settings.most_pixels:
            most = served.settings.most_pixels
            reason = f"has {width:,} x {height:,} pixels; at most {most:,} are allowed"
            raise PictureTooLarge("", reason)
    return _SUFFIXES.get(kind, f".{kind.lower()}")


def _size(content: bytes, kind: str) -> tuple[int, int]:
    """Width and height of a picture, from its header only."""
    try:
        with opened(io.BytesIO(content), kind) as image:
            return image.size
    except ImportError as error:
        raise UnreadablePicture("", f"cannot be read: {error}") from None
    except Exception as error:  # Pillow raises errors of any kind for a damaged file
        raise UnreadablePicture("", f"is a damaged {kind}") from error


def kept_file(served: Served, content: bytes, name: str) -> Callable[[int], StoredItem]:
    """What adds the content of a file to the collection, unless it exists, as part of a run.

    The vector, which takes longest, is computed before.
    """
    suffix = check_content(served, content)
    digest = hashlib.sha256(content).digest()
    collection = served.collection
    is_known = bool(collection.known_contents([digest]))
    vector = None if is_known else served.vectors_of([content])
    folder = served.settings.uploads

    def keep(group: int) -> StoredItem:
        known = collection.known_contents([digest]).get(digest)
        if known is not None and not collection.item(known).is_missing:
            return StoredItem(known, is_new=False)
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder)  # or a power failure could take it with all uploads
        path = folder / f"{digest.hex()}{suffix}"
        if path.is_symlink():  # the folder may come from anybody; the target is not replaced
            path.unlink()
        with replacing(path) as file:
            file.write(content)
        state = FileState(str(folder.absolute()), path.name, *FileStamp.of(path.stat()))
        shown = shown_as(name) or f"{digest.hex()[:12]}{suffix}"
        text = beginning_of(content, served.kind)
        row = served.vectors_of([content]) if known is None and vector is None else vector
        (id,) = collection.add([NewItem(digest, row, (state,), shown, text)], group=group)
        return StoredItem(id, is_new=known is None)

    return keep


def kept_vector(served: Served, vector: Array, name: str) -> Callable[[int], StoredItem]:
    """What adds a vector to the collection, unless it exists under this name, as part of a run."""
    collection, digest = served.collection, vector_content(name, vector)

    def keep(group: int) -> StoredItem:
        known = collection.known_contents([digest]).get(digest)
        if known is not None:
            return StoredItem(known, is_new=False)
        (id,) = collection.add([NewItem(digest, vector, name=name)], group=group)
        return StoredItem(id, is_new=True)

    return keep


def shown_as(name: str) -> str:
    """A client's name for a file, for display: the last part of a path, printable only."""
    return one_line(name.replace("\\", "/").rpartition("/")[2][-200:]).strip()
