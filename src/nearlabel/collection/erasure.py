"""Forgetting for good: nothing of an item is left in the folder, and nothing brings it back.

First one transaction takes the item out of the tables and out of the log. Then what files still
hold is erased: all vectors that nothing refers to, thumbnails of no item, the index, free pages of
the database and its log. A flag in the database is set for so long: if the process dies in between,
whoever opens the collection next goes on.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nearlabel.collection.change_log import ChangeLog, What, unpacked
from nearlabel.collection.folder_checks import THUMBNAILS
from nearlabel.collection.item_tables import LISTED

_ITEM_OF_FILE = 4  # place in the row of a file


def forget_items(log: ChangeLog, ids: Sequence[int]) -> None:
    """Take items out of all tables and of the log of changes, in a transaction.

    What is left of the log can still be undone. Of this change it has the ids alone, for whoever
    has learned from them.
    """
    connection, listed = log.connection, json.dumps(sorted(ids))
    select = f"SELECT id FROM files WHERE item IN {LISTED}"
    files = {number for (number,) in connection.execute(select, (listed,))}
    select = f"SELECT DISTINCT tag FROM decisions WHERE item IN {LISTED}"
    tags = {tag for (tag,) in connection.execute(select, (listed,))}
    select = f"SELECT DISTINCT tag FROM differences WHERE what = ? AND key IN {LISTED}"
    tags |= {tag for (tag,) in connection.execute(select, (int(What.DECISION), listed))}
    had_rows = _changes_with_rows(connection)
    for table, column in (("decisions", "item"), ("files", "item"), ("items", "id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} IN {LISTED}", (listed,))
    connection.execute(
        f"DELETE FROM differences WHERE what IN (?, ?) AND key IN {LISTED}",
        (int(What.ITEM), int(What.DECISION), listed),
    )
    _forget_files(connection, files, set(ids))
    _forget_tags(connection, tags)
    connection.execute(
        f"DELETE FROM changes WHERE id IN {LISTED}",
        (json.dumps(sorted(had_rows - _changes_with_rows(connection))),),
    )
    log.note_only(What.ITEM, ((item,) for item in ids))
    connection.execute("UPDATE state SET is_erasing = 1")


def _forget_files(connection: sqlite3.Connection, files: set[int], ids: set[int]) -> None:
    """Have the log know nothing of where forgotten items were: at these paths was nothing then."""
    noted = connection.execute(
        "SELECT change, place, key, before FROM differences WHERE what = ? AND before IS NOT NULL",
        (int(What.FILE),),
    )
    roots = {root for (root,) in connection.execute("SELECT DISTINCT root FROM files")}
    nulled, of_others = [], set()
    for change, place, key, before in noted.fetchall():
        row = unpacked(What.FILE, before)
        if row[_ITEM_OF_FILE] in ids:
            nulled.append((change, place))
        else:
            of_others.add(key)
            roots.add(row[0])
    update = "UPDATE differences SET before = NULL WHERE change = ? AND place = ?"
    connection.executemany(update, nulled)
    connection.execute(
        f"DELETE FROM differences WHERE what = ? AND key IN {LISTED}",
        (int(What.FILE), json.dumps(sorted(files - of_others))),
    )
    connection.execute(f"DELETE FROM roots WHERE id NOT IN {LISTED}", (json.dumps(sorted(roots)),))


def _changes_with_rows(connection: sqlite3.Connection) -> set[int]:
    return {change for (change,) in connection.execute("SELECT DISTINCT change FROM differences")}


def _forget_tags(connection: sqlite3.Connection, tags: set[int]) -> None:
    """Forget those tags that nobody has, and nobody would have after `undo`."""
    listed, decided = (json.dumps(sorted(tags)),), int(What.DECISION)
    select = f"SELECT DISTINCT tag FROM decisions WHERE tag IN {LISTED}"
    kept = {tag for (tag,) in connection.execute(select, listed)}
    select = f"SELECT DISTINCT tag FROM differences WHERE what = {decided} AND tag IN {LISTED}"
    kept |= {tag for (tag,) in connection.execute(select, listed)}
    gone = json.dumps(sorted(tags - kept))
    connection.execute(
        f"DELETE FROM differences WHERE what = ? AND key IN {LISTED}", (int(What.TAG), gone)
    )
    connection.execute(f"DELETE FROM tags WHERE id IN {LISTED}", (gone,))


def remove_thumbnails(folder: Path, connection: sqlite3.Connection) -> int:
    """Remove thumbnails of contents that no item has; how many that were."""
    select = "SELECT content FROM items"
    known = {content.hex() for (content,) in connection.execute(select)}
    removed = 0
    thumbnails = folder / THUMBNAILS
    if thumbnails.is_symlink() or not thumbnails.is_dir():
        return 0
    for inner in thumbnails.iterdir():
        if inner.is_symlink() or not inner.is_dir():
            continue
        for path in inner.iterdir():
            if path.name.lstrip(".").split(".")[0].split("-")[0] not in known:
                path.unlink(missing_ok=True)
                removed += 1
        with suppress(OSError):  # others are in it
            inner.rmdir()
    return removed
