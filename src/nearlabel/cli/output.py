"""What people and programs see: tables, JSON, result files and progress."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

_PATIENCE = 1.0  # seconds before progress is shown
WIDTH = 80  # of tables where there is no terminal that has another one


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
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
                TimeRemainingColumn,
            )

            columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
            left = TimeRemainingColumn(), TextColumn("left")
            self._bar = Progress(*columns, *left, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._what, total=total)
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)


def say(text: str = "") -> None:
    """Print a line for people."""
    sys.stdout.write(text + "\n")


def say_json(value: Any) -> None:
    """Print a value for programs: the only thing on standard output."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
    sys.stdout.write(f"{text}\n")


def say_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], numbers: bool = True) -> None:
    """Print a table, as wide as the terminal at most; of numbers but for the first column, or text.

    Where there is no terminal, text is folded to 80 columns, and numbers take what they need.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, name in enumerate(columns):
        aligned: Any = "right" if numbers and place else "left"
        table.add_column(name, justify=aligned, overflow="fold", no_wrap=numbers)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:
        needed = console.measure(table, options=console.options.update(max_width=10_000)).maximum
        console = Console(width=needed if numbers else min(needed, WIDTH))
    with console.capture() as printed:
        console.print(table)
    say("\n".join(line.rstrip() for line in printed.get().splitlines()))


def write_results(path: str, records: Iterable[dict[str, Any]]) -> int:
    """Write records to a CSV or JSON-lines file, complete or not at all; how many."""
    from nearlabel.datasets.csv_tables import write_rows
    from nearlabel.datasets.json_lines import write_json_records

    suffix = Path(path).suffix
    counted = _Counted(records)
    if suffix in (".jsonl", ".ndjson"):
        write_json_records(path, counted)
    else:
        write_rows(path, _rows(counted), "\t" if suffix == ".tsv" else ",")
    return counted.count


def check_results(path: str | None, *sources: str) -> None:
    """Refuse a file of results that could not be written, before the work is done."""
    if path is None:
        return
    if not is_table(path) and Path(path).suffix not in (".jsonl", ".ndjson"):
        raise ValueError(f"--output must end in .csv, .tsv or .jsonl; got {path}")
    check_target("--output", path, *sources)


def is_table(path: str) -> bool:
    """Whether a file of results is a table of cells."""
    return Path(path).suffix in (".csv", ".tsv")


def check_target(what: str, path: str, *sources: str) -> None:
    """Refuse a file whose folder is not there, a folder, and the very file that is read."""
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise ValueError(f"{what} {path}: there is no folder {target.absolute().parent}")
    if target.is_dir():
        raise ValueError(f"{what} {path}: this is a folder; give a file")
    for source in sources:
        if target.exists() and Path(source).exists() and target.samefile(source):
            raise ValueError(f"{what} {path}: this file is read; give another one")


class _Counted:
    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self._records, self.count = records, 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for record in self._records:
            self.count += 1
            yield record


def _rows(records: Iterable[dict[str, Any]]) -> Iterator[list[Any]]:
    header: list[str] | None = None
    for record in records:
        if header is None:
            header = list(record)
            yield header
        yield [record[key] for key in header]
