"""A collection: items, the tags that people gave them, and what is learned from these."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from nearlabel.collection import change_log, file_changes, item_tables, tag_changes
from nearlabel.collection.backups import back_up, new_folder
from nearlabel.collection.change_log import ChangeLog
from nearlabel.collection.database import create_database
from nearlabel.collection.erasure import forget_items, remove_thumbnails
from nearlabel.collection.folder_checks import (
    DamagedVectorsError,
    NotInCollectionError,
    remove,
    thumbnail_path,
)
from nearlabel.collection.learning_methods import DEFAULT_METHOD, estimator
from nearlabel.collection.opened_folder import KINDS, OpenedFolder
from nearlabel.collection.questions import Question, questions
from nearlabel.collection.records import (
    Change,
    FileState,
    Item,
    NewItem,
    Settings,
    Suggestion,
    TagCount,
    TaggedItems,
)
from nearlabel.collection.similar_items import SimilarItems
from nearlabel.collection.store_checks import CollectionCheck, store_differences
from nearlabel.collection.tag_effects import said_effects, said_run
from nearlabel.collection.tag_names import tag_name, tag_names
from nearlabel.collection.thumbnails import source_of, thumbnail
from nearlabel.common.validation import (
    ArgumentError,
    ArgumentTypeError,
    check_choice,
    check_integer,
)

AUTHORS = ("person", "suggestion")
_MOST = 2**63 - 1


class Collection:
    """Items with vectors and tags in a folder, and suggestions learned from them.

    Every change is on the disk when its call returns; on an error nothing was changed. One process
    at a time writes, others may read; within a process, threads may do both.

    Parameters
    ----------
    path : path
        The folder of a collection.
    readonly : bool, default=False
        Whether to change nothing; then another process may.

    Attributes
    ----------
    path : Path
    settings : Settings
    notes : list of str
        Sentences about what was repaired.
    readonly : bool

    Examples
    --------
    >>> import tempfile
    >>> from nearlabel.collection import Collection, NewItem
    >>> from nearlabel.collection.records import vector_content
    >>> folder = tempfile.TemporaryDirectory()
    >>> songs = Collection.create(f"{folder.name}/songs", kind="vectors")
    >>> vectors = {"Waves": [0, 1], "Rain": [0, 2], "Drums": [3, 0]}
    >>> songs.add([NewItem(vector_content(n, v), v, name=n) for n, v in vectors.items()])
    [1, 2, 3]
    >>> songs.tag([1, 2], "calm").items, songs.reject(3, "calm").number
    (2, 3)
    >>> songs.item(1).yes, songs.tags()
    (['calm'], [TagCount(name='calm', yes=2, no=1)])
    >>> songs.undo().kind, songs.tags()
    ('reject', [TagCount(name='calm', yes=2, no=0)])
    >>> songs.close()
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, readonly: bool = False) -> None:
        self.path = Path(path)
        self._folder = OpenedFolder(self.path, readonly=readonly)
        self._database, self._vectors = self._folder.database, self._folder.vectors
        self._similar = SimilarItems()
        self._grouping, self._last_group = threading.Lock(), 0

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        kind: str = "pictures",
        features: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        method: Any = None,
    ) -> Self:
        """Make an empty collection, and open it.

        Parameters
        ----------
        path : path
            A folder that is not there yet, or is empty.
        kind : {"pictures", "texts", "vectors"}, default="pictures"
        features : str, path or mapping, optional
            What makes vectors of items. Of pictures ``"moments"``, the name of a network or an
            ONNX file; by default the best that there is. Of texts ``"words"``, the default,
            ``"minilm"``, or an ONNX file. Vectors are as they are given.
        method : estimator or mapping, optional
            What learns: a neighbor method that is not fitted, or its `name` and parameters. By
            default ``MLkNN(10, metric="cosine")``.

        Returns
        -------
        Collection
        """
        from nearlabel.collection.item_features import chosen_features  # takes its time to load

        check_choice(kind, "kind", KINDS)
        target = Path(path)
        settings = {
            "kind": kind,
            "features": chosen_features(kind, features),
            "method": _method(method),
        }
        rows = [(name, _json(value, name)) for name, value in settings.items()]
        with new_folder(target) as part:
            create_database(part, rows)
        return cls(path)

    # What is in it.

    @property
    def settings(self) -> Settings:
        """What the collection was created with, and what its first item has settled."""
        return self._folder.settings

    @property
    def notes(self) -> list[str]:
        """Sentences about what was repaired."""
        return self._folder.notes

    @property
    def readonly(self) -> bool:
        """Whether it was opened without leave to change it."""
        return self._folder.readonly

    def counts(self, *, garbage: bool = True) -> dict[str, int]:
        """How many items, tags, decisions, files and changes there are.

        Parameters
        ----------
        garbage : bool, default=True
            Whether to count the bytes that `compact` would give back, which takes longest.

        Returns
        -------
        dict of str to int
            items, tagged, untagged, learned, tags, yes, no, files, missing, changes; garbage_bytes.
        """
        with self._database.reading() as connection:
            counts = item_tables.read_counts(connection, self.settings.kind)
            if garbage:
                counts["garbage_bytes"] = self._vectors.garbage(connection)
            return counts

    def item(self, id: int) -> Item:
        """Look at one item.

        Parameters
        ----------
        id : int

        Returns
        -------
        Item
        """
        number = _id(id)
        with self._database.reading() as connection:
            found = item_tables.read_items(connection, [number], self.settings.kind)
        if not found:
            raise NotInCollectionError(f"has no item {number}", self.path)
        return found[0]

    def items(
        self,
        tag: str | None = None,
        state: str = "all",
        after: int = 0,
        limit: int | None = None,
        *,
        name: str | None = None,
    ) -> list[Item]:
        """Look at several items, in the order of their ids.

        Parameters
        ----------
        tag : str, optional
            Only items that have this tag.
        state : {"all", "tagged", "untagged", "undecided", "missing"}, default="all"
            Only items with a tag, without any, without any decision, or without a file.
        after : int, default=0
            Only items with greater ids.
        limit : int, optional
            At most so many.
        name : str, optional
            Only items whose name, or the path of a file, contains this. The letters A to Z may be
            written large or small.

        Returns
        -------
        list of Item
        """
        with self._database.reading() as connection:
            ids = self.ids(tag, state, after, limit, name=name)
            return item_tables.read_items(connection, ids, self.settings.kind)

    def items_of(self, ids: Sequence[int]) -> dict[int, Item]:
        """Several items by their ids; those that are not there are left out."""
        with self._database.reading() as connection:
            found = item_tables.read_items(connection, _ids(ids), self.settings.kind)
        return {item.id: item for item in found}

    def ids_beside(self, id: int) -> tuple[int | None, int | None]:
        """The ids of the items before and after one, None where there is none."""
        with self._database.reading() as connection:
            return item_tables.ids_beside(connection, _id(id))

    def ids(
        self,
        tag: str | None = None,
        state: str = "all",
        after: int = 0,
        limit: int | None = None,
        *,
        name: str | None = None,
    ) -> list[int]:
        """The ids of the items that `items` gives."""
        check_choice(state, "state", tuple(item_tables.STATES))
        after = check_integer(after, "after", low=0, high=_MOST)
        if limit is not None:
            limit = check_integer(limit, "limit", low=0, high=_MOST)
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError(f"name must be a text; got {name!r}", "name")
        with self._database.reading() as connection:
            number = None
            if tag is not None:
                number = item_tables.known_tag(connection, tag_name(tag, "tag"), self.path)
            if state == "missing" and self.settings.kind == "vectors":
                return []  # they need no files
            return item_tables.item_ids(connection, number, state, after, limit, name)

    def find(self, text: str) -> int:
        """Find the one item that is meant by its id, its name, or a file's path or name.

        Parameters
        ----------
        text : str
            ``"id:17"`` is the item with this id, ``"name:17"`` the one that is called so, and
            ``"17"`` either, which is refused where they are two.

        Returns
        -------
        int
        """
        with self._database.reading() as connection:
            return item_tables.find(connection, str(text), self.path)

    def known_contents(self, contents: Iterable[bytes]) -> dict[bytes, int]:
        """The items that have these contents, by their sha256, of those that there are."""
        select = "SELECT content, id FROM items WHERE content"
        with self._database.reading() as connection:
            return dict(item_tables.select_in(connection, select, set(contents)))

    def known_names(self, names: Iterable[str]) -> dict[str, int]:
        """The items that have these names, of those names that one item alone has."""
        with self._database.reading() as connection:
            return item_tables.ids_of_names(connection, names)

    def tags(self) -> list[TagCount]:
        """All tags, and how many items have them or were said not to, in the order of arrival."""
        with self._database.reading() as connection:
            return item_tables.read_tags(connection)

    def roots(self) -> list[str]:
        """The folders whose files are in the collection."""
        with self._database.reading() as connection:
            return item_tables.read_roots(connection)

    def files(self, root: str | os.PathLike[str]) -> list[FileState]:
        """All files of a root, as they were last seen, in the order of their paths."""
        with self._database.reading() as connection:
            return item_tables.read_files(connection, _root(root))

    def thumbnail(self, id: int, size: int = 256) -> bytes:
        """A small picture of an item, made when it is first asked for, and kept.

        Parameters
        ----------
        id : int
        size : int, default=256
            Pixels of the longer side.

        Returns
        -------
        bytes
            A JPEG file.
        """
        item = self.item(id)
        made = thumbnail(self.path, item.content, _paths(item), size, readonly=self.readonly)
        if not self.readonly and item.content not in self.known_contents([item.content]):
            remove(thumbnail_path(self.path, item.content))  # forgotten in the meantime
        return made

    def content(self, id: int) -> bytes:
        """The content of an item's file; a FileNotFoundError where none is as it was.

        Parameters
        ----------
        id : int

        Returns
        -------
        bytes
        """
        item = self.item(id)
        return source_of(item.content, _paths(item))

    def vectors(self, ids: Sequence[int]) -> Any:
        """The vectors of items.

        Parameters
        ----------
        ids : sequence of int

        Returns
        -------
        ndarray of float32, shape (n, d), or csr_array
        """
        wanted = _ids(ids, are_unique=False)
        with self._database.reading() as connection:
            return self._vectors.read(connection, wanted)

    def without_vectors(self, ids: Sequence[int]) -> set[int]:
        """Of some items those whose vectors are damaged, or zeros as after `salvage_vectors`."""
        wanted = _ids(ids)
        try:
            sizes = abs(self.vectors(wanted)).sum(axis=1)
        except DamagedVectorsError:
            if self._vectors.damage is not None:
                raise
            if len(wanted) == 1:
                return {*wanted}
            return {one for item in wanted for one in self.without_vectors([item])}
        return {item for item, size in zip(wanted, sizes, strict=True) if not size}

    def changes(self, limit: int = 20) -> list[Change]:
        """The last changes, the latest first."""
        with self._database.reading() as connection:
            return change_log.read_changes(connection, check_integer(limit, "limit", low=0))

    def next_undo(self) -> list[Change]:
        """The changes that `undo` would take back, the latest first: one, or those of a run."""
        with self._database.reading() as connection:
            return change_log.next_undo(connection)

    def said_changes(self, changes: Sequence[Change]) -> dict[int, str]:
        """What changes did, for people, by their numbers: tag by tag where the log knows it."""
        with self._database.reading() as connection:
            return said_effects(connection, changes)

    def said_run(self, run: Sequence[Change]) -> str:
        """The same of changes that are taken back together, the latest first, in one sentence."""
        with self._database.reading() as connection:
            return said_run(connection, run)

    def last_change(self) -> int:
        """The number of the last change; 0 where there was none."""
        with self._database.reading() as connection:
            return change_log.last_change(connection)

    @contextmanager
    def snapshot(self, *, learned: bool = True) -> Iterator[None]:
        """Have all that this thread asks inside be answered from one state of the collection.

        Whatever other threads and processes change meanwhile is seen after it. Nothing can be
        changed inside.

        Parameters
        ----------
        learned : bool, default=True
            Whether suggestions and the like are asked for, too. They are loaded or learned first,
            which may take long.
        """
        with self._folder.learned.asking() if learned else self._database.reading():
            self.last_change()  # a state is that of the first read
            yield

    # What changes it.

    def new_group(self) -> int:
        """A number for the changes of one run, which `undo` takes back together."""
        with self._grouping:  # threads that ask at the same time get different ones
            self._last_group = max(self.last_change(), self._last_group) + 1
            return self._last_group

    def add(self, new_items: Sequence[NewItem], *, group: int | None = None) -> list[int]:
        """Add items, or find those that are there already.

        A content that is known is the same item, at further paths. A new content at a known path is
        the same item with another content, unless the old one is still at another path.

        Parameters
        ----------
        new_items : sequence of NewItem
        group : int, optional
            See `new_group`.

        Returns
        -------
        list of int
            The id of each.
        """
        ids: list[int] = []

        def work(log: ChangeLog) -> None:
            ids.extend(file_changes.add_items(log, list(new_items), self._vectors))

        try:
            self._folder.change("add", group, work)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                with suppress(OSError, ValueError):
                    self._vectors.cut()
            raise
        return ids

    def salvage_vectors(self) -> None:
        """Keep those vectors that are whole, where the file of vectors is damaged.

        The others are zeros then, until their files are indexed again. Vectors that were given
        cannot be made again: then it is an error.
        """
        self._folder.salvage_vectors()

    def set_vectors(self, vectors: Mapping[int, Any], *, group: int | None = None) -> Change | None:
        """Have items have these vectors, made again of the contents that they have.

        Parameters
        ----------
        vectors : dict of int to array-like or sparse matrix of one row
        group : int, optional

        Returns
        -------
        Change or None
            `undo` passes over it.
        """

        def work(log: ChangeLog) -> None:
            tag_changes.refuse_unknown(log, {*vectors}, self.path)
            file_changes.set_vectors(log, vectors, self._vectors)

        return self._folder.change("vectors", group, work)

    def set_files(
        self,
        root: str | os.PathLike[str],
        files: Sequence[FileState] = (),
        missing: Sequence[str] = (),
        *,
        group: int | None = None,
    ) -> Change | None:
        """Note where items were found again, and which paths are gone.

        Parameters
        ----------
        root : path
        files : sequence of FileState
            With their items.
        missing : sequence of str
            Paths that are gone. An item that is still at another path was moved or had two files;
            any other one is missing from then on, with all its tags.
        group : int, optional

        Returns
        -------
        Change or None
            None where nothing is different.
        """
        for file in files:
            file_changes.check_file_state(file)
        base = _root(root)
        found = [file._replace(root=base) for file in files]
        gone = [FileState(base, path, 0, 0) for path in missing]
        return self._folder.change(
            "files", group, lambda log: file_changes.set_files(log, found, gone, self.path)
        )

    def join_roots(
        self, root: str | os.PathLike[str], within: Sequence[str], *, group: int | None = None
    ) -> Change | None:
        """Have the files of roots that are folders within another one be files of that one.

        So every file has one path, and is followed wherever the folders above it are indexed.

        Parameters
        ----------
        root : path
        within : sequence of str
            Roots, as `roots` gives them.
        group : int, optional

        Returns
        -------
        Change or None
        """
        base = _root(root)

        def work(log: ChangeLog) -> None:
            files = [file for one in within for file in item_tables.read_files(log.connection, one)]
            file_changes.join_roots(log, base, files)

        return self._folder.change("files", group, work)

    def tag(
        self, ids: Any, tags: Any, *, by: str = "person", group: int | None = None
    ) -> Change | None:
        """Give items tags.

        Parameters
        ----------
        ids : int or sequence of int
        tags : str or sequence of str
        by : {"person", "suggestion"}, default="person"
            Whose idea it was.
        group : int, optional

        Returns
        -------
        Change or None
            None where the items have these tags already.
        """
        return self._answer("tag", ids, tags, True, by, group)

    def reject(
        self, ids: Any, tags: Any, *, by: str = "person", group: int | None = None
    ) -> Change | None:
        """Say that items do not have tags: these are never suggested for them again.

        Parameters
        ----------
        ids, tags, by, group
            As in `tag`.

        Returns
        -------
        Change or None
        """
        return self._answer("reject", ids, tags, False, by, group)

    def clear(self, ids: Any, tags: Any, *, group: int | None = None) -> Change | None:
        """Say nothing any more of items and tags.

        Parameters
        ----------
        ids, tags, group
            As in `tag`.

        Returns
        -------
        Change or None
        """
        return self._answer("clear", ids, tags, None, "person", group)

    def set_tags(
        self, id: int, tags: Any, *, by: str = "person", group: int | None = None
    ) -> Change | None:
        """Have an item carry exactly these tags: those that are taken away are rejected.

        Parameters
        ----------
        id : int
        tags, by, group
            As in `tag`.

        Returns
        -------
        Change or None
        """
        names, number = tag_names(tags), _id(id)
        check_choice(by, "by", AUTHORS)
        return self._folder.change(
            "set_tags", group, lambda log: tag_changes.set_tags(log, number, names, by, self.path)
        )

    def decide(
        self,
        decisions: Sequence[tuple[int, str, bool | None] | tuple[int, str, bool | None, str]],
        *,
        by: str = "person",
        group: int | None = None,
    ) -> Change | None:
        """Answer many questions in one change.

        Parameters
        ----------
        decisions : sequence of (id, tag, answer) or (id, tag, answer, by)
            The answer is True for yes, False for no, and None for nothing any more.
        by, group
            As in `tag`.

        Returns
        -------
        Change or None
        """
        checked = []
        check_choice(by, "by", AUTHORS)
        for item, name, answer, *own in decisions:
            if answer is not None and not isinstance(answer, bool | np.bool_):
                message = f"decisions: an answer must be True, False or None; got {answer!r}"
                raise ArgumentTypeError(message, "decisions")
            author = check_choice(own[0], "by", AUTHORS) if own else by
            known = None if answer is None else bool(answer)
            checked.append((_id(item), tag_name(name), known, author))
        return self._folder.change(
            "decide", group, lambda log: tag_changes.decide(log, checked, self.path)
        )

    def rename_tag(self, old: str, new: str, *, group: int | None = None) -> Change | None:
        """Give a tag another name, and with it all tags below it in a hierarchy.

        Parameters
        ----------
        old, new : str
        group : int, optional

        Returns
        -------
        Change or None
        """
        names = tag_name(old, "old"), tag_name(new, "new")
        return self._folder.change(
            "rename_tag", group, lambda log: tag_changes.rename_tag(log, *names, self.path)
        )

    def merge_tags(self, sources: Any, target: str, *, group: int | None = None) -> Change | None:
        """Make one tag of several. Where these differ on an item, a yes counts more than a no.

        Parameters
        ----------
        sources : str or sequence of str
        target : str
            One of them, another one, or a new one.
        group : int, optional

        Returns
        -------
        Change or None
        """
        names, into = tag_names(sources, "sources"), tag_name(target, "target")
        return self._folder.change(
            "merge_tags", group, lambda log: tag_changes.merge_tags(log, names, into, self.path)
        )

    def delete_tag(self, name: str, *, group: int | None = None) -> Change | None:
        """Take a tag away from all items, and forget for which ones it was rejected.

        Tags below it in a hierarchy stay.

        Parameters
        ----------
        name : str
        group : int, optional

        Returns
        -------
        Change or None
        """
        known = tag_name(name, "name")
        return self._folder.change(
            "delete_tag", group, lambda log: tag_changes.delete_tag(log, known, self.path)
        )

    def set_method(self, method: Any) -> None:
        """Learn by another method, or with other parameters, from now on.

        The next answer takes as long as learning everything anew. `undo` passes over it.

        Parameters
        ----------
        method : estimator or mapping
            As in `create`.
        """
        self._folder.learned.set_method(_json(_method(method), "method"))

    def undo(self) -> Change | None:
        """Take back the last change, of whatever kind but `forget`; again, the one before it.

        Returns
        -------
        Change or None
            What was taken back, the last one of a run of changes; None where there is nothing.
        """
        with self._database.writing() as connection:
            undone = change_log.undo(connection)
            if undone is None:
                connection.execute("ROLLBACK")
            return undone

    def forget(self, ids: Any) -> Change | None:
        """Remove items for good: from all tables, files and the log of changes.

        Nothing of them can be brought back, except from backups. While another process reads an
        older state, or on an error, some bytes stay until the collection is closed or opened again.

        Parameters
        ----------
        ids : int or sequence of int

        Returns
        -------
        Change or None
        """
        wanted = _ids(ids)

        if self._vectors.damage is not None:  # nothing could be erased of it
            raise self._vectors.damage

        def work(log: ChangeLog) -> None:
            tag_changes.refuse_unknown(log, wanted, self.path)
            if wanted:
                forget_items(log, wanted)

        change = self._folder.change("forget", None, work)
        if change is not None:
            try:
                self._folder.finish_erasing()
            except OSError as error:
                why = (
                    "the items are forgotten, but not all of their bytes are erased yet "
                    f"({error.strerror}); open the collection again when that is mended"
                )
                raise OSError(error.errno, why, str(self.path)) from error
        return change

    def compact(self) -> None:
        """Give back the room that nothing uses any more, and arrange everything anew."""
        self._vectors.compact()
        with self._database.alone() as connection:
            remove_thumbnails(self.path, connection)
        self._folder.learned.compact()
        self._database.rewrite()

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy the collection as it is now, while others may go on changing it.

        Thumbnails are left out: they are made again from the files of items.

        Parameters
        ----------
        target : path
            A folder that is not there yet, or is empty. It has the copy when that is whole.
        """
        back_up(self._database, Path(target))

    def verify(self) -> CollectionCheck:
        """Look at everything again: the database, all vectors, and what was learned from them.

        Returns
        -------
        CollectionCheck
            True where all is as it should be; says what was looked at, and what is wrong.
        """
        with self._database.reading() as connection:
            (items,) = connection.execute("SELECT count(*) FROM items").fetchone()
            compared = ["tables", "vectors"]
            differences = store_differences(connection, self._vectors)
            if not differences:
                compared.append("what was learned")
                differences = self._folder.learned.differences()
        return CollectionCheck(items, tuple(compared), tuple(differences))

    # What it has learned.

    def suggest(self, query: Any, top: int = 10) -> list[Suggestion]:
        """Suggest tags for an item, or for a vector that is none.

        Parameters
        ----------
        query : int, or array-like of shape (d,), or sparse matrix of one row
            An item is answered as if it were new. Tags that it has are suggested, too; those that
            were rejected for it never are.
        top : int, default=10

        Returns
        -------
        list of Suggestion
            The most probable first; equal ones in the order of the tags' arrival.
        """
        with self._asking(query) as (learner, refused, names):
            found = learner.suggest(_query(query), top, without=refused)
            return [
                Suggestion(names[tag], probability, voters)
                for tag, probability, voters in found
                if tag in names
            ]

    def retrieve(self, query: Any, top: int = 5, per_tag: int = 8) -> list[TaggedItems]:
        """For each of the most probable tags, the nearest items that carry it.

        Parameters
        ----------
        query, top
            As in `suggest`.
        per_tag : int, default=8

        Returns
        -------
        list of TaggedItems
        """
        with self._asking(query) as (learner, refused, names):
            found = learner.retrieve(_query(query), top, per_tag, without=refused)
            return [
                TaggedItems(names[tag], probability, items)
                for tag, probability, items in found
                if tag in names
            ]

    def similar(self, query: Any, n: int = 12) -> list[tuple[int, float]]:
        """The items nearest to an item, or to a vector that is none, whatever their tags are.

        Parameters
        ----------
        query
            As in `suggest`. An item is not among its own neighbors.
        n : int, default=12

        Returns
        -------
        list of (id, distance)
            The nearest first, by the distance of the method; equal ones in the order of their ids.
        """
        return self._similar.nearest(self, _query(query), check_integer(n, "n", low=1))

    def questions(
        self,
        n: int = 5,
        strategy: str = "mixed",
        *,
        tag: str | None = None,
        without: Iterable[int] = (),
    ) -> list[Question]:
        """Choose items that a person had best be asked about next.

        Parameters
        ----------
        n : int, default=5
            At most so many.
        strategy : {"mixed", "learn", "confident"}, default="mixed"
            "learn": answers teach most, since the model is unsure and the items stand for many
            others. "confident": the model is sure, and a person confirms quickly. "mixed": every
            fourth one is of the second kind.
        tag : str, optional
            Ask only about this tag: the likeliest items first of which it is not decided.
        without : iterable of int
            Items that are not to be asked about, because they were skipped.

        Returns
        -------
        list of Question
            Items without decisions, unless `tag` is given; none whose file is missing.
        """
        return questions(self, n, strategy, tag=tag, without=without)

    def save_index(self) -> None:
        """Write what was learned to a file, from which the next opening takes it."""
        self._folder.learned.save()

    # Its life.

    def close(self, *, save: bool = True) -> None:
        """Let others write; nothing can be asked any more.

        Parameters
        ----------
        save : bool, default=True
            Whether to write what was learned to a file, if much has changed.
        """
        self._folder.close(save=save)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(save=kind is None)

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r})"

    def _answer(
        self, kind: str, ids: Any, tags: Any, answer: bool | None, by: str, group: int | None
    ) -> Change | None:
        names, items = tag_names(tags), _ids(ids, are_unique=False)
        check_choice(by, "by", AUTHORS)
        pairs = [(item, name, answer, by) for item in items for name in names]
        return self._folder.change(
            kind, group, lambda log: tag_changes.decide(log, pairs, self.path)
        )

    @contextmanager
    def _asking(self, query: Any) -> Iterator[tuple[Any, set[int], dict[int, str]]]:
        """What answers now, the tags that are refused for an item, and the names of all tags."""
        with self._folder.learned.asking() as learner:
            with self._database.reading() as connection:  # the same state
                refused: set[int] = set()
                if _is_id(query):
                    item = _id(query)
                    if not self._has(connection, item):
                        raise NotInCollectionError(f"has no item {item}", self.path)
                    select = "SELECT tag FROM decisions WHERE item = ? AND NOT is_yes"
                    refused = {tag for (tag,) in connection.execute(select, (item,))}
                names = dict(connection.execute("SELECT id, name FROM tags").fetchall())
            yield learner, refused, names

    def _has(self, connection: sqlite3.Connection, item: int) -> bool:
        return bool(connection.execute("SELECT 1 FROM items WHERE id = ?", (item,)).fetchone())


def _is_id(query: Any) -> bool:
    return isinstance(query, int | np.integer) and not isinstance(query, bool)


def _query(query: Any) -> Any:
    return _id(query) if isinstance(query, int | np.integer) else query


def _id(value: Any) -> int:
    return check_integer(value, "id", low=1, high=_MOST)


def _ids(values: Any, *, are_unique: bool = True) -> list[int]:
    """One id or several; each once, if that matters."""
    listed = [values] if np.ndim(values) == 0 and not isinstance(values, Iterable) else [*values]
    ids = [_id(value) for value in listed]
    return list(dict.fromkeys(ids)) if are_unique else ids


def _paths(item: Item) -> list[Path]:
    return [Path(file.root, file.path) for file in item.files]


def _root(root: str | os.PathLike[str]) -> str:
    return str(Path(root).absolute())


def _method(method: Any) -> dict[str, Any]:
    """A method by its name and its parameters."""
    if method is None:
        return dict(DEFAULT_METHOD)
    if not isinstance(method, Mapping):
        if not hasattr(method, "get_params"):
            message = f"method must be an estimator, or its name and parameters; got {method!r}"
            raise ArgumentTypeError(message, "method")
        method = {"name": type(method).__name__, **method.get_params(deep=False)}
    estimator(method)
    return dict(method)


def _json(value: Any, name: str) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must have plain values, which a file can keep; got {value!r}", name
        ) from None
