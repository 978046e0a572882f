"""The store, as far as what learns from it reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nearlabel.collection.database import Database
from nearlabel.collection.folder_checks import CollectionError
from nearlabel.collection.records import Rows
from nearlabel.collection.stored_vectors import StoredVectors

_MOST_LEARNED = 2**62  # numbers of rows in a model are below
_MOST_TAGS = 2**24  # a model has room for as many labels as the greatest number says


class LearnedRows:
    """The items that something was decided of, and the vectors of all."""

    def __init__(self, database: Database, vectors: StoredVectors) -> None:
        self._database, self._vectors = database, vectors

    def rows(self, ids: Sequence[int] | None = None) -> Rows:
        """The items to learn from: of some ids, or all of them; in the order of `learned`."""
        which, given = "learned IS NOT NULL", ()
        if ids is not None:
            which += " AND id IN (SELECT value FROM json_each(?))"
            given = (json.dumps([int(one) for one in ids]),)  # type: ignore[assignment]
        with self._database.reading() as connection:
            items = connection.execute(
                f"SELECT id, learned FROM items WHERE {which} ORDER BY learned", given
            ).fetchall()
            tags = connection.execute(
                "SELECT items.learned, decisions.tag FROM items JOIN decisions ON item = items.id "
                f"WHERE is_yes AND {which} ORDER BY items.learned, decisions.tag",
                given,
            ).fetchall()
        found = np.array(items, np.int64).reshape(-1, 2)
        pairs = np.array(tags, np.int64).reshape(-1, 2)
        if len(found) and not 0 < found[0, 1] <= found[-1, 1] < _MOST_LEARNED:
            why = "is damaged: the order of its examples makes no sense; bring back a backup"
            raise CollectionError(why, self._database.folder)
        if len(pairs) and not 0 < pairs[:, 1].min() <= pairs[:, 1].max() < _MOST_TAGS:
            why = "is damaged: a tag has a number that none can have; bring back a backup"
            raise CollectionError(why, self._database.folder)
        indptr = np.searchsorted(pairs[:, 0], found[:, 1])
        ends = np.append(indptr, len(pairs)).astype(np.int64)
        return Rows(found[:, 0].copy(), found[:, 1].copy(), ends, pairs[:, 1].copy())

    def vectors(self, ids: Sequence[int]) -> Any:
        """The vectors of items as they are now; zeros of one that is gone."""
        with self._database.reading() as connection:
            return self._vectors.read(connection, ids, gone="zeros")
