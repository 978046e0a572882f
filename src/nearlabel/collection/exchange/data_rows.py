"""Rows of data sets as items of a collection of vectors, with their labels as tags."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from nearlabel.collection.collection import Collection
from nearlabel.collection.exchange.importing import ImportReport, import_files
from nearlabel.collection.exchange.tag_tables import TaggedFile
from nearlabel.collection.indexing import IndexReport
from nearlabel.collection.records import NewItem, vector_content
from nearlabel.common.arrays import Array, Csr, Tree, is_sparse
from nearlabel.common.messages import first_twice, shown
from nearlabel.common.progress import Progress
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.frames import is_frame
from nearlabel.datasets.loading import with_features
from nearlabel.datasets.text_lines import names_or_numbers

_ROWS_AT_ONCE = 4096


def given_features(data: Dataset) -> Tree:
    """The `features` of a collection for such rows: further ones are matched by column names."""
    names = data.feature_names
    if names is None or len(names) > 10_000:
        return {"name": "given"}
    return {"name": "given", "columns": names.tolist()}


def add_rows(
    collection: Collection, data: Dataset, source: str, *, progress: Progress | None = None
) -> tuple[IndexReport, ImportReport]:
    """Add the rows of a data set to a collection of vectors, with their labels as tags.

    A row with the name of an item is the item's new vector. All changes are of one run, which
    `undo` takes back.

    Parameters
    ----------
    collection : Collection
    data : Dataset
        Its rows have names.
    source : str
        What errors call it.
    progress : callable, optional
        Called with (rows done, all rows).
    """
    begin, settings = time.monotonic(), collection.settings
    if settings.kind != "vectors":
        raise ValueError(f"{source}: {collection.path} holds {settings.kind}, not rows of tables")
    columns = settings.features.get("columns")
    if columns is not None and data.feature_names is not None:
        data = with_features(data, columns, source)
    if is_frame(data.X):
        raise ValueError(f"{source} has words or gaps in its columns; vectors are of numbers")
    if data.row_names is None:
        raise ValueError(f"{source} has no ids of items: add a column id, or give id=")
    names = data.row_names.tolist()
    if (twice := first_twice(names)) is not None:
        raise ValueError(f"{source} has two items with the id {shown(twice)}")
    report = IndexReport(group=collection.new_group())
    before, known = collection.counts()["items"], collection.known_names(names)
    ids: list[int] = []
    for start in range(0, len(data), _ROWS_AT_ONCE):
        X = data.X[start : start + _ROWS_AT_ONCE].astype(np.float32)
        new = []
        for row, name in enumerate(names[start : start + _ROWS_AT_ONCE]):
            x = X[row : row + 1]
            content = vector_content(name, (x.toarray() if is_sparse(x) else x).ravel())
            new.append(NewItem(content, x, name=name, item=known.get(name)))
        report.unchanged += len(collection.known_contents(item.content for item in new))
        ids += collection.add(new, group=report.group)
        if progress is not None:
            progress(len(ids), len(data))
    tagged = tagged_items(names, ids, data.Y, data.label_names)
    imported = import_files(collection, tagged, group=report.group)
    report.new = collection.counts()["items"] - before
    report.changed = len(ids) - report.unchanged - report.new
    report.seconds = time.monotonic() - begin
    return report, imported


def tagged_items(
    names: Sequence[str], ids: Sequence[int], Y: Csr, label_names: Array | None
) -> list[TaggedFile]:
    """Items with the labels of the rows of a matrix as tags."""
    sets = label_sets(Y, names_or_numbers(label_names, Y.shape[1]))
    return [
        TaggedFile(name, tuple(tags), id=item)
        for name, item, tags in zip(names, ids, sets, strict=True)
    ]


def label_sets(Y: Csr, names: Sequence[str]) -> list[list[str]]:
    """The names of the labels of each row of a 0/1 matrix."""
    ends = pairwise(Y.indptr.tolist())
    return [[names[label] for label in Y.indices[start:stop].tolist()] for start, stop in ends]
