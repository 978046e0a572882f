"""The data folder, and other places where the files of a data set stand together."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Self

from nearlabel.common.messages import shown
from nearlabel.datasets.text_lines import DataError, Progress, TextFile


def data_folders() -> list[Path]:
    """Where data sets are looked for: NEARLABEL_DATA, folders as in PATH, else the user's cache."""
    given = [Path(part) for part in os.environ.get("NEARLABEL_DATA", "").split(os.pathsep) if part]
    return given or [cache_folder()]


def cache_folder() -> Path:
    """The folder in the user's cache where nearlabel keeps what it can get again."""
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "nearlabel"


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

    def text(self, name: str, encoding: str, progress: Progress | None) -> TextFile:
        """One of its files, to be read."""
        return TextFile(self.path / name, encoding, progress)


class Archive:
    """A zip archive as a place of files: read member by member, never unpacked to the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise DataError(str(path), None, f"this is no zip archive: {error}") from None
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

    def text(self, name: str, encoding: str, progress: Progress | None) -> TextFile:
        """One of its files, to be read."""
        member, title = self._members[name], f"{self.path}/{self._members[name].filename}"
        try:
            check_compression(member)
        except ValueError as error:
            raise DataError(title, None, str(error)) from None
        return TextFile(title, encoding, progress, opener=lambda: self._archive.open(member))


def check_compression(member: zipfile.ZipInfo) -> None:
    """Refuse methods that data sets do not use: LZMA takes the memory that a file tells it to."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("it is neither stored nor deflated in its archive")
