"""The time of a fit
=================

Draw how the time of a fit grows with the number of items, from the results of ``make bench``.

Usage: ``python examples/scale_figure.py PICTURE``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "scale.json"
BLUE, ORANGE, RED, GRAY = "#0072b2", "#e69f00", "#b2182b", "#777777"


def main(picture: Path) -> None:
    rows = json.loads(RESULTS.read_text())["rows"]
    fits = [row for row in rows if row["measured"] == "MLkNN.fit"]
    easy = [row for row in fits if row["data"] == "clusters" and is_usual(row, fits)]
    exact = [row for row in rows if row["measured"] == "exact graph"]
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    line(axes, exact, GRAY, "s", "exact search alone")
    longer(axes, exact[-1], max(row["n"] for row in fits))
    line(axes, easy, BLUE, "o", f"ML-kNN fit, recall {worst(easy)} or more")
    for data, color, mark in (("hard clusters", RED, "^"), ("overlapping clusters", ORANGE, "D")):
        others = [row for row in fits if row["data"] == data]
        if others:
            line(axes, others, color, mark, f"the same, {data}, recall {worst(others)}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes = sorted({row["n"] for row in easy + exact})
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes], rotation=30, ha="right")
    axes.minorticks_off()
    axes.set_xlabel("items")
    axes.set_ylabel("core-seconds")
    growth = next(row for row in rows if row["measured"] == "growth of MLkNN.fit")
    axes.set_title(
        f"128 features, 190,000 labels, k = 100: the time of a fit grows as "
        f"n$^{{{growth['exponent']}}}$",
        loc="left",
        size=10,
    )
    axes.grid(color="#dddddd")
    axes.legend(frameon=False)
    figure.savefig(picture, dpi=120)
    print(f"wrote {picture}")


def is_usual(row: Any, fits: list[Any]) -> bool:
    """Whether a fit differs from the largest one only in the number of items."""
    largest = max(fits, key=lambda other: other["n"])
    return all(row[name] == largest[name] for name in ("d", "q", "k"))


def worst(rows: list[Any]) -> str:
    """The least recall of some fits, rounded down."""
    return f"{np.floor(100 * min(row['recall'] for row in rows)) / 100:.2f}"


def line(axes: Any, rows: list[Any], color: str, mark: str, label: str) -> None:
    """Measured times."""
    rows = sorted(rows, key=lambda row: row["n"])
    n, seconds = ([row[name] for row in rows] for name in ("n", "core_seconds"))
    axes.plot(n, seconds, color=color, marker=mark, label=label)


def longer(axes: Any, row: Any, n: int) -> None:
    """The time of larger data, extrapolated as the square of their size."""
    seconds = row["core_seconds"] * (n / row["n"]) ** 2
    axes.plot([row["n"], n], [row["core_seconds"], seconds], color=GRAY, linestyle=":")
    middle = np.sqrt(row["n"] * n), np.sqrt(row["core_seconds"] * seconds)
    where = {"xytext": (8, -6), "textcoords": "offset points", "va": "top"}
    axes.annotate("as n², not measured", middle, color=GRAY, size=9, **where)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
