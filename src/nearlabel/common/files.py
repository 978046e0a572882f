"""One safe file format: a tree of JSON values whose leaves may be arrays of numbers.

A file is a preamble of 64 bytes (mark, format version, lengths, checksum), a header in JSON, and
the arrays one after the other, each at a multiple of 64 bytes, little-endian, in C order. The
header has the checksums of each array, one per MiB, and the preamble has that of itself and the
header, so that no bit of a file can change unnoticed. Nothing in a file is ever executed: there
is no pickle.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import math
import os
import secrets
import shutil
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self, TypedDict

import numpy as np

from nearlabel.common.arrays import Array, Csr, Tree, csr_of_parts
from nearlabel.common.mapped_arrays import MappedArray, checked
from nearlabel.common.messages import one_line, plain_json

if sys.platform == "darwin":
    import fcntl

FORMAT = 4

# As in PNG: a transfer in text mode would damage the line ends, and the first byte is not ASCII.
_MARK = b"\x89nearlabel\r\n\x1a\n"
_LENGTHS = struct.Struct("<14sHQQ")  # mark, format version, bytes of the header, bytes in all
_PREAMBLE = _LENGTHS.size + 32  # the checksum of the lengths and the header follows
_DIGITS = 64  # of a checksum
BLOCK = 2**20  # bytes of an array that have a checksum of their own
_DTYPES = {
    np.dtype(name).newbyteorder("<").str: np.dtype(name).newbyteorder("<")
    for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}
# Errors that reading an invalid tree raises.
NONSENSE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


_OF_DISKS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FileError(ValueError):
    """A file is not a complete, unaltered nearlabel file.

    The message is its path, if known, and the reason.
    """

    def __init__(self, reason: str, path: str | os.PathLike[str] | None = None) -> None:
        super().__init__(one_line(reason if path is None else f"{path} {reason}"))
        self.reason, self.path = one_line(reason), path

    def of(self, path: str | os.PathLike[str]) -> Self:
        """The error with the name of its file, unless it has one already."""
        return type(self)(self.reason, path) if self.path is None else self


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file under a temporary name; it replaces `path` once it is complete.

    After an error or an interrupt, `path` is unchanged; if the disk is full, the error names it.
    A process that is killed leaves its temporary file behind; the next write to `path`, a day later
    or more, removes it.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a device or a pipe has nothing to replace
        with naming(path), target.open("wb") as file:
            yield file
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    remove_parts(target, 86_400)  # seconds: no file takes a day to write
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        with naming(path):
            with temporary.open("wb") as file:
                if target.exists():
                    shutil.copymode(target, temporary)
                yield file
                file.flush()
                sync(file.fileno())
            temporary.replace(target)
        sync_folder(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name this file in errors of the disk that name none, such as that of a full one."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _OF_DISKS:
            error.filename = str(path)
        raise


def remove_parts(path: str | os.PathLike[str], older_than: float = 0) -> None:
    """Remove temporary files of `path` that have not been written to for that many seconds."""
    target = Path(os.path.realpath(path))
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(OSError):  # another process has removed it, or still has it open
            if time.time() - part.stat().st_mtime >= older_than:
                part.unlink()


def sync(descriptor: int) -> None:
    """Flush an open file to the disk: on macOS `fsync` leaves it in the cache of the drive."""
    if sys.platform == "darwin":
        with suppress(OSError):  # not every file system supports it
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Flush the creation, renaming or removal of a file to disk, if the system can."""
    with suppress(OSError):  # not every file system supports it, nor is every user allowed to
        folder = os.open(Path(path).parent, os.O_RDONLY)
        try:
            sync(folder)
        finally:
            os.close(folder)


def write_tree(path: str | os.PathLike[str], tree: Mapping[str, object]) -> str:
    """Write a tree of dicts, lists, numbers, strings, None and numeric arrays to one file.

    Returns the checksum of its header, which covers the whole file.
    """
    with replacing(path) as file:
        return put_tree(file, tree)


def put_tree(file: BinaryIO, tree: Mapping[str, object]) -> str:
    """Write a tree to an open, empty file; returns the checksum of its header."""
    arrays: list[Array] = []
    text = _json(_without_arrays(tree, arrays))
    entries = [_entry(array) for array in arrays]
    text = b'{"tree": ' + text + b', "arrays": ' + _json(entries) + b"}"
    places = _places(_PREAMBLE + len(text), entries)
    lengths = _LENGTHS.pack(_MARK, FORMAT, len(text), places[-1])
    digest = hashlib.sha256(lengths + text)
    written = file.write(lengths + digest.digest() + text)
    for place, array in zip(places, arrays, strict=False):
        file.write(bytes(place - written))
        written = place + file.write(_bytes_of(array))
    file.write(bytes(places[-1] - written))
    return digest.hexdigest()


class Entry(TypedDict):
    """What the header has of an array: its type, its shape, and a checksum per block."""

    dtype: str
    shape: list[int]
    sha256: str


class StoredTree(NamedTuple):
    """The content of a file, the version of its format, and the checksum that covers all of it."""

    tree: Tree
    version: int
    digest: str


def read_stored(path: str | os.PathLike[str], *, mmap: bool = False) -> StoredTree:
    """Read a file of `write_tree`, checked to the last bit.

    With `mmap`, an array larger than a block is a `MappedArray`: mapped read-only instead of read
    into memory, and checked block by block on first access. Everything else is checked at once. A
    file that is foreign, truncated, altered, or of a newer format raises a `FileError`.
    """
    with Path(path).open("rb") as file:
        return get_tree(file, path, mmap=mmap)


def get_tree(file: BinaryIO, path: str | os.PathLike[str], *, mmap: bool = False) -> StoredTree:
    """Read a tree from an open file that contains nothing else; errors name `path`."""
    try:
        header, places, version, digest = _read_header(file)
        arrays = []
        for place, entry in zip(places, header["arrays"], strict=False):
            _check_gap(file, place)
            checks = _Checks(path, entry, version)
            arrays.append(_read_array(file, entry, checks, mmap))
        _check_gap(file, places[-1])
        tree = _with_arrays(header["tree"], arrays)
    except FileError as error:
        raise error.of(path) from None
    except (ValueError, RecursionError):
        raise FileError("is damaged: its header is not valid", path) from None
    if not isinstance(tree, dict):
        raise FileError("is not a nearlabel file: its content is not a tree", path)
    return StoredTree(tree, version, digest)


def stored_digest(path: str | os.PathLike[str]) -> str | None:
    """The checksum in the preamble of a file, which identifies it; None if it has none."""
    with suppress(OSError), Path(path).open("rb") as file:
        start = file.read(_PREAMBLE)
        if start.startswith(_MARK) and len(start) == _PREAMBLE:
            return start[_LENGTHS.size :].hex()
    return None


def _without_arrays(node: object, arrays: list[Array]) -> object:
    """The tree with each array replaced by its number; the arrays are appended to the list."""
    if isinstance(node, np.ndarray):
        arrays.append(np.asarray(checked(node), order="C"))
        return {"array": len(arrays) - 1}
    if isinstance(node, Mapping):
        return {str(key): _without_arrays(value, arrays) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_without_arrays(value, arrays) for value in node]
    return node


def _with_arrays(node: Any, arrays: list[Array]) -> Any:
    if isinstance(node, dict):
        if node.keys() == {"array"}:
            place = node["array"]
            if not isinstance(place, int) or not 0 <= place < len(arrays):
                raise FileError("is damaged: it refers to a missing array")
            return arrays[place]
        return {key: _with_arrays(value, arrays) for key, value in node.items()}
    if isinstance(node, list):
        return [_with_arrays(value, arrays) for value in node]
    return node


def _entry(array: Array) -> Entry:
    """The header's entry for an array."""
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in _DTYPES:
        raise TypeError(f"arrays of type {array.dtype} cannot be written")
    content = _bytes_of(array)
    starts = range(0, max(len(content), 1), BLOCK)
    sums = "".join(_sha256(content[start : start + BLOCK]) for start in starts)
    return {"dtype": dtype, "shape": list(array.shape), "sha256": sums}


def _bytes_of(array: Array) -> memoryview:
    """The bytes of a contiguous array in the file's byte order."""
    ordered = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return ordered.reshape(-1).view(np.uint8).data


def _sha256(content: memoryview) -> str:
    return hashlib.sha256(content).hexdigest()


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        around = error.object[max(0, error.start - 20) : error.end + 20]
        what = "a string contains an unpaired surrogate and cannot be saved"
        raise ValueError(f"{what}: {around!r}") from None


def _places(start: int, entries: list[Entry]) -> list[int]:
    """Where each array begins, and where the file ends: at the next multiple of 64 bytes."""
    places, end = [], start
    for size in (*map(_nbytes, entries), 0):
        places.append(end + -end % 64)
        end = places[-1] + size
    return places


def _read_header(file: BinaryIO) -> tuple[Tree, list[int], int, str]:
    start = file.read(_PREAMBLE)
    if not start.startswith(_MARK):
        raise FileError("is not a nearlabel file: its first bytes are different")
    size = file.seek(0, os.SEEK_END)
    file.seek(len(start))
    if len(start) < _PREAMBLE:
        raise FileError(f"is truncated: it has only {size} bytes")
    lengths, digest = start[: _LENGTHS.size], start[_LENGTHS.size :]
    _, version, header_size, file_size = _LENGTHS.unpack(lengths)
    if version > FORMAT:
        raise FileError(
            f"has format version {version}; this nearlabel reads versions up to {FORMAT}: "
            "update nearlabel to read it"
        )
    if file_size != size:
        raise FileError(f"is truncated or altered: expected {file_size} bytes; got {size}")
    text = file.read(min(header_size, size))
    if hashlib.sha256(lengths + text).digest() != digest:
        raise FileError("is altered: the checksum of its header does not match")
    try:
        header = plain_json(text)
        places = _places(_PREAMBLE + header_size, header["arrays"])
        if version < 1 or places[-1] != size or "tree" not in header:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FileError("is damaged: its header is not valid") from None
    return header, places, version, digest.hex()


def _nbytes(entry: Entry) -> int:
    shape = entry["shape"]
    are_sizes = all(type(size) is int and 0 <= size < 2**48 for size in shape)
    if not are_sizes or len(shape) > 8 or not isinstance(entry["sha256"], str):
        raise ValueError
    return int(math.prod(shape, start=_DTYPES[entry["dtype"]].itemsize))


class _Checks:
    """The checksums of an array: one per block, or before format 3 one for the whole array."""

    def __init__(self, path: str | os.PathLike[str], entry: Entry, version: int) -> None:
        nbytes = _nbytes(entry)
        self.size = BLOCK if version >= 3 else max(nbytes, 1)
        self._path, self._sums, self._dtype = path, entry["sha256"], entry["dtype"]
        if len(self._sums) != _DIGITS * len(range(0, max(nbytes, 1), self.size)):
            raise ValueError("expected one checksum per block")

    def check(self, block: int, content: Array) -> None:
        """Raise an error if the bytes of a block are not as written."""
        if _sha256(content.data) != self._sums[_DIGITS * block : _DIGITS * (block + 1)]:
            raise FileError("is altered: the checksum of an array does not match", self._path)
        if self._dtype == "|b1" and content.size and content.max() > 1:
            raise FileError("is damaged: a boolean is neither 0 nor 1", self._path)


def _read_array(file: BinaryIO, entry: Entry, checks: _Checks, mmap: bool) -> Array:
    place, nbytes = file.tell(), _nbytes(entry)
    dtype, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
    if mmap and nbytes > BLOCK:
        mapped = MappedArray(file, place, dtype, shape, checks.size, checks.check)
        file.seek(place + nbytes)
        return mapped
    content: Array = np.empty(nbytes, np.uint8)
    for block, start in enumerate(range(0, max(nbytes, 1), checks.size)):
        part = content[start : start + checks.size]
        if file.readinto(part.data) != len(part):  # type: ignore[attr-defined]
            raise FileError("is truncated")
        checks.check(block, part)
    return content.view(dtype).reshape(shape)


def _check_gap(file: BinaryIO, place: int) -> None:
    """Raise an error unless the padding between two arrays is all zeros."""
    if any(file.read(place - file.tell())):
        raise FileError("is altered: the padding between its arrays is not zero")


def csr_tree(matrix: Csr, *, only_ones: bool = False) -> Tree:
    """A sparse matrix as a tree; without its values if they are all ones."""
    return {
        "shape": list(matrix.shape),
        "indptr": matrix.indptr,
        "indices": matrix.indices,
        "data": None if only_ones else matrix.data,
    }


def csr_from(tree: Mapping[str, Any], what: str) -> Csr:
    """The matrix of a `csr_tree`, with every index checked: a wrong one would crash later."""
    try:
        rows, columns = tree["shape"]
        indices, data = tree["indices"], tree["data"]
        if data is None:
            data = np.ones(len(indices), np.int8)
        matrix = csr_of_parts(data, indices, tree["indptr"], (rows, columns))
        if not matrix.has_canonical_format:
            raise ValueError("its column indices are not sorted")
    except NONSENSE:
        raise FileError(f"is damaged: its {what} are not a sparse matrix") from None
    return matrix
