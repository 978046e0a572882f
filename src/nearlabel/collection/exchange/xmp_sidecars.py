"""XMP sidecars: where they are, what they contain, and how they are updated.

A sidecar of ``a.jpg`` is ``a.jpg.xmp`` (digiKam, darktable) or ``a.xmp`` (Lightroom). If several
pictures share a stem, ``a.xmp`` is read for all of them, and written for the RAW photo: Lightroom
writes keywords into the other files themselves.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nearlabel.collection.exchange.keywords import Keywords
from nearlabel.collection.exchange.xmp_documents import XmpDocument
from nearlabel.collection.exchange.xmp_parser import MOST_BYTES
from nearlabel.common.files import replacing
from nearlabel.datasets.text_lines import DataError
from nearlabel.features.picture_formats import RAW_SUFFIXES, SUFFIXES

_SUFFIX = ".xmp"


class Sidecars:
    """The sidecars of the pictures in a folder, which is listed once."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._names: dict[str, str] = {}  # actual names, by names with the suffix in lower case
        self._pictures: dict[str, list[str]] = {}  # by stem
        with suppress(OSError):
            for name in sorted(os.listdir(self._folder)):  # noqa: PTH208
                stem, suffix = os.path.splitext(name)  # noqa: PTH122
                if suffix.lower() == _SUFFIX:
                    self._names.setdefault(stem + _SUFFIX, name)
                elif suffix.lower() in SUFFIXES:
                    self._pictures.setdefault(stem, []).append(name)

    def of(self, picture: str) -> list[Path]:
        """The existing sidecars of a picture."""
        stem = os.path.splitext(picture)[0]  # noqa: PTH122
        wanted = dict.fromkeys((picture + _SUFFIX, stem + _SUFFIX))
        return [self._folder / self._names[name] for name in wanted if name in self._names]

    def to_write(self, picture: str) -> list[Path]:
        """The sidecars to update; a new one if there is none."""
        stem = os.path.splitext(picture)[0]  # noqa: PTH122
        others = [name for name in self._pictures.get(stem, ()) if name != picture]
        is_its_own = not others or (_is_raw(picture) and not any(map(_is_raw, others)))
        there = [path for path in self.of(picture) if is_its_own or path.stem == picture]
        return there or [self._folder / (picture + _SUFFIX)]


def _is_raw(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in RAW_SUFFIXES  # noqa: PTH122


def read_sidecar(path: str | os.PathLike[str]) -> XmpDocument:
    """Read a sidecar; `DataError` if it is not one."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            raise ValueError("is not a file")
        with Path(path).open("rb") as file:
            return XmpDocument(file.read(MOST_BYTES + 1))
    except ValueError as error:
        raise DataError(str(path), None, f"this {error}") from None


def update_sidecar(
    path: str | os.PathLike[str],
    add: Iterable[str],
    remove: Iterable[str] = (),
    also: Iterable[str] = (),
) -> bool:
    """Add tags to a sidecar and remove others; returns whether it had to be written.

    When it is written, it also gets the tags `also`, which the picture has elsewhere, since some
    programs take the list of a sidecar as complete. A missing sidecar is created if there is
    something to add. A link is not followed: its target may be anywhere.
    """
    path, wanted, dropped = Path(path), [*add], {*remove}
    if path.is_symlink():
        raise DataError(str(path), None, "this is a link; links are not written to")
    before = _stamp(path)
    document = XmpDocument() if before is None else read_sidecar(path)
    try:
        content = document.with_tags(wanted, dropped)
        if content is not None:
            content = document.with_tags([*also, *wanted], dropped) or content
    except ValueError as error:
        raise DataError(str(path), None, f"this {error}") from None
    if content is None:
        return False
    with replacing(path) as file:
        file.write(content)
        if _stamp(path) != before:
            raise DataError(str(path), None, "another program has just changed this file")
    return True


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What identifies the state of a file; None if it does not exist."""
    try:
        about = path.lstat()
    except FileNotFoundError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns


def sidecar_keywords(paths: Iterable[Path]) -> tuple[Keywords, list[str]]:
    """The keywords of sidecars, and why some could not be read."""
    keywords, problems = Keywords(), []
    for path in paths:
        try:
            keywords += read_sidecar(path).keywords()
        except DataError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
    return keywords, problems
