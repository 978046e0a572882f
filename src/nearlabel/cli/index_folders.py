"""index."""

from __future__ import annotations

import json as json_texts
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from nearlabel.cli.collection_changes import add_table, decided_record, read_table
from nearlabel.cli.import_tags import (
    import_record,
    import_text,
    note_first,
    note_import,
    tagged_files,
)
from nearlabel.cli.open_collections import is_collection, open_collection
from nearlabel.cli.options import Jobs, Json, Switch
from nearlabel.cli.options.reading import LabelReading
from nearlabel.cli.output import Block, Paragraph, counted, plain, render, say, steps, write
from nearlabel.common.messages import encodable

if TYPE_CHECKING:
    from nearlabel.collection import Collection
    from nearlabel.collection.exchange.importing import ImportReport
    from nearlabel.collection.folder_watch import FolderWatch
    from nearlabel.collection.indexing import IndexReport
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset

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
    jobs: Jobs = -1,
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
    from nearlabel.collection.exchange.importing import import_files
    from nearlabel.collection.folder_watch import FolderWatch

    if not 0 < every < 1e6:
        raise ValueError(f"--every must be a number of seconds above 0; got {every:g}")
    # Read first: the error about a missing table must not come after all the work.
    tagged = None if tags is None else [*tagged_files(tags)]
    watched, items = FolderWatch(folder, n_jobs=jobs), None
    if not Path(folder).is_dir():
        for option, given in (("kind", kind), ("features", features), ("watch", watch or None)):
            if given is not None:
                raise ValueError(f"--{option}: {folder} is not a folder")
        items = _table(folder, collection)
    _create(collection, kind, features, items)
    try:
        with open_collection(collection) as store:
            rows = imported = None
            if items is None:
                _check_settings(store, kind, features)
                report = _look(watched, store)
            else:
                report, rows = add_table(store, items, folder)
            if tagged is not None:
                beside = Path(str(tags)).parent
                imported = import_files(store, tagged, beside=beside, group=report.group)
            _tell(store, folder, report, rows, imported, json, in_a_line=watch)
        if watch:
            _follow(watched, folder, collection, every, json)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_GOES_ON) from None


def _table(data: str, collection: str) -> Dataset:
    """The rows of a table, or of a data set."""
    from nearlabel.datasets.formats import SUFFIXES

    if Path(data).is_file() and Path(data).suffix.lower() not in SUFFIXES:
        instead = f"'nearlabel add {collection} {data}' adds a single file"
        if not is_collection(collection):
            instead = f"'nearlabel index {Path(data).parent} -c {collection}' takes its folder"
        raise ValueError(f"{data} is neither a folder nor a table; {instead}")
    try:
        return read_table(LabelReading(), data)
    except FileNotFoundError:
        raise ValueError(f"there is no folder or data set {data}") from None


def _create(path: str, kind: str | None, features: str | None, items: Dataset | None) -> None:
    """Create a collection of files, or of the rows of a table, unless there is one."""
    from nearlabel.collection import Collection, is_collection

    if is_collection(path):
        return
    settings: Tree = {"kind": kind or "pictures", "features": features}
    if items is not None:
        from nearlabel.collection.exchange.data_rows import given_features

        settings = {"kind": "vectors", "features": given_features(items)}
    try:
        Collection.create(path, **settings).close()
    except OSError:
        if not is_collection(path):  # which another process may just have created
            raise


def _check_settings(store: Collection, kind: str | None, features: str | None) -> None:
    """Refuse a collection that cannot have the files of a folder, or not of the wanted kind."""
    settings = store.settings
    if settings.kind == "vectors":
        raise ValueError(f"{store.path} holds vectors; give a table instead of a folder")
    for option, wanted, there in (
        ("--kind", kind, settings.kind),
        ("--features", features, settings.features.get("name")),
    ):
        if wanted not in (None, "auto", there):
            raise ValueError(
                f"{option} {wanted}: {store.path} was created with {there}, which cannot be "
                "changed; index into another collection"
            )


def _look(watched: FolderWatch, store: Collection, patience_ns: int = 0) -> IndexReport:
    """Bring a collection up to date with a folder."""
    with steps("indexing", store.kind) as progress:
        return watched.look(store, patience_ns, progress)


def _follow(watched: FolderWatch, folder: str, path: str, every: float, json: bool) -> None:
    """Keep a collection up to date with a folder; it is open only while that takes."""
    from nearlabel.collection.folder_watch import STILL_WRITTEN

    seconds, is_there = 0.0, True
    while True:
        write(flush=True)
        time.sleep(max(every, 10 * seconds))  # looking takes a tenth of the time
        begin = time.monotonic()
        try:
            with open_collection(path, readonly=True) as store:
                has_news = watched.has_news(store, STILL_WRITTEN)
            is_there, seconds = True, time.monotonic() - begin
            if has_news:
                with open_collection(path) as store:
                    report = _look(watched, store, STILL_WRITTEN)
                    _tell(store, folder, report, None, None, json, in_a_line=True)
        except BlockingIOError:  # another process is writing: try at the next look
            continue
        except (FileNotFoundError, NotADirectoryError) as error:
            if is_there:
                name = error.filename or folder
                warnings.warn(f"{name} does not exist; waiting for it", stacklevel=2)
            is_there = False


def _tell(
    store: Collection,
    folder: str,
    report: IndexReport,
    rows: ImportReport | None,
    imported: ImportReport | None,
    json: bool,
    *,
    in_a_line: bool,
) -> None:
    """Print what was done; `rows` gave the tags of a table itself, `imported` those of --tags."""
    path, settings = str(store.path), store.settings
    record: Tree = {
        "collection": path,
        "folder" if rows is None else "data": folder,
        "kind": settings.kind,
        "features": settings.features.get("name"),
        **{name: getattr(report, name) for name in _COUNTS},
        "skipped": [{"file": encodable(path), "reason": why} for path, why in report.skipped],
        "seconds": round(report.seconds, 3),
        **({} if rows is None else decided_record(rows)),
        "items": store.counts()["items"],
        "tags": None if imported is None else import_record(path, imported),
    }

    def text() -> Iterator[Block]:
        note_first([f"{encodable(path)} {reason}; left out" for path, reason in report.skipped])
        counts = [f"{record[key]:,} {name}" for key, name in _COUNTS.items() if record[key]]
        if rows is not None:
            note_import(rows, path)
            counts.append(f"{counted(rows.given, 'tag')} given")
        read = report.new + report.changed
        done = ", ".join(counts) or "no files"
        if rows is None:
            rate = f", {read / report.seconds:.0f} a second" if read and report.seconds else ""
            done += f" ({report.seconds:.1f} s{rate})"
        by = "" if settings.kind == "vectors" else f" by {record['features']}"
        yield Paragraph(f"{folder}: {done}")
        yield Paragraph(f"{path} has {counted(record['items'], 'item')} now: {settings.kind}{by}")
        if imported is not None:
            yield from import_text(path, imported)

    if json and in_a_line:
        say(json_texts.dumps(plain(record)))
    else:
        render(record, text(), json)
