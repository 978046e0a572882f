"""Untrusted strings in messages."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def one_line(text: str, width: int = 400) -> str:
    """A message as one line, truncated, and without terminal control characters."""
    line = "".join(mark if mark.isprintable() else "?" for mark in text[: 4 * width])
    return line if len(line) <= width else line[: width - 1] + "…"


def shown(text: str, width: int = 40) -> str:
    """Part of a file for a message: quoted and truncated."""
    quoted = repr(text[: width + 1])
    return quoted if len(quoted) <= width + 2 else quoted[: width + 1] + "…" + quoted[0]


def plain_json(text: str | bytes) -> Any:
    """The value of a JSON text; a ValueError also for NaN and infinities, which JSON lacks."""
    return json.loads(text, parse_constant=_no_number)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def as_word(cell: object) -> str:
    """A category as a table writes it: the number 5 as "5", not "5.0"; anything else by str."""
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def first_twice(names: Iterable[str]) -> str | None:
    """The first name that occurs for a second time, if there is one."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _distinctive(name: str) -> str:
    """A name without the parts that many share: dashes of options, suffixes of files."""
    return Path(name.lower().lstrip("-")).stem


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known one most similar to it, if any."""
    suffix = Path(word).suffix  # of files that differ only in this, the one most similar

    def similar(name: str) -> float:
        return difflib.SequenceMatcher(None, suffix, Path(name).suffix).ratio()

    names = {_distinctive(name): name for name in sorted(known, key=similar)}
    # One wrong letter of four is close, but not "impute" for "minutes".
    close = difflib.get_close_matches(_distinctive(word), names, 1, 0.65)
    return f"; did you mean {names[close[0]]!r}?" if close else ""


def some(names: Sequence[object]) -> str:
    """The first three names or numbers and how many more there are, for a message."""
    first = ", ".join(shown(name) if isinstance(name, str) else str(name) for name in names[:3])
    return f"{first} and {len(names) - 3} more" if len(names) > 3 else first


def encodable(path: str) -> str:
    """A path that any file can store and any terminal print: other bytes than UTF-8 are escaped."""
    if path.isascii():
        return path
    try:
        return os.fsencode(path).decode(errors="backslashreplace")
    except UnicodeEncodeError:  # a string from JSON that is not a valid path here
        return path.encode(errors="backslashreplace").decode()
