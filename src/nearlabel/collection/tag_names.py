"""Tag names: which are valid, and their normal form."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from nearlabel.common.messages import shown
from nearlabel.common.validation import ArgumentError, ArgumentTypeError

LEVELS = "|"
"""Separates the levels of a hierarchy, as in ``Places|Rome``."""


def tag_name(name: object, argument: str = "tags") -> str:
    """A name in normal form: composed (NFC), without spaces around its levels.

    Any character is allowed except control characters and line breaks.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"{argument}: a tag must be a string; got {name!r}", argument)
    levels = [level.strip() for level in unicodedata.normalize("NFC", name).split(LEVELS)]
    normal = LEVELS.join(levels)
    if not all(levels):
        what = "is empty" if not any(levels) else "has a level without a name"
        raise ArgumentError(f"{argument}: the tag {shown(name)} {what}", argument)
    if any(unicodedata.category(mark) in ("Cc", "Cs", "Zl", "Zp") for mark in normal):
        message = f"{argument}: the tag {shown(name)} contains a control character or a line break"
        raise ArgumentError(message, argument)
    longest = 1000
    if len(normal) > longest:
        message = (
            f"{argument}: the tag {shown(name)} has {len(normal)} characters; "
            f"at most {longest} are allowed"
        )
        raise ArgumentError(message, argument)
    return normal


def tag_names(names: object, argument: str = "tags") -> list[str]:
    """One name or several, without duplicates, in their order."""
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, Iterable):
        raise ArgumentTypeError(f"{argument} must be a string or strings; got {names!r}", argument)
    return list(dict.fromkeys(tag_name(name, argument) for name in listed))
