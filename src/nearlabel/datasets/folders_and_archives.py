"""Folders and zip archives as places where the files of a data set stand together."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from nearlabel.common.messages import shown
from nearlabel.datasets.text_lines import DataError, Progress, TextFile


class Folder:
    """A folder as a place of files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def __contains__(self, name: str) -> bool:
        return (self.path / name).is_file()

    def __iter__(self) -> Iterator[str]:
        found = self.path.iterdir() if self.path.is_dir() else ()
        return iter(sorted(path.name for path in found if path.is_file()))

    def text(self, name: str, encoding: str, progress: Progress | None = None) -> TextFile:
        """One of its files, to be read."""
        return TextFile(self.path / name, encoding, progress)


class Archive:
    """A zip archive as a place of files: read member by member, never unpacked to the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise DataError(str(path), None, f"not a zip archive: {error}") from None
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in self._archive.infolist():
            place = PurePosixPath(member.filename)
            if member.is_dir() or place.name.startswith(".") or place.parts[0] == "__MACOSX":
                continue
            if place.name in self._members:
                self._archive.close()
                raise DataError(str(path), None, f"it has two files {shown(place.name)}")
            self._members[place.name] = member

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._members))

    def text(self, name: str, encoding: str, progress: Progress | None = None) -> TextFile:
        """One of its files, to be read."""
        member, title = self._members[name], f"{self.path}/{self._members[name].filename}"
        try:
            check_compression(member)
        except ValueError as error:
            raise DataError(title, None, str(error)) from None
        return TextFile(title, encoding, progress, opener=lambda: self._archive.open(member))


@dataclass(frozen=True)
class DataFile:
    """A file that a data set is read from, and what stands beside it.

    Attributes
    ----------
    place : Folder or Archive
    name : str
        "-" for standard input.
    encoding : str
    progress : callable or None
    """

    place: Folder | Archive
    name: str
    encoding: str = "utf-8"
    progress: Progress | None = None

    @property
    def path(self) -> Path:
        """Where it stands."""
        return self.place.path / self.name

    @property
    def stem(self) -> str:
        """Its name without the suffix of its format."""
        return re.sub(r"\.\w+$", "", self.name.removesuffix(".gz"))

    def text(self) -> TextFile:
        """Its lines, to be read and closed."""
        return self.place.text(self.name, self.encoding, self.progress)

    def beside(self, *names: str) -> TextFile | None:
        """The first of some files that stands beside it; nothing is beside standard input."""
        there = (name for name in names if self.name != "-" and name in self.place)
        found = next(there, None)
        return None if found is None else self.place.text(found, self.encoding)


def check_compression(member: zipfile.ZipInfo) -> None:
    """Refuse methods that data sets do not use: LZMA takes the memory that a file tells it to."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("it is neither stored nor deflated in its archive")
