"""The output of a command: lines, tables and JSON, progress, and files of results."""

from __future__ import annotations

import csv
import math
import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from json import dumps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree

_PATIENCE = 1.0  # seconds before progress is shown
_LINES, _TABLES = (".jsonl", ".ndjson"), (".csv", ".tsv")
WIDTH = 80  # of text, unless a terminal has another one
_GAP = 3  # between two columns of a table
_NUMBER = re.compile(r"[*≈<]?[-+]?[0-9][0-9.,]*")  # perhaps after the mark of the best


@contextmanager
def steps(what: str, things: str = "") -> Iterator[Callable[[int, int | None], None]]:
    """Show progress on standard error, with the time left, if it takes more than a second.

    If the steps are `things`, such as pictures, their number per second is shown, too. Nothing is
    shown if standard error is not a terminal.
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
    """Write to standard output; errors name it."""
    try:
        sys.stdout.write(text)
        if flush:
            sys.stdout.flush()
    except OSError as error:
        error.filename = "standard output"
        raise


@dataclass(frozen=True)
class Paragraph:
    """A text that is folded to lines of at most 80 characters, fewer in a narrow terminal.

    Words are never broken, so that paths stay whole.
    """

    text: str
    indent: str = "  "  # of all lines but the first

    def __str__(self) -> str:
        return textwrap.fill(
            printable(self.text),
            min(width(), WIDTH),
            subsequent_indent=self.indent,
            break_on_hyphens=False,
            break_long_words=False,
        )


@dataclass(frozen=True)
class Table:
    """A table within the width of the terminal.

    In a table of `numbers`, columns that do not fit are printed in another table below, and only
    names in the first column are wrapped, so that no digit is lost. To make room, `shorten` cuts
    these names. Otherwise the table is of text, whose cells are wrapped.
    """

    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    numbers: bool = True
    shorten: bool = False

    def __str__(self) -> str:
        from rich import box
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        texts, most = [], width()
        lines = [[Text(printable(cell)) for cell in row] for row in (self.columns, *self.rows)]
        if self.shorten:
            _, *others = _widths(lines)
            room = most - sum(_GAP + wide for wide in others)
            for line in lines:
                line[0].truncate(max(room, 16), overflow="ellipsis")
        widths = _widths(lines)
        every = [range(len(self.columns))]
        for block in column_blocks(widths, most, _GAP) if self.numbers else every:
            table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
            for place in block:
                cells = [line[place].plain for line in lines[1:]]
                is_number = self.numbers and place and any(map(_NUMBER.match, cells))
                whole = place > 0 if self.numbers else all(map(_NUMBER.fullmatch, cells))
                justify: Any = "right" if is_number else "left"
                table.add_column(lines[0][place], justify=justify, overflow="fold", no_wrap=whole)
            for line in lines[1:]:
                table.add_row(*(line[place] for place in block))
            if self.numbers:
                room = most - sum(_GAP + widths[place] for place in block[1:])
                table.columns[0].width = min(widths[0], max(room, 8))
            console = Console(width=10_000 if self.numbers else most)
            with console.capture() as printed:
                console.print(table)
            texts.append("\n".join(line.rstrip() for line in printed.get().splitlines()))
        return "\n\n".join(texts)  # perhaps with the styles of a terminal


Block = str | Paragraph | Table  # a string is printed as it is


def render(record: object, text: Block | Iterable[Block], json: bool) -> None:
    """Print the result of a command: its `record` for programs as JSON, or its `text` for people.

    A text that takes work is best given as a generator, which does nothing if JSON is wanted.
    """
    if json:
        write(dumps(plain(record), ensure_ascii=False, allow_nan=False, indent=2) + "\n")
        return
    for block in (text,) if isinstance(text, Block) else text:
        say(block)


def say(*blocks: Block) -> None:
    """Print blocks for people, with control characters as escapes; without blocks, a line."""
    for block in blocks or ("",):
        if isinstance(block, str):
            write("\n".join(map(printable, block.split("\n"))) + "\n")
        else:
            write(f"{block}\n")


def plain(value: Any) -> Any:
    """A value as JSON has it: records as objects, paths and times as text, NaN as null."""
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "_asdict"):  # a named tuple
        value = value._asdict()
    elif hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value


def width() -> int:
    """The width of the terminal, or COLUMNS if it is set; 80 without either."""
    from rich.console import Console

    console = Console()
    known = console.is_terminal or "COLUMNS" in os.environ
    return (console.width if known else 0) or WIDTH  # some environments have COLUMNS=0


def counted(number: int, what: str) -> str:
    """A number of things, for people: 1 feature, 2 features."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def file_size(path: str | Path) -> str:
    """The size of a file, for people."""
    size = Path(path).stat().st_size
    if size < 1000:
        return counted(size, "byte")
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def printable(name: object) -> str:
    """A name from a file, for people, with control characters as escapes."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(name))


def _widths(lines: Sequence[Sequence[Any]]) -> list[int]:
    return [max(int(cell.cell_len) for cell in column) for column in zip(*lines, strict=True)]


def column_blocks(widths: Sequence[int], most: int, gap: int) -> list[list[int]]:
    """The columns of a table in blocks that are at most so wide, the first column in each."""
    first, *others = widths
    blocks, used = [[0]], first
    for place, wide in enumerate(others, 1):
        if used + gap + wide > most and len(blocks[-1]) > 1:
            blocks.append([0])
            used = first
        blocks[-1].append(place)
        used += gap + wide
    return blocks


def write_results(path: str, records: Iterable[Tree]) -> int:
    """Write records to a CSV or JSON lines file, or to "-" as CSV; return their number."""
    from nearlabel.datasets.csv_tables import write_rows
    from nearlabel.datasets.json_lines import write_json_records

    count, table = 0, is_table(path)

    def rows() -> Iterator[Any]:
        nonlocal count
        for count, record in enumerate(map(plain, records), 1):
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


def _table_cell(value: object) -> Any:
    """A value in a table; nested values, such as parameters, as JSON."""
    return dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def is_table(path: str | None) -> bool:
    """Whether results go to a table of cells: a CSV or TSV file, or "-", standard output."""
    return path is not None and (path == "-" or Path(path).suffix in _TABLES)


def check_results(path: str | None, *sources: str) -> None:
    """Raise an error before the work starts if a file of results cannot be written."""
    if path is None or path == "-":
        return
    if Path(path).suffix not in _TABLES + _LINES:
        wanted = "must end in .csv, .tsv or .jsonl, or be - for standard output"
        raise ValueError(f"--output {wanted}; got {path}")
    check_target("--output", path, *sources)


def check_target(what: str, path: str, *sources: str) -> None:
    """Raise an error if a file cannot be written, or is one of the files that are read."""
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise ValueError(f"{what} {path}: the folder {target.absolute().parent} does not exist")
    if target.is_dir():
        raise ValueError(f"{what} {path}: this is a folder; give a file")
    folder = Path(os.path.realpath(target)).parent  # where `replacing` writes
    if not os.access(folder, os.W_OK) and (target.is_file() or not target.exists()):
        raise ValueError(f"{what} {path}: files in the folder {folder} may not be written")
    for source in sources:
        if target.exists() and Path(source).exists() and target.samefile(source):
            raise ValueError(f"{what} {path}: this would overwrite the input; give another file")
