"""What a collection takes and gives: small records without behavior of their own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array

_CHANGES = {  # for people, with how many items were touched
    "add": "added {}",
    "files": "updated the files of {}",
    "tag": "tagged {}",
    "reject": "took tags away from {}",
    "clear": "cleared tags of {}",
    "set_tags": "set the tags of {}",
    "decide": "changed tags of {}",
    "rename_tag": "renamed a tag of {}",
    "merge_tags": "merged tags of {}",
    "delete_tag": "deleted a tag of {}",
    "vectors": "made the vectors of {} again",
    "undo": "took back a change to {}",
    "forget": "forgot {}",
}


class Settings(NamedTuple):
    """What a collection was created with, and what its first item has settled.

    Attributes
    ----------
    kind : {"pictures", "texts", "vectors"}
    features : dict
        What makes vectors of items: `name`, and whatever else tells one form of it from another.
    method : dict
        The method that learns: its `name`, and its parameters.
    width : int or None
        Numbers of a vector; None before the first item.
    is_sparse : bool or None
        Whether vectors are stored as sparse rows; None before the first item.
    """

    kind: str
    features: Mapping[str, Any]
    method: Mapping[str, Any]
    width: int | None
    is_sparse: bool | None


class FileState(NamedTuple):
    """A file as it was last seen.

    Attributes
    ----------
    root : str
        The folder that was indexed, as an absolute path.
    path : str
        The path of the file within it, with forward slashes.
    size, mtime_ns : int
    item : int or None
        The item that it is a file of; None where that is not known yet.
    is_missing : bool
        Whether it was not there any more when the folder was last looked at.
    """

    root: str
    path: str
    size: int
    mtime_ns: int
    item: int | None = None
    is_missing: bool = False


class NewItem(NamedTuple):
    """An item to add.

    Attributes
    ----------
    content : bytes
        The sha256 of its content, by which it is known: see `content_of` and `vector_content`.
    vector : array-like of shape (d,), or sparse matrix of one row
    files : tuple of FileState
    name : str
        What it is called: by default the path of its first file.
    text : str, optional
        Its text, or the beginning of it, where there is one to show.
    item : int, optional
        The item that has this content from now on, where it is known without a file.
    """

    content: bytes
    vector: Any
    files: tuple[FileState, ...] = ()
    name: str = ""
    text: str | None = None
    item: int | None = None


class Decision(NamedTuple):
    """What was said of a tag and an item: yes or no, by a `person` or a `suggestion`, and when."""

    is_yes: bool
    by: str
    at: datetime


class Item(NamedTuple):
    """An item of a collection.

    Attributes
    ----------
    id : int
    name : str
    files : tuple of FileState
        Where its content was seen.
    tags : dict of str to Decision
        All that was decided of it, also what it is not, in the order of the tags' numbers.
    is_learned : bool
        Whether it is an example to learn from: something was decided.
    is_missing : bool
        Whether none of its files is there any more.
    text : str or None
    content : bytes
    """

    id: int
    name: str
    files: tuple[FileState, ...]
    tags: dict[str, Decision]
    is_learned: bool
    is_missing: bool
    text: str | None
    content: bytes

    @property
    def shown_name(self) -> str:
        """What it is called: by where its file is now, if a person gave that file its name."""
        paths = [file.path for file in self.files if not file.is_missing]
        named = [path for path in paths if self.content.hex() not in path]
        if not named or self.name in paths:
            return self.name
        return os.fsencode(named[0]).decode(errors="backslashreplace")

    @property
    def yes(self) -> list[str]:
        """The tags that it has."""
        return [name for name, decision in self.tags.items() if decision.is_yes]

    @property
    def no(self) -> list[str]:
        """The tags that it was said not to have."""
        return [name for name, decision in self.tags.items() if not decision.is_yes]


class TagCount(NamedTuple):
    """A tag, and how many items have it, or were said not to have it."""

    name: str
    yes: int
    no: int


class Change(NamedTuple):
    """A change of a collection.

    Attributes
    ----------
    number : int
    kind : str
        add, files, tag, reject, clear, set_tags, decide, rename_tag, merge_tags, delete_tag,
        vectors, undo or forget.
    at : datetime
        When, by the clock of then; numbers say what came first.
    group : int or None
        The run that it belongs to: `undo` takes back the changes of a run together.
    items : int
        How many items were touched.
    is_undone : bool
    """

    number: int
    kind: str
    at: datetime
    group: int | None
    items: int
    is_undone: bool

    @property
    def said(self) -> str:
        """What was done, for people."""
        items = "1 item" if self.items == 1 else f"{self.items} items"
        said = _CHANGES.get(self.kind)
        return f"{self.kind} {items}" if said is None else said.format(items)


def said_changes(run: Sequence[Change]) -> str:
    """What the changes of a run, the latest first, have done, for people."""
    items: dict[str, int] = {}
    for change in reversed(run):
        items[change.kind] = items.get(change.kind, 0) + change.items
    return ", ".join(run[0]._replace(kind=kind, items=n).said for kind, n in items.items())


class Voter(NamedTuple):
    """An item that has a suggested tag, how far it is, and its part in the vote."""

    id: int
    distance: float
    part: float


class Suggestion(NamedTuple):
    """A tag that an item may have, how likely that is, and the items that say so."""

    tag: str
    probability: float
    voters: list[Voter]


class TaggedItems(NamedTuple):
    """A tag that an item may have, and the nearest items that carry it, with their distances."""

    tag: str
    probability: float
    items: list[tuple[int, float]]


class StoredIndex(NamedTuple):
    """The file of what was learned: the change after which it was written, and its digest."""

    change: int
    digest: str


class Rows(NamedTuple):
    """Items to learn from, in the order in which they became so.

    Attributes
    ----------
    ids : ndarray of int64, shape (n,)
    learned : ndarray of int64, shape (n,)
        Ascending numbers, given anew when an item becomes an example again, or gets another vector.
    indptr, tags : ndarrays of int64
        ``tags[indptr[i]:indptr[i + 1]]`` are the numbers of the tags that row i has, ascending.
    """

    ids: Array
    learned: Array
    indptr: Array
    tags: Array

    def tags_of(self, row: int) -> list[int]:
        """The numbers of the tags that a row has."""
        return list(self.tags[self.indptr[row] : self.indptr[row + 1]].tolist())


def content_of(content: bytes) -> bytes:
    """The sha256 by which the content of a file is known."""
    return hashlib.sha256(content).digest()


def vector_content(name: str, values: Sequence[float] | Array) -> bytes:
    """The sha256 by which a vector that is no file is known: of its name and its values."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(np.ascontiguousarray(values, "<f4").tobytes())
    return digest.digest()
