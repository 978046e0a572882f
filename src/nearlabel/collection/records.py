"""What a collection takes and returns: small records without behavior of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, MatrixLike, Tree
from nearlabel.common.messages import encodable

FEWEST_UNSAVED = 512
"""Changed rows that are learned quickly at the next opening."""
MOST_TAGS = 2**24
"""Numbers of tags, which are never reused: a model allocates labels up to the largest."""

_CHANGES = {  # for display, with the number of items
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
    "vectors": "computed the vectors of {} again",
    "undo": "took back a change to {}",
    "forget": "forgot {}",
}


class Settings(NamedTuple):
    """What a collection was created with, and the form of its vectors.

    Attributes
    ----------
    kind : {"pictures", "texts", "vectors"}
    features : dict
        How vectors are computed: `name`, and whatever else identifies the features.
    method : dict
        The method that learns: its `name` and parameters.
    width : int or None
        The length of a vector; None before the first item.
    is_sparse : bool or None
        Whether vectors are stored as sparse rows; None before the first item.
    """

    kind: str
    features: Tree
    method: Tree
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
        The item it belongs to; None if not known yet.
    is_missing : bool
        Whether it was missing when the folder was last scanned.
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
        The sha256 that identifies its content: see `content_of` and `vector_content`.
    vector : array-like of shape (d,), or sparse matrix of one row
    files : tuple of FileState
    name : str
        Its name: by default the path of its first file.
    text : str, optional
        Its text, or the beginning of it, for display.
    item : int, optional
        The item that gets this content, if known without a file.
    """

    content: bytes
    vector: MatrixLike
    files: tuple[FileState, ...] = ()
    name: str = ""
    text: str | None = None
    item: int | None = None


class Decision(NamedTuple):
    """A decision on a tag of an item: yes or no, by a `person` or a `suggestion`, and when."""

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
        All its decisions, including rejections, in the order of the tags' numbers.
    is_learned : bool
        Whether it is a training example, that is, has a decision.
    is_missing : bool
        Whether all of its files are missing.
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
        """Its name: the path of a current file, unless that file is named by its checksum."""
        paths = [file.path for file in self.files if not file.is_missing]
        named = [path for path in paths if self.content.hex() not in path]
        if not named or self.name in paths:
            return self.name
        return encodable(named[0])

    @property
    def yes(self) -> list[str]:
        """The tags it has."""
        return [name for name, decision in self.tags.items() if decision.is_yes]

    @property
    def no(self) -> list[str]:
        """The tags rejected for it."""
        return [name for name, decision in self.tags.items() if not decision.is_yes]


class TagCount(NamedTuple):
    """A tag, and the numbers of items that have it and that reject it."""

    name: str
    yes: int
    no: int


class Change(NamedTuple):
    """A change to a collection.

    Attributes
    ----------
    number : int
    kind : str
        add, files, tag, reject, clear, set_tags, decide, rename_tag, merge_tags, delete_tag,
        vectors, undo or forget.
    at : datetime
        When, by the clock at that time; numbers define the order.
    group : int or None
        The run it belongs to: `undo` takes back the changes of a run together.
    items : int
        How many items were affected.
    is_undone : bool
    summary : str
        What it did, in words.
    """

    number: int
    kind: str
    at: datetime
    group: int | None
    items: int
    is_undone: bool
    summary: str


def plain_summary(kind: str, items: int) -> str:
    """A description of a change of this kind."""
    many = counted_items(items)
    return _CHANGES[kind].format(many) if kind in _CHANGES else f"{kind} {many}"


def summary_of(run: Sequence[Change]) -> str:
    """What the changes of a run, latest first, have done."""
    items: dict[str, int] = {}
    for change in reversed(run):
        items[change.kind] = items.get(change.kind, 0) + change.items
    if len(items) == len(run):
        return ", ".join(change.summary for change in reversed(run))
    # Many parts of one action, such as an import.
    return ", ".join(plain_summary(kind, n) for kind, n in items.items())


def counted_items(n: int) -> str:
    """For example: 1 item, or 1,000 items."""
    return "1 item" if n == 1 else f"{n:,} items"


class Voter(NamedTuple):
    """An item with a suggested tag, its distance, and its share of the vote."""

    id: int
    distance: float
    part: float


class Suggestion(NamedTuple):
    """A tag an item may have, its probability, and the neighbors that have it."""

    tag: str
    probability: float
    voters: list[Voter]


class TaggedItems(NamedTuple):
    """A tag an item may have, and the nearest items that have it, with their distances."""

    tag: str
    probability: float
    items: list[tuple[int, float]]


class Rows(NamedTuple):
    """Training items, in the order in which they became so.

    Attributes
    ----------
    ids : ndarray of int64, shape (n,)
    learned : ndarray of int64, shape (n,)
        Ascending numbers, assigned anew when an item becomes an example again or its vector
        changes.
    indptr, tags : ndarrays of int64
        ``tags[indptr[i]:indptr[i + 1]]`` are the numbers of the tags of row i, ascending.
    """

    ids: Array
    learned: Array
    indptr: Array
    tags: Array


def content_of(content: bytes) -> bytes:
    """The sha256 that identifies the content of a file."""
    return hashlib.sha256(content).digest()


def vector_content(name: str, values: Sequence[float] | Array) -> bytes:
    """The sha256 that identifies a vector without a file: of its name and values."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(np.ascontiguousarray(values, "<f4").tobytes())
    return digest.digest()
