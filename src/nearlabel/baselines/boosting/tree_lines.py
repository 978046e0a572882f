"""Alternating trees as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nearlabel.baselines.boosting.alternating_tree import AlternatingTree
from nearlabel.common.arrays import Floats
from nearlabel.common.messages import one_line


def condition_texts(tree: AlternatingTree, features: Sequence[str]) -> list[tuple[str, str]]:
    """What rows of both nodes of each condition have in common: ``("x0 <= 2.5", "x0 > 2.5")``.

    Cuts have as many digits as it takes to tell them apart from the others of their feature.
    """
    found = []
    for feature, cut in zip(tree.features.tolist(), tree.cuts.tolist(), strict=True):
        others = np.unique(tree.cuts[tree.features == feature]).tolist()
        digits = next(
            count
            for count in range(4, 18)
            if count == 17 or len({f"{other:.{count}g}" for other in others}) == len(others)
        )
        shown = f"{cut:.{digits}g}"
        found.append((f"{features[feature]} <= {shown}", f"{features[feature]} > {shown}"))
    return found


def value_text(values: Floats, labels: Mapping[Any, int]) -> str:
    """Values of labels with their signs, after the names where there are several labels."""
    names = ["" if name is None else f"{one_line(str(name))} " for name in labels]
    shown = zip(names, labels.values(), strict=True)
    return ", ".join(f"{name}{values[number]:+.3f}" for name, number in shown)


def tree_lines(
    tree: AlternatingTree, conditions: Sequence[tuple[str, str]], labels: Mapping[Any, int]
) -> Iterator[str]:
    """A line for each node, those below a node after it and further in."""
    for node, depth in tree.nodes():
        t, side = divmod(node - 1, 2)
        condition = f"{'| ' * depth}{t + 1}: {conditions[t][side]}: " if node else ""
        yield condition + value_text(tree.values(node), labels)
