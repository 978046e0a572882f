"""The part of the store that the learner reads."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from nearlabel.collection.change_log import LISTED
from nearlabel.collection.database import Database
from nearlabel.collection.folder_checks import CollectionError
from nearlabel.collection.records import MOST_TAGS, Rows
from nearlabel.collection.stored_vectors import read_vectors
from nearlabel.common.arrays import Matrix


class LearnedRows:
    """The items with decisions, and the vectors of all items."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, ids: Sequence[int] | None = None) -> Rows:
        """The training items: some by their ids, or all; ordered by `learned`."""
        which, given = "learned IS NOT NULL", ()
        if ids is not None:
            which += f" AND id IN {LISTED}"
            given = (json.dumps([int(item) for item in ids]),)  # type: ignore[assignment]
        with self._database.reading() as connection:
            items = connection.execute(
                f"SELECT id, learned FROM items WHERE {which} ORDER BY learned", given
            ).fetchall()
            tags = connection.execute(
                "SELECT items.learned, decisions.tag FROM items JOIN decisions ON item = items.id "
                f"WHERE is_yes AND {which} ORDER BY items.learned, decisions.tag",
                given,
            ).fetchall()
        examples = np.array(items, np.int64).reshape(-1, 2)
        pairs = np.array(tags, np.int64).reshape(-1, 2)
        # Row numbers in a model are smaller than 2**62.
        if len(examples) and not 0 < examples[0, 1] <= examples[-1, 1] < 2**62:
            why = "is damaged: the order of its examples is not valid; restore a backup"
            raise CollectionError(why, self._database.folder)
        if len(pairs) and not 0 < pairs[:, 1].min() <= pairs[:, 1].max() < MOST_TAGS:
            why = "is damaged: a tag has a number out of range; restore a backup"
            raise CollectionError(why, self._database.folder)
        indptr = np.searchsorted(pairs[:, 0], examples[:, 1])
        ends = np.append(indptr, len(pairs)).astype(np.int64)
        return Rows(examples[:, 0].copy(), examples[:, 1].copy(), ends, pairs[:, 1].copy())

    def vectors(self, ids: Sequence[int]) -> Matrix:
        """The current vectors of items; zeros for removed items."""
        with self._database.reading() as connection:
            return read_vectors(connection, ids, gone="zeros")

    def tag_names(self, tags: Sequence[int]) -> dict[int, str]:
        """The names of tags by their numbers."""
        with self._database.reading() as connection:
            select = f"SELECT id, name FROM tags WHERE id IN {LISTED}"
            return dict(connection.execute(select, (json.dumps(list(tags)),)).fetchall())
