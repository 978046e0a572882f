"""add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nearlabel.cli.changing import Changing
from nearlabel.cli.collection_changes import decided_record
from nearlabel.cli.import_tags import note_import
from nearlabel.cli.model_items import items_for, vectors
from nearlabel.cli.open_models import OpenModel
from nearlabel.cli.options import DataOrPictures, Part, Switch
from nearlabel.cli.options.reading import LabelReading, label_names, source_name
from nearlabel.cli.output import counted, steps

if TYPE_CHECKING:
    from nearlabel.collection.exchange.importing import ImportReport
    from nearlabel.collection.indexing import IndexReport
    from nearlabel.common.arrays import Array, Tree
    from nearlabel.datasets import Dataset


def add(
    model: str,
    data: DataOrPictures,
    *,
    part: Part = "all",
    skip_known: Switch = False,
    changing: Changing = Changing(),
    reading: LabelReading = LabelReading(),
) -> int | None:
    """Add labeled items to a model or a collection, which learns from them at once.

    DATA for a collection is a picture or text, a folder of them, or a folder with labels; for a
    collection of vectors, a table. Columns are matched by name and preprocessed as in fit. Labels
    are matched by name, too; names unknown to the model become new labels.

    Parameters
    ----------
    model
        Model file, as written by fit, or folder of a collection.
    part
        Rows to add, if the data set has a split.
    skip_known
        Skip items whose ids the model already has; these are not changed.

    Examples
    --------
    nearlabel add songs.model more.csv
    nearlabel add songs.model more.csv --tags moods --id title --verify
    nearlabel add yeast.model yeast --part test
    nearlabel add songs.model all.csv --skip-known
    cat new.jsonl | nearlabel add songs.model - --json
    nearlabel add photos.nearlabel rome.jpg
    """
    with changing.opened(model) as opened:
        if isinstance(opened, OpenModel):
            done, record = _rows(opened, data, part, skip_known, reading)
        elif skip_known:
            raise ValueError("--skip-known: a collection always skips items that it has")
        else:
            files, tags = opened.add(data, part, reading)
            if not changing.json:
                note_import(tags, model)
            done, record = _items(files, tags)
        return changing.finish(opened, done, **record)


def _items(files: IndexReport, tags: ImportReport) -> tuple[str, Tree]:
    """What was added to a collection, for people and for JSON."""
    known = files.moved + files.copied + files.found + files.unchanged
    done = f"added {counted(files.new, 'item')}"
    if tags.given:
        done += f" and {counted(tags.given, 'tag')}"
    if files.changed:
        done += f", changed {files.changed:,}"
    if known:
        done += f", {known:,} known already"
    return done, {
        "added": files.new,
        "changed": files.changed,
        **decided_record(tags),
        "known": known,
    }


def _rows(
    opened: OpenModel, data: str, part: Part, skip_known: bool, reading: LabelReading
) -> tuple[str, Tree]:
    """Add items to a model; what was added, for people and for JSON."""
    source = source_name(data)
    items = items_for(opened.pipeline, reading, data, part)
    names = label_names(items, data, reading.format)
    given = len(items)
    if skip_known:
        items, names = _only(items, _are_new(opened, items, source), names)
    skipped = given - len(items)
    labels = opened.labels(items.Y, names)
    ids = _ids(opened, items, source, reading.id)
    if len(items):
        X = vectors(opened.pipeline, items)
        with steps("adding") as progress:
            opened.model.partial_fit(X, ids=ids, progress=progress, **labels)
    new = opened.model.ids_[len(opened.model.ids_) - len(items) :].tolist()
    done = f"added {counted(len(new), 'item')}"
    if ids is None:  # which the file does not contain
        done += f", ids {new[0]} to {new[-1]}" if len(new) > 1 else f", id {new[0]}"
    if skipped:
        done += f", skipped {skipped:,} that were already there"
    return done, {"added": len(new), "ids": new, "skipped": skipped}


def _are_new(opened: OpenModel, items: Dataset, source: str) -> Array:
    """Which items have ids that the model does not know."""
    import numpy as np

    if items.row_names is None:
        raise ValueError(f"--skip-known: {source} has no ids; give their column with --id")
    return ~np.isin(opened.ids(items.row_names.tolist(), f" in {source}"), opened.model.ids_)


def _only(items: Dataset, rows: Array, names: list[str] | None) -> tuple[Dataset, list[str] | None]:
    """Some of the items, without labels that only the other items carry."""
    from dataclasses import replace

    import numpy as np

    chosen = items.rows(rows)
    if names is None:
        return chosen, None
    is_carried = (chosen.Y.sum(axis=0) > 0) | (items.Y.sum(axis=0) == 0)
    labels = [name for name, carried in zip(names, is_carried, strict=True) if carried]
    return replace(chosen, Y=chosen.Y[:, np.flatnonzero(is_carried)], label_names=None), labels


def _ids(opened: OpenModel, items: Dataset, source: str, column: str | None) -> Any:
    """The ids of new items, or None if they get the next numbers."""
    if items.row_names is None:
        if not opened.has_numbers:
            raise ValueError(
                f"{source} has no ids, but the items of {opened.path} have names as ids: give "
                "their column with --id"
            )
        return None
    way_out = "with --ignore id" if column is None else f"without --id {column}"
    hint = f" in {source}; {way_out}, items get the next numbers"
    return opened.ids(items.row_names.tolist(), hint)
