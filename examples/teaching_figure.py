"""How fast a collection learns
============================

Draw how fast a collection learns by the order of its questions, from the results of
``make bench``.

Usage: ``python examples/teaching_figure.py PICTURE``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "teaching.json"
STEP = 10  # answers between two values of a curve
ORDERS = {  # color, mark, name in the legend
    "learn": ("#0072b2", "o", "learn: unsure, and stands for others"),
    "mixed": ("#009e73", "s", "mixed: one in five confirms"),
    "random": ("#777777", "D", "random order"),
}


def main(picture: Path) -> None:
    rows = json.loads(RESULTS.read_text())["rows"]
    curves = [row for row in rows if row.get("measured_on") == "all untagged"]
    networks = list(dict.fromkeys(row["network"] for row in curves))
    figure, panels = plt.subplots(
        1, len(networks), figsize=(9, 4), sharey=True, layout="constrained"
    )
    for axes, network in zip(panels, networks, strict=True):
        draw(axes, {row["order"]: row for row in curves if row["network"] == network})
        axes.set_title(network, loc="left", size=10)
    panels[0].set_ylabel("average precision on all other pictures")
    panels[0].legend(frameon=False, loc="lower right")
    figure.savefig(picture, dpi=120)
    print(f"wrote {picture}")


def draw(axes: Any, curves: dict[str, Any]) -> None:
    """The curves of one network, and when they reach the final value of random order."""
    for order, (color, mark, label) in ORDERS.items():
        values = curves[order]["curve"]
        answers = range(0, STEP * len(values), STEP)
        axes.plot(answers, values, color=color, marker=mark, markersize=3.5, label=label)
    end = curves["random"]["curve"][-1]
    reached = curves["learn"]["answers_for_what_random_has_in_the_end"]
    axes.axhline(end, color="#777777", linewidth=0.8, linestyle=":")
    axes.annotate(
        f"{reached} answers for {end:.3f}",
        (reached, end),
        (reached + 5, end - 0.055),
        arrowprops={"arrowstyle": "-", "color": "#0072b2"},
        color="#0072b2",
    )
    axes.set_ylim(0.7, 0.97)
    axes.set_xlim(0, STEP * (len(curves["random"]["curve"]) - 1))
    axes.set_xlabel("answers, each with all tags of a picture")
    axes.grid(color="#dddddd")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
