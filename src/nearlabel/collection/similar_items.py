"""The items nearest to a vector, with and without tags.

The model searches its own rows. The other items have an index here, built on first use: so no
vector is held twice. Items that have changed since are compared separately, until there are too
many.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearlabel.collection.change_log import last_change, touched_after
from nearlabel.collection.item_tables import item_ids, known_ids
from nearlabel.collection.stored_vectors import read_vectors
from nearlabel.collection.tag_answers import AskedVector, State, one_vector
from nearlabel.common.arrays import Array, Matrix
from nearlabel.common.threads import ForkSafeLock
from nearlabel.search import Index, build_index

if TYPE_CHECKING:
    from nearlabel.collection.opened_folder import OpenedFolder
    from nearlabel.collection.records import Settings
    from nearlabel.search.exact.distances import Metric

_MOST_TOUCHED = 256  # items compared separately: takes some milliseconds
_MOST_KEPT = 2**31  # bytes of vectors; more are read again for each query
_ROWS_AT_ONCE = 2**14

Part = tuple[Array, Index]  # some items, and the index of their vectors


class _Indexed(NamedTuple):
    """Items without a row in the model, as of a change."""

    change: int
    metric: Metric
    parts: list[Part]


class SimilarItems:
    """The index of the items that nothing was learned from."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._indexed: _Indexed | None = None

    def nearest(self, folder: OpenedFolder, query: object, n: int) -> list[tuple[int, float]]:
        """The result of `Collection.similar`."""
        own = query if isinstance(query, int) else None
        with folder.learned.asking() as answers, folder.database.reading() as connection:
            settings = folder.settings
            if own is None:
                x = one_vector(query, settings.width)
            else:
                x = read_vectors(connection, [own])
            if settings.width is None:
                return []
            distances = dict(answers.answer(x, partial(_learned, n=n + 1)))
            metric, state = answers.metric, answers.state
            parts, touched = self._parts(connection, settings, metric, state)
            for part in parts:
                near = _nearest(part, x, n + 1 + len(touched))
                distances |= {item: near[item] for item in near.keys() - touched}
            now = sorted(known_ids(connection, touched))
            for part in _parts(connection, state, metric, now):
                distances |= _nearest(part, x, n + 1)
        nearest = sorted((distance, item) for item, distance in distances.items())
        return [(item, distance) for distance, item in nearest if item != own][:n]

    def _parts(
        self,
        connection: sqlite3.Connection,
        settings: Settings,
        metric: Metric,
        state: State | None,
    ) -> tuple[Iterable[Part], set[int]]:
        """The indexed items, and those changed since then."""
        last = last_change(connection)
        with self._lock.held():
            indexed = self._indexed
            is_later = indexed is not None and indexed.change > last  # others read on
            if indexed is not None and indexed.metric == metric and not is_later:
                touched = {*touched_after(connection, indexed.change)}
                if len(touched) <= _MOST_TOUCHED:
                    return indexed.parts, touched
            ids = item_ids(connection)
            parts = _parts(connection, state, metric, ids)
            are_many = not settings.is_sparse and 4 * (settings.width or 0) * len(ids) > _MOST_KEPT
            if is_later or are_many:
                return parts, set()
            self._indexed = _Indexed(last, metric, [*parts])
            return self._indexed.parts, set()


def _learned(state: State, asked: AskedVector, n: int) -> list[tuple[int, float]]:
    """The nearest of the items the model has learned from, including all ties with the last one.

    The model orders ties by when it learned them.
    """
    items, k = state.rows, n
    while True:
        k = min(k + 1, len(items))
        near = items.neighbors(asked.x, k, planned_for=n)
        ids, distances = state.items[near.indices[0]].tolist(), near.distances[0].tolist()
        if k == len(items) or distances[-1] > distances[n - 1]:
            return list(zip(ids, distances, strict=True))
        k *= 4


def _parts(
    connection: sqlite3.Connection, state: State | None, metric: Metric, ids: Sequence[int]
) -> Iterator[Part]:
    """Those of some items that are not rows of the model, in blocks, ready to be searched."""
    others = np.array(ids, np.int64)
    if state is not None:
        others = others[~np.isin(others, state.items[state.rows.places])]
    for start in range(0, len(others), _ROWS_AT_ONCE):
        block = others[start : start + _ROWS_AT_ONCE]
        yield block, build_index(read_vectors(connection, block.tolist()), metric, "exact")


def _nearest(part: Part, x: Matrix, n: int) -> dict[int, float]:
    """The nearest of some items, with their distances."""
    ids, index = part
    near = index.graph(min(n, len(ids)), x)
    return dict(zip(ids[near.indices[0]].tolist(), near.distances[0].tolist(), strict=True))
