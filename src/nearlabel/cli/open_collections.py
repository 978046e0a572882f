"""Opening collections, and queries about their items and other files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.cli.output import steps
from nearlabel.common.messages import encodable

if TYPE_CHECKING:
    from nearlabel.collection import Collection, Item
    from nearlabel.collection.queries import Query
    from nearlabel.common.arrays import Tree


def is_collection(path: str) -> bool:
    """Whether a path is a collection rather than a model file; needs no imports."""
    return os.path.lexists(Path(path, "collection.sqlite"))


@contextmanager
def open_collection(path: str, *, readonly: bool = False) -> Iterator[Collection]:
    """Open a collection, updated if it is of an earlier version; repairs are reported in notes."""
    from nearlabel.collection import Collection
    from nearlabel.collection.folder_checks import OldVersionError

    if not is_collection(path):
        raise ValueError(f"{path} {_no_collection(path)}")
    try:
        opened = Collection(path, readonly=readonly)
    except OldVersionError:
        with open_collection(path):
            opened = Collection(path, readonly=True)
    with opened as collection:
        try:
            yield collection
        finally:
            for note in collection.notes:
                warnings.warn(f"{path}: {note}", stacklevel=2)


def _no_collection(path: str) -> str:
    """What a path is instead of a collection, and how to create one."""
    folder = Path(path)
    if folder.is_dir() and any(folder.iterdir()):
        target = f"{folder.absolute().name or 'files'}.nearlabel"
        return (
            f"is a folder, but not a collection; 'nearlabel index {path} -c {target}' creates one"
        )
    if folder.exists() and not folder.is_dir():
        return "is a file; a collection is a folder, created by 'nearlabel index FOLDER -c NAME'"
    what = "is empty" if folder.exists() else "does not exist"
    return f"{what}; 'nearlabel index FOLDER -c {path}' creates a collection there"


def tags_text(item: Item) -> str:
    """The tags of an item, for people."""
    yes = listed_tags(item.yes) or "no tags"
    return f"{yes}; not {listed_tags(item.no)}" if item.no else yes


def listed_tags(tags: Iterable[str]) -> str:
    """Tags between commas; one that has a comma itself is quoted."""
    return ", ".join(f"'{tag}'" if set(tag) & {",", ";"} else tag for tag in tags)


def item_record(item: Item) -> Tree:
    """An item in JSON."""
    from nearlabel.collection.queries import query_of

    return query_of(item).record


def headline(query: Query) -> str:
    """What stands above the answers to a query."""
    if query.item is None:
        return query.name
    return f"{query.name} (item {query.item.id}): {tags_text(query.item)}"


def asked(store: Collection, names: Sequence[str], jobs: int | None = None) -> list[Query]:
    """Items of a collection, and files and folders that need not be in it.

    Files that cannot be read are skipped, with notes.
    """
    from nearlabel.collection.queries import queries

    with steps("reading", "files") as progress:
        answered, unread = queries(store, names, n_jobs=jobs, progress=progress)
    for error in unread:
        warnings.warn(f"{encodable(error.name)} {error.reason}; left out", stacklevel=2)
    if not answered:
        raise ValueError(f"{', '.join(names[:2])}: there are no {store.kind} that can be read")
    return answered
