"""add, forget and relabel for a collection instead of a model file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nearlabel.cli.import_tags import note_some
from nearlabel.cli.model_changes import (
    Changing,
    say_verification,
    verification_code,
    verification_record,
)
from nearlabel.cli.open_collections import open_collection
from nearlabel.cli.options import Part
from nearlabel.cli.options.reading import LabelReading, check_unused, is_table
from nearlabel.cli.output import counted, say_folded, say_json, steps

if TYPE_CHECKING:
    from nearlabel.collection import Collection
    from nearlabel.collection.exchange.importing import ImportReport
    from nearlabel.collection.exchange.tag_tables import TaggedFile
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset

_ROWS_AT_ONCE = 4096


def vector_features(items: Dataset) -> Tree:
    """The settings of a collection of vectors, with the column names of its first table."""
    names = items.feature_names
    known = {} if names is None or len(names) > 10_000 else {"columns": names.tolist()}
    return {"name": "given", **known}


def dividing_tags(reading: LabelReading, data: str) -> LabelReading:
    """How a table is read for a collection: tags are separated by ``;`` unless the user chooses."""
    from nearlabel.collection.exchange.tag_tables import SEPARATOR

    if reading.separator is not None or not is_table(data, reading.format):
        return reading
    return replace(reading, separator=SEPARATOR)


def with_or_without_labels(reading: LabelReading, data: str, part: Part = "all") -> Dataset:
    """Read the rows of a table that may have no labels."""
    reading = dividing_tags(reading, data)
    try:
        return reading.load(data, part)
    except ValueError as error:
        if "which columns are labels?" not in str(error):
            raise
        return replace(reading, labels=()).load(data, part)


class Addition(NamedTuple):
    """The result of adding files or rows, and their tags."""

    new: int
    changed: int
    known: int
    tags: ImportReport
    group: int | None

    @property
    def record(self) -> Tree:
        """The result for JSON."""
        return {
            "new": self.new,
            "changed": self.changed,
            "given": self.tags.given,
            "kept": [{"id": decision.id, "tag": decision.tag} for decision in self.tags.kept],
            "problems": self.tags.problems,
        }


def note_kept(report: ImportReport) -> None:
    """Print notes about tags that were not given."""
    notes = [
        f"{file}: you said {'yes' if is_yes else 'no'} to {tag!r}, which is kept"
        for _, file, tag, is_yes in report.kept
    ]
    note_some([*report.problems, *notes])


def rows_text(added: Addition) -> str:
    """What was done with the rows of a table, for people."""
    counts = [(added.new, "new"), (added.changed, "changed"), (added.known, "unchanged")]
    parts = [f"{count:,} {what}" for count, what in counts if count]
    return ", ".join([*parts, f"{counted(added.tags.given, 'tag')} given"])


def add_rows(store: Collection, items: Dataset, source: str) -> Addition:
    """Add the rows of a data set to a collection of vectors, with their labels as tags."""
    import numpy as np
    from scipy import sparse

    from nearlabel.collection import NewItem
    from nearlabel.collection.exchange.importing import import_files
    from nearlabel.collection.exchange.tag_tables import TaggedFile
    from nearlabel.collection.records import vector_content
    from nearlabel.common.messages import first_twice, shown
    from nearlabel.datasets.frames import is_frame
    from nearlabel.datasets.loading import with_features
    from nearlabel.datasets.text_lines import names_or_numbers

    if store.settings.kind != "vectors":
        raise ValueError(f"{source}: {store.path} holds {store.settings.kind}, not rows of tables")
    columns = store.settings.features.get("columns")
    if columns is not None and items.feature_names is not None:
        items = with_features(items, columns, source)
    if is_frame(items.X):
        raise ValueError(f"{source} has words or gaps in its columns; vectors are of numbers")
    if items.row_names is None:
        raise ValueError(f"{source} has no ids of items: add a column id, or give --id")
    names = items.row_names.tolist()
    if (twice := first_twice(names)) is not None:
        raise ValueError(f"{source} has two items with the id {shown(twice)}")
    labels = names_or_numbers(items.label_names, items.Y.shape[1])
    group, before = store.new_group(), store.counts()["items"]
    there = store.known_names(names)
    ids: list[int] = []
    known = 0
    with steps("adding", "rows") as progress:
        for start in range(0, len(items), _ROWS_AT_ONCE):
            X = items.X[start : start + _ROWS_AT_ONCE].astype(np.float32)
            new = []
            for row, name in enumerate(names[start : start + _ROWS_AT_ONCE]):
                x = X[row : row + 1]
                values = x.toarray() if sparse.issparse(x) else x
                content = vector_content(name, values.ravel())
                new.append(NewItem(content, x, name=name, item=there.get(name)))
            known += len(store.known_contents(item.content for item in new))
            ids += store.add(new, group=group)
            progress(len(ids), len(items))
    ends = items.Y.indptr.tolist()
    tagged = [
        TaggedFile(name, tuple(labels[at] for at in items.Y.indices[start:stop].tolist()), id=item)
        for name, item, start, stop in zip(names, ids, ends[:-1], ends[1:], strict=True)
    ]
    report = import_files(store, tagged, group=group)
    new_items = store.counts()["items"] - before
    return Addition(new_items, len(ids) - known - new_items, known, report, group)


def add_to_collection(
    path: str, data: str, part: Part, reading: LabelReading, changing: Changing
) -> int | None:
    """Add files or rows, with their labels as tags."""
    _check(changing)
    import nearlabel as nl
    from nearlabel.collection.exchange.importing import import_files
    from nearlabel.datasets.picture_sets import is_picture_set

    with open_collection(path) as store:
        kind = store.settings.kind
        if kind == "vectors":
            added = add_rows(store, with_or_without_labels(reading, data, part), data)
        elif kind == "pictures" and is_picture_set(data):
            check_unused(reading, data)
            pictures = nl.datasets.load_pictures(data)
            folder = str(pictures.pictures[0].parent)
            added = _indexed(store, folder, changing.jobs)
            import_files(store, _labels_of(store, pictures), report=added.tags, group=added.group)
        else:
            check_unused(reading, data)
            added = _indexed(store, data, changing.jobs)
        if not changing.json:
            note_kept(added.tags)
        done = f"added {counted(added.new, 'item')}"
        if added.tags.given:
            done += f" and {counted(added.tags.given, 'tag')}"
        if added.changed:
            done += f", changed {added.changed:,}"
        if added.known:
            done += f", {added.known:,} known already"
        record = added.record
        return _finish(store, changing, done, added=record.pop("new"), **record, known=added.known)


def _check(changing: Changing) -> None:
    if changing.refresh:
        raise ValueError("--refresh is only for model files: a collection is always up to date")


def _indexed(store: Collection, source: str, jobs: int | None) -> Addition:
    """Add the files of a folder, or a single one."""
    from nearlabel.collection.exchange.importing import ImportReport
    from nearlabel.collection.indexing import plan_index, run_index
    from nearlabel.collection.item_features import item_features

    if not Path(source).exists():
        raise ValueError(f"there is no file or folder {source}")
    settings = store.settings
    features = item_features(settings.kind, settings.features, n_jobs=jobs)
    real = Path(os.path.realpath(source))
    plan = plan_index(store, real.parent if real.is_file() else real, features.files)
    if real.is_file():
        plan = plan.only(real.relative_to(plan.root).as_posix())
        if not (plan.seen or plan.new or plan.unchanged or plan.scan.skipped):
            raise ValueError(
                f"{source}: {store.path} holds {settings.kind}, and this is not one of them"
            )
    with steps("adding", settings.kind) as progress:
        report = run_index(store, plan, features, n_jobs=jobs, progress=progress)
    for path, reason in report.skipped:
        if real.is_file():
            raise ValueError(f"{source} {reason}")
        warnings.warn(f"{path} {reason}; left out", stacklevel=2)
    known = report.moved + report.copied + report.found + report.unchanged
    return Addition(report.new, report.changed, known, ImportReport(), report.group)


def _labels_of(store: Collection, pictures: Any) -> list[TaggedFile]:
    """The labels of a picture set as tags of items."""
    from nearlabel.collection.exchange.tag_tables import TaggedFile
    from nearlabel.collection.queries import named_items

    ends, tagged = pictures.Y.indptr.tolist(), []
    for path, start, stop in zip(pictures.pictures, ends[:-1], ends[1:], strict=True):
        (item,) = named_items(store, [str(path)])
        labels = pictures.Y.indices[start:stop].tolist()
        names = tuple(str(pictures.label_names[label]) for label in labels)
        tagged.append(TaggedFile(path.name, names, id=item.id))
    return tagged


def forget_items(
    path: str, names: Sequence[str], ignore_missing: bool, changing: Changing
) -> int | None:
    """Erase items from a collection for good."""
    _check(changing)
    from nearlabel.collection import CollectionError
    from nearlabel.collection.queries import named_items

    with open_collection(path) as store:
        items, missing = {}, 0
        for name in names:
            try:
                (item,) = named_items(store, [name])
                items[item.id] = item
            except (CollectionError, ValueError):
                if not ignore_missing:
                    raise
                missing += 1
        if items:
            store.forget([*items])
        forgot = f"forgot {counted(len(items), 'item')}" if names else "compacted"
        if missing:
            forgot += f", {missing} not found"
        files = [Path(file.root, file.path) for item in items.values() for file in item.files]
        left = sum(file.exists() for file in files)
        if left and not changing.json:
            warnings.warn(
                f"files stay where they are ({counted(left, 'file')}): the next 'nearlabel index' "
                "adds them again as new items, unless you delete them or move them away",
                stacklevel=2,
            )
        return _finish(
            store, changing, forgot, forgotten=len(items), missing=missing, files_left=left
        )


def relabel_items(
    path: str,
    names: Sequence[str],
    sets: Sequence[Sequence[str]] | None,
    add: Sequence[str],
    remove: Sequence[str],
    changing: Changing,
) -> int | None:
    """Set the tags of items in a collection to `sets`, or add and remove some tags."""
    _check(changing)
    from nearlabel.collection.queries import named_items
    from nearlabel.common.messages import first_twice

    with open_collection(path) as store:
        answers: list[tuple[int, str, bool]] = []
        items = [named_items(store, [name])[0] for name in names]
        if (twice := first_twice([str(item.id) for item in items])) is not None:
            raise ValueError(f"two of the items are the same one, item {twice}")
        for place, item in enumerate(items):
            if sets is None:
                answers += [(item.id, name, True) for name in add]
                answers += [(item.id, name, False) for name in remove]
            else:
                answers += [(item.id, name, False) for name in item.yes if name not in sets[place]]
                answers += [(item.id, name, True) for name in sets[place]]
        store.decide(answers)
        done = f"relabelled {counted(len(items), 'item')}"
        return _finish(store, changing, done, relabelled=len(items))


def _finish(store: Collection, changing: Changing, done: str, **what: object) -> int | None:
    """Compact and verify if asked for, and report what was done; return the exit code."""
    if changing.compact:
        store.compact()
    verified = None
    if changing.verify:
        with steps("verifying"):
            verified = store.verify()
    counts = store.counts()
    record = {
        "collection": str(store.path),
        **what,
        "items": counts["items"],
        "tags": counts["tags"],
        "verified": None if verified is None else verification_record(verified),
    }
    if changing.json:
        say_json(record)
    else:
        items, tags = counted(counts["items"], "item"), counted(counts["tags"], "tag")
        say_folded(f"{done}: {store.path} has {items} and {tags} now")
        if verified is not None:
            say_verification(verified)
    return None if verified is None else verification_code(verified)
