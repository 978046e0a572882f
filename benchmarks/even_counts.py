"""Do even counts help ML-kNN on public sets, and for which labels? Needs the sets.

`MLkNN(counts="even")` leaves one carrier of a label out of every count. docs/made_collection.md has
the same comparison on a collection with far rarer labels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from measuring import report
from scipy import sparse

import nearlabel as nl
from nearlabel.labels.counts import label_totals

QUESTION = (
    "ML-kNN with counts as published and even counts: average precision, and mean inverse ranks of "
    "true labels that 1 to k training rows carry, and of all others. Cosine distance for texts; "
    "for cal500, every third row is held out"
)
SETS = ("medical", "enron", "cal500", "corel5k", "bibtex", "delicious")
NEIGHBORS = (10, 100)


def rows_of(name: str) -> Iterator[dict[str, Any]]:
    data = nl.datasets.load(name)
    train = np.arange(len(data)) % 3 > 0 if data.train is None else data.train
    X, new, Y, truth = data.X[train], data.X[~train], data.Y[train], data.Y[~train]
    metric = "cosine" if sparse.issparse(data.X) else "euclidean"
    graph, near = (
        nl.neighbor_graph(X, max(NEIGHBORS), some, metric=metric) for some in (None, new)
    )
    totals = label_totals(Y)
    for k in NEIGHBORS:
        rare = (totals[truth.indices] <= k) & (totals[truth.indices] > 0)
        for smoothing in (1.0, 1 / (k + 1)):
            told = {"data": name, "k": k, "smoothing": round(smoothing, 4)}
            told["true_labels_that_are_rare"] = round(float(rare.mean()), 4)
            for counts in ("paper", "even"):
                model = nl.MLkNN(k, smoothing=smoothing, counts=counts)
                scores = model.fit_graph(graph.head(k), Y).scores_from_graph(near.head(k))
                inverse = 1 / scores.ranks_of(truth).data
                found = {
                    "ap": nl.metrics.average_precision(truth, scores, convention="paper"),
                    "rare": inverse[rare].mean() if rare.any() else np.nan,
                    "others": inverse[~rare].mean() if not rare.all() else np.nan,
                }
                for part, value in found.items():
                    rounded = None if np.isnan(value) else round(float(value), 4)
                    told[f"{part}_{counts}"] = rounded
            yield told


def main() -> None:
    try:
        rows = [row for name in SETS for row in rows_of(name)]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
