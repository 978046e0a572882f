"""CSV and TSV tables with a header: reading in one pass, and writing."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

from nearlabel.common.files import replacing
from nearlabel.datasets.data_files import DataFile
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.table_columns import FEATURE_MARK, written_columns, written_row
from nearlabel.datasets.table_rows import TableReader
from nearlabel.datasets.text_lines import LABEL_MARK, LONGEST_LINE, TextFile


def read_csv(source: DataFile, delimiter: str | None = None) -> Dataset:
    """Read a table whose first row has the names of the columns.

    Unless a delimiter is given, it is the most frequent one in the first line. If it is ``;``,
    numbers may have a decimal comma.
    """
    with source.text() as file:
        delimiter, rows = csv_rows(file, source.options.delimiter, delimiter)
        # Only a marked name may have blanks around it.
        marks = (LABEL_MARK, FEATURE_MARK)
        names = [name if name.startswith(marks) else name.strip() for name in next(rows)]
        table = TableReader(file, names, source.options, decimal_comma=delimiter == ";")
        table.add_rows(rows)
        return table.dataset()


def csv_rows(
    file: TextFile, delimiter: str | None = None, usual: str | None = None
) -> tuple[str, Iterator[list[str]]]:
    """The delimiter of a table, and its nonempty rows, with the column names first.

    A given delimiter takes precedence over one declared in the first line (``sep=;``), and that
    over the format's default; without these it is the most frequent one in the first line.
    """
    lines = file.lines()
    header = next(lines, "")
    if declared := re.fullmatch(r'(?i)("?)sep=([^\r\n"]?)\1\s*', header):
        delimiter, header = delimiter or declared[2], next(lines, "")
        if not delimiter:
            raise file.error("sep= must be followed by the delimiter; or pass delimiter=", 1)
    if not header.strip():
        empty = not any(line.strip() for line in lines)
        what = "the file is empty" if empty else "the first row is empty"
        raise file.error(f"{what}; it must have the names of the columns", 1)
    outside_quotes = "".join(header.split('"')[::2])
    delimiter = delimiter or usual or max(",;\t|", key=outside_quotes.count)
    return delimiter, _rows(file, header, delimiter)


def _rows(file: TextFile, header: str, delimiter: str) -> Iterator[list[str]]:
    # A cell may be as long as a line: the csv module has one limit per process.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    before, begin = file.line - 1, file.line
    lines = chain([header], chain.from_iterable(file.blocks()))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            file.line = before + reader.line_num
            begin = file.line + 1
            if row:
                yield row
    except csv.Error as error:
        message = (
            f"not a row of a table: {error} (each quote must be closed, a cell has at most "
            f"{LONGEST_LINE:,} characters, and lines end in LF or CR LF)"
        )
        raise file.error(message, begin) from None


def write_csv(data: Dataset, path: Path, delimiter: str = ",") -> None:
    """Write a data set as a table, with one column of 0 and 1 for each label."""
    header = written_columns(data)
    rows = (written_row(data, row) for row in range(len(data)))
    # Unquoted, another delimiter in a name could be mistaken for the table's, and a carriage return
    # for the end of a line.
    odd = any(mark in name for name in header for mark in ",;|\t\r")
    odd |= data.row_names is not None and any("\r" in name for name in data.row_names.tolist())
    write_rows(
        path, chain([header], rows), delimiter, csv.QUOTE_NONNUMERIC if odd else csv.QUOTE_MINIMAL
    )


def write_rows(
    path: Path | str,
    rows: Iterable[Sequence[object]],
    delimiter: str = ",",
    quoting: Literal[0, 1, 2, 3] = csv.QUOTE_MINIMAL,
) -> None:
    """Write a table to a file."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=quoting)
        writer.writerows(rows)
        text.detach()


read_tsv, write_tsv = partial(read_csv, delimiter="\t"), partial(write_csv, delimiter="\t")
