"""What new rows bring with them: their neighbors, and whose neighbors they become."""

from __future__ import annotations

from typing import NamedTuple

from nearlabel.common.arrays import Array
from nearlabel.graph import NeighborGraph


class Reached(NamedTuple):
    """Pairs of an old row and a new one that is nearer to it than some limit of the old row's.

    Attributes
    ----------
    row : ndarray of int
        Places of old rows.
    new : ndarray of int
        Places of new rows.
    distance : ndarray of float
        Canonical, as a graph of the same search has them.
    """

    row: Array
    new: Array
    distance: Array


class Arrivals(NamedTuple):
    """New rows: their neighbors, each left out of its own, and the old rows that they reach."""

    neighbors: NeighborGraph
    reached: Reached
