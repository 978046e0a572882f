"""The tags that stand in and beside the files of a collection."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from nearlabel.collection.exchange.keywords import Keywords
from nearlabel.collection.exchange.picture_metadata import picture_keywords
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.exchange.text_beside import read_text_tags, text_files_of
from nearlabel.collection.exchange.xmp_sidecars import Sidecars, sidecar_keywords
from nearlabel.common.progress import Progress

if TYPE_CHECKING:
    from nearlabel.collection.collection import Collection
    from nearlabel.collection.records import Item


def tags_beside(
    collection: Collection,
    problems: list[str],
    *,
    sidecars: bool,
    texts: bool = False,
    progress: Progress | None = None,
) -> Iterator[TaggedFile]:
    """The tags of a collection's own files that stand in and beside them.

    Parameters
    ----------
    collection : Collection
    problems : list of str
        Gets a sentence for each file that cannot be read.
    sidecars : bool
        XMP sidecars, and XMP and IPTC keywords inside of pictures.
    texts : bool, default=False
        Text files beside pictures.
    progress : callable, optional
        Called with (items done, items in all).
    """
    folders, items = FolderSidecars(), collection.items()
    for count, item in enumerate(items, 1):
        for path in files_there(item):
            tags: list[str] = []
            if sidecars:
                found, wrong = folders.keywords(path)
                problems += wrong
                tags += found.tags()
            if texts:
                tags += _text_tags(path, problems)
            if tags:
                yield TaggedFile(path, tuple(dict.fromkeys(tags)), id=item.id)
        if progress is not None:
            progress(count, len(items))


def _text_tags(path: str, problems: list[str]) -> list[str]:
    tags: list[str] = []
    for text in text_files_of(path):
        try:
            tags += read_text_tags(text)
        except (ValueError, OSError) as error:
            problems.append(problem_with(text, error))
    return tags


def problem_with(path: str | os.PathLike[str], error: Exception) -> str:
    """Why a file cannot be read or written, with its name."""
    if isinstance(error, OSError):
        return f"{os.fspath(path)}: {error.strerror or error}"
    return str(error)  # which names it


class FolderSidecars:
    """The sidecars of folders, each of which is looked at once."""

    def __init__(self) -> None:
        self._folders: dict[str, Sidecars] = {}

    def of(self, path: str) -> Sidecars:
        """Those of the folder of a picture."""
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder not in self._folders:
            self._folders[folder] = Sidecars(folder)
        return self._folders[folder]

    def keywords(self, path: str) -> tuple[Keywords, list[str]]:
        """The keywords of a picture in and beside it, and what could not be read."""
        name = os.path.basename(path)  # noqa: PTH119
        found, problems = sidecar_keywords(self.of(path).of(name))
        try:
            found += picture_keywords(path)
        except OSError as error:
            problems.append(problem_with(path, error))
        return found, problems


def plain_text(path: str) -> str:
    """A path that any file can hold: bytes that are no UTF-8 as escapes."""
    if path.isascii():
        return path
    try:
        return os.fsencode(path).decode(errors="backslashreplace")
    except UnicodeEncodeError:  # a text of JSON that is no path of this system
        return path.encode(errors="backslashreplace").decode()


def files_there(item: Item) -> list[str]:
    """The paths of the files of an item that were there when the collection last looked.

    A path that leads out of its folder was put into the collection by somebody else.
    """
    there = [file for file in item.files if not file.is_missing and _is_within(file.path)]
    return [os.path.join(file.root, file.path) for file in there]  # noqa: PTH118


def _is_within(path: str) -> bool:
    return not PurePath(path).is_absolute() and ".." not in PurePath(path).parts
