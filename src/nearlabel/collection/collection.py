"""A collection: items, the tags that people gave them, and what is learned from these."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, ClassVar, Self
from weakref import WeakSet

import numpy as np

from nearlabel.collection import change_log, file_changes, item_tables, tag_changes
from nearlabel.collection.change_log import ChangeLog
from nearlabel.collection.database import Database, create_database
from nearlabel.collection.erasure import forget_items, remove_thumbnails
from nearlabel.collection.folder_checks import (
    LOCK,
    CollectionError,
    check_folder,
    index_files,
    opened_plainly,
    part_files,
    remove,
)
from nearlabel.collection.learned_rows import LearnedRows
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
from nearlabel.collection.stored_vectors import StoredVectors
from nearlabel.collection.tag_names import tag_name, tag_names
from nearlabel.common.file_locks import try_lock
from nearlabel.common.files import sync_folder
from nearlabel.common.validation import (
    ArgumentError,
    ArgumentTypeError,
    check_choice,
    check_integer,
)

KINDS = ("pictures", "texts", "vectors")
AUTHORS = ("person", "suggestion")
_MOST = 2**63 - 1
_UNSAVED = 500  # changed items that are worth a new index file when a collection is closed


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

    _all: ClassVar[WeakSet[Collection]] = WeakSet()
    _kept: ClassVar[list[Any]] = []  # what the child of a fork must not touch, not even close

    def __init__(self, path: str | os.PathLike[str], *, readonly: bool = False) -> None:
        self.path = Path(path)
        self.readonly = readonly
        self.notes: list[str] = []
        self._lock: FileIO | None = None
        check_folder(self.path, readonly=readonly)
        if not readonly:
            self._lock = _locked(self.path)
        try:
            self._database = Database(self.path, readonly=readonly)
            try:
                self._vectors = StoredVectors(self._database)
                self._source = LearnedRows(self._database, self._vectors)
                self._settings = self._read_settings()
                if not readonly:
                    self._recover()
                with self._database.reading() as connection:
                    self._vectors.file(connection)
            except BaseException:
                self._database.close()
                raise
        except BaseException:
            if self._lock is not None:
                self._lock.close()
            raise
        self._learner: Any = None
        self._followed = 0
        self._learning = threading.RLock()
        self._all.add(self)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        kind: str = "pictures",
        features: str | Mapping[str, Any] | None = None,
        method: Any = None,
    ) -> Self:
        """Make an empty collection, and open it.

        Parameters
        ----------
        path : path
            A folder that is not there yet, or is empty.
        kind : {"pictures", "texts", "vectors"}, default="pictures"
        features : str or mapping, optional
            What makes vectors of items; by default the best that there is.
        method : estimator or mapping, optional
            What learns: a neighbor method that is not fitted, or its `name` and parameters. By
            default ``MLkNN(10, metric="cosine")``.

        Returns
        -------
        Collection
        """
        check_choice(kind, "kind", KINDS)
        target = Path(path)
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise FileExistsError(errno.EEXIST, "a collection is a folder; this is none", str(path))
        if target.exists() and any(target.iterdir()):
            raise FileExistsError(
                errno.EEXIST,
                "a new collection needs a folder that is not there or empty",
                str(path),
            )
        settings = {"kind": kind, "features": _features(kind, features), "method": _method(method)}
        rows = [(name, _json(value, name)) for name, value in settings.items()]
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        part.mkdir()
        try:
            create_database(part, rows)
            sync_folder(part / "collection.sqlite")
            if os.name == "nt" and target.exists():
                target.rmdir()
            part.rename(target)
            sync_folder(target)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        return cls(path)

    # What is in it.

    @property
    def settings(self) -> Settings:
        """What the collection was created with, and what its first item has settled."""
        if self._settings.width is None:
            self._settings = self._read_settings()
        return self._settings

    def counts(self) -> dict[str, int]:
        """How many items, tags, decisions, files and changes there are.

        Returns
        -------
        dict of str to int
            items, tagged, untagged, learned, tags, yes, no, files, missing, changes; garbage_bytes,
            which `compact` would give back.
        """
        with self._database.reading() as connection:
            counts = item_tables.read_counts(connection, self.settings.kind)
            return counts | {"garbage_bytes": self._vectors.garbage(connection)}

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
            raise CollectionError(f"has no item {number}", self.path)
        return found[0]

    def items(
        self,
        tag: str | None = None,
        state: str = "all",
        after: int = 0,
        limit: int | None = None,
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

        Returns
        -------
        list of Item
        """
        with self._database.reading() as connection:
            ids = self.ids(tag, state, after, limit)
            return item_tables.read_items(connection, ids, self.settings.kind)

    def ids(
        self,
        tag: str | None = None,
        state: str = "all",
        after: int = 0,
        limit: int | None = None,
    ) -> list[int]:
        """The ids of the items that `items` gives."""
        check_choice(state, "state", tuple(item_tables.STATES))
        after = check_integer(after, "after", low=0, high=_MOST)
        if limit is not None:
            limit = check_integer(limit, "limit", low=0, high=_MOST)
        with self._database.reading() as connection:
            number = None
            if tag is not None:
                number = item_tables.known_tag(connection, tag_name(tag, "tag"), self.path)
            return item_tables.item_ids(connection, number, state, after, limit)

    def find(self, text: str) -> int:
        """Find the one item that is meant by its id, its name, or a file's path or name.

        Parameters
        ----------
        text : str

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

    def changes(self, limit: int = 20) -> list[Change]:
        """The last changes, the latest first."""
        with self._database.reading() as connection:
            return change_log.read_changes(connection, check_integer(limit, "limit", low=0))

    # What changes it.

    def new_group(self) -> int:
        """A number for the changes of one run, which `undo` takes back together."""
        with self._database.reading() as connection:
            return change_log.last_change(connection) + 1

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
            self._changed("add", group, work)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                with suppress(OSError, ValueError):
                    self._vectors.cut()
            raise
        return ids

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
        return self._changed(
            "files", group, lambda log: file_changes.set_files(log, found, gone, self.path)
        )

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
        return self._changed(
            "set_tags", group, lambda log: tag_changes.set_tags(log, number, names, by, self.path)
        )

    def decide(
        self,
        decisions: Sequence[tuple[int, str, bool | None]],
        *,
        by: str = "person",
        group: int | None = None,
    ) -> Change | None:
        """Answer many questions in one change.

        Parameters
        ----------
        decisions : sequence of (id, tag, answer)
            The answer is True for yes, False for no, and None for nothing any more.
        by, group
            As in `tag`.

        Returns
        -------
        Change or None
        """
        checked = []
        for item, name, answer in decisions:
            if answer is not None and not isinstance(answer, bool | np.bool_):
                message = f"decisions: an answer must be True, False or None; got {answer!r}"
                raise ArgumentTypeError(message, "decisions")
            checked.append((_id(item), tag_name(name), None if answer is None else bool(answer)))
        check_choice(by, "by", AUTHORS)
        return self._changed(
            "decide", group, lambda log: tag_changes.decide(log, checked, by, self.path)
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
        return self._changed(
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
        return self._changed(
            "merge_tags", group, lambda log: tag_changes.merge_tags(log, names, into, self.path)
        )

    def undo(self) -> Change | None:
        """Take back the last change, of whatever kind but `forget`; again, the one before it.

        Returns
        -------
        Change or None
            What was taken back, the last one of a run of changes; None where there is nothing.
        """
        with self._database.writing() as connection:
            return change_log.undo(connection)

    def forget(self, ids: Any) -> Change | None:
        """Remove items for good: from all tables, files and the log of changes.

        Nothing of them can be brought back, except from backups.

        Parameters
        ----------
        ids : int or sequence of int

        Returns
        -------
        Change or None
        """
        wanted = _ids(ids)

        def work(log: ChangeLog) -> None:
            tag_changes.refuse_unknown(log, wanted, self.path)
            if wanted:
                forget_items(log, wanted)

        change = self._changed("forget", None, work)
        if change is not None:
            self._finish_erasing()
        return change

    def compact(self) -> None:
        """Give back the room that nothing uses any more, and arrange everything anew."""
        self._vectors.compact()
        with self._database.alone() as connection:
            remove_thumbnails(self.path, connection)
        if self._learner is not None:
            self._learner.compact()
        self.save_index()
        self._database.rewrite()

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

    def save_index(self) -> None:
        """Write what was learned to a file, from which the next opening takes it."""
        with self._learning:
            with self._database.reading():
                learner = self._current_learner()
                change = self._followed
            digest = learner.save(change)
            with self._database.writing() as connection:
                connection.execute(
                    "UPDATE state SET index_change = ?, index_digest = ?",
                    (None if digest is None else change, digest),
                )
        self._remove_old_indexes()

    # Its life.

    def close(self, *, save: bool = True) -> None:
        """Let others write; nothing can be asked any more.

        Parameters
        ----------
        save : bool, default=True
            Whether to write what was learned to a file, if much has changed.
        """
        if self._database.is_closed:
            return
        try:
            if save and not self.readonly:
                self._save_if_worth()
        finally:
            self._vectors.close()
            self._database.close()
            if self._lock is not None:
                self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(save=kind is None)

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r})"

    @classmethod
    def leave_to_parent(cls) -> None:
        """In the child of a fork, touch no collection of the parent: its locks are not ours."""
        for one in list(cls._all):
            one._learning = threading.RLock()
            cls._kept.append(one._database.leave())

    def _changed(
        self, kind: str, group: int | None, work: Callable[[ChangeLog], None]
    ) -> Change | None:
        """Make a change: all of it is on the disk at the end, or nothing is."""
        if group is not None:
            check_integer(group, "group", low=0, high=_MOST)
        with self._database.writing() as connection:
            log = ChangeLog(connection, kind, group)
            work(log)
            return log.settle(remove_tags=kind != "forget")

    def _answer(
        self, kind: str, ids: Any, tags: Any, answer: bool | None, by: str, group: int | None
    ) -> Change | None:
        names, items = tag_names(tags), _ids(ids, are_unique=False)
        check_choice(by, "by", AUTHORS)
        pairs = [(item, name, answer) for item in items for name in names]
        return self._changed(kind, group, lambda log: tag_changes.decide(log, pairs, by, self.path))

    @contextmanager
    def _asking(self, query: Any) -> Iterator[tuple[Any, set[int], dict[int, str]]]:
        """What answers now, the tags that are refused for an item, and the names of all tags."""
        with self._database.reading() as connection:
            refused: set[int] = set()
            if _is_id(query):
                item = _id(query)
                if not connection.execute("SELECT 1 FROM items WHERE id = ?", (item,)).fetchone():
                    raise CollectionError(f"has no item {item}", self.path)
                select = "SELECT tag FROM decisions WHERE item = ? AND NOT is_yes"
                refused = {tag for (tag,) in connection.execute(select, (item,))}
            with self._learning:
                learner = self._current_learner()
            names = dict(connection.execute("SELECT id, name FROM tags").fetchall())
            yield learner, refused, names

    def _current_learner(self) -> Any:
        """What was learned from the state that is being read."""
        from nearlabel.collection.learner import Learner

        with self._learning, self._database.reading() as connection:
            last = change_log.last_change(connection)
            learner, followed = self._learner, self._followed
            self._learner = None  # until it is known to be right
            if learner is None:
                learner = Learner(self.path, self.settings, self._source)
                index, digest = connection.execute(
                    "SELECT index_change, index_digest FROM state"
                ).fetchone()
                notes = learner.opened(index, digest)
                self.notes.extend(notes)
                followed = last if notes or index is None else index
            if followed < last:
                learner.follow(change_log.touched_after(connection, followed))
            self._learner, self._followed = learner, max(last, followed)
            return learner

    def _save_if_worth(self) -> None:
        """Write the index where much has changed; what is derived must not make closing fail."""
        with self._database.reading() as connection:
            (index,) = connection.execute("SELECT index_change FROM state").fetchone()
            touched = change_log.touched_after(connection, index or 0)
        if self._learner is None and len(touched) < _UNSAVED:
            return
        with suppress(OSError):
            learner = self._current_learner()
            if learner.is_worth_saving(closing=True):
                self.save_index()

    def _recover(self) -> None:
        """Bring in order what a process that died has left."""
        for part in part_files(self.path):
            remove(part)
        cut = self._vectors.tidy()
        if cut:
            self.notes.append(
                f"{cut} bytes at the end of the vectors were of a change that was never "
                "acknowledged, and are removed"
            )
        self._remove_old_indexes()
        with self._database.reading() as connection:
            (is_erasing,) = connection.execute("SELECT is_erasing FROM state").fetchone()
        if is_erasing:
            self._finish_erasing()
            self.notes.append("items that were being forgotten are erased for good now")

    def _finish_erasing(self) -> None:
        """Erase from files what the tables have forgotten."""
        self._vectors.erase_unused()
        with self._database.alone() as connection:
            remove_thumbnails(self.path, connection)
        self._forget_index()
        is_clean = self._database.rewrite()
        if is_clean:
            with self._database.writing() as connection:
                connection.execute("UPDATE state SET is_erasing = 0")

    def _forget_index(self) -> None:
        """Have an index without what is forgotten, or none."""
        if getattr(self, "_learner", None) is not None:
            with suppress(OSError):
                self.save_index()
                return
        with self._database.writing() as connection:
            connection.execute("UPDATE state SET index_change = NULL, index_digest = NULL")
        self._remove_old_indexes()

    def _remove_old_indexes(self) -> None:
        with self._database.reading() as connection:
            (kept,) = connection.execute("SELECT index_change FROM state").fetchone()
        for change, path in index_files(self.path):
            if change != kept:
                remove(path)

    def _read_settings(self) -> Settings:
        with self._database.reading() as connection:
            form = self._vectors.form(connection)
            found = dict(connection.execute("SELECT name, value FROM settings").fetchall())
        try:
            kind, features, method = (
                json.loads(found[name]) for name in ("kind", "features", "method")
            )
            if kind not in KINDS or not isinstance(features, dict) or not isinstance(method, dict):
                raise ValueError
        except (KeyError, ValueError):
            raise CollectionError("is damaged: its settings make no sense", self.path) from None
        width, is_sparse = (None, None) if form is None else form
        return Settings(kind, features, method, width, is_sparse)


def _locked(folder: Path) -> FileIO:
    """The file by which others know that this process writes."""

    def opener(path: str, flags: int) -> int:
        return opened_plainly(path, flags | os.O_CREAT)

    file = FileIO(folder / LOCK, "r+", opener=opener)
    if not try_lock(file):
        owner = file.read(20).decode("ascii", "replace").strip()
        file.close()
        who = f"process {owner}" if owner.isdecimal() else "another process"
        raise BlockingIOError(
            errno.EAGAIN,
            f"{who} has this collection open for writing, and only one may; open it with "
            "readonly=True, or wait until it is closed",
            str(folder),
        )
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode())
    return file


def _is_id(query: Any) -> bool:
    return isinstance(query, int | np.integer) and not isinstance(query, bool)


def _query(query: Any) -> Any:
    return int(query) if _is_id(query) else query


def _id(value: Any) -> int:
    return check_integer(value, "id", low=1, high=_MOST)


def _ids(values: Any, *, are_unique: bool = True) -> list[int]:
    """One id or several; each once, if that matters."""
    listed = [values] if np.ndim(values) == 0 and not isinstance(values, Iterable) else [*values]
    ids = [_id(value) for value in listed]
    return list(dict.fromkeys(ids)) if are_unique else ids


def _root(root: str | os.PathLike[str]) -> str:
    return str(Path(root).absolute())


def _features(kind: str, features: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """What makes vectors of items, in words that a file can keep."""
    if isinstance(features, Mapping):
        return dict(features)
    return {"name": features if features is not None else kind}


def _method(method: Any) -> dict[str, Any]:
    """A method by its name and its parameters."""
    if method is None:
        return {"name": "MLkNN", "n_neighbors": 10, "metric": "cosine"}
    if isinstance(method, Mapping):
        return dict(method)
    if not hasattr(method, "get_params"):
        message = f"method must be an estimator, or its name and parameters; got {method!r}"
        raise ArgumentTypeError(message, "method")
    return {"name": type(method).__name__, **method.get_params(deep=False)}


def _json(value: Any, name: str) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must have plain values, which a file can keep; got {value!r}", name
        ) from None


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=Collection.leave_to_parent)
