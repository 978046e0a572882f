"""Permanent removal: nothing of a forgotten item remains in the folder, and nothing restores it.

First one transaction removes the item from the tables and the log. Then its traces in files are
erased: thumbnails without an item, the index, free space in the database and its write-ahead log.
Meanwhile a flag is set in the database: if the process dies, whoever opens the collection next
finishes the work.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nearlabel.collection.change_log import LISTED, ChangeLog, What, remove_unneeded_tags, unpacked
from nearlabel.collection.folder_checks import THUMBNAILS
from nearlabel.collection.stored_vectors import named_vectors
from nearlabel.collection.upload_removal import list_uploads

_CONTENT = 0  # position in the row of an item


def forget_items(log: ChangeLog, ids: Sequence[int]) -> None:
    """Remove items from all tables and from the log of changes, within a transaction.

    The rest of the log can still be undone. This change itself is logged with the ids only, for
    models that have learned from the items.
    """
    connection, listed = log.connection, json.dumps(sorted(ids))
    select = f"SELECT id, root, path FROM files WHERE item IN {LISTED}"
    rows = connection.execute(select, (listed,)).fetchall()
    files = {number for number, _, _ in rows}
    list_uploads(connection, [row[1:] for row in rows])
    had_rows = _changes_with_rows(connection)
    contents, vectors = _contents(connection, listed), named_vectors(connection).keys()
    for table, column in (("decisions", "item"), ("files", "item"), ("items", "id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} IN {LISTED}", (listed,))
    connection.execute(
        f"DELETE FROM differences WHERE what IN (?, ?) AND key IN {LISTED}",
        (int(What.ITEM), int(What.DECISION), listed),
    )
    others = _forget_contents(connection, contents)
    unnamed = json.dumps(sorted(vectors - named_vectors(connection).keys()))
    connection.execute(f"DELETE FROM vectors WHERE id IN {LISTED}", (unnamed,))
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
    """The current and previous contents of items."""
    select = f"SELECT content FROM items WHERE id IN {LISTED}"
    contents = {content for (content,) in connection.execute(select, (listed,))}
    select = f"SELECT before FROM differences WHERE what = ? AND key IN {LISTED}"
    noted = connection.execute(f"{select} AND before IS NOT NULL", (int(What.ITEM), listed))
    return contents | {unpacked(What.ITEM, before)[_CONTENT] for (before,) in noted}


def _forget_contents(connection: sqlite3.Connection, contents: set[bytes]) -> set[int]:
    """Remove forgotten contents from the log of other items, whose files have changed since.

    `undo` then keeps their current content. If two items would get the same content at some step,
    the log also drops the content of the other one. Returns all items concerned: models that have
    not followed their changes yet must be notified again.
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
        later, erased = dict(now), set()
        for change, place, item, content in rows:
            if content in gone or (change, place) in forgotten:
                erased.add((change, place))
                gone.add(later[item])
            else:
                later[item] = content
        if erased == forgotten:
            break
        forgotten = erased
    delete = "DELETE FROM differences WHERE change = ? AND place = ?"
    connection.executemany(delete, sorted(forgotten))
    return {item for change, place, item, _ in rows if (change, place) in forgotten}


def _forget_files(connection: sqlite3.Connection, files: set[int], ids: set[int]) -> None:
    """Remove the former paths of forgotten items from the log, as if nothing had been there."""
    noted = connection.execute(
        "SELECT change, place, key, before FROM differences WHERE what = ? AND before IS NOT NULL",
        (int(What.FILE),),
    )
    roots = {root for (root,) in connection.execute("SELECT DISTINCT root FROM files")}
    nulled, of_others = [], set()
    for change, place, key, before in noted.fetchall():
        row = unpacked(What.FILE, before)
        if row[4] in ids:  # the item of a file
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
    """Remove thumbnails that belong to no item; returns their number."""
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
        with suppress(OSError):  # not empty
            inner.rmdir()
    return removed
