"""One safe file format: a tree of JSON values whose leaves may be arrays of numbers.

A file is a preamble of 64 bytes (mark, format version, lengths, checksum), a header in JSON, and
the arrays one after the other, each at a multiple of 64 bytes, little-endian, in C order. The
header has the checksum of each array, and the preamble that of the header and of itself, so that no
bit of a file can change unnoticed. Nothing in a file is ever executed: there is no pickle.
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
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nearlabel.common.arrays import Array, Csr, csr_of_parts
from nearlabel.common.messages import one_line, plain_json

FORMAT = 2

# As in PNG: a transfer as text damages the line ends, and the first byte is not ASCII.
_MARK = b"\x89nearlabel\r\n\x1a\n"
_LENGTHS = struct.Struct("<14sHQQ")  # mark, format version, bytes of the header, bytes in all
_PREAMBLE = _LENGTHS.size + 32  # the checksum of the lengths and the header follows
_ALIGN = 64
_READ_AT_ONCE = 2**20
_ORPHANED_AFTER = 86_400  # seconds: no file takes a day to write
_NO_ROOM = (errno.ENOSPC, errno.EFBIG)
_DTYPES = {
    np.dtype(name).newbyteorder("<").str: np.dtype(name).newbyteorder("<")
    for name in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}
# What a tree that makes no sense ends in.
NONSENSE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


class FileError(ValueError):
    """A file that is not a whole, unaltered nearlabel file; says why."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file under a temporary name; it takes the place of `path` when all is written.

    After an error or an interrupt, `path` is as it was before; an error of a full disk names it.
    A process that is killed leaves its temporary file behind; whoever writes `path` a day later
    removes it.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a device or a pipe has nothing to replace
        with target.open("wb") as file:
            yield file
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    _remove_orphans(target)
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        with temporary.open("wb") as file:
            if target.exists():
                shutil.copymode(target, temporary)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            error.filename = str(path)
        raise


def _remove_orphans(target: Path) -> None:
    """Remove temporary files of `target` that have not been written to for a day."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(OSError):  # another process was quicker, or may not be disturbed
            if time.time() - part.stat().st_mtime > _ORPHANED_AFTER:
                part.unlink()


def write_tree(path: str | os.PathLike[str], tree: Mapping[str, Any]) -> None:
    """Write a tree of dicts, lists, numbers, texts, None and arrays of numbers to one file."""
    arrays: list[Array] = []
    header = {"tree": _without_arrays(tree, arrays), "arrays": [_entry(array) for array in arrays]}
    text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode()
    places = _places(_PREAMBLE + len(text), [array.nbytes for array in arrays])
    lengths = _LENGTHS.pack(_MARK, FORMAT, len(text), places[-1])
    with replacing(path) as file:
        file.write(lengths + hashlib.sha256(lengths + text).digest() + text)
        written = _PREAMBLE + len(text)
        for place, array in zip(places, arrays, strict=False):
            file.write(bytes(place - written))
            file.write(_bytes(array))
            written = place + array.nbytes
        file.write(bytes(places[-1] - written))


def read_tree(path: str | os.PathLike[str], *, mmap: bool = False) -> tuple[dict[str, Any], int]:
    """Read a file of `write_tree`, checked to the last bit, and its format version.

    With `mmap` the arrays are mapped into memory, read-only, instead of read into it. A file that
    is foreign, cut off, altered, or of a newer format is a `FileError`.
    """
    with Path(path).open("rb") as file:
        try:
            header, places, version = _read_header(file)
            arrays = [
                _read_array(file, place, entry, mmap)
                for place, entry in zip(places, header["arrays"], strict=False)
            ]
            _check_gap(file, places[-1])
            tree = _with_arrays(header["tree"], arrays)
        except FileError as error:
            raise FileError(f"{path} {error}") from None
        except (ValueError, RecursionError):
            raise FileError(f"{path} is damaged: its header makes no sense") from None
    if not isinstance(tree, dict):
        raise FileError(f"{path} is not a nearlabel file: its content is not a tree")
    return tree, version


def _without_arrays(node: Any, arrays: list[Array]) -> Any:
    """The tree with the number of each array in its place; the arrays go to the list."""
    if isinstance(node, np.ndarray):
        arrays.append(np.asarray(node, order="C"))
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


def _entry(array: Array) -> dict[str, Any]:
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in _DTYPES:
        raise TypeError(f"arrays of type {array.dtype} cannot be written")
    return {
        "dtype": dtype,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(_bytes(array)).hexdigest(),
    }


def _bytes(array: Array) -> memoryview:
    """The bytes of a contiguous array in the file's byte order."""
    ordered = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return ordered.reshape(-1).view(np.uint8).data


def _places(start: int, sizes: list[int]) -> list[int]:
    """Where each array begins, and where the file ends: at the next multiple of 64 bytes."""
    places, end = [], start
    for size in (*sizes, 0):
        places.append(end + -end % _ALIGN)
        end = places[-1] + size
    return places


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], list[int], int]:
    start = file.read(_PREAMBLE)
    if not start.startswith(_MARK):
        raise FileError("is not a nearlabel file: it begins with other bytes")
    size = os.fstat(file.fileno()).st_size
    if len(start) < _PREAMBLE:
        raise FileError(f"is cut off: it has only {size} bytes")
    lengths, digest = start[: _LENGTHS.size], start[_LENGTHS.size :]
    _, version, header_size, file_size = _LENGTHS.unpack(lengths)
    if version > FORMAT:
        raise FileError(
            f"has format version {version}; this nearlabel reads versions up to {FORMAT}: "
            "update nearlabel to read it"
        )
    if file_size != size:
        raise FileError(f"is cut off or altered: it should have {file_size} bytes and has {size}")
    text = file.read(min(header_size, size))
    if hashlib.sha256(lengths + text).digest() != digest:
        raise FileError("is altered: the checksum of its header does not match")
    try:
        header = plain_json(text)
        nbytes = [_nbytes(entry) for entry in header["arrays"]]
        places = _places(_PREAMBLE + header_size, nbytes)
        if version < 1 or places[-1] != size or "tree" not in header:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FileError("is damaged: its header makes no sense") from None
    return header, places, version


def _nbytes(entry: Any) -> int:
    shape = entry["shape"]
    are_sizes = all(type(size) is int and 0 <= size < 2**48 for size in shape)
    if not are_sizes or len(shape) > 8 or not isinstance(entry["sha256"], str):
        raise ValueError
    return int(math.prod(shape, start=_DTYPES[entry["dtype"]].itemsize))


def _read_array(file: BinaryIO, place: int, entry: dict[str, Any], mmap: bool) -> Array:
    _check_gap(file, place)
    dtype, shape, left = _DTYPES[entry["dtype"]], tuple(entry["shape"]), _nbytes(entry)
    content = np.empty(0 if mmap else left, np.uint8)
    digest, done = hashlib.sha256(), 0
    while done < left:
        part = file.read(min(_READ_AT_ONCE, left - done))
        if not part:
            raise FileError("is cut off")
        digest.update(part)
        if dtype.kind == "b" and np.frombuffer(part, np.uint8).max() > 1:
            raise FileError("is damaged: a truth value is neither 0 nor 1")
        if not mmap:
            content[done : done + len(part)] = np.frombuffer(part, np.uint8)
        done += len(part)
    if digest.hexdigest() != entry["sha256"]:
        raise FileError("is altered: the checksum of an array does not match")
    if mmap and left:
        mapped = np.memmap(file, dtype, "r", place, shape)
        file.seek(place + left)
        return mapped
    return np.frombuffer(content, dtype).reshape(shape)


def _check_gap(file: BinaryIO, place: int) -> None:
    """Nothing but zeros is between two arrays."""
    if any(file.read(place - file.tell())):
        raise FileError("is altered: there is something between its arrays")


def csr_tree(matrix: Csr, *, only_ones: bool = False) -> dict[str, Any]:
    """A sparse matrix as a tree; without its values where these are all ones."""
    return {
        "shape": list(matrix.shape),
        "indptr": matrix.indptr,
        "indices": matrix.indices,
        "data": None if only_ones else matrix.data,
    }


def csr_from(tree: Any, what: str) -> Csr:
    """A matrix of `csr_tree`, checked to the last index: a wrong one would crash later."""
    try:
        rows, columns = tree["shape"]
        indices, data = tree["indices"], tree["data"]
        if data is None:
            data = np.ones(len(indices), np.int8)
        matrix = csr_of_parts(data, indices, tree["indptr"], (rows, columns))
        if not matrix.has_canonical_format:
            raise ValueError("its columns are not in order")
    except NONSENSE:
        raise FileError(f"is damaged: its {what} are not a sparse matrix") from None
    return matrix
