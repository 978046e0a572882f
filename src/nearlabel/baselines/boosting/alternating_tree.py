"""Alternating decision trees as flat arrays: read by rows, printed, and as they stand in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nearlabel.baselines.boosting.sorted_columns import LEFT, RIGHT
from nearlabel.baselines.boosting.stumps import stump_sides
from nearlabel.common.arrays import Array, Floats, Matrix
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

    def scores(self, X: Matrix) -> Floats:
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

    def lines(self, features: Sequence[str], labels: Sequence[tuple[str, int]]) -> Iterator[str]:
        """A line for each node, with its values for labels: pairs of a name and a column.

        Nodes below a condition follow the node that it belongs to, the oldest first.
        """
        waiting = [(0, 0)]
        while waiting:
            node, depth = waiting.pop()
            values, condition = self.root, ""
            if node:
                t, side = divmod(node - 1, 2)
                sign = ("<=", ">")[side]
                values = self.outputs[t, side]
                condition = f"{t + 1}: {features[self.features[t]]} {sign} {self._shown_cut(t)}: "
            shown = [f"{name} {values[column]:+.3f}".lstrip() for name, column in labels]
            yield "| " * depth + condition + ", ".join(shown)
            for below in np.flatnonzero(self.parents == node)[::-1].tolist():
                waiting += [(2 * below + 2, depth + 1), (2 * below + 1, depth + 1)]

    def _shown_cut(self, t: int) -> str:
        """A cut with as many digits as it takes to tell the cuts of its feature apart."""
        cuts = np.unique(self.cuts[self.features == self.features[t]]).tolist()
        for digits in range(4, 17):
            if len({f"{cut:.{digits}g}" for cut in cuts}) == len(cuts):
                return f"{self.cuts[t]:.{digits}g}"
        return f"{self.cuts[t]:.17g}"


class Parents(Value):
    """The node that each condition stands below, one that is older than the condition."""

    def check(self, value: object, sizes: dict[str, int] | None = None) -> Array:  # noqa: ARG002
        """The nodes as they are; an error where they make no tree."""
        parents = stored_array(value, self.key, "i", 1)
        if np.any((parents < 0) | (parents > 2 * np.arange(len(parents)))):
            raise ValueError(f"its {self.key} are not nodes of a tree")
        return parents
