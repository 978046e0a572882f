"""Where each method wins and loses
================================

Draw where each method is better than ML-kNN and where it is worse, from the results of
``make bench``.

Usage: ``python examples/method_figures.py FOLDER``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "methods.json"
BLUE = "#0072b2"
FILLINGS = {10: "white", 40: BLUE}  # of the marks, for each k


def main(folder: Path) -> None:
    rows = json.loads(RESULTS.read_text())["rows"]
    precision = {
        (row["method"], row["data"], row["k"]): row["average_precision"]
        for row in rows
        if "average_precision" in row
    }
    folder.mkdir(parents=True, exist_ok=True)
    for method in dict.fromkeys(row["method"] for row in rows):
        other = "BRkNN" if method == "MLkNN" else "MLkNN"
        picture = folder / f"{method.lower()}.png"
        draw(picture, rows, precision, method, other)
        print(f"wrote {picture}")


def draw(picture: Path, rows: list[Any], precision: Any, method: str, other: str) -> None:
    """One line per data set: the average precision of a method minus that of another one."""
    sets = {row["data"]: row for row in rows}
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for place, name in enumerate(reversed(sets)):
        gains = {
            k: precision[method, name, k] - precision[other, name, k]
            for k in FILLINGS
            if (method, name, k) in precision
        }
        axes.plot([*gains.values()], [place] * len(gains), color="#999999", zorder=1)
        for k, gain in gains.items():
            axes.scatter(gain, place, 42, FILLINGS[k], edgecolor=BLUE, zorder=2)
    axes.axvline(0, color="#333333", linewidth=1)
    axes.set_yticks(
        range(len(sets)), [f"{name} ({row['labels']})" for name, row in reversed(sets.items())]
    )
    for k, filling in FILLINGS.items():
        axes.scatter([], [], 42, filling, edgecolor=BLUE, label=f"k = {k}")
    axes.set_xlabel(f"average precision of {method} less that of {other}")
    axes.set_title(f"Right of the line {method} is better than {other}", loc="left", size=10)
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(picture, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
