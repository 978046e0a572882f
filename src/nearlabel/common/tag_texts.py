"""Texts that hold several tags: the one rule by which they are separated, wherever they come from.

`fit`, `load`, the tables and text files of collections, and the command line all read texts by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SEPARATORS = (";", "|", ",")


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
