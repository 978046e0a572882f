"""The disk as it may look after the plug is pulled, rebuilt from a record of writes and syncs.

What a file contains is certain only as of its last sync. Each later write and change of size may
have reached the disk or not, whatever their order, but not a mixture of bytes: a unit of 512 or
4,096 bytes is as it was at some moment since then. Where the file has grown and nothing was
written to the disk, there are zeros.

What a folder contains is certain as of the last sync of that folder; the sync of a file says
nothing about its name. Each later creation, removal or renaming may be on the disk or not, again
whatever their order, but a renaming as a whole: no file gets lost between two names.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_ENTRY = struct.Struct("<IIQQQ")  # `struct entry` of recorder.c


class Entry(NamedTuple):
    """One step of a run."""

    kind: str  # create, mkdir, write, truncate, sync, rename, unlink; All synced, Promise, Kept
    names: list[str]
    inode: int
    offset: int
    data: bytes


def entry_bytes(kind: str, name: str, data: bytes = b"") -> bytes:
    """An entry that a run adds to its own record."""
    return _ENTRY.pack(ord(kind), len(name), 0, 0, len(data)) + name.encode() + data


def read_entries(log: Path, start: int = 0) -> Iterator[Entry]:
    """All entries of a record from a place on."""
    with log.open("rb") as file:
        file.seek(start)
        content, at = file.read(), 0
    while at < len(content):
        kind, name_size, inode, offset, size = _ENTRY.unpack_from(content, at)
        names = at + _ENTRY.size
        at = names + name_size + size
        text = content[names : names + name_size].decode()
        yield Entry(chr(kind), text.split("\0"), inode, offset, content[at - size : at])


class Write(NamedTuple):
    """Bytes at a place of a file; without any, the file is cut there or extended to there."""

    offset: int
    data: bytes

    def put(self, content: bytearray) -> None:
        """Do the same to some bytes."""
        end = self.offset + len(self.data)
        content.extend(bytes(max(0, end - len(content))))
        if self.data:
            content[self.offset : end] = self.data
        else:
            del content[end:]


@dataclass(eq=False)
class File:
    """A file: what is certain, and the writes that are not."""

    certain: bytearray = field(default_factory=bytearray)
    writes: list[Write] = field(default_factory=list)

    def sync(self) -> None:
        for write in self.writes:
            write.put(self.certain)
        self.writes.clear()

    def content(self, loss: Loss) -> bytes:
        """What may be there."""
        content, units = bytearray(self.certain), dict[int, int]()
        last = loss.moment(len(self.writes))  # of the size
        lost_from = [2**63]  # beyond this size, blocks no longer belong to the file
        size = bytearray(content)
        for number, write in enumerate(self.writes):
            if number < last:
                write.put(size)
            if not write.data:
                if number < last:
                    write.put(content)
                elif write.offset < len(content):
                    lost_from.append(write.offset)
                continue
            start, end = write.offset, write.offset + len(write.data)
            while start < end:
                unit = start // loss.unit
                stop = min(end, (unit + 1) * loss.unit)
                if unit not in units:
                    units[unit] = loss.moment(len(self.writes))
                if number < units[unit] and stop <= min(lost_from):
                    part = write.data[start - write.offset : stop - write.offset]
                    Write(start, part).put(content)
                start = stop
        del content[len(size) :]
        return bytes(content.ljust(len(size), b"\0"))


@dataclass(eq=False)
class Folder:
    """A folder: what is there, and what is certainly on the disk."""

    entries: dict[str, File | Folder] = field(default_factory=dict)
    certain: dict[str, File | Folder] = field(default_factory=dict)


class Named(NamedTuple):
    """A name in a folder that now stands for this file, or for nothing."""

    folder: Folder
    name: str
    what: File | Folder | None


class Loss:
    """What a power failure takes: which of the uncertain changes are on the disk."""

    def __init__(self, chance: random.Random, names: float, data: float, unit: int = 512) -> None:
        self._chance, self._names, self._data, self.unit = chance, names, data, unit

    def is_named(self) -> bool:
        """Whether a change of names is on the disk."""
        return self._chance.random() < self._names

    def moment(self, last: int) -> int:
        """How many of these writes something has reached."""
        if self._data in (0, 1):
            return int(last * self._data)
        return self._chance.choice([0, last, self._chance.randint(0, last)])


class Disk:
    """A folder of a disk while its record is played."""

    def __init__(self, path: str) -> None:
        self._path, self._top = path, Folder()
        self._known: dict[int, File | Folder] = {}
        self._names: list[list[Named]] = []  # changes that are not certain

    def play(self, entry: Entry) -> None:
        """Do what an entry says."""
        if entry.kind in "cd":
            new = File() if entry.kind == "c" else Folder()
            self._known[entry.inode] = new
            self._rename([(entry.names[0], new)])
        elif entry.kind in "wt":
            file = self._known[entry.inode]
            if isinstance(file, File) and (entry.data or entry.kind == "t"):
                file.writes.append(Write(entry.offset, entry.data))
        elif entry.kind == "s":
            self._sync(self._known.get(entry.inode, self._top))
        elif entry.kind == "u":
            self._rename([(entry.names[0], None)])
        elif entry.kind == "r":
            folder, name = self._place(entry.names[0])
            self._rename([(entry.names[1], folder.entries[name]), (entry.names[0], None)])
        elif entry.kind == "A":
            for known in self._known.values():
                self._sync(known)
            self._sync(self._top)

    def after(self, loss: Loss) -> dict[str, bytes | None]:
        """What the folder has after a power failure: contents of files, None for folders."""
        folders: dict[Folder, dict[str, File | Folder]] = {}
        for change in self._names:
            if loss.is_named():
                for folder, name, what in change:
                    entries = folders.setdefault(folder, dict(folder.certain))
                    entries.pop(name, None)
                    if what is not None:
                        entries[name] = what
        state: dict[str, bytes | None] = {}

        def visit(folder: Folder, path: str) -> None:
            for name, what in folders.get(folder, folder.certain).items():
                if isinstance(what, Folder):
                    state[path + name] = None
                    visit(what, f"{path}{name}/")
                elif not name.endswith("-shm"):  # SQLite makes this one anew
                    state[path + name] = what.content(loss)

        visit(self._top, "")
        return state

    def _rename(self, pairs: list[tuple[str, File | Folder | None]]) -> None:
        change = [Named(*self._place(path), what) for path, what in pairs]
        for folder, name, what in change:
            folder.entries.pop(name, None)
            if what is not None:
                folder.entries[name] = what
        self._names.append(change)

    def _sync(self, what: File | Folder) -> None:
        if isinstance(what, File):
            what.sync()
            return
        what.certain = dict(what.entries)
        left = [[named for named in change if named.folder is not what] for change in self._names]
        self._names = [change for change in left if change]

    def _place(self, path: str) -> tuple[Folder, str]:
        """The folder of a path, and the name in it."""
        *parents, name = path.removeprefix(f"{self._path}/").split("/")
        folder = self._top
        for parent in parents:
            inner = folder.entries[parent]
            assert isinstance(inner, Folder)
            folder = inner
        return folder, name
