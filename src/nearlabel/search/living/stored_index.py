"""An index in a model file: its lists, and the rows in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.search.approximate.inverted_lists import InvertedLists
from nearlabel.search.approximate.list_index import ListIndex, TailIndex, homes_of
from nearlabel.search.automatic import AutoIndex
from nearlabel.search.interfaces import Index
from nearlabel.search.living.living_index import LivingIndex


def index_tree(index: Index | None) -> tuple[dict[str, Any], Array] | None:
    """What a file stores of an index, and its rows in the order of the lists.

    Removed rows are left out, and the others renumbered. None if the index has no lists: it is then
    rebuilt from the rows.
    """
    if isinstance(index, LivingIndex) and (len(index.segments) > 1 or index.alive is not None):
        return _tree_of_segments(index)
    if isinstance(index, LivingIndex):
        index = index.segments[0].index
    if not isinstance(index, ListIndex | AutoIndex):
        return None
    tree = index._tree()
    return None if tree is None else (tree, index.stored_rows())


def _tree_of_segments(index: LivingIndex) -> tuple[dict[str, Any], Array] | None:
    """The tree of lists after additions and removals."""
    lists = _lists(index.segments[0].index)
    if not isinstance(lists, ListIndex) or lists._tree() is None:
        return None
    homes = np.full(index.n_places, -1)
    for segment in index.segments:
        its = _lists(segment.index)
        if its is not None:
            every = slice(segment.start, segment.stop)
            homes[every if segment.places is None else segment.places] = homes_of(its)
    places = np.arange(index.n_places) if index.alive is None else np.flatnonzero(index.alive)
    rows = index.store.take(places)
    tree, order = lists._tree_of(rows, homes[places])
    if isinstance(index.segments[0].index, AutoIndex):
        tree = {**tree, "search": "auto"}
    return tree, rows[order]


def _lists(index: Index) -> ListIndex | TailIndex | None:
    """The lists of a segment, if it has any."""
    made = index._made.get(InvertedLists()) if isinstance(index, AutoIndex) else index
    return made if isinstance(made, ListIndex | TailIndex) else None
