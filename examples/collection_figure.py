"""Ranks of rare labels
====================

Draw the ranks of labels by how rare they are, and the posteriors of ML-kNN by votes, from the
results of ``make bench``.

Usage: ``python examples/collection_figure.py PICTURE``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "collection.json"
BANDS = ("1-2", "3-10", "11-100", "over 100")
# Okabe and Ito's colors, which color-blind readers can distinguish; marks differ, too.
STYLES = {
    "BRkNN": ("#000000", "o", "-"),
    "BRkNN-w": ("#56b4e9", "s", "-"),
    "positive, z = 10 as rate": ("#009e73", "^", "-"),
    "positive, z fitted": ("#009e73", "v", "--"),
    "ML-kNN": ("#d55e00", "D", "-"),
    "ML-kNN, s = 1/(k+1)": ("#d55e00", "d", ":"),
    "ML-kNN, even counts, s = 1/(k+1)": ("#cc79a7", "P", "-"),
}
CARRIERS = (5, 10, 30)  # numbers of items that carry the labels in the plots on the right


def main(picture: Path) -> None:
    rows = json.loads(RESULTS.read_text())["rows"]
    figure, (left, *right) = plt.subplots(
        1, 4, figsize=(12, 4.4), width_ratios=(1.6, 0.7, 1, 1), layout="constrained"
    )
    draw_bands(left, rows)
    for axes, n_l in zip(right, CARRIERS, strict=True):
        draw_votes(axes, [row for row in rows if row.get("items_with_the_label") == n_l], n_l)
        if axes is not right[0]:
            axes.sharey(right[0])
            axes.tick_params(labelleft=False)
    right[0].set_ylabel("odds that the list of a new item shows it")
    right[0].set_title("Labels of 5, 10 and 30 items, by their votes", loc="left", size=10)
    for axes in (left, *right):
        axes.set_yscale("log")
        axes.grid(axis="y", color="#dddddd")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    observed, _ = right[0].get_legend_handles_labels()
    methods, names = left.get_legend_handles_labels()
    figure.legend(
        [*methods, *observed],
        [*names, "as it is (right)"],
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=9,
    )
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)
    plt.close(figure)
    print(f"wrote {picture}")


def draw_bands(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Mean inverse rank of the true labels, by the items that carry them."""
    overlap = next(row["overlap"] for row in rows if "overlap" in row)
    here = {"overlap": overlap, "vocabulary": "all"}
    found = {
        row["method"]: [row[f"mean_inverse_rank_{band}"] for band in BANDS]
        for row in rows
        if "mean_inverse_rank_1-2" in row and here.items() <= row.items()
    }
    for name, (color, mark, line) in STYLES.items():
        axes.plot(BANDS, found[name], line, color=color, marker=mark, markersize=6, label=name)
    axes.set_xlabel("items whose list shows the label")
    axes.set_ylabel("mean of 1 / rank")
    axes.set_title("Ranks of the true labels of new items", loc="left", size=10)


def draw_votes(axes: Any, rows: list[dict[str, Any]], n_l: int) -> None:
    """Odds of labels with n_l items by their votes: observed, and from ML-kNN."""
    votes = [row["votes"] for row in rows]
    for method in (name for name in STYLES if any(name in row for row in rows)):
        color, mark, line = STYLES[method]
        axes.plot(votes, odds(rows, method), line, color=color, marker=mark, markersize=5)
    axes.plot(
        votes, odds(rows, "on_the_list"), "*", color="#0072b2", markersize=11, label="observed"
    )
    axes.set_xlabel(f"votes, of {n_l}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def odds(rows: list[dict[str, Any]], column: str) -> list[float]:
    """Shares as odds; nan if there are none."""
    return [row[column] / (1 - row[column]) if row[column] else float("nan") for row in rows]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
