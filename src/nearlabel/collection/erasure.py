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

from nearlabel.collection.change_log import ChangeLog, What, remove_unneeded_tags, unpacked
from nearlabel.collection.folder_checks import THUMBNAILS
from nearlabel.collection.item_tables import LISTED

_CONTENT = 0  # place in the row of an item
_ITEM_OF_FILE = 4  # place in the row of a file


def forget_items(log: ChangeLog, ids: Sequence[int]) -> None:
    """Take items out of all tables and of the log of changes, in a transaction.

    What is left of the log can still be undone. Of this change it has the ids alone, for whoever
    has learned from them.
    """
    connection, listed = log.connection, json.dumps(sorted(ids))
    select = f"SELECT id FROM files WHERE item IN {LISTED}"
    files = {number for (number,) in connection.execute(select, (listed,))}
    had_rows = _changes_with_rows(connection)
    contents = _contents(connection, listed)
    for table, column in (("decisions", "item"), ("files", "item"), ("items", "id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} IN {LISTED}", (listed,))
    connection.execute(
        f"DELETE FROM differences WHERE what IN (?, ?) AND key IN {LISTED}",
        (int(What.ITEM), int(What.DECISION), listed),
    )
    others = _forget_contents(connection, contents)
    _forget_files(connection, files, set(ids))
    remove_unneeded_tags(connection, in_log=True)
    connection.execute(
        f"DELETE FROM changes WHERE id IN {LISTED}",
        (json.dumps(sorted(had_rows - _changes_with_rows(connection))),),
    )
    log.note_only(What.ITEM, [(item,) for item in ids])
    log.note_only(What.ITEM, [(item,) for item in sorted(others)], are_counted=False)
    connection.execute("UPDATE state SET is_erasing = 1")


def _contents(connection: sqlite3.Connection, listed: str) -> set[bytes]:
    """The contents of items, now and before."""
    select = f"SELECT content FROM items WHERE id IN {LISTED}"
    contents = {content for (content,) in connection.execute(select, (listed,))}
    select = f"SELECT before FROM differences WHERE what = ? AND key IN {LISTED}"
    noted = connection.execute(f"{select} AND before IS NOT NULL", (int(What.ITEM), listed))
    return contents | {unpacked(What.ITEM, before)[_CONTENT] for (before,) in noted}


def _forget_contents(connection: sqlite3.Connection, contents: set[bytes]) -> set[int]:
    """Have the log know nothing of other items that once had a forgotten content.

    Their file was altered or moved since. Steps back leave them the content that they have. Of
    two items that would then have one content at a time, the log forgets that of the other, too.
    Returns all these items: whoever has not followed their changes yet must be told again.
    """
    select = "SELECT content, id FROM items"
    now = {item: content for content, item in connection.execute(select)}
    gone = contents - set(now.values())
    noted = connection.execute(
        "SELECT change, place, key, before FROM differences WHERE what = ? AND before IS NOT NULL "
        "ORDER BY change DESC, place DESC",
        (int(What.ITEM),),
    )
    rows = [
        (change, place, item, unpacked(What.ITEM, before)[_CONTENT])
        for change, place, item, before in noted
    ]
    forgotten: set[tuple[int, int]] = set()
    while True:
        later, found = dict(now), set()
        for change, place, item, content in rows:
            if content in gone or (change, place) in forgotten:
                found.add((change, place))
                gone.add(later[item])
            else:
                later[item] = content
        if found == forgotten:
            break
        forgotten = found
    delete = "DELETE FROM differences WHERE change = ? AND place = ?"
    connection.executemany(delete, sorted(forgotten))
    return {item for change, place, item, _ in rows if (change, place) in forgotten}


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
