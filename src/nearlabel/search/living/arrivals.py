"""New rows: their neighbors, and the rows whose neighbors they become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.graph import NeighborGraph


class Reached(NamedTuple):
    """Pairs of an old and a new row, with the new row within a limit of the old one.

    Attributes
    ----------
    row : ndarray of int
        Places of old rows.
    new : ndarray of int
        Places of new rows.
    distance : ndarray of float
        Canonical, as in a graph of the same search.
    """

    row: Array
    new: Array
    distance: Array

    @classmethod
    def joined(cls, parts: Sequence[tuple[Array, Array, Array]]) -> Reached:
        """All pairs of several parts."""
        nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        return cls(*map(np.concatenate, zip(*(parts or [nothing]), strict=True)))


class Arrivals(NamedTuple):
    """New rows: their neighbors, each excluded from its own, and the old rows they reach."""

    neighbors: NeighborGraph
    reached: Reached
