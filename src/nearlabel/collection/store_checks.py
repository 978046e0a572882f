"""The checks of `verify`: everything that a collection holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from nearlabel.collection.stored_vectors import vector_differences
from nearlabel.collection.tag_names import tag_name

_MOST_TOLD = 5


@dataclass(frozen=True)
class CollectionCheck:
    """The result of `verify`; true if everything is in order.

    Attributes
    ----------
    items : int
    compared : tuple of str
        What was checked.
    differences : tuple of str
        What is wrong, in words; empty if nothing is.
    """

    items: int
    compared: tuple[str, ...]
    differences: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        compared = f"{', '.join(self.compared)} of {self.items:,} items"
        return f"{compared}: {'; '.join(self.differences) or 'all in order'}"


def store_differences(connection: sqlite3.Connection) -> list[str]:
    """What is wrong in the tables and the vectors, in words."""
    differences = [*_database(connection)]
    return differences or [*_contents(connection), *vector_differences(connection)]


def _database(connection: sqlite3.Connection) -> Iterator[str]:
    for (problem,) in connection.execute(f"PRAGMA integrity_check({_MOST_TOLD})"):
        if problem != "ok":
            yield f"the database: {problem}"
    for table, *_ in connection.execute("PRAGMA foreign_key_check").fetchmany(_MOST_TOLD):
        yield f"the database: a row of {table} refers to a missing row"


def _contents(connection: sqlite3.Connection) -> Iterator[str]:
    decided = "EXISTS (SELECT 1 FROM decisions WHERE item = items.id)"
    wrong = connection.execute(
        f"SELECT id FROM items WHERE (learned IS NOT NULL) != {decided} LIMIT {_MOST_TOLD}"
    )
    for (item,) in wrong:
        yield f"item {item} is an example without decisions, or has decisions without being one"
    most, last = connection.execute(
        "SELECT coalesce(max(items.learned), 0), (SELECT learned FROM state) FROM items"
    ).fetchone()
    if most > last:
        yield "an item has a number that was never assigned"
    for number, name in connection.execute("SELECT id, name FROM tags"):
        try:
            is_right = tag_name(name) == name
        except ValueError:
            is_right = False
        if not is_right:
            yield f"tag number {number} has a name that is not valid"
