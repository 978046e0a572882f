"""The log of changes: the previous state of every changed row, so that any change can be undone.

Everything that writes to the tables of a collection goes through `ChangeLog.write`, which records
the previous state of each row that differs; `undo` writes it back. Of a row that did not exist only
the key is recorded, so that the log of a million new items is short.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NamedTuple

from nearlabel.collection.folder_checks import CollectionError
from nearlabel.collection.records import Change
from nearlabel.collection.upload_removal import list_uploads

Row = tuple[Any, ...]
MOST = 2**63 - 1  # the largest integer of a column
LISTED = "(SELECT value FROM json_each(?))"  # of a JSON list as the parameter
_LATEST = 253402300799999  # milliseconds: the end of the year 9999


class What(IntEnum):
    """The tables whose rows are logged."""

    ITEM, FILE, TAG, DECISION, ROOT = range(5)


class _Table(NamedTuple):
    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    blobs: tuple[int, ...] = ()  # positions of columns with bytes, which JSON lacks


_TABLES = {
    What.ITEM: _Table("items", ("id",), ("content", "name", "text", "vector"), (0,)),
    What.FILE: _Table(
        "files", ("id",), ("root", "path", "size", "mtime_ns", "item", "is_missing"), (1,)
    ),
    What.TAG: _Table("tags", ("id",), ("name",)),
    What.DECISION: _Table("decisions", ("item", "tag"), ("is_yes", "by", "at")),
    What.ROOT: _Table("roots", ("id",), ("path",), (0,)),
}


def now() -> int:
    """The current time in milliseconds, within the range of a date."""
    return min(max(time.time_ns() // 1_000_000, 0), _LATEST)


def moment(at: int) -> datetime:
    """A timestamp of the database as a date."""
    return datetime.fromtimestamp(min(max(at, 0), _LATEST) / 1000, UTC)


class ChangeLog:
    """A change in progress, within a transaction."""

    def __init__(self, connection: sqlite3.Connection, kind: str, group: int | None = None) -> None:
        self.connection, self.kind, self.at = connection, kind, now()
        self._keeps_rows = kind not in ("undo", "vectors")  # which cannot be undone
        self._noted: set[tuple[int, Row]] = set()
        self.has_effect = False  # other than tags that come and go with their decisions
        self._uncounted: set[int] = set()
        self._with_new_vectors: set[int] = set()
        self._with_new_files: set[int] = set()
        insert = "INSERT INTO changes (kind, at, run, items, is_undone) VALUES (?, ?, ?, 0, 0)"
        self.number = connection.execute(insert, (kind, self.at, group)).lastrowid or 0

    def write(self, what: What, rows: Mapping[Row, Row | None], *, are_new: bool = False) -> None:
        """Write or delete rows; rows that are already as given are skipped."""
        current = {} if are_new else stored_rows(self.connection, what, rows)
        differ = [key for key, row in rows.items() if current.get(key) != row]
        table = _TABLES[what]
        self._note(what, [(key, current.get(key)) for key in differ])
        self.has_effect |= any(
            what not in (What.TAG, What.ROOT) or (key in current and rows[key] is not None)
            for key in differ
        )
        if what == What.ITEM:
            vector, replaced = table.columns.index("vector"), []
            for key in differ:
                before, after = current.get(key), rows[key]
                if before and (after is None or before[vector] != after[vector]):
                    replaced.append(before[vector])
                    if after:
                        self._with_new_vectors.add(key[0])
            if not self._keeps_rows:  # nothing names them any more
                delete = f"DELETE FROM vectors WHERE id IN {LISTED}"
                self.connection.execute(delete, (json.dumps(replaced),))
        if what == What.FILE:
            item = table.columns.index("item")
            states = [row for key in differ for row in (current.get(key), rows[key])]
            self._with_new_files.update(row[item] for row in states if row is not None)
        # Rows may exchange names, so all are deleted before any is inserted. Items have one more
        # column and are updated in place.
        gone = [key for key in differ if rows[key] is None or what != What.ITEM]
        where = " AND ".join(f"{key} = ?" for key in table.keys)
        self.connection.executemany(f"DELETE FROM {table.name} WHERE {where}", gone)
        names = (*table.keys, *table.columns)
        insert = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({_marks(names)})"
        if what == What.ITEM and not are_new:
            updates = ", ".join(f"{name} = excluded.{name}" for name in table.columns)
            insert += f" ON CONFLICT (id) DO UPDATE SET {updates}"
        written = ((*key, *row) for key in differ if (row := rows[key]) is not None)
        self.connection.executemany(insert, written)
        if what == What.FILE and self.kind == "undo":
            list_uploads(self.connection, [current[key][:2] for key in differ if key in current])

    def settle(self, *, remove_tags: bool = True) -> Change | None:
        """Update what depends on the rows, at the end of a change.

        Tags without decisions are removed, and items are training examples as long as they have
        decisions. Returns None if nothing has changed: the caller then rolls back.
        """
        if not self._noted:
            return None
        if remove_tags:
            tags = sorted({key[1] for what, key in self._noted if what == What.DECISION})
            used = "SELECT 1 FROM decisions WHERE tag = tags.id"
            unused = f"SELECT id FROM tags WHERE id IN {LISTED} AND NOT EXISTS ({used})"
            without_decisions = self.connection.execute(unused, (json.dumps(tags),)).fetchall()
            self.write(What.TAG, dict.fromkeys(without_decisions))
        items = sorted(self.touched())
        self._renumber(items)
        counted = self.touched() - self._uncounted
        count = len(counted) or len(self._with_new_files) or self._n_carriers()
        kind = self.kind if items or self.kind != "add" else "files"  # no item is new
        update = "UPDATE changes SET kind = ?, items = ? WHERE id = ?"
        self.connection.execute(update, (kind, count, self.number))
        return read_change(self.connection, self.number)

    def _n_carriers(self) -> int:
        """How many items have decisions on the logged tags."""
        tags = json.dumps([key[0] for what, key in self._noted if what == What.TAG])
        select = f"SELECT count(DISTINCT item) FROM decisions WHERE tag IN {LISTED}"
        return int(self.connection.execute(select, (tags,)).fetchone()[0])

    def touched(self) -> set[int]:
        """The items whose content or decisions have changed."""
        return {key[0] for what, key in self._noted if what in (What.ITEM, What.DECISION)}

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

    def _renumber(self, items: Sequence[int]) -> None:
        """Number the items that have become training examples or have a new vector."""
        decided = "EXISTS (SELECT 1 FROM decisions WHERE item = items.id)"
        examples = self.connection.execute(
            f"SELECT id, learned, {decided} FROM items WHERE id IN {LISTED} ORDER BY id",
            (json.dumps(items),),
        ).fetchall()
        last = _following(self.connection, "SELECT learned FROM state") - 1
        numbers: list[tuple[int | None, int]] = []
        for item, learned, is_decided in examples:
            is_new = learned is None or item in self._with_new_vectors
            if is_decided and is_new:
                last += 1
                numbers.append((last, item))
            elif learned is not None and not is_decided:
                numbers.append((None, item))
        self.connection.executemany("UPDATE items SET learned = ? WHERE id = ?", numbers)
        self.connection.execute("UPDATE state SET learned = ?", (last,))


def stored_rows(connection: sqlite3.Connection, what: What, keys: Iterable[Row]) -> dict[Row, Row]:
    """Those rows with these keys that exist."""
    table = _TABLES[what]
    wanted = set(keys)
    names = ", ".join((*table.keys, *table.columns))
    select = f"SELECT {names} FROM {table.name} WHERE {table.keys[0]} IN {LISTED}"
    listed = json.dumps(sorted({key[0] for key in wanted}))
    many = len(table.keys)
    cursor = connection.execute(select, (listed,))
    return {row[:many]: row[many:] for row in cursor if row[:many] in wanted}


def undo(connection: sqlite3.Connection) -> Change | None:
    """Undo the last change that is not undone, and the earlier ones of the same run."""
    log = ChangeLog(connection, "undo")
    while numbers := [change.number for change in last_run(connection)]:
        for number in numbers:
            before: dict[What, dict[Row, Row | None]] = {}
            for what, key, row in differences(connection, number):
                before.setdefault(what, {})[key] = row
            for what, rows in before.items():
                log.write(what, rows)
            connection.execute("DELETE FROM differences WHERE change = ?", (number,))
        update = f"UPDATE changes SET is_undone = 1 WHERE id IN {LISTED}"
        connection.execute(update, (json.dumps(numbers),))
        if log.has_effect:  # otherwise everything it changed has since been forgotten
            log.settle(remove_tags=False)
            remove_unneeded_tags(connection)
            return read_change(connection, numbers[0])
    return None


def remove_unneeded_tags(connection: sqlite3.Connection, *, in_log: bool = False) -> None:
    """Remove tags that have no decisions and would have none after `undo`.

    They remain when the change that created them is forgotten with its item. With `in_log`, also
    remove those that occur only in the log.
    """
    decided = "EXISTS (SELECT 1 FROM decisions WHERE tag = {})"
    carried, named = decided.format("tags.id"), decided.format("key")
    unused = f"SELECT id FROM tags WHERE NOT {carried}"
    tags = {tag for (tag,) in connection.execute(unused)}
    if in_log:
        removed = f"SELECT key FROM differences WHERE what = {int(What.TAG)} AND NOT {named}"
        tags |= {tag for (tag,) in connection.execute(removed)}
    if not tags:
        return
    again = "SELECT tag FROM differences WHERE what = ? AND before IS NOT NULL"
    tags -= {tag for (tag,) in connection.execute(again, (int(What.DECISION),))}
    gone = json.dumps(sorted(tags))
    of_tags = f"DELETE FROM differences WHERE what = {int(What.TAG)} AND key IN {LISTED}"
    connection.execute(of_tags, (gone,))
    connection.execute(f"DELETE FROM tags WHERE id IN {LISTED}", (gone,))


def last_run(connection: sqlite3.Connection) -> list[Change]:
    """The last change that can be undone and the earlier ones of its run, latest first."""
    with closing(_runs(connection)) as runs:
        return next(runs, [])


def next_undo(connection: sqlite3.Connection) -> list[Change]:
    """The changes that `undo` would take back; those without effect are skipped."""
    with closing(_runs(connection)) as runs:
        return next((run for run in runs if _has_effect(connection, run)), [])


def _runs(connection: sqlite3.Connection) -> Generator[list[Change]]:
    """All changes that can be undone, grouped by run, latest first."""
    select = (
        f"SELECT {_COLUMNS} FROM changes WHERE kind NOT IN ('undo', 'forget', 'vectors') "
        "AND NOT is_undone ORDER BY id DESC"
    )
    run: list[Change] = []
    with closing(connection.execute(select)) as cursor:
        for change in map(_change, cursor):
            if run and (run[0].group is None or change.group != run[0].group):
                yield run
                run = []
            run.append(change)
    if run:
        yield run


def _has_effect(connection: sqlite3.Connection, run: Sequence[Change]) -> bool:
    """Whether `undo` would have an effect, as defined by `ChangeLog.write`."""
    rows: dict[tuple[What, Row], Row | None] = {}
    for change in run:
        for what, key, before in differences(connection, change.number):
            if (what, key) not in rows:
                rows[what, key] = stored_rows(connection, what, [key]).get(key)
            now, rows[what, key] = rows[what, key], before
            is_small = what in (What.TAG, What.ROOT)
            if now != before and not (is_small and (now is None or before is None)):
                return True
    return False


def differences(
    connection: sqlite3.Connection, change: int | None = None
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


_COLUMNS = "id, kind, at, run, items, is_undone"


def read_change(connection: sqlite3.Connection, number: int) -> Change:
    """A change of the log."""
    select = f"SELECT {_COLUMNS} FROM changes WHERE id = ?"
    return _change(connection.execute(select, (number,)).fetchone())


def read_changes(connection: sqlite3.Connection, limit: int) -> list[Change]:
    """The last changes, latest first."""
    select = f"SELECT {_COLUMNS} FROM changes ORDER BY id DESC LIMIT ?"
    return list(map(_change, connection.execute(select, (limit,))))


def _change(row: Row) -> Change:
    number, kind, at, run, items, is_undone = row
    return Change(number, kind, moment(at), run, items, bool(is_undone))


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


def _marks(names: Sequence[str]) -> str:
    return ", ".join("?" * len(names))
