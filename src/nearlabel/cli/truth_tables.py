"""Suggestions compared with the tags that a table has for the same files."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nearlabel.cli.output import Table, counted, render
from nearlabel.common.messages import encodable

if TYPE_CHECKING:
    from nearlabel.collection import Collection
    from nearlabel.collection.exchange.tag_tables import TaggedFile
    from nearlabel.collection.queries import Query
    from nearlabel.collection.records import Item

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

    asked = [*{query.content: query for query in queries}.values()]
    truth = _truth(asked, read_csv_tags(table))
    compared = [(asked[place], tags) for place, tags in sorted(truth.items())]
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


def _truth(queries: Sequence[Query], rows: Sequence[TaggedFile]) -> dict[int, tuple[str, ...]]:
    """The tags of queries by their places, as far as one row, or several alike, are about each.

    A row may name a file by any end of its path that no other one has.
    """
    from nearlabel.collection.exchange.importing import ItemNames

    tags_of: dict[int, tuple[str, ...]] = {}
    unclear = set()
    names = ItemNames(_with_all_ends(place, query) for place, query in enumerate(queries))
    for row in rows:
        place = names.find(row)
        if isinstance(place, int) and {*tags_of.setdefault(place, row.yes)} != {*row.yes}:
            unclear.add(place)
    return {place: tags for place, tags in tags_of.items() if place not in unclear}


def _with_all_ends(place: int, query: Query) -> Item:
    """What was asked about as an item whose files have all ends of its paths as names."""
    from nearlabel.collection.records import FileState, Item

    paths = [] if query.file is None else [Path(query.file).absolute()]
    if query.item is not None:
        paths += [Path(file.root, file.path) for file in query.item.files]
    ends = [path.parts[start:] for path in paths for start in range(1, len(path.parts))]
    files = tuple(FileState("", encodable("/".join(end)), 0, 0, place, False) for end in ends)
    name = query.name if query.item is None else query.item.name
    return Item(place, name, files, {}, False, False, None, query.content)
