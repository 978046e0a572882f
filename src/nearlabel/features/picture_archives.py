"""Pictures in zip and tar archives, unpacked one by one in memory, never to disk."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import IO, Any, TypeVar
from weakref import finalize

from nearlabel.common.messages import one_line
from nearlabel.common.threads import ForkSafeLock
from nearlabel.features.picture_formats import HEAD, SUFFIXES, format_of
from nearlabel.features.pictures import MOST_BYTES, UnreadablePicture

_MOST_ENTRIES = 1_000_000
_MOST_TIMES = 200  # allowed compression ratio, for files larger than the next number
_NOT_MUCH = 2**26
_AT_ONCE = 2**20  # bytes of a tar archive: more than any file header
_UNPACKERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_IS_ENCRYPTED = 1  # a bit among the flags of a file in a zip archive

Read = Callable[[int], bytes]
T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """The files to look for: by suffix, or else by their first bytes."""

    suffixes: frozenset[str]
    most_bytes: int
    begins: Callable[[bytes, str], bool]  # called with the first bytes of a file and its name

    def has_suffix(self, name: str) -> bool:
        """Whether the suffix of a name is of this kind."""
        return os.path.splitext(name)[1].lower() in self.suffixes  # noqa: PTH122


PICTURES = Kind(SUFFIXES, MOST_BYTES, lambda head, name: format_of(head, name) is not None)


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


def archived_pictures(
    path: str | os.PathLike[str], kind: Kind = PICTURES
) -> Iterator[ArchivedPicture] | None:
    """The pictures, or files of another kind, in an archive, in its order; None if it is not one.

    If an archive is damaged, the last entry has the name of the archive itself.
    """
    with open(path, "rb") as file:  # noqa: PTH123
        head = file.read(512)
    unpack = next((unpack for begin, unpack in _UNPACKERS.items() if head.startswith(begin)), None)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _to_the_damage(_in_zip(path, kind), path)
    if unpack is not None or head[257:262] == b"ustar":
        return _to_the_damage(_in_tar(path, unpack, kind), path)
    return None


def _to_the_damage(
    entries: Iterator[ArchivedPicture], path: str | os.PathLike[str]
) -> Iterator[ArchivedPicture]:
    try:
        yield from entries
    except Exception as error:  # as above
        yield refused(os.path.basename(path), _not_unpacked(error))  # noqa: PTH119


def _counted(entries: Iterable[T]) -> Iterator[T]:
    """All entries of an archive, pictures or not, up to a limit."""
    for number, entry in enumerate(entries):
        if number == _MOST_ENTRIES:
            raise ValueError(f"it has more than {_MOST_ENTRIES:,} files")
        yield entry


def _not_unpacked(error: Exception) -> str:
    return f"cannot be unpacked: {one_line(str(error) or type(error).__name__, 200)}"


def _in_zip(path: str | os.PathLike[str], kind: Kind) -> Iterator[ArchivedPicture]:
    archive = zipfile.ZipFile(_opened(path))  # open as long as one of its pictures exists

    def content(entry: zipfile.ZipInfo, size: int) -> bytes:
        with archive.open(entry) as file:
            return file.read(size)

    for entry in _counted(archive.infolist()):
        if entry.is_dir() or _is_hidden(entry.filename):
            continue
        picture = ArchivedPicture(entry.filename, partial(content, entry))
        if entry.flag_bits & _IS_ENCRYPTED:
            if kind.has_suffix(entry.filename):
                yield refused(entry.filename, "is encrypted")
        elif _is_of(kind, picture):
            yield _within_limits(kind, picture, entry.file_size, entry.compress_size)


def _in_tar(
    path: str | os.PathLike[str], unpack: Callable[[IO[bytes]], Any] | None, kind: Kind
) -> Iterator[ArchivedPicture]:
    packed = _opened(path)
    try:
        most = max(_NOT_MUCH, os.fstat(packed.fileno()).st_size * _MOST_TIMES)
        file = _Unpacked(packed if unpack is None else unpack(packed), most)
        archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115
    except BaseException:
        packed.close()
        raise
    finalize(archive, packed.close)
    lock = ForkSafeLock()  # the pictures share one file position

    def content(entry: tarfile.TarInfo, size: int) -> bytes:
        with lock.held():
            stored: Any = archive.extractfile(entry)
            starts = range(0, min(size, entry.size), _AT_ONCE)
            end = starts.stop
            return b"".join(stored.read(min(_AT_ONCE, end - start)) for start in starts)

    for entry in _counted(archive):
        entry.pax_headers = {}  # each entry would keep a copy of the global headers
        if not entry.isreg() or _is_hidden(entry.name):
            continue
        if entry.issparse():  # a few bytes can stand for any number of zeros
            if kind.has_suffix(entry.name):
                yield refused(entry.name, "is stored as a sparse file, which is not supported")
        else:
            picture = ArchivedPicture(entry.name, partial(content, entry))
            if _is_of(kind, picture):
                yield _within_limits(kind, picture, entry.size, None)


def _is_hidden(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return any(part == "__MACOSX" or (part[:1] == "." and part != "..") for part in parts)


def _is_of(kind: Kind, picture: ArchivedPicture) -> bool:
    """Whether the name or the content is that of a picture, or of another kind searched for."""
    if kind.has_suffix(picture.name):
        return True
    try:
        return kind.begins(picture.read(HEAD), picture.name)
    except UnreadablePicture:
        return False


def _within_limits(
    kind: Kind, picture: ArchivedPicture, size: int, packed: int | None
) -> ArchivedPicture:
    """The picture, or a refusal if it would fill the memory."""
    if size > kind.most_bytes:
        return refused(picture.name, f"has {size:,} bytes; at most {kind.most_bytes:,} are read")
    if packed is not None and size > max(_NOT_MUCH, packed * _MOST_TIMES):
        return refused(picture.name, f"unpacks to more than {_MOST_TIMES} times its packed size")
    return picture


def _opened(path: str | os.PathLike[str]) -> IO[bytes]:
    """An archive that forked processes can read at the same time."""
    if not hasattr(os, "pread"):  # Windows has no fork
        return open(path, "rb")  # noqa: PTH123
    return io.BufferedReader(_OwnPlace(os.open(path, os.O_RDONLY)))


class _OwnPlace(io.RawIOBase):
    """A file with its own position: that of an open file is shared with forked processes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._place = descriptor, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: Any) -> int:
        found = os.pread(self._descriptor, len(buffer), self._place)
        buffer[: len(found)] = found
        self._place += len(found)
        return len(found)

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        size = os.fstat(self._descriptor).st_size
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: size}[whence]
        if begin + place < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._place = begin + place
        return self._place

    def tell(self) -> int:
        return self._place

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self._descriptor)


class _Unpacked(io.RawIOBase):
    """A file that is decompressed while it is read, up to a ratio."""

    def __init__(self, file: Any, most: int) -> None:
        self._file, self._most = file, most

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _AT_ONCE:
            raise ValueError(f"a header has {size:,} bytes")
        self._check(self._file.tell() + size)
        found: bytes = self._file.read(size)
        return found

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        self._check(place)
        reached: int = self._file.seek(place, whence)
        return reached

    def tell(self) -> int:
        place: int = self._file.tell()
        return place

    def _check(self, place: int) -> None:
        if place > self._most:
            raise ValueError(f"it unpacks to more than {_MOST_TIMES} times its packed size")
