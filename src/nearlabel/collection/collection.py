"""A collection: items, the tags that people gave them, and a model learned from these tags."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from nearlabel.collection import change_log, file_changes, item_tables, tag_changes, undoing
from nearlabel.collection.backups import back_up, new_folder
from nearlabel.collection.change_log import MOST, ChangeLog
from nearlabel.collection.choices import AUTHORS, KINDS
from nearlabel.collection.folder_checks import (
    NotInCollectionError,
    remove,
    thumbnail_path,
)
from nearlabel.collection.learning_methods import settings_of
from nearlabel.collection.opened_folder import OpenedFolder
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
from nearlabel.collection.schema import create_database
from nearlabel.collection.store_checks import CollectionCheck, store_differences
from nearlabel.collection.stored_vectors import read_vectors, without_vectors
from nearlabel.collection.tag_names import tag_name, tag_names
from nearlabel.collection.thumbnails import THUMBNAIL_SIZE, source_of, thumbnail
from nearlabel.common.arrays import Matrix, MatrixLike
from nearlabel.common.validation import (
    ArgumentError,
    ArgumentTypeError,
    check_choice,
    check_integer,
)

if TYPE_CHECKING:
    from nearlabel.collection.questions import Question
    from nearlabel.collection.similar_items import SimilarItems
    from nearlabel.collection.tag_answers import StateAnswers

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


class Collection:
    """Items with vectors and tags, stored in a folder, and suggestions learned from the tags.

    Every change is on disk when its call returns; on an error nothing has changed. A method that
    makes a change returns it, or None if everything was as asked already. Changes with the same
    `group`, a number from `new_group`, are undone together.

    One process at a time can write, while others read; within a process, threads can do both.

    Parameters
    ----------
    path : path
        The folder of a collection.
    readonly : bool, default=False
        Open the collection for reading only; another process may then write.

    Attributes
    ----------
    path : Path
    settings : Settings
    kind : {"pictures", "texts", "vectors"}
    notes : list of str
        Messages about what was repaired when the collection was opened.
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
        self._database = self._folder.database

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        kind: str = "pictures",
        features: str | os.PathLike[str] | Mapping[str, object] | None = None,
        method: object = None,
    ) -> Self:
        """Create an empty collection and open it.

        Parameters
        ----------
        path : path
            A new or empty folder.
        kind : {"pictures", "texts", "vectors"}, default="pictures"
        features : str, path or mapping, optional
            How vectors are computed from items. For pictures ``"moments"``, the name of a network
            or an ONNX file; by default the best one available. For texts ``"words"``, the default,
            ``"minilm"``, or an ONNX file. Vectors are used as given.
        method : estimator or mapping, optional
            The method that learns: an unfitted neighbor method, or its `name` and parameters. By
            default ``MLkNN(10, metric="cosine")``.
        """
        from nearlabel.collection.item_features import chosen_features  # slow to import

        check_choice(kind, "kind", KINDS)
        used = chosen_features(kind, features)
        settings = {"kind": kind, "features": used, "method": settings_of(method)}
        rows = [(name, _json(value, name)) for name, value in settings.items()]
        with new_folder(Path(path)) as part:
            create_database(part, rows)
        return cls(path)

    # Contents.

    @property
    def settings(self) -> Settings:
        """What the collection was created with, and the form of its vectors."""
        return self._folder.settings

    @property
    def kind(self) -> str:
        """The kind of the items: pictures, texts or vectors."""
        return self._folder.kind

    @property
    def notes(self) -> list[str]:
        """Messages about what was repaired when the collection was opened."""
        return self._folder.notes

    @property
    def readonly(self) -> bool:
        """Whether the collection was opened for reading only."""
        return self._folder.readonly

    def counts(self) -> dict[str, int]:
        """The numbers of items, tags, decisions, files and changes.

        The keys are items, tagged, untagged, learned, tags, yes, no, files, missing, changes, and
        garbage_bytes, which `compact` would free.
        """
        return self._read(item_tables.read_counts, self.kind)

    def item(self, id: int) -> Item:
        """One item, by its id."""
        items = self._read(item_tables.read_items, [_id(id)], self.kind)
        if not items:
            raise NotInCollectionError(f"has no item {id}", self.path)
        return items[0]

    def items(
        self,
        tag: str | None = None,
        state: str = "all",
        after: int = 0,
        limit: int | None = None,
        *,
        name: str | None = None,
    ) -> list[Item]:
        """Several items, ordered by id.

        Parameters
        ----------
        tag : str, optional
            Only items that have this tag.
        state : {"all", "tagged", "untagged", "undecided", "missing"}, default="all"
            Only items with a tag, without any, without any decision, or without a file.
        after : int, default=0
            Only items with larger ids.
        limit : int, optional
            The maximum number of items.
        name : str, optional
            Only items whose name, or the path of a file, contains this text, ignoring the case of
            the letters A to Z.
        """
        with self._database.reading() as connection:
            ids = self.ids(tag, state, after, limit, name=name)
            return item_tables.read_items(connection, ids, self.kind)

    def items_of(self, ids: Sequence[int]) -> dict[int, Item]:
        """Items by their ids; ids that do not exist are skipped."""
        items = self._read(item_tables.read_items, _ids(ids), self.kind)
        return {item.id: item for item in items}

    def ids_beside(self, id: int) -> tuple[int | None, int | None]:
        """The ids of the items before and after one; None if there is none."""
        return self._read(item_tables.ids_beside, _id(id))

    def ids(
        self,
        tag: str | None = None,
        state: str = "all",
        after: int = 0,
        limit: int | None = None,
        *,
        name: str | None = None,
    ) -> list[int]:
        """The ids of the items that `items` would return."""
        check_choice(state, "state", tuple(item_tables.STATES))
        after = check_integer(after, "after", low=0, high=MOST)
        if limit is not None:
            limit = check_integer(limit, "limit", low=0, high=MOST)
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError(f"name must be a string; got {name!r}", "name")
        with self._database.reading() as connection:
            number = None
            if tag is not None:
                number = item_tables.known_tag(connection, tag_name(tag, "tag"))
            if state == "missing" and self.kind == "vectors":
                return []  # they have no files
            return item_tables.item_ids(connection, number, state, after, limit, name)

    def find(self, text: str) -> int:
        """Find an item by its id, its name, or the path or name of a file.

        Parameters
        ----------
        text : str
            ``"id:17"`` is the item with this id, ``"name:17"`` the item with this name, and
            ``"17"`` either; it is an error if these are two items.
        """
        return self._read(item_tables.find, str(text))

    def known_contents(self, contents: Iterable[bytes]) -> dict[bytes, int]:
        """The ids of the items with these contents, by sha256; unknown contents are skipped."""
        select = "SELECT content, id FROM items WHERE content"
        with self._database.reading() as connection:
            return dict(item_tables.select_in(connection, select, set(contents)))

    def known_names(self, names: Iterable[str]) -> dict[str, int]:
        """The ids of the items with these names; names of several items are skipped."""
        return self._read(item_tables.ids_of_names, names)

    def tags(self) -> list[TagCount]:
        """All tags with the number of items that have them or reject them, oldest tag first."""
        return self._read(item_tables.read_tags)

    def roots(self) -> list[str]:
        """The folders whose files are in the collection."""
        return self._read(item_tables.read_roots)

    def files(self, root: str | os.PathLike[str]) -> list[FileState]:
        """All files of a root, as last seen, ordered by path."""
        return self._read(item_tables.read_files, _root(root))

    def thumbnail(self, id: int, size: int = THUMBNAIL_SIZE) -> bytes:
        """A thumbnail of an item as a JPEG file, created on first use and cached.

        Its longer side has at most `size` pixels.
        """
        item = self.item(id)
        jpeg = thumbnail(self.path, item.content, _paths(item), size, readonly=self.readonly)
        if not self.readonly and item.content not in self.known_contents([item.content]):
            remove(thumbnail_path(self.path, item.content))  # forgotten in the meantime
        return jpeg

    def content(self, id: int) -> bytes:
        """The content of an item's file; FileNotFoundError if no file has that content any more."""
        item = self.item(id)
        return source_of(item.content, _paths(item))

    def vectors(self, ids: Sequence[int]) -> Matrix:
        """The vectors of n items, in float32: an array or a csr_array of shape (n, d)."""
        return self._read(read_vectors, _ids(ids, are_unique=False))

    def without_vectors(self, ids: Sequence[int]) -> set[int]:
        """Those of some items whose vectors are missing, damaged, or nothing but zeros."""
        return self._read(without_vectors, _ids(ids))

    def changes(self, limit: int = 20) -> list[Change]:
        """The last changes, latest first."""
        return self._read(change_log.read_changes, check_integer(limit, "limit", low=0))

    def next_undo(self) -> list[Change]:
        """The changes that `undo` would take back, latest first: one, or those of a run."""
        return self._read(undoing.next_undo)

    def last_change(self) -> int:
        """The number of the last change; 0 if there is none."""
        return self._read(change_log.last_change)

    @contextmanager
    def snapshot(self, *, learned: bool = True) -> Iterator[None]:
        """Answer all queries of this thread inside the block from one state of the collection.

        Changes by other threads and processes become visible afterwards. Nothing can be changed
        inside the block.

        Parameters
        ----------
        learned : bool, default=True
            Whether the block also uses suggestions and the like. The model is then loaded or
            learned first, which can take long.
        """
        if learned:
            with self._folder.learned.asking():
                yield
        else:
            with self._database.reading() as connection:
                change_log.last_change(connection)  # the first read determines the state
                yield

    # Changes.

    def new_group(self) -> int:
        """A number that groups changes into one run, which `undo` takes back together."""
        return self._folder.new_group()

    def together(self, work: Callable[[], _Result]) -> _Result:
        """Make several changes at once: all are on disk when the call returns, or none.

        Parameters
        ----------
        work : callable
            Changes the collection, and may read from it what it has changed. It runs in the thread
            that writes: others wait meanwhile, so what takes long is better done before. An error
            of one of the changes takes all of them back, even if `work` catches it.

        Returns
        -------
        object
            What `work` returns. If that is None, nothing is changed.
        """
        return self._folder.write(lambda _: work())

    def add(self, new_items: Sequence[NewItem], *, group: int | None = None) -> list[int]:
        """Add items; those that exist already are found by their content.

        A known content is the same item at further paths. A new content at a known path is the same
        item with a new content, unless the old content still exists at another path.

        Parameters
        ----------
        new_items : sequence of NewItem
        group : int, optional

        Returns
        -------
        list of int
            The id of each item.
        """
        ids: list[int] = []

        def work(log: ChangeLog) -> None:
            ids.extend(file_changes.add_items(log, list(new_items)))

        self._folder.change("add", group, work)
        return ids

    def set_vectors(
        self, vectors: Mapping[int, MatrixLike], *, group: int | None = None
    ) -> Change | None:
        """Replace the vectors of items, recomputed from the same contents; `undo` skips this.

        Parameters
        ----------
        vectors : dict of int to array-like or sparse matrix of one row
        group : int, optional
        """

        def work(log: ChangeLog) -> None:
            tag_changes.refuse_unknown(log, {*vectors})
            file_changes.set_vectors(log, vectors)

        return self._folder.change("vectors", group, work)

    def set_files(
        self,
        root: str | os.PathLike[str],
        files: Sequence[FileState] = (),
        missing: Sequence[str] = (),
        *,
        group: int | None = None,
    ) -> Change | None:
        """Record where items were found, and which paths no longer exist.

        Parameters
        ----------
        root : path
        files : sequence of FileState
            Each with its item.
        missing : sequence of str
            Paths that no longer exist. An item that is still at another path was moved or had two
            files; any other item is missing from then on and keeps its tags.
        group : int, optional
        """
        return self._change("files", group, file_changes.set_files, _root(root), files, missing)

    def join_roots(
        self, root: str | os.PathLike[str], within: Sequence[str], *, group: int | None = None
    ) -> Change | None:
        """Assign the files of roots inside another root to that root.

        Every file then has one path, and is updated whenever a parent folder is indexed.

        Parameters
        ----------
        root : path
        within : sequence of str
            Roots as returned by `roots`.
        group : int, optional
        """
        return self._change("files", group, file_changes.join_roots, _root(root), within)

    def tag(
        self,
        ids: int | Iterable[int],
        tags: str | Iterable[str],
        *,
        by: str = "person",
        group: int | None = None,
    ) -> Change | None:
        """Give items tags.

        Parameters
        ----------
        ids : int or sequence of int
        tags : str or sequence of str
        by : {"person", "suggestion"}, default="person"
            Who proposed the tags.
        group : int, optional
        """
        return self._answer("tag", ids, tags, True, by, group)

    def reject(
        self,
        ids: int | Iterable[int],
        tags: str | Iterable[str],
        *,
        by: str = "person",
        group: int | None = None,
    ) -> Change | None:
        """Reject tags for items: they are never suggested for these items again."""
        return self._answer("reject", ids, tags, False, by, group)

    def clear(
        self, ids: int | Iterable[int], tags: str | Iterable[str], *, group: int | None = None
    ) -> Change | None:
        """Remove decisions about items and tags."""
        return self._answer("clear", ids, tags, None, "person", group)

    def set_tags(
        self, id: int, tags: str | Iterable[str], *, by: str = "person", group: int | None = None
    ) -> Change | None:
        """Set the tags of an item; tags that are removed count as rejected."""
        tagged = _id(id), tag_names(tags), check_choice(by, "by", AUTHORS)
        return self._change("set_tags", group, tag_changes.set_tags, *tagged)

    def decide(
        self,
        decisions: Sequence[tuple[int, str, bool | None] | tuple[int, str, bool | None, str]],
        *,
        by: str = "person",
        group: int | None = None,
    ) -> Change | None:
        """Store many decisions in one change.

        Parameters
        ----------
        decisions : sequence of (id, tag, answer) or (id, tag, answer, by)
            The answer is True for yes, False for no, and None to remove the decision.
        by, group
            As in `tag`.
        """
        checked = []
        check_choice(by, "by", AUTHORS)
        for item, name, answer, *own in decisions:
            if answer is not None and not isinstance(answer, bool | np.bool_):
                message = f"decisions: answers must be True, False or None; got {answer!r}"
                raise ArgumentTypeError(message, "decisions")
            author = check_choice(own[0], "by", AUTHORS) if own else by
            known = None if answer is None else bool(answer)
            checked.append((_id(item), tag_name(name), known, author))
        return self._change("decide", group, tag_changes.decide, checked)

    def rename_tag(self, old: str, new: str, *, group: int | None = None) -> Change | None:
        """Rename a tag, and all tags below it in a hierarchy."""
        names = tag_name(old, "old"), tag_name(new, "new")
        return self._change("rename_tag", group, tag_changes.rename_tag, *names)

    def merge_tags(
        self, sources: str | Iterable[str], target: str, *, group: int | None = None
    ) -> Change | None:
        """Merge several tags into one. Where they disagree on an item, yes wins over no.

        Parameters
        ----------
        sources : str or sequence of str
        target : str
            One of them, another tag, or a new one.
        group : int, optional
        """
        names = tag_names(sources, "sources"), tag_name(target, "target")
        return self._change("merge_tags", group, tag_changes.merge_tags, *names)

    def delete_tag(self, name: str, *, group: int | None = None) -> Change | None:
        """Delete a tag with all its decisions, including rejections; tags below it stay."""
        return self._change("delete_tag", group, tag_changes.delete_tag, tag_name(name, "name"))

    def set_method(self, method: object) -> None:
        """Change the method that learns, or its parameters, given as in `create`.

        The next query learns from scratch. `undo` skips this change.
        """
        self._folder.learned.set_method(_json(settings_of(method), "method"))

    def undo(self) -> Change | None:
        """Undo the last change of any kind except `forget`; called again, the one before it.

        Returns
        -------
        Change or None
            The change that was undone: of a run the last one, with the items and the summary of
            all. None if there is nothing to undo.
        """
        return self._folder.undo()

    def keep_uploads_in(self, folder: str | os.PathLike[str]) -> None:
        """Use a folder for uploads: files there are removed with their items.

        Parameters
        ----------
        folder : path
            It has files named after the sha256 of their content, which are no other collection's.
        """
        self._folder.keep_uploads_in(Path(folder))

    def forget(self, ids: int | Iterable[int]) -> Change | None:
        """Remove items for good: from all tables, files and the log of changes.

        They cannot be restored, except from backups. While another process reads an older state, or
        on an error, some bytes remain until the collection is closed or opened again.

        Parameters
        ----------
        ids : int or sequence of int

        Returns
        -------
        Change or None
        """
        return self._folder.forget(_ids(ids))

    def compact(self) -> None:
        """Free unused space and rebuild the index."""
        self._folder.compact()

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy the current state of the collection, while others may change it.

        Thumbnails are left out: they are recreated from the files of the items.

        Parameters
        ----------
        target : path
            A new or empty folder. It appears only when the copy is complete.
        """
        back_up(self._database, Path(target))

    def verify(self) -> CollectionCheck:
        """Check everything: the database, all vectors, and the model.

        The result is true if everything is in order; it lists what was checked, and what is wrong.
        """
        with self._database.reading() as connection:
            (items,) = connection.execute("SELECT count(*) FROM items").fetchone()
            compared = ["tables", "vectors"]
            differences = store_differences(connection)
            if not differences:
                compared.append("model")
                differences = self._folder.learned.differences()
        return CollectionCheck(items, tuple(compared), tuple(differences))

    # What was learned.

    def suggest(self, query: object, top: int = 10) -> list[Suggestion]:
        """Suggest tags for an item, or for a vector that is not in the collection.

        Parameters
        ----------
        query : int, or array-like of shape (d,), or sparse matrix of one row
            An item is answered as if it were new. Tags it already has are suggested too; tags
            rejected for it never are.
        top : int, default=10

        Returns
        -------
        list of Suggestion
            The most probable first; ties in the order in which the tags were created.
        """
        with self._asking(query) as (answers, rejected):
            return answers.suggest(_query(query), top, without=rejected)

    def retrieve(self, query: object, top: int = 5, per_tag: int = 8) -> list[TaggedItems]:
        """For each of the most probable tags, the nearest items with this tag.

        Parameters
        ----------
        query, top
            As in `suggest`.
        per_tag : int, default=8
        """
        with self._asking(query) as (answers, rejected):
            return answers.retrieve(_query(query), top, per_tag, without=rejected)

    def similar(self, query: object, n: int = 12) -> list[tuple[int, float]]:
        """The items nearest to an item or a vector, regardless of their tags.

        Parameters
        ----------
        query
            As in `suggest`. An item is not among its own neighbors.
        n : int, default=12

        Returns
        -------
        list of (id, distance)
            The nearest first, by the metric of the method; ties ordered by id.
        """
        return self._similar.nearest(self._folder, _query(query), check_integer(n, "n", low=1))

    def questions(
        self,
        n: int = 5,
        strategy: str = "mixed",
        *,
        tag: str | None = None,
        without: Iterable[int] = (),
    ) -> list[Question]:
        """Choose the items that a person should be asked about next.

        Parameters
        ----------
        n : int, default=5
            The maximum number of questions.
        strategy : {"mixed", "learn", "confident"}, default="mixed"
            "learn": items whose answers are most informative, because the model is unsure and many
            other items resemble them. "confident": items the model is sure about, which a person
            confirms quickly. "mixed": every fourth question is of the second kind.
        tag : str, optional
            Ask only about this tag: the most probable undecided items first.
        without : iterable of int
            Items to leave out, because they were skipped.

        Returns
        -------
        list of Question
            About items without decisions, unless `tag` is given; never about missing ones.
        """
        from nearlabel.collection.questions import questions  # imports scikit-learn

        return questions(self, self._folder, n, strategy, tag, without)

    def save_index(self) -> None:
        """Save the model to a file, from which it is loaded the next time."""
        self._folder.learned.save()

    # Opening and closing.

    def close(self, *, save: bool = True) -> None:
        """Close the collection; others can then write. By default the model is saved if need be."""
        self._folder.close(save=save)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(save=kind is None)

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r})"

    def _answer(
        self,
        kind: str,
        ids: int | Iterable[int],
        tags: str | Iterable[str],
        answer: bool | None,
        by: str,
        group: int | None,
    ) -> Change | None:
        names, items = tag_names(tags), _ids(ids, are_unique=False)
        check_choice(by, "by", AUTHORS)
        pairs = [(item, name, answer, by) for item in items for name in names]
        return self._change(kind, group, tag_changes.decide, pairs)

    def _read(
        self,
        query: Callable[Concatenate[sqlite3.Connection, _Arguments], _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result:
        """The result of a query to the database."""
        with self._database.reading() as connection:
            return query(connection, *arguments, **named)

    def _change(
        self,
        kind: str,
        group: int | None,
        work: Callable[Concatenate[ChangeLog, _Arguments], None],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> Change | None:
        """A change of the database, of a kind, with what it does."""
        return self._folder.change(kind, group, lambda log: work(log, *arguments, **named))

    @cached_property
    def _similar(self) -> SimilarItems:
        from nearlabel.collection.similar_items import SimilarItems  # imports scikit-learn

        return SimilarItems()

    @contextmanager
    def _asking(self, query: object) -> Iterator[tuple[StateAnswers, set[int]]]:
        """The current answers, and the tags rejected for an item."""
        with self._folder.learned.asking() as answers, self._database.reading() as connection:
            rejected, item = set(), _query(query)
            if isinstance(item, int):
                if not item_tables.known_ids(connection, [item]):
                    raise NotInCollectionError(f"has no item {item}", self.path)
                select = "SELECT tag FROM decisions WHERE item = ? AND NOT is_yes"
                rejected = {tag for (tag,) in connection.execute(select, (item,))}
            yield answers, rejected


def _query(query: object) -> object:
    """An id, checked; or a vector as it is."""
    return _id(query) if isinstance(query, int | np.integer) else query


def _id(value: object) -> int:
    return check_integer(value, "id", low=1, high=MOST)


def _ids(values: int | Iterable[int], *, are_unique: bool = True) -> list[int]:
    """One id or several, without duplicates by default."""
    listed = [*values] if isinstance(values, Iterable) else [values]
    is_plain = all(type(value) is int and 0 < value <= MOST for value in listed)
    ids = listed if is_plain else [_id(value) for value in listed]
    return list(dict.fromkeys(ids)) if are_unique else ids


def _paths(item: Item) -> list[Path]:
    return [Path(file.root, file.path) for file in item.files]


def _root(root: str | os.PathLike[str]) -> str:
    return str(Path(root).absolute())


def _json(value: object, name: str) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must have values that can be stored as JSON; got {value!r}", name
        ) from None
