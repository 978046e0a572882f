"""Why these labels?
=================

Draw an item, the neighbors that vote on its labels, and the posteriors of ML-kNN.

Usage: ``python examples/why_these_labels.py PICTURE``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import nearlabel as nl

mpl.use("agg")
import matplotlib.pyplot as plt

NAMES = np.array(["sea", "beach", "sunset", "forest", "snow", "town"])
COLORS = dict(
    zip(NAMES, ["#0072b2", "#e69f00", "#d55e00", "#009e73", "#56b4e9", "#999999"], strict=True)
)
K = 10


def main(picture: Path) -> None:
    data = nl.datasets.make_local_labels(
        260, 2, len(NAMES), n_clusters=6, labels_per_sample=1.8, random_state=11
    )
    Y = data.Y.toarray()
    model = nl.MLkNN(n_neighbors=K).fit(data.X, Y, label_names=NAMES)
    item = most_divided_item(model, data.X)

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4.2), width_ratios=[1.25, 1], layout="constrained"
    )
    draw_neighborhood(left, model, data.X, Y, item)
    draw_posteriors(right, model.explain(item, top=len(NAMES)))
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)
    print(f"wrote {picture}")


def most_divided_item(model: Any, X: Any) -> Any:
    """A point of a grid with several predicted labels and far from unanimous votes."""
    low, high = np.quantile(X, [0.1, 0.9], axis=0)
    grid = np.stack(np.meshgrid(*np.linspace(low, high, 25).T), axis=-1).reshape(-1, 2)
    posteriors = model.predict_proba(grid)
    several = (posteriors > 0.5).sum(axis=1) >= 2
    doubt = np.minimum(posteriors, 1 - posteriors).sum(axis=1)
    return grid[np.argmax(np.where(several, doubt, -1))]


def draw_neighborhood(axes: Any, model: Any, X: Any, Y: Any, item: Any) -> None:
    """All items as pie charts of their labels, with lines to the neighbors that vote."""
    neighbors = model.kneighbors(item[None, :], return_distance=False)[0]
    for row in neighbors:
        axes.plot(*zip(item, X[row], strict=True), color="#333333", linewidth=0.8, zorder=1)
    for row, (x, y) in enumerate(X):
        labels = np.flatnonzero(Y[row])
        voting = row in neighbors
        radius = 15 if voting else 8
        if not len(labels):
            axes.plot(x, y, "o", markersize=radius, mfc="white", mec="#bbbbbb", zorder=2)
        for place, label in enumerate(labels):
            turn = 2 * np.pi * np.linspace(place, place + 1, 20) / len(labels)
            wedge = np.column_stack([np.sin(turn), np.cos(turn)])
            axes.plot(
                x,
                y,
                marker=np.vstack([[0, 0], wedge, [0, 0]]) if len(labels) > 1 else "o",
                markersize=radius * (1.0 if len(labels) == 1 else np.abs(wedge).max()),
                color=COLORS[NAMES[label]],
                alpha=1.0 if voting else 0.35,
                markeredgewidth=0,
                zorder=3 if voting else 2,
            )
    axes.plot(*item, marker="*", markersize=24, color="black", mec="white", zorder=4)
    reach = 1.45 * np.abs(X[neighbors] - item).max()
    axes.set(
        xlim=(item[0] - 1.3 * reach, item[0] + 1.3 * reach),
        ylim=(item[1] - reach, item[1] + reach),
        xticks=[],
        yticks=[],
        title=f"A new item (star) and its {K} nearest neighbors",
    )
    for name, color in COLORS.items():
        axes.plot([], [], "o", color=color, label=name)
    axes.legend(loc="upper left", fontsize=9, framealpha=0.9)


def draw_posteriors(axes: Any, explanation: Any) -> None:
    """The posterior of each label, best first."""
    for place, label in enumerate(explanation):
        predicted = label.predicted
        axes.barh(place, label.score, color=COLORS[label.name], alpha=1.0 if predicted else 0.35)
        said = f"{label.terms['count']} of {K} vote, prior {label.terms['prior']:.2f}"
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        start = label.score + 0.02
        axes.text(start, place, said, va="center", fontsize=8.5, bbox=behind, zorder=3)
    axes.axvline(0.5, color="black", linewidth=1, linestyle="--", zorder=2)
    axes.text(0.51, len(explanation) - 0.55, "predicted from 1/2 on", fontsize=8.5)
    axes.set(
        yticks=range(len(explanation)),
        yticklabels=[label.name for label in explanation],
        xlim=(0, 1),
        xlabel="posterior probability",
        title="What ML-kNN makes of the votes",
    )
    axes.invert_yaxis()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
