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
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nearlabel.collection.collection import Collection
from nearlabel.collection.folder_checks import CollectionError, is_collection
from nearlabel.collection.folder_scan import (
    FileStamp,
    FolderScan,
    ReadFile,
    read_unchanged,
    scan_folder,
)
from nearlabel.collection.item_features import Compute, files_of, item_features, rows_of
from nearlabel.collection.records import FileState, NewItem
from nearlabel.common.messages import encodable
from nearlabel.common.progress import Progress
from nearlabel.features.picture_files import Skipping, in_parallel

_FILES_AT_ONCE, _BYTES_AT_ONCE = 32, 2**26


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
    *,
    passed_over: Mapping[str, FileStamp] | None = None,
    patience_ns: int = 0,
) -> IndexPlan:
    """Compare a folder with what a collection knows about it, without reading files.

    Parameters
    ----------
    collection : Collection
    folder : path
        One that was indexed before, a subfolder of it, or a new one; or a single file.
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
    place, only = Path(os.path.realpath(folder)), ""
    if place.is_file():
        place, only = place.parent, place.name
    root, inside = root_of(place, collection.roots())
    within = _roots_within(root, collection.roots())
    known = _known_files(collection, root, within, inside, only)
    stamps = {
        path: FileStamp(file.size, file.mtime_ns)
        for path, file in known.items()
        if not file.is_missing
    }
    scan = scan_folder(root, files_of(collection.kind), stamps, inside, only)
    if stamps and not inside and not any(Path(root).iterdir()):
        indexed = "1 file of it was" if len(stamps) == 1 else f"{len(stamps):,} files of it were"
        why = f"is empty, but {indexed} indexed; if its disk is not mounted, mount it; "
        raise FileNotFoundError(errno.ENOENT, f"{why}nothing was changed", root)
    passed, now = passed_over or {}, time.time_ns()
    differ = [
        path
        for path, stamp in scan.files.items()
        if stamp not in (stamps.get(path), passed.get(path))
        and abs(now - stamp.mtime_ns) >= patience_ns
    ]
    return IndexPlan(
        root,
        {path: known[path].item or 0 for path in differ if path in known},
        [path for path in differ if path not in known],
        {
            path: known[path].item or 0
            for path in stamps
            if path not in scan.files and not scan.may_have(path)
        },
        {file.item or 0 for file in known.values() if file.is_missing},
        len(scan.files) - len(differ),
        scan,
        within,
    )


def root_of(path: Path, roots: Sequence[str]) -> tuple[str, str]:
    """The indexed folder and the part of it that is meant: a subfolder of a known folder."""
    for root in sorted(roots, key=len):
        if path.is_relative_to(root):
            inside = path.relative_to(root).as_posix()
            return root, "" if inside == "." else inside
    return str(path), ""


def _roots_within(root: str, roots: Sequence[str]) -> list[str]:
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


def _known_files(
    collection: Collection, root: str, within: Sequence[str], inside: str, only: str
) -> dict[str, FileState]:
    """The files of a part of a root, and of folders inside it, by their paths in the root."""
    known: dict[str, FileState] = {}
    begins = f"{inside}/" if inside else ""
    for folder in (*within, root):  # the root takes precedence, except for missing files
        place = Path(folder).relative_to(root)
        for file in collection.files(folder):
            path = (place / file.path).as_posix()
            is_meant = path == begins + only if only else path.startswith(begins)
            if is_meant and (path not in known or not file.is_missing):
                known[path] = file
    return known


def run_index(
    collection: Collection,
    plan: IndexPlan,
    compute: Compute | None = None,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> IndexReport:
    """Carry out a plan.

    Parameters
    ----------
    collection : Collection
    plan : IndexPlan
    compute : callable, optional
        Computes vectors from files; by default as the settings of the collection say.
    n_jobs : int or None, default=None
        Threads that read files; -1 means all cores.
    progress : callable, optional
        Called with (files done, total files).
    """
    begin = time.monotonic()
    run = _Run(collection, plan, compute, n_jobs, progress)
    if plan.within:
        collection.join_roots(plan.root, plan.within, group=run.group)
    # New contents at known paths come last: the file that was there may have been moved, to a path
    # that is still to be read, and what has taken its place is then a new item.
    altered = run.add([*plan.seen, *plan.new], putting_off=plan.seen)
    run.total += len(altered)
    run.add(altered)
    if plan.gone:
        collection.set_files(plan.root, missing=[*plan.gone], group=run.group)
    run.count_known(plan)
    run.report.seconds = time.monotonic() - begin
    return run.report


def beginning_of(content: bytes, kind: str) -> str | None:
    """The beginning of a text, for display; None for the content of another kind of item."""
    most = 300  # characters
    return content[: 4 * most].decode("utf-8-sig", "replace")[:most] if kind == "texts" else None


class _Run:
    """Files of a folder on their way into a collection."""

    def __init__(
        self,
        collection: Collection,
        plan: IndexPlan,
        compute: Compute | None,
        n_jobs: int | None,
        progress: Progress | None,
    ) -> None:
        self._collection, self._compute = collection, compute
        self._root, self._seen = plan.root, plan.seen
        self._n_jobs, self._progress = n_jobs, progress
        self.report = IndexReport(unchanged=plan.unchanged, skipped=[*plan.scan.skipped])
        self._done, self.total = 0, len(plan.seen) + len(plan.new)
        self._known: dict[str, int] = {}  # the items of files with known contents
        self.group = self.report.group = collection.new_group()

    def add(self, paths: Sequence[str], putting_off: Container[str] = ()) -> list[str]:
        """Turn files into items: existing ones if their content is known, else new ones.

        Returns those files with unknown contents that are put off, without adding them.
        """
        later = []
        for batch in self._batches(paths):
            known = self._collection.known_contents(file.digest for file in batch.values())
            contents: dict[bytes, list[str]] = {}
            for path, file in batch.items():
                if file.digest not in known and path in putting_off:
                    later.append(path)
                else:
                    contents.setdefault(file.digest, []).append(path)
            self._add(batch, contents, known)
        return later

    def _add(
        self,
        files: Mapping[str, ReadFile],
        contents: Mapping[bytes, Sequence[str]],
        known: Mapping[bytes, int],
    ) -> None:
        """Add the paths of each content; what is neither picture nor text is skipped."""
        without_vectors = self._collection.without_vectors([*known.values()])
        wanted = [digest for digest in contents if known.get(digest) in {None, *without_vectors}]
        firsts = {digest: paths[0] for digest, paths in contents.items()}
        if self._compute is None:  # not before: it may have to load a network
            settings = self._collection.settings
            self._compute = item_features(settings.kind, settings.features, n_jobs=self._n_jobs)
        contents_wanted = [files[firsts[digest]].content for digest in wanted]
        vectors, errors = rows_of(self._compute, contents_wanted, self._n_jobs)
        self.report.skipped += [(firsts[wanted[at]], error.reason) for at, error in errors.items()]
        rows = {wanted[at]: vector for at, vector in vectors.items()}
        items = [
            NewItem(
                digest,
                rows.get(digest),
                tuple(FileState(self._root, path, *files[path].stamp) for path in paths),
                encodable(paths[0]),
                beginning_of(files[paths[0]].content, self._collection.kind),
            )
            for digest, paths in contents.items()
            if digest in known or digest in rows
        ]
        ids = self._collection.add(items, group=self.group)
        recomputed = {known[digest]: row for digest, row in rows.items() if digest in known}
        if recomputed:
            self._collection.set_vectors(recomputed, group=self.group)
        for item, id in zip(items, ids, strict=True):
            paths = contents[item.content]
            if item.content not in known:
                is_change = any(self._seen.get(path) == id for path in paths)
                self.report.changed += is_change
                self.report.new += not is_change
                paths = paths[1:]
            self._known |= dict.fromkeys(paths, id)

    def count_known(self, plan: IndexPlan) -> None:
        """Count which files with known contents were moved, copied or only touched."""
        left, missing = Counter(plan.gone.values()), {*plan.missing}
        for path, item in self._known.items():
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

    def _batches(self, paths: Sequence[str]) -> Iterator[dict[str, ReadFile]]:
        """Readable files in batches; asking for the next batch means that the last one is done."""
        most = files_of(self._collection.kind).most_bytes

        def read(source: tuple[int, str]) -> tuple[int, ReadFile]:
            place, path = source
            return place, read_unchanged(Path(self._root, path), most)

        reading = Skipping([*enumerate(paths)], self._n_jobs)
        batch: dict[str, ReadFile] = {}
        before, size = self._done, 0
        for place, file in in_parallel(reading, read):
            batch[paths[place]] = file
            size += len(file.content)
            if len(batch) == _FILES_AT_ONCE or size >= _BYTES_AT_ONCE:
                yield batch
                self._tell(before + place + 1)
                batch, size = {}, 0
        if batch:
            yield batch
        if paths:
            self._tell(before + len(paths))
        self.report.skipped += [(paths[at], error.reason) for at, error in reading.skipped]

    def _tell(self, done: int) -> None:
        self._done = done
        if self._progress is not None:
            self._progress(done, self.total)
