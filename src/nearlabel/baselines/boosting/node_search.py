"""The best condition below any prediction node of a growing alternating tree."""

from __future__ import annotations

import numpy as np

from nearlabel.baselines.boosting.sorted_columns import LEFT, MISSING, RIGHT, SortedColumns
from nearlabel.baselines.boosting.stumps import Stump, best_stump
from nearlabel.common.arrays import Array, Floats


class NodeSearch:
    """The rows that reach each prediction node, and the best stump of each for its weights.

    A node is searched again only where a round changed the weights of rows that reach it.
    """

    def __init__(self, columns: SortedColumns) -> None:
        self._columns = columns
        self._reached: list[Array] = [np.ones(columns.n, bool)]
        self._best: dict[int, tuple[Stump, float]] = {}  # of nodes, with the weight W of their rows

    def best(self, weights: Floats) -> tuple[int, Stump, float]:
        """The node, the stump below it and its loss; of equal ones the oldest node.

        Z = W(rows that do not reach the node) + the loss of the stump on those that do.
        """
        total = float(weights.sum())
        losses = []
        for node, reached in enumerate(self._reached):
            if node not in self._best:
                inside = np.where(reached[:, None], weights, 0.0)
                stump = best_stump(self._columns, inside, reached)
                self._best[node] = stump, float(inside.sum())
            stump, weight = self._best[node]
            losses.append((total - weight) + stump.loss)
        node = int(np.argmin(losses))
        return node, self._best[node][0], losses[node]

    def split(self, node: int, stump: Stump) -> Array:
        """Add the nodes of both sides; the side of each row, MISSING where it reaches neither."""
        sides = self._columns.sides(stump.feature, stump.place)
        sides[~self._reached[node]] = MISSING
        changed = sides != MISSING
        for place, reached in enumerate(self._reached):
            if np.any(reached & changed):
                self._best.pop(place, None)
        self._reached += [sides == LEFT, sides == RIGHT]
        return sides
