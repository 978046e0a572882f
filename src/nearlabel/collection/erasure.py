"""Permanent removal: nothing of a forgotten item remains in the folder, and nothing restores it.

One transaction removes the item from the tables and the log, and overwrites its vectors. Then its
traces in files are erased: its thumbnail and upload, the index, what deleted rows have left in the
database, and the write-ahead log. Meanwhile a flag is set in the database: if the process dies,
whoever opens the collection next finishes the work.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from nearlabel.collection.change_log import (
    LISTED,
    ChangeLog,
    FileRow,
    ItemRow,
    Row,
    What,
    erase_vectors,
    unpacked,
)
from nearlabel.collection.removals import list_removals
from nearlabel.collection.stored_vectors import named_vectors
from nearlabel.collection.undoing import remove_unneeded_tags

_Place = tuple[int, int]  # of a row of the log: its change, and its place within it


def forget_items(log: ChangeLog, ids: Sequence[int]) -> None:
    """Remove items from all tables and from the log of changes, within a transaction.

    The rest of the log can still be undone. This change itself is logged with the ids only, for
    models that have learned from the items.
    """
    connection, listed = log.connection, json.dumps(sorted(ids))
    logged_before, vectors = _logged_changes(connection), named_vectors(connection).keys()
    contents, others = _forget_contents(connection, {*ids})
    list_removals(connection, contents)
    for table, column in (("decisions", "item"), ("files", "item"), ("items", "id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} IN {LISTED}", (listed,))
    connection.execute(
        f"DELETE FROM differences WHERE what IN (?, ?) AND key IN {LISTED}",
        (int(What.ITEM), int(What.DECISION), listed),
    )
    _forget_files(connection, {*ids})
    erase_vectors(connection, vectors - named_vectors(connection).keys())
    remove_unneeded_tags(connection)
    emptied = json.dumps(sorted(logged_before - _logged_changes(connection)))
    connection.execute(f"DELETE FROM changes WHERE id IN {LISTED}", (emptied,))
    log.note_only(What.ITEM, [(item,) for item in ids])
    log.note_only(What.ITEM, [(item,) for item in sorted(others)], are_counted=False)
    connection.execute("UPDATE state SET is_erasing = 1")


def _forget_contents(connection: sqlite3.Connection, ids: set[int]) -> tuple[set[bytes], set[int]]:
    """Remove the contents of forgotten items from the log of others, which once had them.

    An item that once had one keeps its current content whatever is undone, and so does one that
    once had that content in turn: two items would have the same. Returns the contents of the
    forgotten items, and the others: models that have not followed their changes yet must be
    notified again.
    """
    now: dict[int, bytes] = dict(connection.execute("SELECT id, content FROM items").fetchall())
    earlier = [
        (place, item, ItemRow(*row).content) for place, item, row in _logged(connection, What.ITEM)
    ]
    own = {now[item] for item in ids} | {content for _, item, content in earlier if item in ids}
    gone = own - {content for item, content in now.items() if item not in ids}
    others: set[int] = set()
    while more := {item for _, item, content in earlier if content in gone} - ids - others:
        others |= more
        gone = gone | {now[item] for item in more if item in now}
    forgotten = [place for place, item, _ in earlier if item in others]
    connection.executemany("DELETE FROM differences WHERE change = ? AND place = ?", forgotten)
    return own, others


def _forget_files(connection: sqlite3.Connection, ids: set[int]) -> None:
    """Remove the former paths of forgotten items from the log, as if nothing had been there."""
    logged = [(place, FileRow(*row)) for place, _, row in _logged(connection, What.FILE)]
    connection.executemany(
        "UPDATE differences SET before = NULL WHERE change = ? AND place = ?",
        [place for place, file in logged if file.item in ids],
    )
    again = f"SELECT key FROM differences WHERE what = {int(What.FILE)} AND before IS NOT NULL"
    connection.execute(
        f"DELETE FROM differences WHERE what = {int(What.FILE)} "
        f"AND key NOT IN (SELECT id FROM files) AND key NOT IN ({again})"
    )
    roots = json.dumps(sorted({file.root for _, file in logged if file.item not in ids}))
    used = "SELECT root FROM files"
    connection.execute(
        f"DELETE FROM roots WHERE id NOT IN ({used}) AND id NOT IN {LISTED}", (roots,)
    )


def _logged(connection: sqlite3.Connection, what: What) -> list[tuple[_Place, int, Row]]:
    """The former rows of a table that the log has: their places in it, and their keys."""
    cursor = connection.execute(
        "SELECT change, place, key, before FROM differences WHERE what = ? AND before IS NOT NULL",
        (int(what),),
    )
    return [((change, place), key, unpacked(what, before)) for change, place, key, before in cursor]


def _logged_changes(connection: sqlite3.Connection) -> set[int]:
    return {change for (change,) in connection.execute("SELECT DISTINCT change FROM differences")}
