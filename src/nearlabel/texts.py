"""Texts from outside: for messages, and as arrays of names."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.arrays import Array


def one_line(text: str, width: int = 400) -> str:
    """A message as one line, without anything that controls a terminal, and not too long."""
    line = "".join(mark if mark.isprintable() else "?" for mark in text[: 4 * width])
    return line if len(line) <= width else line[: width - 1] + "…"


def shown(text: str, width: int = 40) -> str:
    """A piece of a file for a message: quoted, and not too long."""
    quoted = repr(text[: width + 1])
    return quoted if len(quoted) <= width + 2 else quoted[: width + 1] + "…" + quoted[0]


def text_array(names: Any) -> Array:
    """Texts as an array, or a ValueError where it would not hold them as they are."""
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"a text expected; got {shown(repr(name))}")
        if not name.isprintable() and ("\0" in name or _has_half_a_character(name)):
            raise ValueError(f"{shown(name)} is no text: it has a zero or half a character")
    return np.array(names, dtype=np.str_)


def _has_half_a_character(name: str) -> bool:
    return any("\ud800" <= mark <= "\udfff" for mark in name)
