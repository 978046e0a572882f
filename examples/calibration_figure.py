"""Reliability diagrams
====================

Draw reliability diagrams, before and after calibration, from the results of ``make bench``.

Usage: ``python examples/calibration_figure.py PICTURE``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "calibration.json"
METHODS = {"PositivekNN": ("#0072b2", "o"), "BalancedkNN": ("#d55e00", "s")}  # color, mark
WHICH = {"before calibration": ("--", "before"), "predict_proba": ("-", "after")}
SMALLEST, LARGEST = 10, 350  # areas of marks for no pairs and for all pairs, in square points
FEWEST = 10  # pairs in a bin that is drawn: with fewer, the share is mostly chance


def main(picture: Path) -> None:
    rows = [row for row in json.loads(RESULTS.read_text())["rows"] if "pairs" in row]
    sets = list(dict.fromkeys(row["data"] for row in rows))
    figure, panels = plt.subplots(
        2, 2, figsize=(7.6, 8), sharex=True, sharey=True, layout="constrained"
    )
    for axes, name in zip(panels.flat, sets, strict=True):
        found = {(row["method"], row["probabilities"]): row for row in rows if row["data"] == name}
        draw(axes, found)
        axes.set_title(name, loc="left", size=10)
    for axes in panels[-1]:
        axes.set_xlabel("mean probability of the bin")
    for axes in panels[:, 0]:
        axes.set_ylabel("share of right labels")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(picture, dpi=120)
    print(f"wrote {picture}")


def draw(axes: Any, found: dict[tuple[str, str], Any]) -> None:
    """The curves of one data set; the area of a mark grows with the pairs in its bin."""
    for method, (color, mark) in METHODS.items():
        for which, (line, word) in WHICH.items():
            row = found[method, which]
            bins = zip(row["mean_probability"], row["share"], row["pairs"], strict=True)
            x, y, pairs = zip(*(some for some in bins if some[-1] >= FEWEST), strict=True)
            areas = [SMALLEST + LARGEST * count / sum(row["pairs"]) for count in pairs]
            filling = color if word == "after" else "white"
            axes.plot(x, y, color=color, linestyle=line, zorder=2)
            axes.scatter(
                x, y, areas, filling, marker=mark, edgecolor=color, zorder=3, clip_on=False
            )
            axes.plot(  # only for the legend
                [], [], color=color, linestyle=line, marker=mark, markerfacecolor=filling,
                label=f"{method}, {word}",
            )  # fmt: skip
    axes.plot([0, 1], [0, 1], color="#767676", linewidth=1, label="probabilities are frequencies")
    errors = [
        f"{method} {found[method, before]['error']:.3f} → {found[method, after]['error']:.3f}"
        for before, after in [WHICH]
        for method in METHODS
    ]
    axes.text(0.98, 0.02, "\n".join(["error", *errors]), ha="right", va="bottom", size=8)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.grid(color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
