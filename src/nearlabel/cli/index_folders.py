"""index."""

from __future__ import annotations

import json as json_texts
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from nearlabel.cli.collection_changes import add_rows, vector_features, with_or_without_labels
from nearlabel.cli.model_changes import check_jobs
from nearlabel.cli.open_collections import encodable, open_collection
from nearlabel.cli.options import Json, Switch, Whole
from nearlabel.cli.options.errors import naming
from nearlabel.cli.options.reading import LabelReading
from nearlabel.cli.output import counted, printable, say, say_folded, say_json, steps, write
from nearlabel.cli.quick_imports import import_scikit_learn

if TYPE_CHECKING:
    from nearlabel.collection import Collection
    from nearlabel.collection.folder_scan import FileStamp
    from nearlabel.collection.indexing import IndexPlan, IndexReport

_SKIPPED_SHOWN = 10
_STILL_WRITTEN = 10**9  # nanoseconds after which a file that is watched is taken for complete
_REST = 10  # times as long as a look takes is the least time until the next one
_COUNTS = {
    "new": "new",
    "changed": "changed",
    "found": "found again",
    "unchanged": "unchanged",
    "gone": "gone",
}
_GOES_ON = "what was indexed is kept, and the same command goes on from there"


def index(
    folder: str,
    *,
    collection: Annotated[str, Parameter(alias="-c")],
    tags: Annotated[str | None, Parameter(metavar="FILE")] = None,
    kind: Literal["pictures", "texts"] | None = None,
    features: str | None = None,
    watch: Switch = False,
    every: Annotated[float, Parameter(metavar="SECONDS")] = 2.0,
    jobs: Whole = -1,
    json: Json = False,
) -> None:
    """Bring a collection up to date with the files of a folder; it is made where there is none.

    Files are known by their content: a copy, or one that was moved, is the same item, with the
    tags that it has. The second time only new and changed files are read. What is done is kept
    after an interrupt, and the next time goes on from there. The files themselves are never
    changed. Hidden files are left out, and links that lead out of the folder.

    Parameters
    ----------
    folder
        Folder of pictures or texts; or a table or data set, whose rows become a collection of
        vectors.
    collection
        Folder of the collection.
    tags
        A table with the columns file and tags, divided by ;, for the items of the collection.
    kind
        What a new collection holds; by default pictures.
    features
        What pictures or texts of a new collection become: auto, moments, words, the name of a
        network, or an ONNX file.
    watch
        Go on looking for new, changed and vanished files, until Ctrl-C.
    every
        Time between two looks of --watch.
    jobs
        Number of threads, -1 for all cores.

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
    import_scikit_learn()
    if not Path(folder).is_dir():
        _index_table(folder, collection, tags, kind, features, watch, json)
        return
    _made(collection, kind, features)
    watched = _Watched(folder, collection, jobs)
    report: IndexReport | None = watched.look()
    while True:
        if report is not None:
            told = _told(folder, collection, report, tags)
            if not json:
                _say(told, report)
            elif watch:  # one document a line
                say(json_texts.dumps(told))
            else:
                say_json(told)
        if not watch:
            return
        tags = None
        write(flush=True)
        time.sleep(max(every, _REST * watched.seconds))
        report = watched.look_again()


def _made(path: str, kind: str | None, features: str | None) -> None:
    """Have a collection, or see that it is what was asked for."""
    from nearlabel.collection import Collection, is_collection
    from nearlabel.collection.item_features import chosen_features

    if not is_collection(path):
        with naming(features="--features", kind="--kind"):
            chosen = chosen_features(kind or "pictures", features)
            Collection.create(path, kind=kind or "pictures", features=chosen).close()
        return
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
                f"{option} {wanted}: {path} was made with {there}, and stays so; index into "
                "another collection"
            )


class _Watched:
    """A folder and its collection."""

    def __init__(self, folder: str, collection: str, jobs: int) -> None:
        self._folder, self._collection, self._jobs = folder, collection, jobs
        self._passed_over: dict[str, FileStamp] = {}
        self._is_there = True
        self.seconds = 0.0  # that the last look took

    def look(self, patience_ns: int = 0) -> IndexReport:
        """Bring the collection up to date with the folder."""
        from nearlabel.collection.indexing import run_index

        with open_collection(self._collection) as store:
            plan, features = self._plan(store, patience_ns)
            with steps("indexing", store.settings.kind) as progress:
                try:
                    report = run_index(store, plan, features, n_jobs=self._jobs, progress=progress)
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(_GOES_ON) from None
        stamps = plan.scan.files
        skipped = {*self._passed_over, *(path for path, _ in report.skipped)}
        self._passed_over = {path: stamps[path] for path in skipped if path in stamps}
        return report

    def look_again(self) -> IndexReport | None:
        """The same where something has changed; the collection is open only for that."""
        begin = time.monotonic()
        try:
            with open_collection(self._collection, readonly=True) as store:
                plan, _ = self._plan(store, _STILL_WRITTEN)
            self._is_there = True
            self.seconds = time.monotonic() - begin
            return self.look(_STILL_WRITTEN) if plan else None
        except BlockingIOError:  # somebody else writes: the next time, then
            return None
        except (FileNotFoundError, NotADirectoryError) as error:
            if self._is_there:
                name = error.filename or self._folder
                warnings.warn(f"{name} is not there; it may come back", stacklevel=2)
            self._is_there = False
            return None

    def _plan(self, store: Collection, patience_ns: int) -> tuple[IndexPlan, Any]:
        from nearlabel.collection.indexing import plan_index
        from nearlabel.collection.item_features import item_features

        settings = store.settings
        if settings.kind == "vectors":
            raise ValueError(f"{self._collection} holds vectors; give a table in place of a folder")
        features = item_features(settings.kind, settings.features, n_jobs=self._jobs)
        return plan_index(
            store,
            self._folder,
            features.files,
            passed_over=self._passed_over,
            patience_ns=patience_ns,
        ), features


def _told(folder: str, path: str, report: IndexReport, tags: str | None) -> dict[str, Any]:
    """What was done, for JSON; tags of a table are given here."""
    with open_collection(path) as store:
        imported = None if tags is None else import_table(store, tags)
        counts, settings = store.counts(), store.settings
    return {
        "collection": path,
        "folder": folder,
        "kind": settings.kind,
        "features": settings.features.get("name"),
        "new": report.new,
        "changed": report.changed,
        "found": report.found,
        "unchanged": report.unchanged,
        "gone": report.gone,
        "skipped": [{"file": encodable(path), "reason": why} for path, why in report.skipped],
        "seconds": round(report.seconds, 3),
        "items": counts["items"],
        "tags": imported,
    }


def import_table(store: Collection, table: str) -> dict[str, Any]:
    """Give the tags of a table to items."""
    from nearlabel.collection.exchange.importing import import_files
    from nearlabel.collection.exchange.tag_tables import read_csv_tags, read_json_tags

    is_lines = Path(table).suffix.lower() in (".jsonl", ".ndjson")
    files = (read_json_tags if is_lines else read_csv_tags)(table)
    report = import_files(store, files, beside=Path(table).parent)
    for problem in report.problems[:_SKIPPED_SHOWN]:
        warnings.warn(f"{table}: {problem}", stacklevel=2)
    unmatched = [name for name, _ in report.unmatched]
    if unmatched:
        some = ", ".join(unmatched[:3]) + (", …" if len(unmatched) > 3 else "")
        rows = counted(len(unmatched), "row")
        warnings.warn(f"{table}: {rows} without an item: {some}", stacklevel=2)
    return {
        "file": table,
        "given": report.given,
        "rejected": report.rejected,
        "known": report.known,
        "kept": len(report.kept),
        "unmatched": len(unmatched),
    }


def _say(told: Mapping[str, Any], report: IndexReport) -> None:
    """Say what was done."""
    for path, reason in report.skipped[:_SKIPPED_SHOWN]:
        warnings.warn(f"{encodable(path)} {reason}; left out", stacklevel=2)
    more = len(report.skipped) - _SKIPPED_SHOWN
    if more > 0:
        warnings.warn(f"{counted(more, 'more file')} left out; --json names all", stacklevel=2)
    counts = [f"{told[key]:,} {name}" for key, name in _COUNTS.items() if told[key]]
    read = report.new + report.changed
    rate = f", {read / report.seconds:.0f} a second" if read and report.seconds else ""
    say_folded(
        printable(
            f"{told['folder']}: {', '.join(counts) or 'no files'} ({report.seconds:.1f} s{rate})"
        )
    )
    items = counted(told["items"], "item")
    say_folded(f"{told['collection']} has {items} now: {told['kind']} by {told['features']}")
    if told["tags"] is not None:
        _say_tags(told["tags"])


def _say_tags(tags: Mapping[str, Any]) -> None:
    parts = [f"{counted(tags['given'], 'tag')} given"]
    parts += [f"{tags['rejected']} refused"] if tags["rejected"] else []
    parts += [f"{tags['known']} known already"] if tags["known"] else []
    parts += [f"{tags['kept']} decided otherwise before, and left so"] if tags["kept"] else []
    say_folded(f"{tags['file']}: {', '.join(parts)}")


def _index_table(
    data: str,
    path: str,
    tags: str | None,
    kind: str | None,
    features: str | None,
    watch: bool,
    json: bool,
) -> None:
    """Make the rows of a table, or of a data set, items of a collection of vectors."""
    from nearlabel.collection import Collection, is_collection

    for option, given in (("--kind", kind), ("--features", features), ("--watch", watch or None)):
        if given is not None:
            raise ValueError(f"{option}: {data} is no folder")
    items = with_or_without_labels(LabelReading(), data)
    if not is_collection(path):
        Collection.create(path, kind="vectors", features=vector_features(items)).close()
    with open_collection(path) as store:
        told = add_rows(store, items, data)
        imported = None if tags is None else import_table(store, tags)
        counts = store.counts()
    if json:
        told |= {"items": counts["items"], "tags": imported}
        say_json({"collection": path, "data": data, **told})
        return
    say_folded(f"{data}: {told['new']} new, {told['given']} tags given")
    say_folded(f"{path} has {counted(counts['items'], 'item')} now: vectors")
    if imported is not None:
        _say_tags(imported)
