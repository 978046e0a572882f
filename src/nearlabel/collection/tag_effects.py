"""What changes did to tags, in words, read from the log with the previous state of every row.

The state of a row after a change is its state before the next change, or its current one. Undone
changes are not in this history: their rows are removed from the log.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from nearlabel.collection.change_log import Row, What, stored_rows, unpacked
from nearlabel.collection.records import Change, said_changes

_MOST_ROWS = 20_000  # of the log that are read at most
_MOST_ITEMS = 1_000  # of a change described tag by tag: every page view shows the last one
_MOST_TAGS = 3  # that are named individually
_DECIDING = ("tag", "reject", "clear", "set_tags", "decide")
_OF_TAGS = ("rename_tag", "merge_tags", "delete_tag")
_WORDS = {  # by the decisions before and after
    (None, True): "added to",
    (False, True): "added to",
    (True, False): "taken away from",
    (True, None): "taken away from",
    (None, False): "rejected for",
    (False, None): "no longer rejected for",
}


class _Difference(NamedTuple):
    """A row of a table before and after a change, and the name of its tag at that time."""

    what: What
    before: Row | None
    after: Row | None
    name: str


def said_effects(connection: sqlite3.Connection, changes: Sequence[Change]) -> dict[int, str]:
    """What each of some changes did, by its number: tag by tag as far as the log has it."""
    said = {change.number: change.said for change in changes}
    told = [
        change
        for change in changes
        if change.kind in (*_DECIDING, *_OF_TAGS)
        and not change.is_undone
        and change.items <= _MOST_ITEMS
    ]
    if told:
        history = _history(connection, min(change.number for change in told))
        for change in told:
            found = history.get(change.number, [])
            if change.kind in _OF_TAGS:
                said[change.number] = _said_of_tags(change, found)
            else:
                said[change.number] = _said_of_items(found) or change.said
    return said


def said_run(connection: sqlite3.Connection, run: Sequence[Change]) -> str:
    """What the changes of a run, latest first, have done."""
    if len({change.kind for change in run}) < len(run):
        return said_changes(run)  # many parts of one action, such as an import
    said = said_effects(connection, run)
    return ", ".join(said[change.number] for change in reversed(run))


def _history(connection: sqlite3.Connection, first: int) -> dict[int, list[_Difference]]:
    """What changes from a given one on did to tags and decisions, up to a limit."""
    select = (
        "SELECT change, what, key, tag, before FROM differences JOIN changes ON id = change "
        f"WHERE change >= ? AND what IN ({int(What.TAG)}, {int(What.DECISION)}) AND kind != 'undo' "
        "ORDER BY change DESC, place DESC LIMIT ?"
    )
    rows = connection.execute(select, (first, _MOST_ROWS + 1)).fetchall()
    if len(rows) > _MOST_ROWS:  # the oldest change may be incomplete
        rows = [row for row in rows if row[0] != rows[-1][0]]
    keyed = [
        (change, What(what), (key, tag) if what == What.DECISION else (key,), before)
        for change, what, key, tag, before in rows
    ]
    later: dict[tuple[What, Row], Row | None] = {}
    keys: dict[What, set[Row]] = {
        What.TAG: {key[-1:] for _, _, key, _ in keyed},
        What.DECISION: {key for _, what, key, _ in keyed if what == What.DECISION},
    }
    for what, wanted in keys.items():
        now = stored_rows(connection, what, wanted)
        later |= {(what, key): row for key, row in now.items()}
    history: dict[int, list[_Difference]] = {}
    for change, what, key, packed in keyed:
        before = None if packed is None else unpacked(what, packed)
        # A tag is created before, and deleted after, its decisions: so it has a name here.
        named = later.get((What.TAG, key[-1:]))
        found = _Difference(what, before, later.get((what, key)), str(named[0]) if named else "")
        history.setdefault(change, []).append(found)  # last first
        later[what, key] = before
    return history


def _said_of_tags(change: Change, found: Sequence[_Difference]) -> str:
    """For example: renamed beach to Places|Beach (12 items)."""
    tags = [one for one in reversed(found) if one.what == What.TAG and one.before]
    gone = [str(one.before[0]) for one in tags if one.before and one.after is None]
    moved = [(one.before[0], one.after[0]) for one in tags if one.before and one.after]
    many = f" ({_counted(change.items)})"
    if change.kind == "rename_tag" and moved:
        old, new = min(moved, key=lambda names: len(names[0]))  # the levels below it follow
        return f"renamed {old} to {new}{many}"
    if gone:
        return f"{'deleted' if change.kind == 'delete_tag' else 'merged'} {_listed(gone)}{many}"
    return change.said


def _said_of_items(found: Sequence[_Difference]) -> str:
    """For example: sunset added to 3 items, boat rejected for 1 item."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in reversed(found):
        word = _WORDS.get((_answer(one.before), _answer(one.after)))
        if one.what == What.DECISION and word is not None and one.name:
            counts[one.name, word] += 1
    listed = sorted(counts.items(), key=lambda one: (-one[1], [*_WORDS.values()].index(one[0][1])))
    told: dict[tuple[str, int], list[str]] = {}
    for (name, word), many in listed[:_MOST_TAGS]:
        told.setdefault((word, many), []).append(name)
    parts = [f"{_listed(tags)} {word} {_counted(many)}" for (word, many), tags in told.items()]
    more = len(listed) - _MOST_TAGS
    if more > 0:
        parts.append(f"{more:,} more tag{'' if more == 1 else 's'} changed")
    return ", ".join(parts)


def _answer(row: Row | None) -> bool | None:
    return None if row is None else bool(row[0])


def _listed(names: Sequence[str]) -> str:
    short = [name if len(name) <= 40 else f"{name[:39]}…" for name in names]
    if len(short) > _MOST_TAGS:
        short = [*short[:_MOST_TAGS], f"{len(short) - _MOST_TAGS:,} more"]
    return " and ".join([", ".join(short[:-1]), short[-1]] if len(short) > 1 else short)


def _counted(items: int) -> str:
    return f"{items:,} item{'' if items == 1 else 's'}"
