"""Trees of C4.5 in model files: those of all labels one after the other, in a few arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearlabel.baselines.c45.c45_criteria import TOLERANCE
from nearlabel.baselines.c45.c45_trees import C45Nodes
from nearlabel.methods.fields import Field, stored_array

MOST_VALUES = 2**16
"""How many values a nominal feature may have: every split on it has so many branches."""


@dataclass(frozen=True)
class C45Forest(Field):
    """A tree of classes 0 and 1 for each label, and the numbers of values of nominal features."""

    key: str = "trees"
    attribute: str = "_trees"

    def write(self, model: Any, learned: dict[str, Any]) -> None:
        """Add the nodes of all trees, and where these end."""
        trees: list[C45Nodes] = getattr(model, self.attribute)
        learned["n_values"] = model._n_values
        learned["tree_sizes"] = np.array([len(tree.feature) for tree in trees])
        for name in ("feature", "cut", "counts"):
            learned[name] = np.concatenate([getattr(tree, name) for tree in trees])

    def read(self, model: Any, learned: Mapping[str, Any], sizes: dict[str, int]) -> None:
        """Set the trees; a ValueError or the like where they are none of these features."""
        n_values = stored_array(learned["n_values"], "n_values", "i", 1)
        if len(n_values) != sizes["d"] or n_values.min() < 0 or n_values.max() > MOST_VALUES:
            raise ValueError("its numbers of values are not those of its features")
        tree_sizes = stored_array(learned["tree_sizes"], "tree_sizes", "i", 1)
        feature = stored_array(learned["feature"], "feature", "i", 1)
        cut = stored_array(learned["cut"], "cut", "f", 1)
        counts = stored_array(learned["counts"], "counts", "f", 2)
        n_nodes = len(feature)
        if len(tree_sizes) != sizes["q"] or np.any((tree_sizes < 1) | (tree_sizes > n_nodes)):
            raise ValueError("its trees are not those of its labels")
        ends = np.cumsum(tree_sizes)
        if not ends[-1] == n_nodes == len(cut) or counts.shape != (n_nodes, 2):
            raise ValueError("its trees have other numbers of nodes")
        if not -1 <= feature.min() <= feature.max() < sizes["d"]:
            raise ValueError("its splits are of other features")
        if np.isinf(cut).any() or not np.all((counts >= 0) & (counts < 2**53)):
            raise ValueError("its trees hold a number that cannot be")
        if counts[ends - tree_sizes].sum(axis=1).min() < TOLERANCE:
            raise ValueError("its trees are of no rows")
        starts = ends - tree_sizes
        model._n_values = n_values
        trees = [
            C45Nodes.of(feature[at], cut[at], counts[at], n_values)
            for at in map(slice, starts, ends)
        ]
        setattr(model, self.attribute, trees)
