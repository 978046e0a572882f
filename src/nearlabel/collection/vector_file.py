"""The vectors of a collection: a file of records to which others are appended.

A file is a header of 64 bytes (magic, version, form, width, checksum) and records: 16 bytes with
the item's id, the length of the data and a checksum of id and data, then float32 numbers, preceded
by int32 columns for sparse rows. Only the database knows which record is the last one:
bytes after it belong to a change that was never committed. A record is written once; when erased,
it keeps its length, and everything else becomes zeros.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from scipy import sparse

from nearlabel.collection.folder_checks import CollectionError, DamagedVectorsError, opened_plainly
from nearlabel.common.arrays import Array, Matrix, canonical_csr, csr_of_known
from nearlabel.common.files import sync_folder

_VERSION = 1
_MARK = b"\x89nlvectors\r\n\x1a\n"
_HEAD = struct.Struct("<14sHIQ")  # magic, version, 1 if rows are sparse, width
_RECORD = struct.Struct("<qII")  # item, bytes of the numbers, checksum
HEAD_SIZE, _SUM = 64, 16
_NUMBERS_AT_ONCE = 2**22


class Form(NamedTuple):
    """The length of vectors, and whether only nonzero numbers are stored."""

    width: int
    is_sparse: bool


def form_of(vector: Any) -> Form:
    """The form of a given vector."""
    if sparse.issparse(vector):
        return Form(int(vector.shape[-1]), True)
    return Form(int(np.asarray(vector).size), False)


def stacked(vectors: Sequence[Any], form: Form) -> Matrix:
    """Vectors as the rows of one float32 array or CSR matrix; refuses another form."""
    for vector in vectors:
        other = form_of(vector)
        if other != form or (sparse.issparse(vector) and vector.shape[0] != 1 and vector.ndim == 2):
            raise ValueError(
                f"vectors: this collection has {_described(form)}; got {_described(other)}",
            )
    with np.errstate(over="ignore"):
        if form.is_sparse:
            rows = [canonical_csr(v.reshape(1, -1) if v.ndim == 1 else v) for v in vectors]
            given = sparse.vstack([row.astype(np.float32) for row in rows], "csr")
            matrix = canonical_csr(given)
            values = matrix.data
        else:
            matrix = np.array([np.asarray(v, np.float32).ravel() for v in vectors], np.float32)
            values = matrix
    if not np.isfinite(values).all():
        raise ValueError("vectors must be finite and within the range of float32")
    return matrix


def _described(form: Form) -> str:
    return f"{'sparse' if form.is_sparse else 'dense'} vectors with {form.width} features"


class VectorFile:
    """A vector file up to a record, memory-mapped; the single writer can append to it."""

    def __init__(
        self, path: Path, form: Form, end: int, *, writable: bool, is_whole: bool = True
    ) -> None:
        self.path, self.form, self.end = path, form, end
        try:
            self._file = FileIO(path, "r+" if writable else "r", opener=opened_plainly)
        except FileNotFoundError:
            raise DamagedVectorsError(
                "is missing, and with it the vectors of all items", path
            ) from None
        try:
            if is_whole:
                self._check()
            else:  # every record is checked when read
                self.end = min(end, self._file.seek(0, os.SEEK_END))
        except BaseException:
            self.close()
            raise
        self._mapped: Array = np.empty(0, np.uint8)

    @classmethod
    def create(cls, path: Path, form: Form) -> VectorFile:
        """Create a file without records, replacing one that was never committed."""
        start = _HEAD.pack(_MARK, _VERSION, form.is_sparse, form.width)
        head = start.ljust(HEAD_SIZE - _SUM, b"\0")
        with FileIO(path, "w", opener=opened_plainly) as file, named(path):
            file.write(head + hashlib.sha256(head).digest()[:_SUM])
            os.fsync(file.fileno())
        sync_folder(path)
        return cls(path, form, HEAD_SIZE, writable=True)

    def append(self, ids: Sequence[int], rows: Matrix) -> tuple[list[int], int]:
        """Append vectors after the last record that counts; returns their places and the new end.

        They are on disk then, and count once `end` is moved. On an error the file is unchanged.
        """
        places, start = [], self.end
        try:
            self._file.seek(start)
            for records, lengths in self._records(ids, rows):
                left = memoryview(records)
                while left:
                    left = left[self._file.write(left) or 0 :]
                for length in lengths:
                    places.append(start)
                    start += length
            os.fsync(self._file.fileno())
        except BaseException as error:
            self.cut()
            if isinstance(error, OSError) and error.filename is None:
                error.filename = str(self.path)
            raise
        return places, start

    def end_after(self, place: int) -> int:
        """Where the record at `place` ends."""
        return place + _RECORD.size + self._header(place)[1]

    def cut(self) -> int:
        """Cut off everything after the last record that counts; returns the number of bytes."""
        behind = self._file.seek(0, os.SEEK_END) - self.end
        if behind > 0:
            self._file.truncate(self.end)
            os.fsync(self._file.fileno())
        return max(behind, 0)

    def read(self, ids: Array, places: Array) -> Matrix:
        """The vectors of items, whose records are at these places, in their order."""
        if self.form.is_sparse:
            return self._read_sparse(ids, places)
        stride, width = self.stride, self.form.width
        at, odd = np.divmod(np.asarray(places, np.int64) - HEAD_SIZE, stride)
        count = (self.end - HEAD_SIZE) // stride
        if len(at) and (odd.any() or at.min() < 0 or at.max() >= count):
            raise self._damaged("a record is not where it should be")
        records = self._bytes()[HEAD_SIZE : HEAD_SIZE + count * stride].reshape(count, stride)
        vectors = np.empty((len(at), width), np.float32)
        step = max(1, _NUMBERS_AT_ONCE // max(width, 1))
        for start in range(0, len(at), step):
            batch = records[at[start : start + step]]
            self._check_records(batch, ids[start : start + step])
            part = vectors[start : start + step]
            part[:] = np.ascontiguousarray(batch[:, _RECORD.size :]).view("<f4")
            if not np.isfinite(part).all():
                raise self._damaged("a number is not finite")
        return vectors

    def erase(self, places: Iterable[int]) -> int:
        """Overwrite records with zeros, except their lengths; returns how many were not erased."""
        erased = 0
        for place in places:
            item, length, _ = self._header(place)
            if not item:
                continue
            empty = _record(0, bytes(length))
            with named(self.path):
                self._file.seek(place)
                left = memoryview(empty)
                while left:
                    left = left[self._file.write(left) or 0 :]
            erased += 1
        if erased:
            with named(self.path):
                os.fsync(self._file.fileno())
        return erased

    def places(self) -> Iterator[int]:
        """The start of each record that counts, erased or not."""
        if not self.form.is_sparse:
            yield from range(HEAD_SIZE, self.end, self.stride)
            return
        place = HEAD_SIZE
        while place < self.end:
            yield place
            place = self.end_after(place)

    def size_of(self, place: int) -> int:
        """The size of a record in bytes."""
        return self.end_after(place) - place

    def copy_to(self, target: Path, places: Sequence[int]) -> tuple[VectorFile, list[int]]:
        """A new file with some of the records, and their places in it."""
        copy = VectorFile.create(target, self.form)
        try:
            moved, content, file = [], self._bytes(), copy._file
            file.seek(HEAD_SIZE)
            end = HEAD_SIZE
            for place in places:
                record = content[place : self.end_after(place)]
                self._check_record(record, _RECORD.unpack_from(record.data)[0])
                left = record.data
                with named(target):
                    while left:
                        left = left[file.write(left) or 0 :]
                moved.append(end)
                end += len(record)
            with named(target):
                os.fsync(file.fileno())
        except BaseException:
            copy.close()
            raise
        copy.end = end
        return copy, moved

    def close(self) -> None:
        """Close the file; it stays mapped while somebody reads it."""
        self._file.close()
        self._mapped = np.empty(0, np.uint8)

    @property
    def stride(self) -> int:
        """The size of a record in bytes, if all have the same."""
        return _RECORD.size + 4 * self.form.width

    def _records(self, ids: Sequence[int], rows: Matrix) -> Iterator[tuple[bytes, list[int]]]:
        """The bytes of records, in blocks, and their lengths."""
        is_dense = isinstance(rows, np.ndarray)
        step = max(1, _NUMBERS_AT_ONCE // max(1, self.form.width)) if is_dense else 256
        for start in range(0, len(ids), step):
            records = []
            for row in range(start, min(start + step, len(ids))):
                if isinstance(rows, np.ndarray):
                    content = rows[row].astype("<f4", copy=False).tobytes()
                else:
                    inside = slice(rows.indptr[row], rows.indptr[row + 1])
                    columns = rows.indices[inside].astype("<i4").tobytes()
                    content = columns + rows.data[inside].astype("<f4").tobytes()
                records.append(_record(ids[row], content))
            yield b"".join(records), list(map(len, records))

    def _read_sparse(self, ids: Array, places: Array) -> Matrix:
        content, indptr = self._bytes(), [0]
        columns, values = [], []
        for item, place in zip(ids.tolist(), places.tolist(), strict=True):
            record = content[place : self.end_after(place)]
            self._check_record(record, item)
            numbers = record[_RECORD.size :]
            half = len(numbers) // 2
            columns.append(numbers[:half].copy().view("<i4"))
            values.append(numbers[half:].copy().view("<f4"))
            indptr.append(indptr[-1] + len(columns[-1]))
        column = np.concatenate(columns) if columns else np.empty(0, np.int32)
        value = np.concatenate(values) if values else np.empty(0, np.float32)
        ends = np.array(indptr, np.int64)
        self._check_columns(column, ends)
        if not np.isfinite(value).all():
            raise self._damaged("a number is not finite")
        return csr_of_known(value, column, ends, (len(columns), self.form.width))

    def _check_columns(self, column: Array, ends: Array) -> None:
        """Refuse columns out of range, or out of order within a row."""
        if not len(column):
            return
        rising = np.diff(column.astype(np.int64)) > 0
        starts = ends[1:-1]
        rising[starts[(starts > 0) & (starts < len(column))] - 1] = True
        if column.min() < 0 or column.max() >= self.form.width or not rising.all():
            raise self._damaged("the columns of a sparse row are not in order")

    def _header(self, place: int) -> tuple[int, int, int]:
        """Item, length and checksum of the record that should start at a place."""
        limit = self.end - _RECORD.size
        if not HEAD_SIZE <= place <= limit:
            raise self._damaged("a record is not where it should be")
        item, length, total = _RECORD.unpack_from(self._bytes().data, place)
        unit = 8 if self.form.is_sparse else 4 * self.form.width
        if place + _RECORD.size + length > self.end or length % max(unit, 1):
            raise self._damaged("a record has an invalid length")
        return item, length, total

    def _check_records(self, records: Array, ids: Array) -> None:
        """Check many records of one length at once, without a Python loop."""
        kind = np.dtype([("item", "<i8"), ("length", "<u4"), ("sum", "<u4")])  # as _RECORD
        heads = np.frombuffer(np.ascontiguousarray(records[:, : _RECORD.size]), kind)
        stride, content = records.shape[1], records.reshape(-1).data
        sums = [
            crc32(content[at + _RECORD.size : at + stride], crc32(content[at : at + 8]))  # the item
            for at in range(0, records.size, stride)
        ]
        are_right = (heads["item"] == ids) & (heads["length"] == stride - _RECORD.size)
        are_right &= heads["sum"] == np.array(sums, np.uint32)
        for row in np.flatnonzero(~are_right)[:1]:
            self._check_record(records[row], int(ids[row]))

    def _check_record(self, record: Array, item: int) -> None:
        owner, length, total = _RECORD.unpack_from(record.data)
        if owner != item or length != len(record) - _RECORD.size:
            raise self._damaged(f"the record of item {item} belongs to another item, or was erased")
        if _checksum(owner, record[_RECORD.size :]) != total:
            raise self._damaged(f"the checksum of the record of item {item} does not match")

    def _bytes(self) -> Array:
        """The file up to the last record that counts, mapped again if it has grown."""
        mapped = self._mapped
        if len(mapped) < self.end:
            mapped = np.frombuffer(
                mmap(self._file.fileno(), self.end, access=ACCESS_READ), np.uint8
            )
            self._mapped = mapped
        return mapped

    def _check(self) -> None:
        head = self._file.read(HEAD_SIZE) or b""
        if not head.startswith(_MARK) or len(head) < HEAD_SIZE:
            raise self._damaged("it does not start with the expected bytes")
        _, version, is_sparse, width = _HEAD.unpack_from(head)
        if version > _VERSION:
            raise CollectionError(
                f"has version {version}; this nearlabel reads version {_VERSION}: update nearlabel",
                self.path,
            )
        if hashlib.sha256(head[:-_SUM]).digest()[:_SUM] != head[-_SUM:]:
            raise self._damaged("the checksum of its header does not match")
        if (width, bool(is_sparse)) != self.form or not 0 < width <= 2**31 - 1:
            raise self._damaged("the form of its vectors differs from the settings")
        size = self._file.seek(0, os.SEEK_END)
        if not HEAD_SIZE <= self.end <= size:
            raise self._damaged(f"it should have {self.end} bytes, but has {size}")

    def _damaged(self, why: str) -> CollectionError:
        return DamagedVectorsError(f"is damaged: {why}; restore a backup", self.path)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors of an open file, with its name."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _record(item: int, content: bytes) -> bytes:
    return _RECORD.pack(item, len(content), _checksum(item, content)) + content


def _checksum(item: int, content: Any) -> int:
    return crc32(content, crc32(item.to_bytes(8, "little")))
