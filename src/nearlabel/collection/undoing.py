"""Undo: the last change that has an effect is taken back, with those of its run.

What `forget` leaves of other changes may have none any more: these are skipped.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing

from nearlabel.collection.change_log import (
    COLUMNS,
    ChangeLog,
    Row,
    What,
    change_of,
    differences,
    stored_rows,
)
from nearlabel.collection.records import Change, summary_of

_CAN_BE_UNDONE = "kind NOT IN ('undo', 'forget', 'vectors') AND NOT is_undone"
_WITHOUT_DECISIONS = "NOT EXISTS (SELECT 1 FROM decisions WHERE tag = {})"


def undo(connection: sqlite3.Connection) -> Change | None:
    """Undo the last change that is not undone, and the earlier ones of the same run.

    Returns the last change of the run, with the items and the summary of all.
    """
    run = next_undo(connection)
    if not run:
        return None
    log = ChangeLog(connection, "undo")
    for change in run:
        before: dict[What, dict[Row, Row | None]] = {}
        for what, key, row in differences(connection, change.number):
            before.setdefault(what, {})[key] = row
        for what, rows in before.items():
            log.write(what, rows)
    # Later ones had no effect any more.
    undone = f"SELECT id FROM changes WHERE id >= ? AND {_CAN_BE_UNDONE}"
    first = (run[-1].number,)
    connection.execute(f"DELETE FROM differences WHERE change IN ({undone})", first)
    update = "UPDATE changes SET is_undone = 1, summary = NULL, summary_tags = NULL"
    connection.execute(f"{update} WHERE id IN ({undone})", first)
    done = log.settle()
    assert done is not None
    if connection.execute(f"SELECT 1 FROM tags WHERE {_WITHOUT_DECISIONS.format('id')}").fetchone():
        remove_unneeded_tags(connection)
    return run[0]._replace(items=done.items, is_undone=True, summary=summary_of(run))


def remove_unneeded_tags(connection: sqlite3.Connection) -> None:
    """Remove tags that have no decisions and would have none after `undo`, and all their names.

    They remain when the change that created them is forgotten with its item.
    """
    again = f"SELECT tag FROM differences WHERE what = {int(What.DECISION)} AND before IS NOT NULL"

    def unneeded(tag: str) -> str:
        return f"{_WITHOUT_DECISIONS.format(tag)} AND {tag} NOT IN ({again})"

    connection.execute(f"DELETE FROM tags WHERE {unneeded('id')}")
    of_tags = f"what = {int(What.TAG)} AND {unneeded('key')}"
    connection.execute(f"DELETE FROM differences WHERE {of_tags}")
    named = f"SELECT 1 FROM json_each(summary_tags) WHERE {unneeded('value')}"
    update = "UPDATE changes SET summary = NULL, summary_tags = NULL"
    connection.execute(f"{update} WHERE EXISTS ({named})")


def next_undo(connection: sqlite3.Connection) -> list[Change]:
    """The changes that `undo` would take back, latest first; those without effect are skipped."""
    with closing(_runs(connection)) as runs:
        return next((run for run in runs if _has_effect(connection, run)), [])


def _runs(connection: sqlite3.Connection) -> Generator[list[Change]]:
    """All changes that can be undone, grouped by run, latest first."""
    select = f"SELECT {COLUMNS} FROM changes WHERE {_CAN_BE_UNDONE} ORDER BY id DESC"
    run: list[Change] = []
    with closing(connection.execute(select)) as cursor:
        for change in map(change_of, cursor):
            if run and (run[0].group is None or change.group != run[0].group):
                yield run
                run = []
            run.append(change)
    if run:
        yield run


def _has_effect(connection: sqlite3.Connection, run: Sequence[Change]) -> bool:
    """Whether `undo` would change more than tags and folders that nothing uses."""
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
