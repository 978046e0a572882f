"""What leaves a command: lines, tables and JSON, progress, and files of results."""

from __future__ import annotations

import csv
import json
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_PATIENCE = 1.0  # seconds before progress is shown
_LINES, _TABLES = (".jsonl", ".ndjson"), (".csv", ".tsv")
WIDTH = 80  # of text where there is no terminal that has another one
_GAP = 3  # between two columns of a table
_SHORTEST_NAME = 16  # of a row, where names are shortened


@contextmanager
def steps(what: str, things: str = "") -> Iterator[Callable[[int, int | None], None]]:
    """Progress on standard error, of what takes more than a second, with the time that is left.

    Where steps are `things`, such as pictures, it says how many are done in a second. Silent
    without a terminal.
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

                columns: list[Any] = [*Progress.get_default_columns(), "left"]
                columns += ["{task.fields[rate]}"] if things else []
                bar = Progress(*columns, console=Console(stderr=True), transient=True)
                bar.add_task(what, rate="")
                shown.enter_context(bar)
            speed = bar.tasks[0].speed
            rate = f"{speed:.0f} {things} a second" if speed else ""
            bar.update(bar.task_ids[0], completed=done, total=total, rate=rate)

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


def width() -> int:
    """Columns of the terminal, or as COLUMNS says; 80 where there is neither."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal or "COLUMNS" in os.environ else WIDTH


def say_folded(text: str, indent: str = "  ") -> None:
    """Print a text for people in lines of 80 characters, or less in a narrow terminal."""
    columns = min(width(), WIDTH)
    say(textwrap.fill(text, columns, subsequent_indent=indent, break_on_hyphens=False))


def say_json(value: Any) -> None:
    """Print a value for programs: the only thing on standard output."""
    say(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2))


def counted(number: int, what: str) -> str:
    """A number of things, for people: 1 feature, 2 features."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def file_size(path: str) -> str:
    """The size of a file, for people."""
    size = Path(path).stat().st_size
    if size < 1000:
        return counted(size, "byte")
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def printable(name: Any) -> str:
    """A name from a file, for people: characters that control a terminal are written as escapes."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in str(name))


def say_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    numbers: bool = True,
    shorten: bool = False,
) -> None:
    """Print a table: of numbers, but for its first column, or of text.

    Text is folded to the width of the terminal. Columns of numbers that do not fit into it stand
    in another table below, since a number that lost its last digits would look like another; to
    `shorten` the names in the first column may make room for them.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    texts, lines = [], [[Text(printable(cell)) for cell in row] for row in (columns, *rows)]
    if shorten:
        _, *others = zip(*lines, strict=True)
        room = width() - sum(_GAP + _widest(column) for column in others)
        for line in lines:
            line[0].truncate(max(room, _SHORTEST_NAME), overflow="ellipsis")
    for block in _blocks(lines, width()) if numbers else [range(len(columns))]:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place in block:
            aligned: Any = "right" if numbers and place else "left"
            table.add_column(lines[0][place], justify=aligned, overflow="fold", no_wrap=numbers)
        for line in lines[1:]:
            table.add_row(*(line[place] for place in block))
        console = Console(width=10_000 if numbers else width())
        with console.capture() as printed:
            console.print(table)
        texts.append("\n".join(line.rstrip() for line in printed.get().splitlines()))
    say("\n\n".join(texts))


def _widest(column: Iterable[Any]) -> int:
    return max(int(cell.cell_len) for cell in column)


def _blocks(lines: list[list[Any]], most: int) -> list[list[int]]:
    """The columns of a table by blocks that fit into a width, the first column in each."""
    first, *others = (_widest(column) for column in zip(*lines, strict=True))
    blocks, used = [[0]], first
    for place, wide in enumerate(others, 1):
        if used + _GAP + wide > most and len(blocks[-1]) > 1:
            blocks.append([0])
            used = first
        blocks[-1].append(place)
        used += _GAP + wide
    return blocks


def write_results(path: str, records: Iterable[dict[str, Any]]) -> int:
    """Write records to a CSV or JSON-lines file, or as CSV to standard output ("-"); how many."""
    from nearlabel.datasets.csv_tables import write_rows
    from nearlabel.datasets.json_lines import write_json_records

    count, table = 0, is_table(path)

    def rows() -> Iterator[Any]:
        nonlocal count
        for count, record in enumerate(records, 1):
            if table and count == 1:
                yield list(record)
            yield [_table_cell(value) for value in record.values()] if table else record

    if path == "-":
        csv.writer(SimpleNamespace(write=write), lineterminator="\n").writerows(rows())
    elif table:
        write_rows(path, rows(), "\t" if Path(path).suffix == ".tsv" else ",")
    else:
        write_json_records(path, rows())
    return count


def _table_cell(value: Any) -> Any:
    """A value in a table: one with parts, such as parameters, as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def is_table(path: str | None) -> bool:
    """Whether a file of results, or standard output ("-") in its place, is a table of cells."""
    return path is not None and (path == "-" or Path(path).suffix in _TABLES)


def check_results(path: str | None, *sources: str) -> None:
    """Refuse a file of results that could not be written, before the work is done."""
    if path is None or path == "-":
        return
    if Path(path).suffix not in _TABLES + _LINES:
        wanted = "must end in .csv, .tsv or .jsonl, or be - for standard output"
        raise ValueError(f"--output {wanted}; got {path}")
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
