"""What leaves a command: lines, tables and JSON, progress, and files of results."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_PATIENCE = 1.0  # seconds before progress is shown
_LINES, _TABLES = (".jsonl", ".ndjson"), (".csv", ".tsv")
WIDTH = 80  # of text where there is no terminal that has another one


@contextmanager
def steps(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Progress on standard error, of what takes more than a second, with the time that is left.

    Silent without a terminal.
    """
    start, bar = time.monotonic(), None
    with ExitStack() as shown:

        def tell(done: int, total: int | None) -> None:
            nonlocal bar
            if bar is None:
                if time.monotonic() - start < _PATIENCE or not sys.stderr.isatty():
                    return
                from rich.console import Console
                from rich.progress import Progress

                columns = Progress.get_default_columns()
                bar = Progress(*columns, "left", console=Console(stderr=True), transient=True)
                bar.add_task(what)
                shown.enter_context(bar)
            bar.update(bar.task_ids[0], completed=done, total=total)

        yield tell


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


def counted(number: int, what: str) -> str:
    """A number of things, for people: 1 feature, 2 features."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


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


def write_results(path: str, records: Iterable[dict[str, Any]]) -> int:
    """Write records to a CSV or JSON-lines file; how many."""
    from nearlabel.datasets.csv_tables import write_rows
    from nearlabel.datasets.json_lines import write_json_records

    count, table = 0, is_table(path)

    def rows() -> Iterator[Any]:
        nonlocal count
        for count, record in enumerate(records, 1):
            if table and count == 1:
                yield list(record)
            yield list(record.values()) if table else record

    if table:
        write_rows(path, rows(), "\t" if Path(path).suffix == ".tsv" else ",")
    else:
        write_json_records(path, rows())
    return count


def is_table(path: str | None) -> bool:
    """Whether a file of results is a table of cells."""
    return path is not None and Path(path).suffix in _TABLES


def check_results(path: str | None, *sources: str) -> None:
    """Refuse a file of results that could not be written, before the work is done."""
    if path is None:
        return
    if Path(path).suffix not in _TABLES + _LINES:
        raise ValueError(f"--output must end in .csv, .tsv or .jsonl; got {path}")
    check_target("--output", path, *sources)


def check_target(what: str, path: str, *sources: str) -> None:
    """Refuse a file whose folder is not there, a folder, and the very file that is read."""
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise ValueError(f"{what} {path}: there is no folder {target.absolute().parent}")
    if target.is_dir():
        raise ValueError(f"{what} {path}: this is a folder; give a file")
    for source in sources:
        if target.exists() and Path(source).exists() and target.samefile(source):
            raise ValueError(f"{what} {path}: this would overwrite the input; give another file")
