"""What a change does to tags, counted while it is made, and its description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from nearlabel.collection.records import counted_items

_MOST_TAGS = 3  # that are named individually
_WORDS = {  # by the decisions before and after
    (None, True): "added to",
    (False, True): "added to",
    (True, False): "taken away from",
    (True, None): "taken away from",
    (None, False): "rejected for",
    (False, None): "no longer rejected for",
}
_RANKS = {word: rank for rank, word in enumerate(_WORDS.values())}
_Changed = Iterable[tuple[tuple[Any, ...], tuple[Any, ...] | None, tuple[Any, ...] | None]]


class Summary(NamedTuple):
    """A description, if there is more to say than how many items there are, and the tags in it."""

    text: str | None = None
    tags: Sequence[int] = ()


class TagEffects:
    """Counts the decisions and names of tags that a change replaces."""

    def __init__(self) -> None:
        self.undecided: set[int] = set()  # tags that have lost decisions
        self._names: dict[int, tuple[str | None, str | None]] = {}  # before and after
        self._decisions: Counter[tuple[int, str]] = Counter()

    def note_decisions(self, changed: _Changed) -> None:
        """Count decisions by what became of them."""
        for (_, tag), *rows in changed:
            before, after = (None if row is None else bool(row[0]) for row in rows)
            if after is None:
                self.undecided.add(tag)
            if before is not after:
                self._decisions[tag, _WORDS[before, after]] += 1

    def note_tags(self, changed: _Changed) -> None:
        """Note the names of tags."""
        for (tag,), *rows in changed:
            before, after = (None if row is None else str(row[0]) for row in rows)
            self._names[tag] = self._names.get(tag, (before,))[0], after

    def summary(
        self, kind: str, items: int, names_of: Callable[[Sequence[int]], dict[int, str]]
    ) -> Summary:
        """Describe a change of a kind to a number of items."""
        if kind in ("rename_tag", "merge_tags", "delete_tag"):
            return self._of_tags(kind, items)
        if kind in ("tag", "reject", "clear", "set_tags", "decide") and self._decisions:
            return self._of_decisions(names_of)
        return Summary()

    def _of_tags(self, kind: str, items: int) -> Summary:
        """For example: renamed beach to Places|Beach (12 items)."""
        many = f" ({counted_items(items)})"
        moved = {tag: names for tag, names in self._names.items() if all(names)}
        gone = {tag: before for tag, (before, after) in self._names.items() if before and not after}
        if kind == "rename_tag" and moved:  # the levels below it follow
            tag, (old, new) = min(moved.items(), key=lambda entry: len(entry[1][0] or ""))
            return Summary(f"renamed {old} to {new}{many}", [tag])
        if gone:
            word = "deleted" if kind == "delete_tag" else "merged"
            return Summary(f"{word} {_listed([*gone.values()])}{many}", [*gone][:_MOST_TAGS])
        return Summary()

    def _of_decisions(self, names_of: Callable[[Sequence[int]], dict[int, str]]) -> Summary:
        """For example: sunset added to 3 items, boat rejected for 1 item."""
        ranked = sorted(self._decisions.items(), key=lambda entry: (-entry[1], _RANKS[entry[0][1]]))
        tags = [tag for (tag, _), _ in ranked[:_MOST_TAGS]]
        names = names_of(tags) | {tag: before for tag, (before, _) in self._names.items() if before}
        by_answer: dict[tuple[str, int], list[str]] = {}
        for (tag, word), many in ranked[:_MOST_TAGS]:
            by_answer.setdefault((word, many), []).append(names[tag])
        parts = [
            f"{_listed(listed)} {word} {counted_items(many)}"
            for (word, many), listed in by_answer.items()
        ]
        left = len(ranked) - _MOST_TAGS
        if left > 0:
            parts.append(f"{left:,} more tag{'' if left == 1 else 's'} changed")
        return Summary(", ".join(parts), tags)


def _listed(names: Sequence[str]) -> str:
    short = [name if len(name) <= 40 else f"{name[:39]}…" for name in names]
    if len(short) > _MOST_TAGS:
        short = [*short[:_MOST_TAGS], f"{len(short) - _MOST_TAGS:,} more"]
    return " and ".join([", ".join(short[:-1]), short[-1]] if len(short) > 1 else short)
