"""Files of results: complete or not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_LINES = (".jsonl", ".ndjson")
_TABLES = (".csv", ".tsv")


def write_results(path: str, records: Iterable[dict[str, Any]]) -> int:
    """Write records to a CSV or JSON-lines file; how many."""
    from nearlabel.datasets.csv_tables import write_rows
    from nearlabel.datasets.json_lines import write_json_records

    count = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal count
        for count, record in enumerate(records, 1):  # noqa: B007
            yield record

    def rows() -> Iterator[list[Any]]:
        for record in counted():
            if count == 1:
                yield list(record)
            yield list(record.values())

    if is_table(path):
        write_rows(path, rows(), "\t" if Path(path).suffix == ".tsv" else ",")
    else:
        write_json_records(path, counted())
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
