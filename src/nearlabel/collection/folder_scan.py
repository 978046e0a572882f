"""The files of a folder, and their contents at one moment."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
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

    @classmethod
    def of(cls, about: os.stat_result) -> FileStamp:
        """The stamp of a file; its time modulo 2⁶⁴, as the database has no dates after 2262."""
        return cls(about.st_size, (about.st_mtime_ns + 2**63) % 2**64 - 2**63)


@dataclass
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

    files: dict[str, FileStamp] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

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
    only: str = "",
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
    only : str, default=""
        The name of the only file there that is wanted.

    Raises
    ------
    OSError
        If the folder itself cannot be listed.
    """
    top = os.path.realpath(folder)
    os.listdir(os.path.join(top, inside))  # noqa: PTH118, PTH208 — the caller handles errors
    scan, waiting = FolderScan(), [inside]  # a stack: folders nest deeper than Python can recurse
    while waiting:
        within = waiting.pop()
        try:
            with os.scandir(os.path.join(top, within)) as listed:  # noqa: PTH118
                entries = [entry for entry in listed if not entry.name.startswith(".")]
        except OSError as error:
            scan.unread.append(within)
            scan.skipped.append((within, f"cannot be listed: {error.strerror}"))
            continue
        if any(entry.name == DATABASE for entry in entries):  # a collection, not files to index
            continue
        for entry in entries:
            if only and entry.name != only:
                continue
            path = f"{within}/{entry.name}" if within else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
                continue
            try:
                stamp = _stamp_of(entry, top)
            except UnreadablePicture as error:
                if entry.is_symlink() or kind.has_suffix(path):
                    scan.skipped.append((path, error.reason))
                continue
            is_known = known is not None and known.get(path) == stamp
            if stamp is not None and (is_known or kind.includes(entry.path)):
                scan.files[path] = stamp
    return FolderScan(dict(sorted(scan.files.items())), sorted(scan.skipped), sorted(scan.unread))


def _stamp_of(entry: os.DirEntry[str], top: str) -> FileStamp | None:
    """The stamp of a file; None for a link to a folder, which is scanned where it is."""
    if entry.is_symlink() and not Path(os.path.realpath(entry.path)).is_relative_to(top):
        raise UnreadablePicture("", "is a link that leads outside the folder and is skipped")
    try:
        about = entry.stat()
    except OSError as error:
        raise UnreadablePicture("", f"cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(about.st_mode):
        return None
    if not stat.S_ISREG(about.st_mode):
        raise UnreadablePicture("", "is not a regular file")
    return FileStamp.of(about)


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
    stamp = FileStamp.of(after)
    if FileStamp.of(before) != stamp or len(content) != stamp.size:
        raise UnreadablePicture("", "changed while it was being read")
    tick = 5 * 10**7 if after.st_mtime_ns % 10**9 else 2 * 10**9  # nanoseconds
    is_settled = abs(now - after.st_mtime_ns) > tick
    no_time = 0
    return ReadFile(
        content,
        hashlib.sha256(content).digest(),
        stamp if is_settled else FileStamp(stamp.size, no_time),
    )
