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
    effects = {change.number: change.said for change in changes}
    detailed = [
        change
        for change in changes
        if change.kind in ("tag", "reject", "clear", "set_tags", "decide", *_OF_TAGS)
        and not change.is_undone
        and change.items <= _MOST_ITEMS
    ]
    if detailed:
        history = _history(connection, min(change.number for change in detailed))
        for change in detailed:
            differences = history.get(change.number, [])
            if change.kind in _OF_TAGS:
                effects[change.number] = _said_of_tags(change, differences)
            else:
                effects[change.number] = _said_of_items(differences) or change.said
    return effects


def said_run(connection: sqlite3.Connection, run: Sequence[Change]) -> str:
    """What the changes of a run, latest first, have done."""
    if len({change.kind for change in run}) < len(run):
        return said_changes(run)  # many parts of one action, such as an import
    effects = said_effects(connection, run)
    return ", ".join(effects[change.number] for change in reversed(run))


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
        difference = _Difference(
            what, before, later.get((what, key)), str(named[0]) if named else ""
        )
        history.setdefault(change, []).append(difference)  # last first
        later[what, key] = before
    return history


def _said_of_tags(change: Change, differences: Sequence[_Difference]) -> str:
    """For example: renamed beach to Places|Beach (12 items)."""
    tags = [
        difference
        for difference in reversed(differences)
        if difference.what == What.TAG and difference.before
    ]
    gone = [str(tag.before[0]) for tag in tags if tag.before and tag.after is None]
    moved = [(tag.before[0], tag.after[0]) for tag in tags if tag.before and tag.after]
    many = f" ({_counted(change.items)})"
    if change.kind == "rename_tag" and moved:
        old, new = min(moved, key=lambda names: len(names[0]))  # the levels below it follow
        return f"renamed {old} to {new}{many}"
    if gone:
        return f"{'deleted' if change.kind == 'delete_tag' else 'merged'} {_listed(gone)}{many}"
    return change.said


def _said_of_items(differences: Sequence[_Difference]) -> str:
    """For example: sunset added to 3 items, boat rejected for 1 item."""
    counts: Counter[tuple[str, str]] = Counter()
    for difference in reversed(differences):
        word = _WORDS.get((_answer(difference.before), _answer(difference.after)))
        if difference.what == What.DECISION and word is not None and difference.name:
            counts[difference.name, word] += 1
    listed = sorted(
        counts.items(), key=lambda entry: (-entry[1], [*_WORDS.values()].index(entry[0][1]))
    )
    by_answer: dict[tuple[str, int], list[str]] = {}
    for (name, word), many in listed[:_MOST_TAGS]:
        by_answer.setdefault((word, many), []).append(name)
    parts = [f"{_listed(tags)} {word} {_counted(many)}" for (word, many), tags in by_answer.items()]
    left = len(listed) - _MOST_TAGS
    if left > 0:
        parts.append(f"{left:,} more tag{'' if left == 1 else 's'} changed")
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
