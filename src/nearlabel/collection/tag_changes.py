"""Changes of tags and decisions: each writes rows to the log of a change."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence

from nearlabel.collection.change_log import LISTED, ChangeLog, Row, What, next_id, stored_rows
from nearlabel.collection.folder_checks import NotInCollectionError, TagTakenError
from nearlabel.collection.item_tables import known_ids, known_tag, tag_numbers
from nearlabel.collection.tag_names import LEVELS, tag_name
from nearlabel.common.messages import shown

Answer = bool | None  # yes, no, or undecided


def decide(log: ChangeLog, decisions: Sequence[tuple[int, str, Answer, str]]) -> None:
    """Store answers, each with its author; of two answers to one question the last wins."""
    refuse_unknown(log, {item for item, *_ in decisions})
    last = {(item, name): (answer, by) for item, name, answer, by in decisions}
    numbers = tag_numbers(log.connection, {name for _, name in last})
    numbers |= _new_tags(
        log, [name for (_, name), (answer, _) in last.items() if answer is not None], numbers
    )
    answers = {(item, numbers[name]): new for (item, name), new in last.items() if name in numbers}
    current = stored_rows(log.connection, What.DECISION, answers)
    rows: dict[Row, Row | None] = {}
    for key, (answer, by) in answers.items():
        before = None if key not in current else bool(current[key][0])
        if answer is not before:
            rows[key] = None if answer is None else (int(answer), by, log.at)
    log.write(What.DECISION, rows, current)


def set_tags(log: ChangeLog, item: int, names: Sequence[str], by: str) -> None:
    """Set the tags of an item; tags that are removed become a no."""
    select = "SELECT name FROM decisions JOIN tags ON tags.id = tag WHERE item = ? AND is_yes"
    taken = {name for (name,) in log.connection.execute(select, (item,))} - set(names)
    answers = [(item, name, name not in taken, by) for name in (*names, *sorted(taken))]
    refuse_unknown(log, {item})
    decide(log, answers)


def rename_tag(log: ChangeLog, old: str, new: str) -> None:
    """Rename a tag and the levels below it."""
    select = "SELECT id, name FROM tags WHERE name = ? OR substr(name, 1, ?) = ?"
    below = old + LEVELS
    renamed = log.connection.execute(select, (old, len(below), below)).fetchall()
    if not renamed:
        known_tag(log.connection, old)
    names = {number: tag_name(new + name[len(old) :], "new") for number, name in renamed}
    there = tag_numbers(log.connection, names.values())
    for name, number in there.items():
        if number not in names:
            raise TagTakenError(f"already has the tag {shown(name)}: merge the two instead")
    log.write(What.TAG, {(number,): (name,) for number, name in names.items()})


def merge_tags(log: ChangeLog, sources: Sequence[str], target: str) -> None:
    """Move all decisions on some tags to one of them, or to another tag.

    Where they disagree, yes wins over no.
    """
    merged = [known_tag(log.connection, name) for name in sources if name != target]
    if not merged:
        return
    numbers = tag_numbers(log.connection, [target])
    into = (numbers | _new_tags(log, [target], numbers))[target]
    select = f"SELECT item, tag, is_yes, by, at FROM decisions WHERE tag IN {LISTED}"
    decisions = log.connection.execute(select, (json.dumps([*merged, into]),)).fetchall()
    best: dict[int, Row] = {}
    for item, _, *row in sorted(decisions, key=lambda row: (-row[2], row[1] != into, row[1])):
        best.setdefault(item, tuple(row))
    rows: dict[Row, Row | None] = {(item, tag): None for item, tag, *_ in decisions if tag != into}
    rows |= {(item, into): row for item, row in best.items()}
    log.write(What.DECISION, rows)
    log.write(What.TAG, dict.fromkeys((number,) for number in merged))


def delete_tag(log: ChangeLog, name: str) -> None:
    """Remove all decisions on a tag; the levels below it stay."""
    number = known_tag(log.connection, name)
    cursor = log.connection.execute("SELECT item FROM decisions WHERE tag = ?", (number,))
    log.write(What.DECISION, dict.fromkeys((item, number) for (item,) in cursor.fetchall()))


def refuse_unknown(log: ChangeLog, items: Iterable[int]) -> None:
    """Refuse ids that do not exist."""
    wanted = {*items}
    if missing := wanted - known_ids(log.connection, wanted):
        raise NotInCollectionError(f"has no item {min(missing)}")


def _new_tags(log: ChangeLog, names: Sequence[str], known: Container[str]) -> dict[str, int]:
    """Create those of some tags that are not known, and number them."""
    new = dict.fromkeys(name for name in names if name not in known)
    if not new:
        return {}
    created = {name: number for number, name in enumerate(new, next_id(log.connection, "tags"))}
    log.write(What.TAG, {(number,): (name,) for name, number in created.items()}, current={})
    return created
