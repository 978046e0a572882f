"""Texts that hold several tags: the one rule by which they are separated, wherever they come from.

`fit`, `load`, the tables and text files of collections, and the command line all read texts by it.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable, Sequence
from contextlib import suppress

SEPARATORS = (";", "|", ",")
TagCell = str | tuple[str, ...]  # a text with several tags, or a list of them


def tag_separator(texts: Iterable[str], among: Sequence[str] = SEPARATORS) -> str | None:
    """The separator of a column of texts: the first of these that occurs in any of them."""
    texts = list(texts)
    return next((mark for mark in among if any(mark in text for text in texts)), None)


def separated_tags(text: str, separator: str | None) -> list[str]:
    """The tags of a text, each once and without the blanks around it; None separates nothing."""
    tags = [text] if separator is None else text.split(separator)
    return list(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))


def is_written_list(text: str) -> bool:
    """Whether a string looks like a list of strings in Python or JSON."""
    text = text.strip()
    is_empty = text in ("[]", "()", "set()")
    has_texts = "'" in text or '"' in text
    return is_empty or (has_texts and text[:1] + text[-1:] in ("[]", "()", "{}"))


def tag_sets(cells: Iterable[TagCell], separator: str | None) -> list[set[str]]:
    """The tags of each cell of a column: a text with several of them, or a list."""
    lists = [_as_list(cell) for cell in cells]
    separator = separator or tag_separator(cell for cell in lists if isinstance(cell, str))
    return [
        set(separated_tags(cell, separator) if isinstance(cell, str) else cell) for cell in lists
    ]


def _as_list(cell: TagCell) -> TagCell:
    """A cell with a list converted to a string, as pandas writes it, as that list."""
    if isinstance(cell, str) and is_written_list(cell):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            tags = literal_eval(cell.strip())
            if all(isinstance(tag, str) for tag in tags) and not isinstance(tags, dict):
                return tuple(filter(None, map(str.strip, tags)))
    return cell
