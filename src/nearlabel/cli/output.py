"""What people and programs see on a terminal: lines, tables, JSON and progress."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from typing import Any, Self

_PATIENCE = 1.0  # seconds before progress is shown
WIDTH = 80  # of text where there is no terminal that has another one


class Steps:
    """Progress on standard error, of what takes more than a second, with the time that is left.

    Silent without a terminal.
    """

    def __init__(self, what: str) -> None:
        self._what, self._start = what, time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int | None) -> None:
        """Tell how much of all is done."""
        if self._bar is None:
            if time.monotonic() - self._start < _PATIENCE or not sys.stderr.isatty():
                return
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.TaskProgressColumn(),
                progress.TimeRemainingColumn(),
                progress.TextColumn("left"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._what, total=total)
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)


def write(text: str = "", *, flush: bool = False) -> None:
    """Write to standard output, whose name an error bears."""
    try:
        sys.stdout.write(text)
        if flush:
            sys.stdout.flush()
    except OSError as error:
        error.filename = "standard output"
        raise


def say(text: str = "") -> None:
    """Print lines for people."""
    write(text + "\n")


def say_folded(text: str) -> None:
    """Print a text for people in lines of 80 characters."""
    say(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def say_json(value: Any) -> None:
    """Print a value for programs: the only thing on standard output."""
    say(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2))


def printable(name: Any) -> str:
    """A name from a file, for people: characters that control a terminal are written as escapes."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in str(name))


def say_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], numbers: bool = True) -> None:
    """Print a table: of numbers, but for its first column, or of text.

    Text is folded to the width of the terminal, or to 80 columns where there is none. Numbers take
    the width that they need: one that lost its last digits would look like another.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, name in enumerate(columns):
        aligned: Any = "right" if numbers and place else "left"
        table.add_column(Text(printable(name)), justify=aligned, overflow="fold", no_wrap=numbers)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console()
    if numbers or not console.is_terminal:
        console.width = 10_000 if numbers else WIDTH
    with console.capture() as printed:
        console.print(table)
    say("\n".join(line.rstrip() for line in printed.get().splitlines()))
