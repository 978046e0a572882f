"""One folder per tag, with a subfolder for each further level: ``Places/Rome/a.jpg``.

Pictures are linked, or copied on request; never moved.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from nearlabel.collection.exchange.keywords import keyword_tag
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.tag_names import LEVELS
from nearlabel.common.files import replacing


def folder_of(tag: str) -> Path:
    """The folder of a tag; characters not allowed in names are percent-encoded: ``%2F``."""
    return Path(*map(_folder_name, tag.split(LEVELS)))


def _folder_name(level: str) -> str:
    name = re.sub(r'[\x00-\x1f\x7f"*/:<>?\\|%]', _encoded, level)  # not in names, on any system
    reserved = r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)"
    if name.startswith((".", " ")) or re.match(reserved, name):
        name = _encoded(name[0]) + name[1:]
    if name.endswith((".", " ")):
        name = name[:-1] + _encoded(name[-1])
    return name


def _encoded(mark: re.Match[str] | str) -> str:
    return f"%{ord(mark if isinstance(mark, str) else mark[0]):02X}"


def read_tag_folders(top: str | os.PathLike[str]) -> Iterator[TaggedFile]:
    """The files below a folder, with the tag named by their folders, and with their checksums.

    Links to files are followed, links to folders are not. Files at the top level and hidden files
    have no tag.
    """
    waiting: list[tuple[str, tuple[str, ...]]] = [(os.fspath(top), ())]
    while waiting:
        folder, levels = waiting.pop()
        with os.scandir(folder) as entries:
            by_name = sorted(entries, key=lambda entry: entry.name)
        for entry in by_name:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, (*levels, unquote(entry.name, errors="replace"))))
            elif levels and entry.is_file():
                tag = LEVELS.join(filter(None, map(keyword_tag, levels)))
                yield TaggedFile(entry.path, (tag,) if tag else (), content=_digest(entry.path))


def _digest(path: str) -> bytes | None:
    """The sha256 of a file; None if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            while piece := file.read(2**20):
                digest.update(piece)
    except OSError:
        return None
    return digest.digest()


class Written(NamedTuple):
    """How many files are in the folders, and which were missing."""

    files: int
    missing: list[str]


def write_tag_folders(
    top: str | os.PathLike[str],
    files: Iterable[TaggedFile],
    *,
    copy: bool = False,
) -> Written:
    """Create a folder for each tag, with the files of the items that have it.

    Parameters
    ----------
    top : path
        A new or empty folder.
    files : iterable of TaggedFile
    copy : bool, default=False
        Copy files instead of creating symbolic links.
    """
    place = Path(top)
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise FileExistsError(f"{place} exists and is not a folder")
    if place.is_dir() and any(place.iterdir()):
        raise FileExistsError(f"the folder {place} is not empty; pass a new one")
    place.mkdir(parents=True, exist_ok=True)
    count, missing = 0, []
    for tagged in files:
        if not tagged.yes:
            continue
        path = tagged.place
        if path is None or not os.path.isfile(path):  # noqa: PTH113 — False if it cannot be seen
            missing.append(tagged.file)
            continue
        for tag in tagged.yes:
            folder = place / folder_of(tag)
            folder.mkdir(parents=True, exist_ok=True)
            target = folder / path.name
            if os.path.lexists(target):  # another item has this name
                target = folder / f"{path.stem}-{tagged.id}{path.suffix}"
            if copy:
                with replacing(target) as file, path.open("rb") as source:
                    shutil.copyfileobj(source, file)
            else:
                target.symlink_to(path.absolute())
            count += 1
    return Written(count, missing)
