"""Opening collections, and queries about their items and other files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nearlabel.cli.output import steps
from nearlabel.common.messages import encodable

if TYPE_CHECKING:
    from nearlabel.collection import Collection, Item
    from nearlabel.collection.contact_sheets import Tile
    from nearlabel.common.arrays import Tree

_FILES_AT_ONCE = 64


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
    return {"id": item.id, "name": item.shown_name, "tags": item.yes, "no": item.no}


class AskedItem(NamedTuple):
    """An item that a command asks about.

    Attributes
    ----------
    name : str
    question : int or array
        What `suggest` and `retrieve` of a collection take: an id, or a vector.
    item : Item or None
        What the collection has of it; None for a file that is not in the collection.
    file : str or None
        The path of the file, where one was asked about.
    content : bytes
        The sha256 of the content.
    """

    name: str
    question: Any
    item: Item | None
    file: str | None
    content: bytes

    @property
    def record(self) -> Tree:
        """The item for JSON."""
        if self.item is not None:
            return item_record(self.item)
        return {"id": None, "name": self.name, "tags": None, "no": None}

    @property
    def headline(self) -> str:
        """What stands above its answers."""
        if self.item is None:
            return self.name
        return f"{self.name} (item {self.item.id}): {tags_text(self.item)}"

    def tile(self, store: Collection) -> Tile:
        """How it looks on a page."""
        from nearlabel.collection.contact_sheets import Tile

        if self.item is not None:
            return item_tile(store, self.item, tags_text(self.item))
        return Tile(self.name, _thumbnail(store, self.content, [Path(str(self.file))]))


def item_tile(store: Collection, item: Item, note: str) -> Tile:
    """How an item of a collection looks on a page."""
    from nearlabel.collection.contact_sheets import Tile

    files = [Path(file.root, file.path) for file in item.files if not file.is_missing]
    picture, text = _thumbnail(store, item.content, files), item.text or ""
    if picture is None and store.settings.kind == "pictures":
        is_there = any(map(Path.is_file, files))
        text = "the file cannot be shown" if is_there else "the file is missing"
    return Tile(item.shown_name, picture, note, text)


def _thumbnail(store: Collection, content: bytes, files: Sequence[Path]) -> bytes | None:
    """A thumbnail, or None if there is no picture."""
    if store.settings.kind == "pictures":
        from nearlabel.collection.thumbnails import thumbnail

        with suppress(OSError, ValueError):
            return thumbnail(store.path, content, files, readonly=store.readonly)
    return None


def items_of(store: Collection, names: Sequence[str]) -> list[Item]:
    """Items of a collection by their ids, names or files, each once."""
    items: dict[int, Item] = {}
    for name in names:
        item = _item_of(store, name)
        if item is None:
            raise ValueError(
                f"{name} is not in {store.path}; 'nearlabel index' or 'nearlabel add' adds it"
            )
        items[item.id] = item
    return [*items.values()]


def _item_of(store: Collection, name: str) -> Item | None:
    """The item of a name; None for a file that is not an item. Files are matched by content."""
    path = Path(name)
    if store.settings.kind == "vectors" or not path.is_file():
        return store.item(store.find(name))
    from nearlabel.collection.folder_scan import read_unchanged
    from nearlabel.features.picture_formats import MOST_BYTES

    known = store.known_contents([(digest := read_unchanged(path, MOST_BYTES).digest)])
    return store.item(known[digest]) if known else None


def asked(store: Collection, names: Sequence[str], jobs: int | None = None) -> list[AskedItem]:
    """Items of a collection, and files and folders that need not be in it, as questions.

    Files that cannot be read are skipped, with notes.
    """
    settings = store.settings
    if settings.kind == "vectors":
        return [asked_item(item) for item in items_of(store, names)]
    from nearlabel.collection.item_features import item_features
    from nearlabel.features.picture_files import found_files

    features = item_features(settings.kind, settings.features, n_jobs=jobs)
    questions: list[AskedItem] = []
    files: list[Any] = []
    for name in names:
        if Path(name).is_dir():
            files += found_files(name, features.files)
        elif Path(name).is_file():
            files.append(name)
        else:
            questions.append(asked_item(store.item(store.find(name))))
    with steps("reading", settings.kind) as progress:
        for start in range(0, len(files), _FILES_AT_ONCE):
            batch = files[start : start + _FILES_AT_ONCE]
            questions += _of_files(store, batch, features, jobs)
            progress(start + len(batch), len(files))
    if not questions:
        raise ValueError(f"{', '.join(names[:2])}: there are no {settings.kind} that can be read")
    return questions


def asked_item(item: Item) -> AskedItem:
    """An item of a collection as a question."""
    return AskedItem(item.shown_name, item.id, item, None, item.content)


def _of_files(
    store: Collection, files: Sequence[Any], features: Any, jobs: int | None
) -> Iterator[AskedItem]:
    """Some files, those that are items as items; a single one that cannot be read is an error."""
    from nearlabel.collection.folder_scan import ReadFile, read_unchanged
    from nearlabel.features.picture_files import Skipping, in_parallel
    from nearlabel.features.pictures import name_of

    def read(path: Any) -> tuple[str, ReadFile]:
        if not isinstance(path, str):  # a folder that could not be listed
            path.read()
        return path, read_unchanged(path, features.files.most_bytes)

    reading = Skipping([*files], jobs)
    contents = dict(in_parallel(reading, read))
    known = store.known_contents(content.digest for content in contents.values())
    new = {path: file for path, file in contents.items() if file.digest not in known}
    making = Skipping([file.content for file in new.values()], jobs)
    try:
        X = features.vectors(making) if new else None
    except ValueError:
        if len(making.skipped) < len(making):
            raise
    broken = [(name_of(files[at]), error.reason) for at, error in reading.skipped]
    unmade = {[*new][at]: error.reason for at, error in making.skipped}
    for path, reason in [*broken, *unmade.items()]:
        warnings.warn(f"{encodable(path)} {reason}; left out", stacklevel=2)
    row = 0
    for path, file in contents.items():
        if file.digest in known:
            yield asked_item(store.item(known[file.digest]))._replace(file=path)
        elif path not in unmade:
            yield AskedItem(encodable(path), _row(X, row), None, path, file.digest)
            row += 1


def _row(X: Any, row: int) -> Any:
    from scipy import sparse

    return X[row : row + 1] if sparse.issparse(X) else X[row]
