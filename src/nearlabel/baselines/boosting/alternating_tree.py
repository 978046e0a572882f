"""Alternating decision trees as flat arrays: read by rows, and as they stand in files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nearlabel.baselines.boosting.sorted_columns import LEFT, RIGHT
from nearlabel.baselines.boosting.stump_sides import stump_sides
from nearlabel.common.arrays import Array, Floats
from nearlabel.methods.fields import Value, stored_array


class AlternatingTree(NamedTuple):
    """A tree of t conditions and 2t + 1 prediction nodes.

    Node 0 is the root; condition t has the nodes 2t + 1, of rows that meet it, and 2t + 2.
    """

    root: Floats  # (q,)
    parents: Array  # (t,): the node that a condition stands below
    features: Array  # (t,)
    cuts: Floats  # (t,)
    outputs: Floats  # (t, 2, q)

    def values(self, node: int) -> Floats:
        """What a node adds to the scores of all labels."""
        return self.outputs[(node - 1) // 2, (node - 1) % 2] if node else self.root

    def nodes(self) -> Iterator[tuple[int, int]]:
        """All nodes with their depth: each before those below it, the oldest of these first."""
        waiting = [(0, 0)]
        while waiting:
            node, depth = waiting.pop()
            yield node, depth
            for t in np.flatnonzero(self.parents == node)[::-1].tolist():
                waiting += [(2 * t + 2, depth + 1), (2 * t + 1, depth + 1)]

    def scores(self, X: Any) -> Floats:
        """Sum of the values of all nodes that rows of vectors reach, shape (m, q)."""
        sides = stump_sides(X, self.features, self.cuts)
        scores = np.tile(self.root, (X.shape[0], 1))
        reached = np.zeros((2 * len(self.parents) + 1, X.shape[0]), bool)
        reached[0] = True
        for t, parent in enumerate(self.parents):
            for side in (LEFT, RIGHT):
                node = 2 * t + 1 + side
                reached[node] = reached[parent] & (sides[t] == side)
                scores[reached[node]] += self.outputs[t, side]
        return scores


class Parents(Value):
    """The node that each condition stands below, one that is older than the condition."""

    def check(self, value: Any, sizes: dict[str, int] | None = None) -> Array:  # noqa: ARG002
        """The nodes as they are; an error where they make no tree."""
        parents = stored_array(value, self.key, "i", 1)
        if np.any((parents < 0) | (parents > 2 * np.arange(len(parents)))):
            raise ValueError(f"its {self.key} are not nodes of a tree")
        return parents
