"""What is checked before a folder is trusted to be a collection.

A collection may come from anybody. So none of its files may be a link, a pipe or a device: reading
could block, or writing could reach something outside.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from nearlabel.common.files import FileError

DATABASE = "collection.sqlite"
LOCK = "lock"
THUMBNAILS = "thumbnails"
_FILES = {LOCK, *(f"{DATABASE}{end}" for end in ("", "-wal", "-shm", "-journal"))}
_INDEX = re.compile(r"index-(\d{1,18})\.model")
_VECTORS = re.compile(r"vectors-\d{6,18}\.bin")  # of version 1
_PART = re.compile(
    r"\.(?:collection\.sqlite|index-\d+\.model|thumbnail)\.[0-9a-f]+\.part(-journal)?"
)


class CollectionError(FileError):
    """A folder is not an intact collection, or an operation is not possible; says why."""


class ReadOnlyError(CollectionError):
    """A change to a collection that was opened for reading only."""


class NotInCollectionError(CollectionError):
    """An item or tag that is not in the collection."""


class TagTakenError(CollectionError):
    """A new tag name that is already taken."""


class OldVersionError(CollectionError):
    """A collection of an earlier version, which opening it for writing once would update."""


class DamagedVectorsError(CollectionError):
    """A vector that is missing or not as it was written."""


def is_collection(path: str | os.PathLike[str]) -> bool:
    """Whether a folder looks like a collection.

    Parameters
    ----------
    path : path

    Returns
    -------
    bool
    """
    return os.path.lexists(Path(path) / DATABASE) and Path(path).is_dir()


def vectors_path(folder: Path, number: int) -> Path:
    """The vector file with this number, of a collection of version 1."""
    return folder / f"vectors-{number:06d}.bin"


def index_path(folder: Path, change: int) -> Path:
    """The index file written after this change."""
    return folder / f"index-{change}.model"


def thumbnail_path(folder: Path, content: bytes) -> Path:
    """The thumbnail of a content."""
    return folder / THUMBNAILS / content.hex()[:2] / f"{content.hex()}.jpg"


def vector_files(folder: Path) -> list[Path]:
    """All vector files of version 1."""
    return [path for path in folder.iterdir() if _VECTORS.fullmatch(path.name)]


def index_files(folder: Path) -> Iterator[tuple[int, Path]]:
    """All index files, with the changes after which they were written."""
    for path in sorted(folder.iterdir()):
        if match := _INDEX.fullmatch(path.name):
            yield int(match[1]), path


def is_index(path: Path) -> bool:
    """Whether a file has the name of an index file."""
    return _INDEX.fullmatch(path.name) is not None


def part_files(folder: Path) -> list[Path]:
    """Files that a process did not finish writing."""
    return [path for path in folder.iterdir() if _PART.fullmatch(path.name)]


def check_folder(folder: Path, *, readonly: bool) -> None:
    """Refuse a folder whose files cannot be those of a collection."""
    if not folder.is_dir():
        if folder.exists():
            raise CollectionError("is not a collection: it is not a folder", folder)
        raise FileNotFoundError(2, "no such collection", str(folder))
    if not os.path.lexists(folder / DATABASE):
        raise CollectionError(f"is not a collection: it has no file {DATABASE}", folder)
    for path in sorted(folder.iterdir()):
        is_folder = path.name == THUMBNAILS
        if not (
            is_folder or path.name in _FILES or is_index(path) or _VECTORS.fullmatch(path.name)
        ):
            continue
        try:
            status = path.lstat()
        except FileNotFoundError:  # removed by the process that writes
            continue
        if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(status.st_mode):
            what = "folder" if is_folder else "file"
            raise CollectionError(f"is refused: its {path.name} is not a regular {what}", folder)
        if status.st_nlink > 1 and not (is_folder or readonly):
            raise CollectionError(
                f"is not written to: its {path.name} has another name elsewhere (a hard link), and "
                "would change there, too; copy the folder",
                folder,
            )


def remove(path: Path) -> None:
    """Remove a file if it exists and the system allows it: Windows locks mapped files."""
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        if os.name != "nt":
            raise


def opened_plainly(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file, refusing links: the `opener` of `open`."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)
