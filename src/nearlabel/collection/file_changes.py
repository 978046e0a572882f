"""New items, and files that are found, moved, changed or gone.

An item is identified by its content. So the same content at two paths is one item with two files,
and a moved file is the same item. New content at a known path is the same item too, unless the old
content still exists elsewhere: then that file keeps the tags.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from nearlabel.collection.change_log import LISTED, MOST, ChangeLog, Row, What, next_id, stored_rows
from nearlabel.collection.item_tables import select_in
from nearlabel.collection.records import FileState, NewItem
from nearlabel.collection.stored_vectors import append_vectors
from nearlabel.collection.tag_changes import refuse_unknown
from nearlabel.common.arrays import MatrixLike
from nearlabel.common.validation import ArgumentError, check_integer

_PATH, _ITEM, _IS_MISSING = 1, 4, 5  # positions in the row of a file


def add_items(log: ChangeLog, new_items: Sequence[NewItem]) -> list[int]:
    """Add items, or find existing ones; returns the id of each."""
    for new in new_items:
        _check(new)
    refuse_unknown(log, {new.item for new in new_items if new.item is not None})
    select = "SELECT content, id FROM items WHERE content"
    contents = {new.content for new in new_items}
    ids: dict[bytes, int] = dict(select_in(log.connection, select, contents))
    taken = set(ids.values())
    known = [new for new in new_items if new.content in ids]
    unknown = [new for new in new_items if new.content not in ids]
    # Known contents first, so that moved files keep their items.
    _place(log, [(ids[new.content], file) for new in known for file in new.files])
    first = following = next_id(log.connection, "items")
    created: dict[int, NewItem] = {}
    placed: list[tuple[int, FileState]] = []
    for new in unknown:
        there = _items_at(log, new.files)
        if new.content not in ids:
            item = _left_behind(log, there, created)
            if item is None and new.item not in taken:
                item = new.item
            if item is None:
                item, following = following, following + 1
            created[item], ids[new.content] = new, item
            taken.add(item)
        placed += [(ids[new.content], file) for file in new.files]
        if there:  # the next one must find them where they are now
            _place(log, placed)
            placed = []
    _place(log, placed)
    vectors = [new.vector for new in created.values()]
    places = append_vectors(log.connection, list(created), vectors)
    rows: dict[Row, Row | None] = {
        (item,): (new.content, _name(new), _text(new.text), place)
        for (item, new), place in zip(created.items(), places, strict=True)
    }
    fresh = {key: row for key, row in rows.items() if key[0] >= first}
    log.write(What.ITEM, fresh, current={})
    log.write(What.ITEM, {key: row for key, row in rows.items() if key not in fresh})
    return [ids[new.content] for new in new_items]


def set_vectors(log: ChangeLog, vectors: Mapping[int, MatrixLike]) -> None:
    """Replace the vectors of items, computed from the same contents."""
    places = append_vectors(log.connection, list(vectors), list(vectors.values()))
    rows = stored_rows(log.connection, What.ITEM, [(item,) for item in vectors])
    log.write(
        What.ITEM,
        {(item,): (*rows[item,][:-1], place) for item, place in zip(vectors, places, strict=True)},
    )


def set_files(log: ChangeLog, root: str, files: Sequence[FileState], gone: Iterable[str]) -> None:
    """Record where items were found below a root, and which of its paths no longer exist."""
    placed = []
    for file in files:
        check_file_state(file)
        if file.item is None:
            raise ArgumentError(f"files: {file.path!r} has no item", "files")
        placed.append((file.item, file._replace(root=root)))
    refuse_unknown(log, {item for item, _ in placed})
    _place(log, placed)
    _lose(log, root, [*dict.fromkeys(map(os.fsencode, gone))])


def join_roots(log: ChangeLog, root: str, within: Iterable[str]) -> None:
    """Assign the files of roots inside another root to that root.

    Of two files with one path, that of the root takes precedence unless it is missing.
    """
    number = _root_numbers(log, [root])[root]
    there = {row[_PATH]: (key, row) for key, row in _rows_of(log, root).items()}
    rows: dict[Row, Row | None] = {}
    for part in within:
        inside = os.fsencode(f"{Path(part).relative_to(root).as_posix()}/")
        for key, (_, path, *state) in _rows_of(log, part).items():
            moved = (number, inside + path, *state)
            if moved[_PATH] in there:
                other, row = there[moved[_PATH]]
                if moved[_IS_MISSING] or not row[_IS_MISSING]:
                    rows[key] = None
                    continue
                rows[other] = None
            there[moved[_PATH]], rows[key] = (key, moved), moved
    log.write(What.FILE, rows)


def _place(log: ChangeLog, placed: Sequence[tuple[int, FileState]]) -> None:
    """Record the paths of items; their missing files elsewhere are then out of date."""
    if not placed:
        return
    roots = _root_numbers(log, dict.fromkeys(file.root for _, file in placed))
    states = {(roots[file.root], os.fsencode(file.path)): (item, file) for item, file in placed}
    numbers: dict[tuple[int, bytes], int] = {}
    for root in roots.values():
        paths = [path for at, path in states if at == root]
        select = "SELECT path, id FROM files WHERE root = ? AND path"
        known = select_in(log.connection, select, paths, root)
        numbers |= {(root, path): number for path, number in known}
    following = next_id(log.connection, "files")
    rows: dict[Row, Row | None] = {}
    for key, (item, file) in states.items():
        if key not in numbers:
            numbers[key], following = following, following + 1
        rows[numbers[key],] = (*key, file.size, file.mtime_ns, item, 0)
    select = f"SELECT id FROM files WHERE is_missing AND item IN {LISTED}"
    items = json.dumps(sorted({item for item, _ in placed}))
    for key in log.connection.execute(select, (items,)):
        rows.setdefault(key, None)
    log.write(What.FILE, rows)


def _items_at(log: ChangeLog, files: Iterable[FileState]) -> dict[int, int]:
    """The known files at some paths, and their items."""
    at = "SELECT files.id, item FROM files JOIN roots ON roots.id = root"
    select = f"{at} WHERE roots.path = ? AND files.path = ?"
    items: dict[int, int] = {}
    for file in files:
        items |= log.connection.execute(select, (os.fsencode(file.root), os.fsencode(file.path)))
    return items


def _left_behind(log: ChangeLog, files: Mapping[int, int], taken: Container[int]) -> int | None:
    """The item that has no other files than these: its file was changed."""
    others = "SELECT id FROM files WHERE item = ? AND NOT is_missing"
    for _, item in sorted(files.items()):
        there = {number for (number,) in log.connection.execute(others, (item,))}
        if item not in taken and there <= files.keys():
            return item
    return None


def _lose(log: ChangeLog, root: str, paths: Sequence[bytes]) -> None:
    """Record that paths no longer exist: their items were moved, or are missing."""
    select = (
        "SELECT path, id FROM files WHERE root = (SELECT id FROM roots WHERE path = ?) AND path"
    )
    numbers: dict[bytes, int] = dict(select_in(log.connection, select, paths, os.fsencode(root)))
    before = stored_rows(log.connection, What.FILE, [(number,) for number in numbers.values()])
    select = (
        f"SELECT item, count(*) FROM files WHERE NOT is_missing AND item IN {LISTED} GROUP BY item"
    )
    items = json.dumps([row[_ITEM] for row in before.values()])
    n_there = Counter(dict(log.connection.execute(select, (items,)).fetchall()))
    rows: dict[Row, Row | None] = {}
    for path in paths:
        if path in numbers:
            row = before[numbers[path],]
            n_there[row[_ITEM]] -= not row[_IS_MISSING]
            rows[numbers[path],] = None if n_there[row[_ITEM]] else (*row[:_IS_MISSING], 1)
    log.write(What.FILE, rows)


def _rows_of(log: ChangeLog, root: str) -> dict[Row, Row]:
    """The rows of the files of a root."""
    select = "SELECT files.id FROM files JOIN roots ON roots.id = root WHERE roots.path = ?"
    keys = log.connection.execute(select, (os.fsencode(root),)).fetchall()
    return stored_rows(log.connection, What.FILE, keys)


def _root_numbers(log: ChangeLog, roots: Iterable[str]) -> dict[str, int]:
    """The numbers of roots; unknown ones are added."""
    wanted = {os.fsencode(root): root for root in roots}
    select = "SELECT path, id FROM roots WHERE path"
    known: dict[bytes, int] = dict(select_in(log.connection, select, wanted))
    (last,) = log.connection.execute("SELECT coalesce(max(id), 0) FROM roots").fetchone()
    new = {path: n for n, path in enumerate((p for p in wanted if p not in known), last + 1)}
    log.write(What.ROOT, {(n,): (path,) for path, n in new.items()}, current={})
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
