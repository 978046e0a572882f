"""New items, and files that are found, moved, changed or gone.

An item is identified by its content. So the same content at two paths is one item with two files,
and a moved file is the same item. New content at a known path is the same item too, unless the old
content still exists elsewhere: then that file keeps the tags.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from nearlabel.collection.change_log import LISTED, MOST, ChangeLog, Row, What, next_id, stored_rows
from nearlabel.collection.folder_checks import path_bytes
from nearlabel.collection.item_tables import select_in
from nearlabel.collection.records import FileState, NewItem
from nearlabel.collection.stored_vectors import append_vectors
from nearlabel.collection.tag_changes import refuse_unknown
from nearlabel.common.arrays import MatrixLike
from nearlabel.common.validation import ArgumentError, check_integer

_FILES = "SELECT id, root, path, size, mtime_ns, item, is_missing FROM files WHERE "
_ITEM, _IS_MISSING = 4, 5  # positions in the row of a file


def add_items(log: ChangeLog, new_items: Sequence[NewItem], folder: Path) -> list[int]:
    """Add items, or find existing ones; returns the id of each."""
    for new in new_items:
        _check(new)
    select = "SELECT content, id FROM items WHERE content"
    known: dict[bytes, int] = dict(
        select_in(log.connection, select, {new.content for new in new_items})
    )
    given = {new.item for new in new_items if new.item is not None}
    refuse_unknown(log, given, folder)
    taken = set(known.values())
    files = _Files(log, [file for new in new_items for file in new.files], taken)
    ids: list[int] = [0] * len(new_items)
    for place, new in enumerate(new_items):  # first, so that moved files keep their items
        if new.content in known:
            ids[place] = known[new.content]
            files.attach(ids[place], new.files)
    first = following = next_id(log.connection, "items")
    created: dict[int, NewItem] = {}
    for place, new in enumerate(new_items):
        if not ids[place]:
            item = known.get(new.content) or files.left_behind(new.files, created)
            if item is None and new.item not in taken:
                item = new.item
            if item is None:
                item, following = following, following + 1
            if new.content not in known:
                created[item], known[new.content] = new, item
                taken.add(item)
            ids[place] = item
            files.attach(item, new.files)
    vectors = [new.vector for new in created.values()]
    places = append_vectors(log.connection, list(created), vectors)
    rows: dict[Row, Row | None] = {
        (item,): (new.content, _name(new), _text(new.text), place)
        for (item, new), place in zip(created.items(), places, strict=True)
    }
    fresh = {key: row for key, row in rows.items() if key[0] >= first}
    log.write(What.ITEM, fresh, are_new=True)
    log.write(What.ITEM, {key: row for key, row in rows.items() if key not in fresh})
    files.write()
    return ids


def set_vectors(log: ChangeLog, vectors: Mapping[int, MatrixLike]) -> None:
    """Replace the vectors of items, computed from the same contents."""
    places = append_vectors(log.connection, list(vectors), list(vectors.values()))
    rows = stored_rows(log.connection, What.ITEM, [(item,) for item in vectors])
    log.write(
        What.ITEM,
        {(item,): (*rows[item,][:-1], place) for item, place in zip(vectors, places, strict=True)},
    )


def set_files(
    log: ChangeLog, placed: Sequence[FileState], gone: Sequence[FileState], folder: Path
) -> None:
    """Record where items were found, and which paths no longer exist."""
    for file in placed:
        if file.item is None:
            raise ArgumentError(f"files: {file.path!r} has no item", "files")
    items = {file.item for file in placed if file.item is not None}
    refuse_unknown(log, items, folder)
    select = "SELECT path FROM roots WHERE path"
    roots = {path_bytes(file.root) for file in gone}
    known = {path for (path,) in select_in(log.connection, select, roots)}
    gone = [file for file in gone if path_bytes(file.root) in known]
    files = _Files(log, [*placed, *gone], items)
    for file in placed:
        assert file.item is not None
        files.attach(file.item, [file])
    for file in gone:
        files.lose(file)
    files.write()


def join_roots(log: ChangeLog, root: str, files: Sequence[FileState]) -> None:
    """Assign the files of folders inside a root to the root itself."""
    joined = [
        file._replace(root=root, path=(Path(file.root).relative_to(root) / file.path).as_posix())
        for file in files
    ]
    rows = _Files(log, [*files, *joined], set())
    for before, after in zip(files, joined, strict=True):
        rows.rename(before, after)
    rows.write()


class _Files:
    """The files of all items that a change may affect, in their new state."""

    def __init__(self, log: ChangeLog, touched: Sequence[FileState], items: set[int]) -> None:
        self._log = log
        self.rows: dict[int, Row | None] = {}
        self._of: dict[int, set[int]] = {}  # the files of each item
        self._roots = self._root_numbers(dict.fromkeys(file.root for file in touched))
        paths: dict[int, set[bytes]] = {}
        for file in touched:
            root, path = self._key(file)
            paths.setdefault(root, set()).add(path)
        rows = []
        for root, names in paths.items():
            rows += select_in(log.connection, f"{_FILES}root = ? AND path", names, root)
        listed = json.dumps(sorted(items.union(row[1 + _ITEM] for row in rows)))
        for number, *row in log.connection.execute(f"{_FILES}item IN {LISTED}", (listed,)):
            self.rows[number] = tuple(row)
            self._of.setdefault(row[_ITEM], set()).add(number)
        self._at = {row[:2]: number for number, row in self.rows.items() if row is not None}
        self._following = next_id(log.connection, "files")
        self._fresh = self._following

    def attach(self, item: int, files: Iterable[FileState]) -> None:
        """Record the paths of an item; its missing files elsewhere are then out of date."""
        attached = set()
        for file in files:
            key = self._key(file)
            number = self._at.get(key)
            if number is None:
                number, self._following = self._following, self._following + 1
                self._at[key] = number
            before = self.rows.get(number)
            if before is not None and before[_ITEM] != item:
                self._of.setdefault(before[_ITEM], set()).discard(number)
            self.rows[number] = (*key, file.size, file.mtime_ns, item, 0)
            self._of.setdefault(item, set()).add(number)
            attached.add(number)
        if attached:
            for number in self._of[item] - attached:
                row = self.rows[number]
                if row is not None and row[_IS_MISSING]:
                    self._remove(number, row)

    def left_behind(self, files: Iterable[FileState], taken: Container[int]) -> int | None:
        """The item that has no other paths than these: its file was changed."""
        own = {self._at[key] for file in files if (key := self._key(file)) in self._at}
        for number in sorted(own):
            row = self.rows[number]
            if row is None or row[_ITEM] in taken:
                continue
            others = self._of[row[_ITEM]] - own
            if all((other := self.rows[n]) is None or other[_IS_MISSING] for n in others):
                return int(row[_ITEM])
        return None

    def lose(self, file: FileState) -> None:
        """Record that a path no longer exists: its item was moved, or is missing."""
        number = self._at.get(self._key(file))
        row = None if number is None else self.rows[number]
        if number is None or row is None:
            return
        others = self._of[row[_ITEM]] - {number}
        if any((other := self.rows[n]) is not None and not other[_IS_MISSING] for n in others):
            self._remove(number, row)
        else:
            self.rows[number] = (*row[:_IS_MISSING], 1)

    def rename(self, before: FileState, after: FileState) -> None:
        """Move a file to another path; a file already known there takes precedence."""
        number, key = self._at[self._key(before)], self._key(after)
        row = self.rows[number]
        assert row is not None
        there = self._at.get(key)
        if there is not None:
            other = self.rows[there]
            if other is not None and (row[_IS_MISSING] or not other[_IS_MISSING]):
                self._remove(number, row)
                return
            if other is not None:
                self._remove(there, other)
        del self._at[row[:2]]
        self._at[key], self.rows[number] = number, (*key, *row[2:])

    def write(self) -> None:
        """Write everything that has changed."""
        new = {(n,): row for n, row in self.rows.items() if n >= self._fresh and row is not None}
        old = {(n,): row for n, row in self.rows.items() if n < self._fresh}
        self._log.write(What.FILE, old)
        self._log.write(What.FILE, new, are_new=True)

    def _remove(self, number: int, row: Row) -> None:
        self.rows[number] = None
        self._of[row[_ITEM]].discard(number)
        self._at.pop(row[:2], None)

    def _key(self, file: FileState) -> tuple[int, bytes]:
        return self._roots[file.root], path_bytes(file.path)

    def _root_numbers(self, roots: Iterable[str]) -> dict[str, int]:
        wanted = {path_bytes(root): root for root in roots}
        select = "SELECT path, id FROM roots WHERE path"
        known: dict[bytes, int] = dict(select_in(self._log.connection, select, wanted))
        (last,) = self._log.connection.execute("SELECT coalesce(max(id), 0) FROM roots").fetchone()
        new = {path: n for n, path in enumerate((p for p in wanted if p not in known), last + 1)}
        self._log.write(What.ROOT, {(n,): (path,) for path, n in new.items()}, are_new=True)
        return {root: (known | new)[path] for path, root in wanted.items()}


def _check(new: NewItem) -> None:
    if not isinstance(new.content, bytes) or len(new.content) != 32:
        raise ArgumentError(f"content must be a sha256, 32 bytes; got {new.content!r}", "content")
    for file in new.files:
        check_file_state(file)


def check_file_state(file: FileState) -> None:
    """Refuse impossible file states."""
    check_integer(file.size, "size", low=0, high=MOST)
    check_integer(file.mtime_ns, "mtime_ns", low=-MOST, high=MOST)
    for name, text in (("root", file.root), ("path", file.path)):
        if not isinstance(text, str) or not text or "\0" in text:
            raise ArgumentError(f"{name} must be a path; got {text!r}", name)


def _name(new: NewItem) -> str:
    name = new.name or (new.files[0].path if new.files else new.content.hex()[:12])
    return _text(name) or ""


def _text(text: str | None) -> str | None:
    """A text that the database can store: surrogates and NULs become question marks."""
    return None if text is None else text.encode("utf-8", "replace").decode().replace("\0", "?")
