"""The files of a folder, and their contents at one moment."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nearlabel.collection.folder_checks import DATABASE
from nearlabel.features.pictures import FileKind, UnreadablePicture, regular_file

# A file may be written twice within one tick of the file system's clock, so a very recent
# modification time proves nothing. Clocks with whole seconds tick every second, or every other one.


class FileStamp(NamedTuple):
    """Identifies an unchanged file without reading it."""

    size: int
    mtime_ns: int


@dataclass(frozen=True)
class FolderScan:
    """The files of a folder.

    Attributes
    ----------
    files : dict of str to FileStamp
        By their paths relative to the folder, with forward slashes; sorted.
    skipped : list of (path, reason)
        Skipped files, each with the rest of a sentence that says why.
    unread : list of str
        Folders that could not be listed: their contents are unknown.
    """

    files: dict[str, FileStamp]
    skipped: list[tuple[str, str]]
    unread: list[str]

    def may_have(self, path: str) -> bool:
        """Whether a file may exist although it was not found."""
        return any(not folder or path.startswith(f"{folder}/") for folder in self.unread)


class ReadFile(NamedTuple):
    """The content of a file, its sha256, and its stamp."""

    content: bytes
    digest: bytes
    stamp: FileStamp


def scan_folder(
    folder: str | os.PathLike[str],
    kind: FileKind,
    known: Mapping[str, FileStamp] | None = None,
    inside: str = "",
) -> FolderScan:
    """List the files of a kind in a folder and its subfolders.

    Hidden files and collections are left out. Links are followed if they lead to files in this
    folder, never outside.

    Parameters
    ----------
    folder : path
    kind : FileKind
    known : dict of str to FileStamp, optional
        Files known to be of this kind, unless they have changed.
    inside : str, default=""
        Scan only this subfolder; paths remain relative to `folder`.

    Raises
    ------
    OSError
        If the folder itself cannot be listed.
    """
    top = os.path.realpath(folder)
    os.listdir(os.path.join(top, inside))  # noqa: PTH118, PTH208 — the caller handles errors
    scan = FolderScan({}, [], [])
    for path, entry in _entries(top, inside, scan):
        try:
            about = _stamp_of(entry, top, path)
        except UnreadablePicture as error:
            if entry.is_symlink() or kind.has_suffix(path):
                scan.skipped.append((path, error.reason))
            continue
        if about is None or not ((known or {}).get(path) == about or kind.includes(entry.path)):
            continue
        scan.files[path] = about
    in_order = dict(sorted(scan.files.items()))
    return FolderScan(in_order, sorted(scan.skipped), sorted(scan.unread))


def _entries(top: str, inside: str, scan: FolderScan) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All visible files, by a stack: folders can nest deeper than Python's recursion limit."""
    waiting = [inside]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(os.path.join(top, inside)) as listed:  # noqa: PTH118
                entries = [entry for entry in listed if not entry.name.startswith(".")]
        except OSError as error:
            scan.unread.append(inside)
            scan.skipped.append((inside, f"cannot be listed: {error.strerror}"))
            continue
        if any(entry.name == DATABASE for entry in entries):  # a collection, not files to index
            continue
        for entry in entries:
            path = f"{inside}/{entry.name}" if inside else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            else:
                yield path, entry


def _stamp_of(entry: os.DirEntry[str], top: str, path: str) -> FileStamp | None:
    """Size and time of a file; None for a link to a folder, which is scanned where it is."""
    if entry.is_symlink():
        target = os.path.realpath(entry.path)
        if not Path(target).is_relative_to(top):
            raise UnreadablePicture(path, "is a link that leads outside the folder and is skipped")
    try:
        about = entry.stat()
    except OSError as error:
        raise UnreadablePicture(path, f"cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(about.st_mode):
        return None
    if not stat.S_ISREG(about.st_mode):
        raise UnreadablePicture(path, "is not a regular file")
    return FileStamp(about.st_size, about.st_mtime_ns)


def read_unchanged(path: str | os.PathLike[str], most_bytes: int) -> ReadFile:
    """The content of a file that does not change while it is read.

    The stamp of a file written just before has no time: the file may be written again within the
    same tick, so it must be read again the next time.

    Raises
    ------
    UnreadablePicture
        With the reason, also if the file is being written.
    """
    with regular_file(path) as file:
        try:
            before = os.fstat(file.fileno())
            now = time.time_ns()
            if before.st_size > most_bytes:
                reason = f"has {before.st_size:,} bytes; at most {most_bytes:,} are read"
                raise UnreadablePicture("", reason)
            content = file.read(before.st_size + 1)
            after = os.fstat(file.fileno())
        except OSError as error:
            raise UnreadablePicture("", f"cannot be read: {error.strerror}") from None
    if _stamp(before) != _stamp(after) or len(content) != after.st_size:
        raise UnreadablePicture("", "changed while it was being read")
    tick = 5 * 10**7 if after.st_mtime_ns % 10**9 else 2 * 10**9  # nanoseconds
    is_settled = abs(now - after.st_mtime_ns) > tick
    stamp = FileStamp(after.st_size, after.st_mtime_ns if is_settled else 0)  # 0: no time
    return ReadFile(content, hashlib.sha256(content).digest(), stamp)


def _stamp(about: os.stat_result) -> FileStamp:
    return FileStamp(about.st_size, about.st_mtime_ns)


def root_of(folder: str | os.PathLike[str], roots: Sequence[str]) -> tuple[str, str]:
    """The indexed folder and the part of it that is meant: a subfolder of a known folder."""
    path = Path(os.path.realpath(folder))
    for root in sorted(roots, key=len):
        if path.is_relative_to(root):
            inside = path.relative_to(root).as_posix()
            return root, "" if inside == "." else inside
    return str(path), ""


def roots_within(root: str, roots: Sequence[str]) -> list[str]:
    """The known folders inside another one that are not empty.

    An empty one may be the mount point of a disk that is not mounted.
    """
    return [
        other
        for other in roots
        if other != root
        and Path(other).is_relative_to(root)
        and Path(other).is_dir()
        and any(Path(other).iterdir())
    ]
