"""The log of changes: the previous state of every changed row, so that any change can be undone.

Everything that writes to the tables of a collection goes through `ChangeLog.write`, which records
the previous state of each row that differs; `undo` writes it back. Of a row that did not exist only
the key is recorded, so that the log of a million new items is short. What a change did to tags is
counted meanwhile, and stored with it in words.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NamedTuple

from nearlabel.collection.folder_checks import CollectionError
from nearlabel.collection.records import Change, plain_summary
from nearlabel.collection.removals import list_removals
from nearlabel.collection.tag_effects import TagEffects

Row = tuple[Any, ...]
MOST = 2**63 - 1  # the largest integer of a column
LISTED = "(SELECT value FROM json_each(?))"  # of a JSON list as the parameter
_LATEST = 253402300799999  # milliseconds: the end of the year 9999
COLUMNS = "id, kind, at, run, items, is_undone, summary"


class What(IntEnum):
    """The tables whose rows are logged."""

    ITEM, FILE, TAG, DECISION, ROOT = range(5)


class ItemRow(NamedTuple):
    """An item, without the number that `settle` gives it as an example."""

    content: bytes
    name: str
    text: str | None
    vector: int


class FileRow(NamedTuple):
    """A file: its root by number, and its path within it."""

    root: int
    path: bytes
    size: int
    mtime_ns: int
    item: int
    is_missing: int


class _Table(NamedTuple):
    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    blobs: tuple[int, ...] = ()  # positions of columns with bytes, which JSON lacks


_TABLES = {
    What.ITEM: _Table("items", ("id",), ItemRow._fields, (0,)),
    What.FILE: _Table("files", ("id",), FileRow._fields, (1,)),
    What.TAG: _Table("tags", ("id",), ("name",)),
    What.DECISION: _Table("decisions", ("item", "tag"), ("is_yes", "by", "at")),
    What.ROOT: _Table("roots", ("id",), ("path",), (0,)),
}


class _Changed(NamedTuple):
    """A row before and after a change; None where it does not exist."""

    key: Row
    before: Row | None
    after: Row | None


def now() -> int:
    """The current time in milliseconds, within the range of a date."""
    return min(max(time.time_ns() // 1_000_000, 0), _LATEST)


def moment(at: int) -> datetime:
    """A timestamp of the database as a date."""
    return datetime.fromtimestamp(min(max(at, 0), _LATEST) / 1000, UTC)


class ChangeLog:
    """A change in progress, within a transaction."""

    def __init__(self, connection: sqlite3.Connection, kind: str, group: int | None = None) -> None:
        self.connection, self.kind, self.group, self.at = connection, kind, group, now()
        self._keeps_rows = kind not in ("undo", "vectors")  # which cannot be undone
        self._noted: set[tuple[What, Row]] = set()
        self._uncounted: set[int] = set()
        self._with_new_vectors: set[int] = set()
        self._with_new_files: set[int] = set()
        self._effects = TagEffects()
        insert = "INSERT INTO changes (kind, at, run, items, is_undone) VALUES (?, ?, ?, 0, 0)"
        self.number = connection.execute(insert, (kind, self.at, group)).lastrowid or 0

    def write(
        self,
        what: What,
        rows: Mapping[Row, Row | None],
        current: Mapping[Row, Row] | None = None,
    ) -> None:
        """Write or delete rows; rows that are already as given are skipped.

        `current` are the rows as they are stored, if known: none if all are new.
        """
        if current is None:
            current = stored_rows(self.connection, what, rows)
        pairs = ((key, current.get(key), row) for key, row in rows.items())
        changed = [_Changed(*pair) for pair in pairs if pair[1] != pair[2]]
        if not changed:
            return
        self._note(what, [(key, before) for key, before, _ in changed])
        if what == What.ITEM:
            self._replace(changed)
        elif what == What.FILE:
            states = [row for _, *both in changed for row in both if row is not None]
            self._with_new_files.update(FileRow(*row).item for row in states)
        elif what == What.TAG:
            self._effects.note_tags(changed)
        elif what == What.DECISION:
            self._effects.note_decisions(changed)
        _store(self.connection, what, changed)

    def settle(self) -> Change | None:
        """Update what depends on the rows, at the end of a change.

        Tags without decisions are removed, and items are training examples as long as they have
        decisions. Returns None if nothing has changed: the caller then rolls back.
        """
        if not self._noted:
            return None
        if self.kind != "undo":  # an earlier change may need them
            self._remove_tags(sorted(self._effects.undecided))
        touched = (key[0] for what, key in self._noted if what in (What.ITEM, What.DECISION))
        items = sorted({*touched})
        self._renumber(items)
        counted = {*items} - self._uncounted
        count = len(counted) or len(self._with_new_files) or self._n_carriers()
        kind = self.kind if items or self.kind != "add" else "files"  # no item is new
        summary, tags = self._effects.summary(kind, count, self._tag_names)
        update = (
            "UPDATE changes SET kind = ?, items = ?, summary = ?, summary_tags = ? WHERE id = ?"
        )
        self.connection.execute(update, (kind, count, summary, json.dumps(tags), self.number))
        summary = summary or plain_summary(kind, count)
        return Change(self.number, kind, moment(self.at), self.group, count, False, summary)

    def note_only(self, what: What, keys: Sequence[Row], *, are_counted: bool = True) -> None:
        """Log changed rows without their previous state, possibly in an earlier change."""
        self._note(what, [(key, None) for key in keys])
        if not are_counted:
            self._uncounted.update(key[0] for key in keys)

    def _note(self, what: What, rows: Sequence[tuple[Row, Row | None]]) -> None:
        notes = []
        for key, before in rows:
            if (what, key) not in self._noted:
                self._noted.add((what, key))
                packed = _packed(what, before) if self._keeps_rows and before is not None else None
                tag = key[1] if len(key) > 1 else 0
                notes.append((self.number, len(self._noted), int(what), key[0], tag, packed))
        self.connection.executemany("INSERT INTO differences VALUES (?, ?, ?, ?, ?, ?)", notes)

    def _replace(self, changed: Sequence[_Changed]) -> None:
        """Note items with other vectors; what nothing will name any more is erased."""
        vectors, contents = [], []
        for key, before, after in changed:
            if before is None:
                continue
            old = ItemRow(*before)
            new = None if after is None else ItemRow(*after)
            if new is None or new.vector != old.vector:
                vectors.append(old.vector)
            if new is None or new.content != old.content:
                contents.append(old.content)
            if new is not None and new.vector != old.vector:
                self._with_new_vectors.add(key[0])
        if not self._keeps_rows:
            erase_vectors(self.connection, vectors)
            list_removals(self.connection, contents)

    def _remove_tags(self, tags: Sequence[int]) -> None:
        """Remove those of some tags that have no decisions any more."""
        if tags:
            used = "SELECT 1 FROM decisions WHERE tag = tags.id"
            select = f"SELECT id FROM tags WHERE id IN {LISTED} AND NOT EXISTS ({used})"
            unused = self.connection.execute(select, (json.dumps(tags),)).fetchall()
            self.write(What.TAG, dict.fromkeys(unused))

    def _n_carriers(self) -> int:
        """How many items have decisions on the logged tags."""
        tags = json.dumps([key[0] for what, key in self._noted if what == What.TAG])
        select = f"SELECT count(DISTINCT item) FROM decisions WHERE tag IN {LISTED}"
        return int(self.connection.execute(select, (tags,)).fetchone()[0])

    def _tag_names(self, tags: Sequence[int]) -> dict[int, str]:
        rows = stored_rows(self.connection, What.TAG, [(tag,) for tag in tags])
        return {key[0]: row[0] for key, row in rows.items()}

    def _renumber(self, items: Sequence[int]) -> None:
        """Number the items that have become training examples or have a new vector."""
        decided = "EXISTS (SELECT 1 FROM decisions WHERE item = items.id)"
        examples = self.connection.execute(
            f"SELECT id, learned, {decided} FROM items WHERE id IN {LISTED} ORDER BY id",
            (json.dumps(items),),
        ).fetchall()
        numbers: list[tuple[int | None, int]] = []
        following = None
        for item, learned, is_decided in examples:
            if is_decided and (learned is None or item in self._with_new_vectors):
                if following is None:
                    following = _following(self.connection, "SELECT learned FROM state")
                numbers.append((following, item))
                following += 1
            elif learned is not None and not is_decided:
                numbers.append((None, item))
        self.connection.executemany("UPDATE items SET learned = ? WHERE id = ?", numbers)
        if following is not None:
            self.connection.execute("UPDATE state SET learned = ?", (following - 1,))


def _store(connection: sqlite3.Connection, what: What, changed: Sequence[_Changed]) -> None:
    """Write rows; those that may exchange names are all deleted before any is inserted."""
    table = _TABLES[what]
    deleted, inserted, updated = [], [], []
    for key, before, after in changed:
        if what == What.ITEM and before is not None and after is not None:
            updated.append((*after, *key))  # it has one more column
            continue
        if before is not None:
            deleted.append(key)
        if after is not None:
            inserted.append((*key, *after))
    where = " AND ".join(f"{key} = ?" for key in table.keys)
    connection.executemany(f"DELETE FROM {table.name} WHERE {where}", deleted)
    names = (*table.keys, *table.columns)
    marks = ", ".join("?" * len(names))
    insert = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"
    connection.executemany(insert, inserted)
    assigned = ", ".join(f"{name} = ?" for name in table.columns)
    connection.executemany(f"UPDATE {table.name} SET {assigned} WHERE {where}", updated)


def erase_vectors(connection: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Overwrite vectors with zeros in place; `compact` frees the space.

    Deleting their rows would rearrange pages, and leave copies of other vectors in what is unused
    of a page.
    """
    update = (
        "UPDATE vectors SET item = 0, data = zeroblob(length(data)), checksum = 0 "
        f"WHERE id IN {LISTED}"
    )
    connection.execute(update, (json.dumps(sorted(rows)),))


def stored_rows(connection: sqlite3.Connection, what: What, keys: Iterable[Row]) -> dict[Row, Row]:
    """Those rows with these keys that exist."""
    wanted = set(keys)
    if not wanted:
        return {}
    table = _TABLES[what]
    names = ", ".join((*table.keys, *table.columns))
    select = f"SELECT {names} FROM {table.name} WHERE {table.keys[0]} IN {LISTED}"
    cursor = connection.execute(select, (json.dumps(sorted({key[0] for key in wanted})),))
    many = len(table.keys)
    return {row[:many]: row[many:] for row in cursor if row[:many] in wanted}


def differences(
    connection: sqlite3.Connection, change: int
) -> Iterator[tuple[What, Row, Row | None]]:
    """The records of a change, last first: keys of rows and their previous states."""
    cursor = connection.execute(
        "SELECT what, key, tag, before FROM differences WHERE change = ? ORDER BY place DESC",
        (change,),
    )
    for number, key, tag, before in cursor:
        if number not in _TABLES:
            raise CollectionError("is damaged: its log of changes is not valid")
        what = What(number)
        whole = (key, tag) if what == What.DECISION else (key,)
        yield what, whole, None if before is None else unpacked(what, before)


def touched_after(connection: sqlite3.Connection, change: int) -> list[int]:
    """The items whose content or decisions changed after a change, including forgotten items."""
    select = "SELECT DISTINCT key FROM differences WHERE change > ? AND what IN (?, ?) ORDER BY key"
    cursor = connection.execute(select, (change, int(What.ITEM), int(What.DECISION)))
    return [item for (item,) in cursor]


def next_id(connection: sqlite3.Connection, table: str) -> int:
    """The number of the next row of a table, which was never used before."""
    given = f"SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = '{table}'"
    return _following(
        connection, f"SELECT max(coalesce(({given}), 0), coalesce(max(id), 0)) FROM {table}"
    )


def _following(connection: sqlite3.Connection, select: str) -> int:
    (last,) = connection.execute(select).fetchone()
    if not 0 <= last < MOST // 2:
        raise CollectionError("is damaged: it has run out of numbers")
    return int(last) + 1


def last_change(connection: sqlite3.Connection) -> int:
    """The number of the last change; 0 if there is none."""
    (number,) = connection.execute("SELECT coalesce(max(id), 0) FROM changes").fetchone()
    return int(number)


def read_changes(connection: sqlite3.Connection, limit: int) -> list[Change]:
    """The last changes, latest first."""
    select = f"SELECT {COLUMNS} FROM changes ORDER BY id DESC LIMIT ?"
    return list(map(change_of, connection.execute(select, (limit,))))


def change_of(row: Row) -> Change:
    """A change from its `COLUMNS`."""
    number, kind, at, run, items, is_undone, summary = row
    summary = summary or plain_summary(kind, items)
    return Change(number, kind, moment(at), run, items, bool(is_undone), summary)


def _packed(what: What, row: Row) -> str:
    blobs = _TABLES[what].blobs
    values = [value.hex() if place in blobs else value for place, value in enumerate(row)]
    return json.dumps(values, ensure_ascii=False)


def unpacked(what: What, text: str) -> Row:
    """A row as stored in the log."""
    table = _TABLES[what]
    try:
        values = json.loads(text)
        row = tuple(
            bytes.fromhex(value) if place in table.blobs else value
            for place, value in enumerate(values)
        )
        if len(row) != len(table.columns) or not all(map(_is_plain, row)):
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise CollectionError("is damaged: its log of changes is not valid") from None
    return row


def _is_plain(value: object) -> bool:
    """Whether a column can hold a value."""
    if isinstance(value, int):
        return not isinstance(value, bool) and -MOST <= value <= MOST
    return value is None or isinstance(value, str | bytes)
