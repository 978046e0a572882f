"""Files in zip and tar archives, read one by one into memory, never unpacked to disk."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeAlias
from weakref import finalize

from nearlabel.common.messages import one_line
from nearlabel.features.picture_formats import MOST_BYTES, FileKind
from nearlabel.features.pictures import UnreadablePicture

Read: TypeAlias = Callable[[int], bytes]  # the first bytes of a file, at most so many


@dataclass(frozen=True)
class ArchivedPicture:
    """A picture in an archive, accepted wherever pictures are.

    Attributes
    ----------
    name : str
        The name in the archive.
    """

    name: str
    _read: Read = field(repr=False, compare=False)

    def read(self, size: int = MOST_BYTES) -> bytes:
        """Unpack the first `size` bytes; `UnreadablePicture` if that is not possible."""
        try:
            return self._read(size)
        except UnreadablePicture:
            raise
        except Exception as error:  # errors of damaged archives have no common class
            raise UnreadablePicture(self.name, _not_unpacked(error)) from error


def refused(name: str, reason: str) -> ArchivedPicture:
    """A placeholder for a picture that is known to be unreadable."""

    def read(_: int) -> bytes:
        raise UnreadablePicture(name, reason)

    return ArchivedPicture(name, read)


def archived_files(path: Path, kind: FileKind) -> Iterator[ArchivedPicture] | None:
    """The files of a kind in an archive, in its order; None if it is not an archive.

    If an archive is damaged, the last entry has the name of the archive itself.
    """
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _of_kind(_in_zip(path), kind, path.name)
    if head[257:262] == b"ustar":
        return _of_kind(_in_tar(path), kind, path.name)
    if head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")):  # gzip, bzip2, xz
        reason = "is compressed as a whole; unpack it first, or make it a zip archive"
        return iter([refused(path.name, reason)])
    return None


def _of_kind(
    entries: Iterator[tuple[str, int, int, Read]], kind: FileKind, archive: str
) -> Iterator[ArchivedPicture]:
    """The files of a kind, given names, sizes unpacked and packed, and what reads them."""
    try:
        for name, size, packed, read in entries:
            parts = PurePosixPath(name).parts
            if any(part == "__MACOSX" or (part[:1] == "." and part != "..") for part in parts):
                continue
            file = ArchivedPicture(name, read)
            if not kind.includes(name, file.read):
                continue
            if size > kind.most_bytes:
                yield refused(name, f"has {size:,} bytes; at most {kind.most_bytes:,} are read")
            elif size > max(2**26, 200 * packed):
                yield refused(name, "unpacks to more than 200 times its packed size")
            else:
                yield file
    except Exception as error:  # as above
        yield refused(archive, _not_unpacked(error))


def _not_unpacked(error: Exception) -> str:
    return f"cannot be unpacked: {one_line(str(error) or type(error).__name__, 200)}"


def _in_zip(path: Path) -> Iterator[tuple[str, int, int, Read]]:
    archives: dict[int, zipfile.ZipFile] = {}  # by process: forked ones would share a position

    def archive() -> zipfile.ZipFile:
        if os.getpid() not in archives:
            file = path.open("rb")
            finalize(content, file.close)
            archives[os.getpid()] = zipfile.ZipFile(file)
        return archives[os.getpid()]

    def content(entry: zipfile.ZipInfo, size: int) -> bytes:
        with archive().open(entry) as file:
            return file.read(size)

    for entry in archive().infolist():
        if not entry.is_dir():
            yield entry.filename, entry.file_size, entry.compress_size, partial(content, entry)


def _in_tar(path: Path) -> Iterator[tuple[str, int, int, Read]]:
    def content(start: int, most: int, size: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(min(size, most))

    def sparse(_: int) -> bytes:  # a few bytes can stand for any number of zeros
        raise ValueError("it is stored as a sparse file, which is not supported")

    with tarfile.open(path, "r:") as archive:
        for entry in archive:
            entry.pax_headers = {}  # each entry would keep a copy of the global headers
            if entry.isreg():
                read = partial(content, entry.offset_data, entry.size)
                yield entry.name, entry.size, entry.size, sparse if entry.issparse() else read
