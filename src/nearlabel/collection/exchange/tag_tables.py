"""Tables of tags: CSV with the columns ``file`` and ``tags``, and JSON lines.

In CSV the tags of a file are separated by ``;``; JSON lines also have rejected tags, and the
checksum that identifies a file wherever it is.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nearlabel.collection.exchange.keywords import keyword_tags
from nearlabel.common.arrays import Tree
from nearlabel.common.messages import did_you_mean, shown
from nearlabel.common.tag_texts import separated_tags
from nearlabel.datasets.csv_tables import csv_rows, write_rows
from nearlabel.datasets.json_lines import json_object, write_json_records
from nearlabel.datasets.text_lines import TextFile

SEPARATOR = ";"
_FILE, _TAGS, _NOT = "file", "tags", "not"


class TaggedFile(NamedTuple):
    """A file and its tags.

    Attributes
    ----------
    file : str
        Its path: absolute, or relative to a folder of the collection.
    yes, no : tuple of str
        Tags it has, and tags rejected for it.
    content : bytes or None
        The sha256 of its content, if known.
    others : tuple of str
        Further files with the same content.
    id : int or None
        The item, if known.
    place : Path or None
        Where the file, or one of the others, is now.
    """

    file: str
    yes: tuple[str, ...]
    no: tuple[str, ...] = ()
    content: bytes | None = None
    others: tuple[str, ...] = ()
    id: int | None = None
    place: Path | None = None


def read_csv_tags(
    path: str | os.PathLike[str], *, encoding: str = "utf-8", delimiter: str | None = None
) -> list[TaggedFile]:
    """Read a table with the columns ``file``, ``tags`` and optionally ``not``; others are ignored.

    Raises
    ------
    DataError
    """
    with TextFile(path, encoding) as file:
        _, rows = csv_rows(file, delimiter)
        columns = [name.strip().lower() for name in next(rows)]
        for name in (_FILE, _TAGS):
            if columns.count(name) != 1:
                given, hint = ", ".join(map(shown, columns))[:200], did_you_mean(name, columns)
                raise file.error(f"one column {name!r} expected; got {given}{hint}", 1)
        files = []
        for row in rows:
            if len(row) != len(columns):
                raise file.error(f"{len(columns)} cells expected; got {len(row)}")
            cells = dict(zip(columns, row, strict=True))
            if not cells[_FILE].strip():
                raise file.error("file name expected; the cell is empty")
            yes, no = (_divided(cells.get(name, "")) for name in (_TAGS, _NOT))
            files.append(TaggedFile(cells[_FILE], yes, no))
    return files


def _divided(text: str) -> tuple[str, ...]:
    """The tags of a cell as names of a collection."""
    return keyword_tags(separated_tags(text, SEPARATOR))


def read_json_tags(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> list[TaggedFile]:
    """Read objects, one per line, with ``file`` or ``sha256``, ``tags`` and optionally ``not``.

    Tags are a list of strings or numbers, or one string separated by ``;``.

    Raises
    ------
    DataError
    """
    with TextFile(path, encoding) as file:
        return [_of_object(file, line) for line in file.lines() if line.strip()]


def _of_object(file: TextFile, line: str) -> TaggedFile:
    row = json_object(file, line)
    name, digest = row.get(_FILE), row.get("sha256")
    content = None
    if digest is not None:
        try:
            content = bytes.fromhex(digest)
        except (TypeError, ValueError):
            content = b""
        if len(content) != 32:  # bytes of a sha256
            raise file.error(f"sha256: 64 hexadecimal digits expected; got {shown(str(digest))}")
    if not (isinstance(name, str) and name.strip()) and (content is None or name is not None):
        raise file.error(f"file: file name expected; got {shown(str(name))}")
    if _TAGS not in row and _NOT not in row:
        raise file.error("tags: list of tags expected; it is missing")
    return TaggedFile(name or "", _tags(file, row, _TAGS), _tags(file, row, _NOT), content)


def _tags(file: TextFile, row: Tree, key: str) -> tuple[str, ...]:
    tags = row.get(key)
    if isinstance(tags, str):
        return _divided(tags)
    tags = [] if tags is None else tags
    if not isinstance(tags, list):
        raise file.error(f"{key}: list of tags expected; got {shown(str(tags))}")
    for tag in tags:
        if not isinstance(tag, str | int | float) or isinstance(tag, bool):
            raise file.error(f"{key}: strings or numbers expected; got {shown(str(tag))}")
    return keyword_tags(tags)


def write_csv_tags(
    path: str | os.PathLike[str], files: Iterable[TaggedFile], *, delimiter: str = ","
) -> None:
    """Write a table with the columns ``file`` and ``tags``, one row per file."""
    rows = table_rows(files)
    # The csv writer does not quote this line ending, but the reader splits at it.
    is_odd = any("\r" in name for name, _ in rows)
    write_rows(Path(path), rows, delimiter, csv.QUOTE_ALL if is_odd else csv.QUOTE_MINIMAL)


def table_rows(files: Iterable[TaggedFile]) -> list[tuple[str, str]]:
    """The rows of a table of tags, column names first."""
    rows = [(_FILE, _TAGS)]
    for tagged in files:
        for tag in tagged.yes:
            if SEPARATOR in tag:
                raise ValueError(
                    f"the tag {shown(tag)} cannot be in a table, where {SEPARATOR!r} separates "
                    "tags: rename it, or write a .jsonl file"
                )
        tags = SEPARATOR.join(tagged.yes)
        rows += [(name, tags) for name in (tagged.file, *tagged.others)]
    return rows


def write_json_tags(path: str | os.PathLike[str], files: Iterable[TaggedFile]) -> None:
    """Write one object per line for each item, with all its decisions."""
    write_json_records(Path(path), map(_record, files))


def _record(tagged: TaggedFile) -> Tree:
    record: Tree = {} if tagged.id is None else {"id": tagged.id}
    if tagged.file:
        record[_FILE] = tagged.file
    if tagged.others:
        record["others"] = [*tagged.others]
    if tagged.content is not None:
        record["sha256"] = tagged.content.hex()
    return record | {_TAGS: [*tagged.yes], _NOT: [*tagged.no]}


class TagTable(NamedTuple):
    """A table format: how it is read and written."""

    read: Callable[..., list[TaggedFile]]
    write: Callable[..., None]


_JSON = TagTable(read_json_tags, write_json_tags)
TABLES = {
    ".csv": TagTable(read_csv_tags, write_csv_tags),
    ".tsv": TagTable(
        partial(read_csv_tags, delimiter="\t"), partial(write_csv_tags, delimiter="\t")
    ),
    ".jsonl": _JSON,
    ".ndjson": _JSON,
}


def table_of(path: str | os.PathLike[str]) -> TagTable | None:
    """The table format by the suffix of a name, before ``.gz``; None if it is unknown."""
    return TABLES.get(Path(os.fspath(path).lower().removesuffix(".gz")).suffix)
