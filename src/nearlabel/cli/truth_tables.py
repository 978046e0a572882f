"""Suggestions compared with the tags that a table has for the same files."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nearlabel.cli.output import Table, counted, render
from nearlabel.common.messages import encodable

if TYPE_CHECKING:
    from nearlabel.collection import Collection
    from nearlabel.collection.exchange.tag_tables import TaggedFile
    from nearlabel.collection.queries import Query

T = TypeVar("T")
_METRICS = {  # with an arrow towards better values
    "hamming_loss": "↓",
    "one_error": "↓",
    "ranking_loss": "↓",
    "average_precision": "↑",
    "micro_f1": "↑",
}


def compare_with(table: str, store: Collection, queries: Sequence[Query], json: bool) -> None:
    """Print how well suggestions agree with a table; items that it does not have are left out."""
    import numpy as np

    from nearlabel.collection.exchange.tag_tables import read_csv_tags
    from nearlabel.metrics import evaluate

    rows = read_csv_tags(table)
    asked = [*{query.content: query for query in queries}.values()]
    row_of = _rows_of(queries, rows)
    compared = [
        (query, rows[row_of[query.content]].yes) for query in asked if query.content in row_of
    ]
    left_out = len(asked) - len(compared)
    if not compared:
        what = asked[0].name if asked else "any item that was asked about"
        raise ValueError(f"--truth: {table} has no row for {what}")
    names = [tag.name for tag in store.tags() if tag.yes]
    names += sorted({name for _, tags in compared for name in tags} - {*names})
    place = {name: column for column, name in enumerate(names)}
    Y = np.zeros((len(compared), len(names)), np.int8)
    scores = np.zeros(Y.shape)
    for row, (query, tags) in enumerate(compared):
        Y[row, [place[name] for name in tags]] = 1
        for suggestion in store.suggest(query.question, len(names)):
            scores[row, place[suggestion.tag]] = suggestion.probability
    values = evaluate(Y, scores, (scores >= 0.5).astype(np.int8))
    if left_out and not json:
        message = f"{counted(left_out, 'item')} without a row of their own in {table}; left out"
        warnings.warn(message, stacklevel=2)
    sizes = f"{counted(len(compared), 'item')} and {counted(len(names), 'tag')}"
    cells = [(f"{name} {mark}", f"{values[name]:.4f}") for name, mark in _METRICS.items()]
    record = {"items": len(compared), "left_out": left_out, "tags": len(names)}
    render(
        {**record, "metrics": {name: values[name] for name in _METRICS}},
        [f"{sizes} compared with {table}", Table(("metric", "value"), cells)],
        json,
    )


def _rows_of(queries: Sequence[Query], rows: Sequence[TaggedFile]) -> dict[bytes, int]:
    """The row of each content.

    The path of a row is the end of a path of the item, or that one is the end of it: the longer the
    end that they share, the better. Where two that differ are equally good, there is no row.
    """
    by_name: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    for number, row in enumerate(rows):
        parts = _parts(row.file)
        by_name.setdefault(parts[-1], []).append((number, parts))
    shared: dict[tuple[bytes, int], int] = {}
    for query in queries:
        for path in _paths(query):
            for number, parts in by_name.get(path[-1], ()):
                length = min(len(path), len(parts))
                if path[-length:] == parts[-length:]:
                    key = (query.content, number)
                    shared[key] = max(length, shared.get(key, 0))
    rows_of: dict[bytes, dict[int, int]] = {}
    contents_of: dict[int, dict[bytes, int]] = {}
    for (content, number), length in shared.items():
        rows_of.setdefault(content, {})[number] = length
        contents_of.setdefault(number, {})[content] = length
    rows_by_content = {}
    for content, lengths in rows_of.items():
        number, *others = _longest(lengths)
        is_clear = all({*rows[other].yes} == {*rows[number].yes} for other in others)
        if is_clear and _longest(contents_of[number]) == [content]:
            rows_by_content[content] = number
    return rows_by_content


def _longest(lengths: Mapping[T, int]) -> list[T]:
    """Whatever has the greatest length."""
    most = max(lengths.values())
    return [thing for thing, length in lengths.items() if length == most]


def _paths(query: Query) -> set[tuple[str, ...]]:
    """All that an item may be called in a table."""
    paths = {query.name}
    if query.file is not None:
        paths.add(encodable(str(Path(query.file).absolute())))
    if query.item is not None:
        paths.add(query.item.name)
        for file in query.item.files:
            paths |= {encodable(file.path), encodable(str(Path(file.root, file.path)))}
    return {_parts(path) for path in paths}


def _parts(path: str) -> tuple[str, ...]:
    """The folders and the name of a path, as most systems write them."""
    plain = unicodedata.normalize("NFC", path.strip().replace("\\", "/"))
    return tuple(part for part in plain.split("/") if part not in ("", ".")) or ("",)
