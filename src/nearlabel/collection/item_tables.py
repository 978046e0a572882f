"""Queries on the tables of a collection: items, files, tags, counts."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from nearlabel.collection.change_log import LISTED, Row, moment
from nearlabel.collection.folder_checks import (
    CollectionError,
    NotInCollectionError,
)
from nearlabel.collection.records import Decision, FileState, Item, TagCount
from nearlabel.common.messages import did_you_mean, shown, some

STATES = {
    "all": "",
    "tagged": " AND EXISTS (SELECT 1 FROM decisions WHERE item = items.id AND is_yes)",
    "untagged": " AND NOT EXISTS (SELECT 1 FROM decisions WHERE item = items.id AND is_yes)",
    "undecided": " AND learned IS NULL",
    "missing": " AND NOT EXISTS (SELECT 1 FROM files WHERE item = items.id AND NOT is_missing)",
}
_ID, _NAME = "id:", "name:"  # prefixes that force one reading
_MOST_NAMES = 20_000  # searched for a name similar to a misspelled one


def select_in(
    connection: sqlite3.Connection, select: str, values: Iterable[object], *first: object
) -> list[Row]:
    """The rows of ``select IN (values)``, for any number of values."""
    listed, rows, step = list(values), [], 900  # SQLite limits the parameters of a statement
    for start in range(0, len(listed), step):
        part = listed[start : start + step]
        marks = ", ".join("?" * len(part))
        rows += connection.execute(f"{select} IN ({marks})", (*first, *part)).fetchall()
    return rows


def read_items(connection: sqlite3.Connection, ids: Sequence[int], kind: str) -> list[Item]:
    """Items ordered by id; ids that do not exist are skipped."""
    listed = (json.dumps(list(ids)),)
    files: dict[int, list[FileState]] = {}
    for item, *state in connection.execute(
        "SELECT item, roots.path, files.path, size, mtime_ns, is_missing FROM files JOIN roots "
        f"ON roots.id = root WHERE item IN {LISTED} ORDER BY files.id",
        listed,
    ):
        files.setdefault(item, []).append(_file(item, *state))
    tags: dict[int, dict[str, Decision]] = {}
    for item, name, is_yes, by, at in connection.execute(
        "SELECT item, name, is_yes, by, at FROM decisions JOIN tags ON tags.id = tag "
        f"WHERE item IN {LISTED} ORDER BY item, tag",
        listed,
    ):
        tags.setdefault(item, {})[name] = Decision(bool(is_yes), by, moment(at))
    cursor = connection.execute(
        f"SELECT id, name, learned, text, content FROM items WHERE id IN {LISTED} ORDER BY id",
        listed,
    )
    items = []
    for item, name, learned, text, content in cursor:
        item_files = tuple(files.get(item, ()))
        is_missing = kind != "vectors" and all(file.is_missing for file in item_files)
        decided = tags.get(item, {})
        items.append(
            Item(item, name, item_files, decided, learned is not None, is_missing, text, content)
        )
    return items


def item_ids(
    connection: sqlite3.Connection,
    tag: int | None = None,
    state: str = "all",
    after: int = 0,
    limit: int | None = None,
    name: str | None = None,
) -> list[int]:
    """Ids after a given one, ascending: all, or those with a tag, a name or in a state."""
    where = "id > ?"
    given: list[object] = [after]
    if tag is not None:
        where += (
            " AND EXISTS (SELECT 1 FROM decisions WHERE item = items.id AND tag = ? AND is_yes)"
        )
        given.append(tag)
    if name:
        where += (
            " AND (instr(lower(name), lower(?)) OR EXISTS (SELECT 1 FROM files "
            "WHERE item = items.id AND instr(CAST(lower(CAST(path AS TEXT)) AS BLOB), ?)))"
        )
        given += [name.encode("utf-8", "replace").decode(), _part_of_path(name).lower()]
    given.append(-1 if limit is None else limit)
    select = f"SELECT id FROM items WHERE {where}{STATES[state]} ORDER BY id LIMIT ?"
    return [item for (item,) in connection.execute(select, given)]


def _part_of_path(text: str) -> bytes:
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return b"\0"  # no path contains a surrogate, nor this


def ids_beside(connection: sqlite3.Connection, id: int) -> tuple[int | None, int | None]:
    """The ids of the items before and after one."""
    before = connection.execute("SELECT max(id) FROM items WHERE id < ?", (id,)).fetchone()
    after = connection.execute("SELECT min(id) FROM items WHERE id > ?", (id,)).fetchone()
    return before[0], after[0]


def known_ids(connection: sqlite3.Connection, ids: Iterable[int]) -> set[int]:
    """Those of some ids that exist."""
    return {item for (item,) in select_in(connection, "SELECT id FROM items WHERE id", ids)}


def read_files(connection: sqlite3.Connection, root: str) -> list[FileState]:
    """All files of a root."""
    cursor = connection.execute(
        "SELECT item, roots.path, files.path, size, mtime_ns, is_missing FROM files JOIN roots "
        "ON roots.id = root WHERE roots.path = ? ORDER BY files.path",
        (os.fsencode(root),),
    )
    return [_file(*row) for row in cursor]


def read_roots(connection: sqlite3.Connection) -> list[str]:
    """The folders that have files in the collection."""
    has_files = "EXISTS (SELECT 1 FROM files WHERE root = roots.id)"
    cursor = connection.execute(f"SELECT path FROM roots WHERE {has_files} ORDER BY id")
    return [os.fsdecode(path) for (path,) in cursor]


def read_tags(connection: sqlite3.Connection) -> list[TagCount]:
    """All tags with decisions, ordered by number."""
    cursor = connection.execute(
        "SELECT name, sum(is_yes), sum(NOT is_yes) FROM decisions JOIN tags ON tags.id = tag "
        "GROUP BY tag ORDER BY tag"
    )
    return [TagCount(*row) for row in cursor]


def tag_numbers(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """The numbers of those tags that exist."""
    return dict(select_in(connection, "SELECT name, id FROM tags WHERE name", names))


def known_tag(connection: sqlite3.Connection, name: str) -> int:
    """The number of a tag, which must exist."""
    numbers = tag_numbers(connection, [name])
    if name not in numbers:
        names = [
            known
            for (known,) in connection.execute("SELECT name FROM tags LIMIT ?", (_MOST_NAMES,))
        ]
        raise NotInCollectionError(f"has no tag {shown(name)}{did_you_mean(name, names)}")
    return numbers[name]


def read_counts(connection: sqlite3.Connection, kind: str) -> dict[str, int]:
    """The counts of everything."""

    def count(select: str) -> int:
        return int(connection.execute(select).fetchone()[0])

    missing = f"SELECT count(*) FROM items WHERE 1 {STATES['missing']}"
    yes, total = (
        count("SELECT count(*) FROM decisions WHERE is_yes"),
        count("SELECT count(*) FROM items"),
    )
    no = count("SELECT count(*) FROM decisions") - yes
    # Twice as fast as a subquery per item.
    tagged = count("SELECT count(*) FROM (SELECT DISTINCT item FROM decisions WHERE is_yes)")
    return {
        "items": total,
        "tagged": tagged,
        "untagged": total - tagged,
        "learned": count("SELECT count(learned) FROM items"),
        "tags": count("SELECT count(DISTINCT tag) FROM decisions"),
        "yes": yes,
        "no": no,
        "files": count("SELECT count(*) FROM files"),
        "missing": 0 if kind == "vectors" else count(missing),
        "changes": count("SELECT count(*) FROM changes"),
        "garbage_bytes": count("PRAGMA freelist_count") * count("PRAGMA page_size")
        + count("SELECT coalesce(sum(length(data)), 0) FROM vectors WHERE item = 0"),
    }


def find(connection: sqlite3.Connection, text: str) -> int:
    """The item with a given id, name, or path or name of a file.

    The prefixes ``id:`` and ``name:`` force this reading, if such an item exists.
    """
    for start, look in ((_ID, _by_id), (_NAME, _by_name)):
        if text.startswith(start) and (ids := look(connection, text.removeprefix(start))):
            return _the_one(ids, text)
    ids = _by_id(connection, text) | _by_name(connection, text)
    ids = ids or _by_file_name(connection, os.fsencode(text))
    if not ids:
        names = [n for (n,) in connection.execute("SELECT name FROM items LIMIT ?", (_MOST_NAMES,))]
        raise NotInCollectionError(
            f"has no item with the id, file or name {shown(text)}{did_you_mean(text, names)}",
        )
    return _the_one(ids, text)


def _the_one(ids: set[int], text: str) -> int:
    if len(ids) > 1:
        raise CollectionError(
            f"has several items that match {shown(text)}, {some(sorted(ids))}: choose one as "
            f"{_ID}{min(ids)}",
        )
    return min(ids)


def _by_id(connection: sqlite3.Connection, text: str) -> set[int]:
    """The item with this id, if it exists."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        return set()
    cursor = connection.execute("SELECT id FROM items WHERE id = ?", (int(text),))
    return {item for (item,) in cursor}


def _by_name(connection: sqlite3.Connection, text: str) -> set[int]:
    """Items with this name, or with a file at this path."""
    name = (text.encode("utf-8", "replace").decode(),)
    ids = {item for (item,) in connection.execute("SELECT id FROM items WHERE name = ?", name)}
    path = os.path.normpath(Path(text).absolute())
    roots = [
        (number, os.fsdecode(root)) for number, root in connection.execute("SELECT * FROM roots")
    ]
    for number, root in roots:
        wanted = {os.fsencode(text)}
        if path.startswith(root.rstrip("/") + "/"):
            wanted.add(os.fsencode(path[len(root.rstrip("/")) + 1 :]))
        select = "SELECT item FROM files WHERE root = ? AND path"
        ids |= {item for (item,) in select_in(connection, select, wanted, number)}
    return ids


def ids_of_names(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """The items with these names; names of several items are skipped."""
    cursor = connection.execute(
        f"SELECT name, min(id) FROM items WHERE name IN {LISTED} GROUP BY name HAVING count(*) = 1",
        (json.dumps([*names]),),
    )
    return dict(cursor.fetchall())


def _by_file_name(connection: sqlite3.Connection, name: bytes) -> set[int]:
    """Items with a file of this name in any folder."""
    end = b"/" + name
    select = "SELECT item FROM files WHERE substr(path, -?) = ?"
    return {item for (item,) in connection.execute(select, (len(end), end))}


def _file(
    item: int, root: bytes, path: bytes, size: int, mtime_ns: int, is_missing: int
) -> FileState:
    return FileState(os.fsdecode(root), os.fsdecode(path), size, mtime_ns, item, bool(is_missing))
