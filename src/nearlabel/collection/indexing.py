"""The files of a folder become items of a collection.

Names, sizes and times decide first what has to be read: after the first time only new and changed
files. Then several threads read the files, compute vectors and add them in batches. Each batch is
on disk before the next begins, so an interrupt loses only the last one.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from nearlabel.collection.collection import Collection
from nearlabel.collection.folder_checks import CollectionError, is_collection
from nearlabel.collection.folder_scan import (
    FileStamp,
    FolderScan,
    ReadFile,
    read_unchanged,
    root_of,
    roots_within,
    scan_folder,
)
from nearlabel.collection.item_features import ItemFeatures
from nearlabel.collection.records import FileState, NewItem
from nearlabel.common.arrays import MatrixLike
from nearlabel.common.messages import encodable
from nearlabel.common.progress import Progress
from nearlabel.features.picture_files import Skipping, in_parallel
from nearlabel.features.pictures import FileKind

_FILES_AT_ONCE = 32
TEXT_KEPT = 300  # characters of a text kept for display


@dataclass(frozen=True)
class IndexPlan:
    """What has to be done so that a collection has the files of a folder.

    Attributes
    ----------
    root : str
        The folder to which paths are relative.
    seen : dict of str to int
        Files at known paths that have changed, and their items so far.
    new : list of str
        Files at unknown paths.
    gone : dict of str to int
        Paths of files that no longer exist, and their items.
    missing : set of int
        Items with a file that was already missing.
    unchanged : int
    scan : FolderScan
    within : list of str
        Folders inside the root that were indexed separately and become part of it.
    """

    root: str
    seen: dict[str, int]
    new: list[str]
    gone: dict[str, int]
    missing: set[int]
    unchanged: int
    scan: FolderScan
    within: list[str]

    def __bool__(self) -> bool:
        return bool(self.seen or self.new or self.gone or self.within)

    def only(self, path: str) -> IndexPlan:
        """The part of the plan about one file."""
        return replace(
            self,
            seen={other: item for other, item in self.seen.items() if other == path},
            new=[other for other in self.new if other == path],
            gone={},
            unchanged=int(path in self.scan.files and path not in {*self.seen, *self.new}),
            scan=FolderScan({}, [entry for entry in self.scan.skipped if entry[0] == path], []),
        )


@dataclass
class IndexReport:
    """What happened to the files of a folder.

    Attributes
    ----------
    new : int
        Items that are new.
    changed : int
        Items whose file has new content.
    moved : int
        Files that were moved to another path.
    copied : int
        Further files of items that are still in place, or duplicates.
    found : int
        Files that were only touched, or that reappeared.
    unchanged : int
        Files that were not read, since their size and time have not changed.
    gone : int
        Files that no longer exist anywhere.
    skipped : list of (path, reason)
        Files that could not be read, each with the rest of a sentence that says why.
    seconds : float
    group : int or None
        The run of these changes, to which others can be added.
    """

    new: int = 0
    changed: int = 0
    moved: int = 0
    copied: int = 0
    found: int = 0
    unchanged: int = 0
    gone: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    group: int | None = None


def plan_index(
    collection: Collection,
    folder: str | os.PathLike[str],
    kind: FileKind,
    *,
    passed_over: Mapping[str, FileStamp] | None = None,
    patience_ns: int = 0,
) -> IndexPlan:
    """Compare a folder with what a collection knows about it, without reading files.

    Parameters
    ----------
    collection : Collection
    folder : path
        One that was indexed before, a subfolder of it, or a new one.
    kind : FileKind
        Which files to include.
    passed_over : dict of str to FileStamp, optional
        Files to ignore as long as they do not change.
    patience_ns : int, default=0
        The minimum age of files: younger ones may be incomplete.

    Raises
    ------
    OSError
        If the folder does not exist, or contains none of its files any more, as when a disk is not
        mounted; no file is then considered gone.
    """
    if is_collection(folder):
        raise CollectionError("is a collection; pass the folder with its files", Path(folder))
    root, inside = root_of(folder, collection.roots())
    begins = f"{inside}/" if inside else ""
    within = roots_within(root, collection.roots())
    known = {
        path: file
        for path, file in _known_files(collection, root, within).items()
        if path.startswith(begins)
    }
    stamps = {
        path: FileStamp(file.size, file.mtime_ns)
        for path, file in known.items()
        if not file.is_missing
    }
    scan = scan_folder(root, kind, stamps, inside)
    if stamps and not inside and not any(Path(root).iterdir()):
        indexed = "1 file of it was" if len(stamps) == 1 else f"{len(stamps):,} files of it were"
        why = f"is empty, but {indexed} indexed; if its disk is not mounted, mount it; "
        raise FileNotFoundError(errno.ENOENT, f"{why}nothing was changed", root)
    passed, now = passed_over or {}, time.time_ns()
    waiting = {
        path
        for path, stamp in scan.files.items()
        if passed.get(path) == stamp or abs(now - stamp.mtime_ns) < patience_ns
    }
    differ = [
        path
        for path, stamp in scan.files.items()
        if stamps.get(path) != stamp and path not in waiting
    ]
    gone = {
        path: known[path].item or 0
        for path in stamps
        if path not in scan.files and not scan.may_have(path)
    }
    return IndexPlan(
        root,
        {path: known[path].item or 0 for path in differ if path in known},
        [path for path in differ if path not in known],
        gone,
        {file.item or 0 for file in known.values() if file.is_missing},
        len(scan.files) - len(differ),
        scan,
        within,
    )


def _known_files(collection: Collection, root: str, within: Sequence[str]) -> dict[str, FileState]:
    """The files of a root by their paths, and those of folders inside it."""
    known: dict[str, FileState] = {}
    for folder in (*within, root):  # the root takes precedence, except for missing files
        inside = Path(folder).relative_to(root)
        for file in collection.files(folder):
            path = (inside / file.path).as_posix()
            if path not in known or not file.is_missing:
                known[path] = file
    return known


def run_index(
    collection: Collection,
    plan: IndexPlan,
    features: ItemFeatures,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> IndexReport:
    """Carry out a plan.

    Parameters
    ----------
    collection : Collection
    plan : IndexPlan
    features : ItemFeatures
        Computes vectors from files.
    n_jobs : int or None, default=None
        Threads that read files; -1 means all cores.
    progress : callable, optional
        Called with (files done, total files).
    """
    begin, run = time.monotonic(), _Run(collection, plan, features, n_jobs, progress)
    if plan.within:
        collection.join_roots(plan.root, plan.within, group=run.group)
    # Contents known at other paths come first: a file may have been moved before another one took
    # its place, which is then a new item.
    altered = run.recognize([*plan.seen])
    run.total += len(altered)
    run.add(plan.new)
    run.add(altered)
    if plan.gone:
        collection.set_files(plan.root, missing=[*plan.gone], group=run.group)
    run.count_known(plan)
    run.report.seconds = time.monotonic() - begin
    return run.report


class _FileContent(NamedTuple):
    """A file that has been read."""

    path: str
    read: ReadFile

    def state(self, root: str, item: int | None = None) -> FileState:
        return FileState(root, self.path, *self.read.stamp, item)


class _Run:
    """Files of a folder on their way into a collection."""

    def __init__(
        self,
        collection: Collection,
        plan: IndexPlan,
        features: ItemFeatures,
        n_jobs: int | None,
        progress: Progress | None,
    ) -> None:
        self._collection, self._features = collection, features
        self._root, self._seen = plan.root, plan.seen
        self._n_jobs, self._progress = n_jobs, progress
        self.report = IndexReport(unchanged=plan.unchanged, skipped=[*plan.scan.skipped])
        self.done, self.total = 0, len(plan.seen) + len(plan.new)
        self._known: list[tuple[str, int]] = []  # files with known contents, and their items
        self.group = self.report.group = collection.new_group()

    def recognize(self, paths: Sequence[str]) -> list[str]:
        """Record the files with known contents; returns the paths of the others."""
        unknown = []
        for batch in self._batches(paths, keeps_content=False):
            ids = self._collection.known_contents(file.read.digest for file in batch)
            placed = [
                file.state(self._root, ids[file.read.digest])
                for file in batch
                if file.read.digest in ids
            ]
            self._collection.set_files(self._root, placed, group=self.group)
            self._known += [
                (file.path, ids[file.read.digest]) for file in batch if file.read.digest in ids
            ]
            unmade = self._collection.without_vectors([*{*ids.values()}])
            unknown += [file.path for file in batch if ids.get(file.read.digest) in {None, *unmade}]
        return unknown

    def add(self, paths: Sequence[str]) -> None:
        """Turn files into items: existing ones if their content is known, else new ones."""
        for batch in self._batches(paths):
            by_content: dict[bytes, list[_FileContent]] = {}
            for file in batch:
                by_content.setdefault(file.read.digest, []).append(file)
            known = self._collection.known_contents(by_content)
            unmade = self._collection.without_vectors([*known.values()])
            vectors = self._vectors_of(
                {
                    digest: files[0]
                    for digest, files in by_content.items()
                    if known.get(digest) in {None, *unmade}
                }
            )
            again = {
                known[digest]: vectors.pop(digest)[0] for digest in [*vectors] if digest in known
            }
            items = [
                NewItem(
                    digest,
                    vector,
                    tuple(file.state(self._root) for file in by_content[digest]),
                    encodable(by_content[digest][0].path),
                    text,
                )
                for digest, (vector, text) in {
                    **dict.fromkeys(known, (None, None)),
                    **vectors,
                }.items()
            ]
            ids = self._collection.add(items, group=self.group)
            if again:
                self._collection.set_vectors(again, group=self.group)
            altered = {self._seen.get(file.path) for file in batch}
            changed = sum(
                item.content in vectors and id in altered
                for item, id in zip(items, ids, strict=True)
            )
            self.report.changed += changed
            self.report.new += len(vectors) - changed
            self._known += [
                (file.path, id)
                for item, id in zip(items, ids, strict=True)
                for file in item.files[item.content in vectors :]
            ]

    def count_known(self, plan: IndexPlan) -> None:
        """Count which files with known contents were moved, copied or only touched."""
        left, missing = Counter(plan.gone.values()), {*plan.missing}
        for path, item in dict(self._known).items():
            if self._seen.get(path) == item:
                self.report.found += 1
            elif left[item]:
                left[item] -= 1
                self.report.moved += 1
            elif item in missing:
                missing.remove(item)
                self.report.moved += 1
            else:
                self.report.copied += 1
        self.report.gone = left.total()

    def _vectors_of(
        self, files: Mapping[bytes, _FileContent]
    ) -> dict[bytes, tuple[MatrixLike, str | None]]:
        """Vectors and texts of contents; those that are neither picture nor text are left out."""
        if not files:
            return {}
        contents = Skipping([file.read.content for file in files.values()], self._n_jobs)
        try:
            X = self._features.vectors(contents)
        except ValueError:
            if len(contents.skipped) < len(contents):
                raise
        broken = {at: error.reason for at, error in contents.skipped}
        self.report.skipped += [
            (file.path, broken[at]) for at, file in enumerate(files.values()) if at in broken
        ]
        good = [
            (digest, file) for at, (digest, file) in enumerate(files.items()) if at not in broken
        ]
        return {
            digest: (X[row : row + 1], self._beginning(file.read.content))
            for row, (digest, file) in enumerate(good)
        }

    def _beginning(self, content: bytes) -> str | None:
        """The beginning of a text, for display."""
        if self._collection.settings.kind != "texts":
            return None
        return content[: 4 * TEXT_KEPT].decode("utf-8-sig", "replace")[:TEXT_KEPT]

    def _batches(
        self, paths: Sequence[str], keeps_content: bool = True
    ) -> Iterator[list[_FileContent]]:
        """Readable files in batches; asking for the next batch means that the last one is done."""

        def read(source: tuple[int, str]) -> tuple[int, _FileContent]:
            place, path = source
            content = read_unchanged(Path(self._root, path), self._features.files.most_bytes)
            return place, _FileContent(
                path, content if keeps_content else content._replace(content=b"")
            )

        reading = Skipping([*enumerate(paths)], self._n_jobs)
        batch: list[_FileContent] = []
        before, size = self.done, 0
        for place, file in in_parallel(reading, read):
            batch.append(file)
            size += len(file.read.content)
            if len(batch) == _FILES_AT_ONCE or size >= 2**26:
                yield batch
                self._tell(before + place + 1)
                batch, size = [], 0
        if batch:
            yield batch
        if paths:
            self._tell(before + len(paths))
        self.report.skipped += [(paths[at], error.reason) for at, error in reading.skipped]

    def _tell(self, done: int) -> None:
        self.done = done
        if self._progress is not None:
            self._progress(done, self.total)
