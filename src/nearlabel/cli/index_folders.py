"""index."""

from __future__ import annotations

import json as json_texts
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from nearlabel.cli.collection_changes import (
    add_rows,
    note_kept,
    rows_text,
    vector_features,
    with_or_without_labels,
)
from nearlabel.cli.import_tags import import_record, note_some, say_import, tagged_files
from nearlabel.cli.model_changes import check_jobs
from nearlabel.cli.open_collections import open_collection
from nearlabel.cli.options import Json, Switch, Whole
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.reading import LabelReading
from nearlabel.cli.output import counted, printable, say, say_folded, say_json, steps, write
from nearlabel.common.messages import encodable

if TYPE_CHECKING:
    from nearlabel.collection import Collection
    from nearlabel.collection.exchange.importing import ImportReport
    from nearlabel.collection.exchange.tag_tables import TaggedFile
    from nearlabel.collection.indexing import IndexReport
    from nearlabel.common.arrays import Tree

_COUNTS = {
    "new": "new",
    "changed": "changed",
    "moved": "moved",
    "copied": "copied",
    "found": "found again",
    "unchanged": "unchanged",
    "gone": "gone",
}
_GOES_ON = "what was indexed is kept, and the same command continues from there"


def index(
    folder: str,
    *,
    collection: Annotated[str, Parameter(alias="-c", metavar="FOLDER")],
    tags: Annotated[str | None, Parameter(metavar="FILE")] = None,
    kind: Literal["pictures", "texts"] | None = None,
    features: str | None = None,
    watch: Switch = False,
    every: Annotated[float, Parameter(metavar="SECONDS")] = 2,
    jobs: Whole = -1,
    json: Json = False,
) -> None:
    """Add the new and changed files of a folder to a collection, which is created if necessary.

    Files are identified by their content: a file that was copied or moved is still the same item
    and keeps its tags. The next run reads only new and changed files. After an interrupt, the same
    command continues where it stopped. The files themselves are never changed. Hidden files and
    links that lead out of the folder are skipped.

    Parameters
    ----------
    folder
        Folder of pictures or texts, or a table or data set whose rows become a collection of
        vectors.
    collection
        Folder of the collection.
    tags
        Table of tags for the items, with the columns file and tags (separated by ;).
    kind
        Kind of items in a new collection; by default pictures.
    features
        Features of the pictures or texts in a new collection: auto, moments, words, the name of a
        network, or an ONNX file.
    watch
        Keep looking for new, changed and deleted files until Ctrl-C.
    every
        Time between two looks with --watch.
    jobs
        Number of threads; -1 for all cores.

    Examples
    --------
    nearlabel index photos -c photos.nearlabel
    nearlabel index photos -c photos.nearlabel --tags tags.csv --jobs -1
    nearlabel index photos/2026 -c photos.nearlabel --watch
    nearlabel index notes -c notes.nearlabel --kind texts
    nearlabel index songs.csv -c songs.nearlabel
    """
    check_jobs(jobs)
    if not 0 < every < 1e6:
        raise ValueError(f"--every must be a number of seconds above 0; got {every:g}")
    # Read first: the error about a missing table must not come after all the work.
    tagged = None if tags is None else [*tagged_files(tags)]
    beside = None if tags is None else Path(tags).parent
    if not Path(folder).is_dir():
        _index_table(folder, collection, tagged, beside, kind, features, watch, json)
        return
    _prepare_collection(collection, kind, features)
    watched = _Watched(folder, collection, jobs)
    report: IndexReport | None = watched.look()
    while True:
        if report is not None:
            imported = None
            if tagged is not None:
                imported = _imported(collection, tagged, beside, report.group)
            record = _index_record(folder, collection, report)
            if imported is not None:
                record["tags"] = import_record(collection, imported)
            if not json:
                _say(record, report)
                if imported is not None:
                    say_import(collection, imported)
            elif watch:  # one document a line
                say(json_texts.dumps(record))
            else:
                say_json(record)
        if not watch:
            return
        tagged = None
        write(flush=True)
        time.sleep(max(every, 10 * watched.seconds))  # looking takes a tenth of the time
        report = watched.look_again()


def _prepare_collection(path: str, kind: str | None, features: str | None) -> None:
    """Create a collection, or check that an existing one is of the kind asked for."""
    from nearlabel.collection import is_collection
    from nearlabel.collection.item_features import chosen_features

    if not is_collection(path):
        with naming(features="--features", kind="--kind"):
            chosen = chosen_features(kind or "pictures", features)
            _create(path, kind=kind or "pictures", features=chosen)
    if kind is None and features is None:
        return
    with open_collection(path, readonly=True) as store:
        settings = store.settings
    for option, wanted, there in (
        ("--kind", kind, settings.kind),
        ("--features", features, settings.features.get("name")),
    ):
        if wanted not in (None, "auto", there):
            raise ValueError(
                f"{option} {wanted}: {path} was created with {there}, which cannot be changed; "
                "index into another collection"
            )


def _create(path: str, **settings: Any) -> None:
    """Create a collection, unless another process has just done so."""
    from nearlabel.collection import Collection, is_collection

    try:
        Collection.create(path, **settings).close()
    except OSError:
        if not is_collection(path):
            raise


class _Watched:
    """A folder and its collection, which is open only while it is looked at."""

    def __init__(self, folder: str, collection: str, jobs: int) -> None:
        from nearlabel.collection.folder_watch import FolderWatch

        self._folder, self._collection = folder, collection
        self._watch = FolderWatch(folder, n_jobs=jobs)
        self._is_there = True
        self.seconds = 0.0  # that the last look took

    def look(self, patience_ns: int = 0) -> IndexReport:
        """Bring the collection up to date with the folder."""
        with open_collection(self._collection) as store:
            self._check(store)
            with steps("indexing", store.settings.kind) as progress:
                try:
                    return self._watch.look(store, patience_ns, progress)
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(_GOES_ON) from None

    def look_again(self) -> IndexReport | None:
        """The same if something has changed; the collection is open only for that."""
        from nearlabel.collection.folder_watch import STILL_WRITTEN

        begin = time.monotonic()
        try:
            with open_collection(self._collection, readonly=True) as store:
                is_new = self._watch.has_news(store, STILL_WRITTEN)
            self._is_there = True
            self.seconds = time.monotonic() - begin
            return self.look(STILL_WRITTEN) if is_new else None
        except BlockingIOError:  # another process is writing: try at the next look
            return None
        except (FileNotFoundError, NotADirectoryError) as error:
            if self._is_there:
                name = error.filename or self._folder
                warnings.warn(f"{name} does not exist; waiting for it", stacklevel=2)
            self._is_there = False
            return None

    def _check(self, store: Collection) -> None:
        if store.settings.kind == "vectors":
            raise ValueError(f"{self._collection} holds vectors; give a table instead of a folder")


def _index_record(folder: str, path: str, report: IndexReport) -> Tree:
    """What was done, for JSON."""
    with open_collection(path, readonly=True) as store:
        counts, settings = store.counts(), store.settings
    return {
        "collection": path,
        "folder": folder,
        "kind": settings.kind,
        "features": settings.features.get("name"),
        "new": report.new,
        "changed": report.changed,
        "moved": report.moved,
        "copied": report.copied,
        "found": report.found,
        "unchanged": report.unchanged,
        "gone": report.gone,
        "skipped": [{"file": encodable(path), "reason": why} for path, why in report.skipped],
        "seconds": round(report.seconds, 3),
        "items": counts["items"],
        "tags": None,
    }


def _imported(
    path: str, files: Iterable[TaggedFile], beside: Path | None, group: int | None
) -> ImportReport:
    """Give the tags of a table to items, as a part of a run of changes."""
    from nearlabel.collection.exchange.importing import import_files

    with open_collection(path) as store:
        return import_files(store, files, beside=beside, group=group)


def _say(record: Tree, report: IndexReport) -> None:
    """Print what was done."""
    note_some([f"{encodable(path)} {reason}; left out" for path, reason in report.skipped])
    counts = [f"{record[key]:,} {name}" for key, name in _COUNTS.items() if record[key]]
    read = report.new + report.changed
    rate = f", {read / report.seconds:.0f} a second" if read and report.seconds else ""
    say_folded(
        printable(
            f"{record['folder']}: {', '.join(counts) or 'no files'} ({report.seconds:.1f} s{rate})"
        )
    )
    items = counted(record["items"], "item")
    say_folded(f"{record['collection']} has {items} now: {record['kind']} by {record['features']}")


def _index_table(
    data: str,
    path: str,
    tagged: Sequence[TaggedFile] | None,
    beside: Path | None,
    kind: str | None,
    features: str | None,
    watch: bool,
    json: bool,
) -> None:
    """Make the rows of a table, or of a data set, items of a collection of vectors."""
    from nearlabel.collection import is_collection
    from nearlabel.datasets.formats import SUFFIXES

    for option, given in (("--kind", kind), ("--features", features), ("--watch", watch or None)):
        if given is not None:
            raise ValueError(f"{option}: {data} is not a folder")
    if Path(data).is_file() and Path(data).suffix.lower() not in SUFFIXES:
        instead = f"'nearlabel add {path} {data}' adds a single file"
        if not is_collection(path):
            instead = f"'nearlabel index {Path(data).parent} -c {path}' takes its folder"
        raise ValueError(f"{data} is neither a folder nor a table; {instead}")
    try:
        items = with_or_without_labels(LabelReading(), data)
    except FileNotFoundError:
        raise ValueError(f"there is no folder or data set {data}") from None
    if not is_collection(path):
        _create(path, kind="vectors", features=vector_features(items))
    with open_collection(path) as store:
        rows = add_rows(store, items, data)
        record = {**rows.record, "items": store.counts()["items"]}
    imported = None if tagged is None else _imported(path, tagged, beside, rows.group)
    if json:
        record["tags"] = None if imported is None else import_record(path, imported)
        say_json({"collection": path, "data": data, **record})
        return
    note_kept(rows.tags)
    say_folded(f"{data}: {rows_text(rows)}")
    say_folded(f"{path} has {counted(record['items'], 'item')} now: vectors")
    if imported is not None:
        say_import(path, imported)
