"""Files in zip and tar archives, unpacked one by one in memory, never to disk."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar
from weakref import finalize

from nearlabel.common.messages import one_line
from nearlabel.common.threads import ForkSafeLock
from nearlabel.features.picture_formats import MOST_BYTES, FileKind
from nearlabel.features.pictures import UnreadablePicture

_MOST_ENTRIES = 1_000_000
_MOST_TIMES = 200  # allowed compression ratio, for files larger than the next number
_NOT_MUCH = 2**26
_AT_ONCE = 2**20  # bytes of a tar archive: more than any file header
_UNPACKERS: dict[bytes, Callable[[Path], io.BufferedIOBase]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}

Read = Callable[[int], bytes]
T = TypeVar("T")


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


class _Entry(NamedTuple):
    """A file in an archive: its size, unpacked and packed, and what reads its first bytes."""

    name: str
    size: int
    packed: int
    read: Read


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
        return _of_kind(_in_tar(path, lambda path: path.open("rb")), kind, path.name)
    for begin, unpack in _UNPACKERS.items():
        if head.startswith(begin):
            return _of_kind(_in_tar(path, unpack), kind, path.name)
    return None


def _of_kind(
    entries: Iterator[_Entry | None], kind: FileKind, archive: str
) -> Iterator[ArchivedPicture]:
    """The files of a kind among all entries, of which None is no file."""
    try:
        for number, entry in enumerate(entries):
            if number == _MOST_ENTRIES:
                raise ValueError(f"it has more than {_MOST_ENTRIES:,} files")
            if entry is None or _is_hidden(entry.name):
                continue
            file = ArchivedPicture(entry.name, entry.read)
            if not kind.includes(entry.name, file.read):
                continue
            if entry.size > kind.most_bytes:
                reason = f"has {entry.size:,} bytes; at most {kind.most_bytes:,} are read"
                yield refused(entry.name, reason)
            elif entry.size > max(_NOT_MUCH, entry.packed * _MOST_TIMES):
                reason = f"unpacks to more than {_MOST_TIMES} times its packed size"
                yield refused(entry.name, reason)
            else:
                yield file
    except Exception as error:  # as above
        yield refused(archive, _not_unpacked(error))


def _not_unpacked(error: Exception) -> str:
    return f"cannot be unpacked: {one_line(str(error) or type(error).__name__, 200)}"


def _is_hidden(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return any(part == "__MACOSX" or (part[:1] == "." and part != "..") for part in parts)


def _per_process(opened: Callable[[], T]) -> Callable[[], T]:
    """An archive, opened once by each process: forked ones would share its position."""
    archives: dict[int, T] = {}

    def archive() -> T:
        process = os.getpid()
        if process not in archives:
            archives[process] = opened()
        return archives[process]

    return archive


def _in_zip(path: Path) -> Iterator[_Entry | None]:
    @_per_process
    def archive() -> zipfile.ZipFile:
        file = path.open("rb")
        finalize(content, file.close)
        return zipfile.ZipFile(file)

    def content(entry: zipfile.ZipInfo, size: int) -> bytes:
        with archive().open(entry) as file:
            return file.read(size)

    for entry in archive().infolist():
        read = partial(content, entry)
        packed = entry.compress_size
        yield None if entry.is_dir() else _Entry(entry.filename, entry.file_size, packed, read)


def _in_tar(path: Path, unpack: Callable[[Path], io.BufferedIOBase]) -> Iterator[_Entry | None]:
    lock = ForkSafeLock()  # the files share one position

    @_per_process
    def archive() -> tarfile.TarFile:
        file = unpack(path)
        finalize(content, file.close)
        return tarfile.open(fileobj=_Limited(file, path.stat().st_size * _MOST_TIMES), mode="r:")

    def content(entry: tarfile.TarInfo, size: int) -> bytes:
        if entry.issparse():  # a few bytes can stand for any number of zeros
            raise ValueError("it is stored as a sparse file, which is not supported")
        with lock.held():
            stored = archive().extractfile(entry)
            assert stored is not None
            ends = [*range(0, min(size, entry.size), _AT_ONCE), min(size, entry.size)]
            return b"".join(stored.read(end - start) for start, end in pairwise(ends))

    for entry in archive():
        entry.pax_headers = {}  # each entry would keep a copy of the global headers
        read = partial(content, entry)
        yield _Entry(entry.name, entry.size, entry.size, read) if entry.isreg() else None


class _Limited(io.RawIOBase):
    """An unpacked archive, of which a header cannot ask for all memory or for endless content."""

    def __init__(self, file: io.BufferedIOBase, most: int) -> None:
        self._file, self._most = file, max(_NOT_MUCH, most)

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _AT_ONCE:
            raise ValueError(f"a header has {size:,} bytes")
        self._check(self._file.tell() + size)
        return self._file.read(size)

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        self._check(place)
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()

    def _check(self, place: int) -> None:
        if place > self._most:
            raise ValueError(f"it unpacks to more than {_MOST_TIMES} times its packed size")
