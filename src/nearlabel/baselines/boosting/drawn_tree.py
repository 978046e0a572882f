"""Alternating trees as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nearlabel.baselines.boosting.alternating_tree import AlternatingTree
from nearlabel.baselines.boosting.tree_lines import value_text
from nearlabel.common.arrays import Floats
from nearlabel.common.extras import extra_module
from nearlabel.common.messages import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINE, _STEP, _WIDTH = 0.3, 0.35, 7.0  # inches: of a line, of a level, and of texts
_LONGEST = 90  # characters of a text
_FOR, _AGAINST, _PLAIN = "#1b6ca8", "#b3432b", "#555555"


def drawn_tree(
    tree: AlternatingTree, conditions: Sequence[tuple[str, str]], labels: Mapping[Any, int]
) -> Figure:
    """A figure with a line for each node, joined to the node that its condition stands below.

    With several labels a node shows the greatest and the least of its values.
    """
    module = extra_module("matplotlib.figure", "draw_tree needs Matplotlib", "report")
    places = {node: (depth, line) for line, (node, depth) in enumerate(tree.nodes())}
    deepest = max(depth for depth, _ in places.values())
    width, height = _WIDTH + _STEP * deepest, _LINE * (len(places) + 1)
    figure: Figure = module.Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
    for node, (depth, line) in places.items():
        x, y = _STEP * (depth + 0.5), _LINE * (line + 1)
        t, side = divmod(node - 1, 2)
        if node:
            above_depth, above_line = places[int(tree.parents[t])]
            above = _STEP * (above_depth + 0.5)
            axes.plot([above, above, x], [_LINE * (above_line + 1), y, y], color=_PLAIN, lw=0.8)
        values = tree.values(node)
        strongest = max(labels.values(), key=lambda label: abs(values[label]))
        color = _FOR if values[strongest] > 0 else _AGAINST
        axes.plot([x], [y], marker="o" if node else "s", color=color, ms=6)
        told = f"{t + 1}: {conditions[t][side]}   " if node else ""
        text = one_line(told + value_text(values, _extremes(values, labels)), _LONGEST)
        # A name is no formula, whatever dollar signs it has.
        axes.text(x + 0.12, y, text, va="center", fontsize=9, parse_math=False)
    return figure


def _extremes(values: Floats, labels: Mapping[Any, int]) -> Mapping[Any, int]:
    """The labels with the greatest and the least value."""
    if len(labels) <= 2:
        return labels
    ordered = sorted(labels.items(), key=lambda named: -values[named[1]])
    return dict([ordered[0], ordered[-1]])
