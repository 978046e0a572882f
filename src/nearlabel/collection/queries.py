"""What is asked of a collection: its items, and vectors, texts and files that it need not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nearlabel.collection.folder_checks import NotInCollectionError
from nearlabel.collection.folder_scan import read_unchanged
from nearlabel.collection.item_features import files_of, item_features, rows_of
from nearlabel.collection.records import Item, content_of
from nearlabel.common.arrays import Matrix, Tree
from nearlabel.common.messages import encodable
from nearlabel.common.progress import Progress
from nearlabel.features.picture_files import Skipping, found_files, in_parallel
from nearlabel.features.pictures import FileKind, UnreadablePicture, name_of

if TYPE_CHECKING:
    from nearlabel.collection.collection import Collection

Asked = int | str | bytes | Matrix
Vectors = Callable[[Iterable[bytes]], Matrix]
_FILES_AT_ONCE = 64  # whose contents are in memory


class Query(NamedTuple):
    """What `suggest`, `retrieve` and `similar` are asked about.

    Attributes
    ----------
    question : int or array
        What these methods take: the id of an item, or a vector.
    name : str
        For display.
    item : Item or None
        None if it is not an item of the collection.
    file : str or None
        The path of the file that was asked about.
    content : bytes
        The sha256 of the content; empty for vectors.
    """

    question: int | Matrix
    name: str = ""
    item: Item | None = None
    file: str | None = None
    content: bytes = b""

    @property
    def record(self) -> Tree:
        """What was asked about, in JSON."""
        if self.item is None:
            return {"id": None, "name": self.name, "tags": None, "no": None}
        return {"id": self.item.id, "name": self.name, "tags": self.item.yes, "no": self.item.no}


def query_of(item: Item) -> Query:
    """The query about an item of a collection."""
    return Query(item.id, item.shown_name, item, None, item.content)


def queries(
    collection: Collection,
    asked: Iterable[Asked],
    vectors: Vectors | None = None,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[list[Query], list[UnreadablePicture]]:
    """The queries about items, vectors and files, and the errors of files that cannot be read.

    Parameters
    ----------
    collection : Collection
    asked : iterable of int, str, bytes or array
        The id of an item; the id or name of an item, or the path of a file or folder; the content
        of a file; or a vector. A file with the content of an item is that item.
    vectors : callable, optional
        Returns a row for each content, except for those that a `Skipping` cannot read. By default
        the features of the collection, which are loaded for contents that are not items.
    n_jobs : int or None, default=None
        Threads that read files; -1 means all cores.
    progress : callable, optional
        Called with (things done, all things).
    """
    kind = None if collection.kind == "vectors" else files_of(collection.kind)
    wanted = [part for each in asked for part in _parts(collection, kind, each)]
    answered: list[Query] = []
    unread: list[UnreadablePicture] = []
    for start in range(0, len(wanted), _FILES_AT_ONCE):
        batch = wanted[start : start + _FILES_AT_ONCE]
        files = [each for each in batch if isinstance(each, str | bytes)]
        of_files, errors = _of_files(collection, kind, files, vectors, n_jobs)
        unread += errors
        for each in batch:
            if isinstance(each, str | bytes):
                answered += [of_files[each]] if each in of_files else []
            elif isinstance(each, int):
                answered.append(query_of(collection.item(each)))
            else:
                answered.append(Query(each))
        if progress is not None:
            progress(start + len(batch), len(wanted))
    return answered, unread


def _parts(collection: Collection, kind: FileKind | None, asked: Asked) -> Sequence[Asked]:
    """The files of a folder, or the id of an item that is asked for by name; else just this."""
    if not isinstance(asked, str):
        return [asked]
    if kind is not None and Path(asked).exists():
        return found_files(asked, kind)
    return [collection.find(asked)]


def _of_files(
    collection: Collection,
    kind: FileKind | None,
    files: Sequence[str | bytes],
    vectors: Vectors | None,
    n_jobs: int | None,
) -> tuple[dict[str | bytes, Query], list[UnreadablePicture]]:
    """The queries of the files that can be read, by their paths or contents."""
    if not files:
        return {}, []

    def read(file: str | bytes) -> tuple[str | bytes, bytes, bytes]:
        if isinstance(file, bytes):
            return file, content_of(file), file
        assert kind is not None
        content, digest, _ = read_unchanged(file, kind.most_bytes)
        return file, digest, content

    reading = Skipping(files, n_jobs)
    contents = [*in_parallel(reading, read)]
    errors = [error.of(name_of(files[at])) for at, error in reading.skipped]
    ids = collection.known_contents(digest for _, digest, _ in contents)
    items = collection.items_of([*ids.values()]) if ids else {}
    known = {digest: items[id] for digest, id in ids.items() if id in items}
    new = {digest: (file, content) for file, digest, content in contents if digest not in known}
    vector_of: dict[bytes, Matrix] = {}
    if new:
        if vectors is None:
            settings = collection.settings
            vectors = item_features(settings.kind, settings.features, n_jobs=n_jobs)
        rows, unreadable = rows_of(vectors, [content for _, content in new.values()], n_jobs)
        digests = [*new]
        errors += [error.of(name_of(new[digests[at]][0])) for at, error in unreadable.items()]
        vector_of = {digests[at]: row for at, row in rows.items()}
    answered: dict[str | bytes, Query] = {}
    for file, digest, _ in contents:
        path = file if isinstance(file, str) else None
        if digest in known:
            answered[file] = query_of(known[digest])._replace(file=path)
        elif digest in vector_of:
            name = "" if path is None else encodable(path)
            answered[file] = Query(vector_of[digest], name, None, path, digest)
    return answered, errors


def named_items(collection: Collection, names: Iterable[str]) -> list[Item]:
    """Items by their ids, names or files, each once; a file is matched by its content."""
    ids = []
    for name in names:
        if collection.kind != "vectors" and Path(name).is_file():
            digest = read_unchanged(name, files_of(collection.kind).most_bytes).digest
            known = collection.known_contents([digest])
            if not known:
                why = f"has no item with the content of {name}; 'nearlabel add' adds it"
                raise NotInCollectionError(why, collection.path)
            ids.append(known[digest])
        else:
            ids.append(collection.find(name))
    items = collection.items_of(ids)
    return [items[id] for id in dict.fromkeys(ids)]
