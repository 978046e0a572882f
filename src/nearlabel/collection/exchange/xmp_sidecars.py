"""XMP sidecars: where they are, what they contain, and how they are updated.

A sidecar of ``a.jpg`` is ``a.jpg.xmp`` (digiKam, darktable) or ``a.xmp`` (Lightroom). If several
pictures share a stem, ``a.xmp`` is read for all of them, and written for the RAW photo: Lightroom
writes keywords into the other files themselves.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from nearlabel.collection.exchange.keywords import Keywords
from nearlabel.collection.exchange.picture_metadata import picture_keywords
from nearlabel.collection.exchange.xmp_documents import XmpDocument
from nearlabel.collection.exchange.xmp_parser import MOST_BYTES
from nearlabel.common.files import replacing
from nearlabel.datasets.text_lines import DataError
from nearlabel.features.picture_formats import RAW_SUFFIXES, SUFFIXES

_SUFFIX = ".xmp"


class Sidecars:
    """The sidecars of pictures; each folder is listed once."""

    def __init__(self) -> None:
        self._listed: set[Path] = set()
        self._sidecars: dict[Path, Path] = {}  # by their paths with the suffix in lower case
        self._pictures: dict[Path, list[Path]] = {}  # by their paths without the suffix

    def of(self, picture: Path) -> list[Path]:
        """The existing sidecars of a picture."""
        self._list(picture.parent)
        wanted = dict.fromkeys((_beside(picture), picture.with_suffix(_SUFFIX)))
        return [self._sidecars[path] for path in wanted if path in self._sidecars]

    def to_write(self, picture: Path) -> list[Path]:
        """The sidecars to update; a new one if there is none."""
        there = self.of(picture)
        same_stem = self._pictures.get(picture.with_suffix(""), [])
        others = [path for path in same_stem if path != picture]
        if others and (not _is_raw(picture) or any(map(_is_raw, others))):
            there = [path for path in there if path.stem == picture.name]
        return there or [_beside(picture)]

    def files_of(self, picture: Path) -> list[Path]:
        """The existing sidecars of a picture, and the picture, which may have keywords, too."""
        return [*self.of(picture), picture]

    def read(self, path: Path) -> Keywords:
        """The keywords of a sidecar or inside a picture."""
        if path.suffix.lower() == _SUFFIX:
            return read_sidecar(path).keywords()
        return picture_keywords(path)

    def write(self, picture: Path, yes: Sequence[str], no: Sequence[str]) -> bool:
        """Update the sidecars of a picture; returns whether one was written.

        The list in a sidecar is complete: it also has the tags from other sidecars and from inside
        the picture. If these already agree with all decisions, no sidecar is created.
        """
        there = sum(map(self.read, self.files_of(picture)), Keywords()).all_tags()
        is_known = {*yes} <= {*there} and not {*no} & {*there}
        is_new = [
            update_sidecar(target, yes, no, also=there)
            for target in self.to_write(picture)
            if os.path.lexists(target) or (yes and not is_known)
        ]
        return any(is_new)

    def _list(self, folder: Path) -> None:
        if folder in self._listed:
            return
        self._listed.add(folder)
        with suppress(OSError):
            for path in sorted(folder.iterdir()):
                if path.suffix.lower() == _SUFFIX:
                    self._sidecars.setdefault(path.with_suffix(_SUFFIX), path)
                elif path.suffix.lower() in SUFFIXES:
                    self._pictures.setdefault(path.with_suffix(""), []).append(path)


def _beside(picture: Path) -> Path:
    return picture.with_name(picture.name + _SUFFIX)


def _is_raw(path: Path) -> bool:
    return path.suffix.lower() in RAW_SUFFIXES


def read_sidecar(path: Path) -> XmpDocument:
    """Read a sidecar; `DataError` if it is not one."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError("is not a file")
        with path.open("rb") as file:
            return XmpDocument(file.read(MOST_BYTES + 1))
    except ValueError as error:
        raise DataError(str(path), None, f"this {error}") from None


def update_sidecar(
    path: Path, add: Iterable[str], remove: Iterable[str] = (), also: Iterable[str] = ()
) -> bool:
    """Add tags to a sidecar and remove others; returns whether it had to be written.

    When it is written, it also gets the tags `also`, which the picture has elsewhere, since some
    programs take the list of a sidecar as complete. A missing sidecar is created if there is
    something to add. A link is not followed: its target may be anywhere.
    """
    wanted, dropped = [*add], {*remove}
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
