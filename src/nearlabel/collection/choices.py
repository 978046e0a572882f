"""What callers choose from, for checks in Python, in requests and on the command line alike.

It imports nothing of the library, so that the command line can read it to show its help.
"""

from __future__ import annotations

from typing import Literal, get_args

Kind = Literal["pictures", "texts", "vectors"]
Method = Literal["MLkNN", "BRkNN", "MallowskNN", "MLCWkNN"]
"""Methods whose answers depend on the content only, not on the history of changes."""
Author = Literal["person", "suggestion"]
State = Literal["all", "tagged", "untagged", "undecided", "missing"]
Strategy = Literal["mixed", "learn", "confident"]

KINDS: tuple[str, ...] = get_args(Kind)
METHODS: tuple[str, ...] = get_args(Method)
AUTHORS: tuple[str, ...] = get_args(Author)
STRATEGIES: tuple[str, ...] = get_args(Strategy)

NO_IN_A_ROW = 8
"""Answers of no to questions about a tag, after which the rest is unlikely to have it."""
