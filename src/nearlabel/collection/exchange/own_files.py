"""Tags stored inside and next to the files of a collection."""

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
    """The tags stored inside and next to a collection's own files.

    Parameters
    ----------
    collection : Collection
    problems : list of str
        Receives a message for each file that cannot be read.
    sidecars : bool
        Read XMP sidecars, and XMP and IPTC keywords inside pictures.
    texts : bool, default=False
        Read text files next to pictures.
    progress : callable, optional
        Called with (items done, total items).
    """
    folders, items = FolderSidecars(), collection.items()
    for count, item in enumerate(items, 1):
        for path in files_there(item):
            tags: list[str] = []
            if sidecars:
                keywords, wrong = folders.keywords(path)
                problems += wrong
                tags += keywords.tags()
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
    """Why a file cannot be read or written, including its name."""
    if isinstance(error, OSError):
        return f"{os.fspath(path)}: {error.strerror or error}"
    return str(error)  # names the file


class FolderSidecars:
    """The sidecars of folders; each folder is listed once."""

    def __init__(self) -> None:
        self._folders: dict[str, Sidecars] = {}

    def of(self, path: str) -> Sidecars:
        """The sidecars in the folder of a picture."""
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder not in self._folders:
            self._folders[folder] = Sidecars(folder)
        return self._folders[folder]

    def keywords(self, path: str) -> tuple[Keywords, list[str]]:
        """The keywords inside and next to a picture, and what could not be read."""
        name = os.path.basename(path)  # noqa: PTH119
        keywords, problems = sidecar_keywords(self.of(path).of(name))
        try:
            keywords += picture_keywords(path)
        except OSError as error:
            problems.append(problem_with(path, error))
        return keywords, problems


def files_there(item: Item) -> list[str]:
    """The paths of an item's files that existed at the last indexing.

    A path that leaves its folder was put into the collection by somebody else and is skipped.
    """
    there = [file for file in item.files if not file.is_missing and _is_within(file.path)]
    return [os.path.join(file.root, file.path) for file in there]  # noqa: PTH118


def _is_within(path: str) -> bool:
    return not PurePath(path).is_absolute() and ".." not in PurePath(path).parts
