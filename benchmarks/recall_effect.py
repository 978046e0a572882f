"""How much do metrics change with approximate neighbors?"""

from __future__ import annotations

from typing import Any

import numpy as np
from measuring import report
from scipy import sparse

import nearlabel as nl
from nearlabel.search.approximate import inverted_lists as lists

QUESTION = (
    "ML-kNN on approximate neighbors, k = 10, leave-one-out: differences of metrics from those on "
    "exact neighbors, with the default seed and the largest of five seeds. These sets are so small "
    "that `search='approximate'` would search them exactly"
)
lists._FEWEST = 1  # otherwise so few rows would be searched exactly
METRICS = ("one_error", "ranking_loss", "average_precision", "coverage_share")
K = 10


def metrics_of(data: Any, X: Any, search: Any) -> tuple[dict[str, float], nl.NeighborGraph]:
    """The metrics of ML-kNN with the neighbors that a search finds."""
    graph = nl.neighbor_graph(X, K, search=search, n_jobs=2)
    model = nl.MLkNN(n_neighbors=K).fit_graph(graph, data.Y, X)
    scores = model._left_out_scores(graph, X, np.arange(len(X)))
    found = nl.metrics.evaluate(data.Y, scores)
    found["coverage_share"] = found["coverage"] / data.Y.shape[1]
    return found, graph


def differences(exact: dict[str, float], runs: list[dict[str, float]]) -> dict[str, list[float]]:
    """The difference of each metric: with the first seed, and the largest."""
    off = {metric: [abs(run[metric] - exact[metric]) for run in runs] for metric in METRICS}
    return {metric: [round(some[0], 5), round(max(some), 5)] for metric, some in off.items()}


def measured(graph: nl.NeighborGraph) -> float:
    """The recall of a graph that is known to be approximate."""
    if graph.recall is None:
        raise ValueError("the search was exact")
    return graph.recall.value


def main() -> None:
    rows = []
    for name in ("image", "scene", "tmc2007_500"):
        data = nl.datasets.load(name)
        X = data.X.toarray() if sparse.issparse(data.X) else data.X
        exact, _ = metrics_of(data, X, "exact")
        for target in (0.999, 0.99, 0.95, 0.9, 0.8):
            runs = [metrics_of(data, X, nl.InvertedLists(target, seed)) for seed in range(5)]
            rows.append(
                {
                    "data": name,
                    "n": len(X),
                    "recall_asked_for": target,
                    "recall_measured": [round(measured(graph), 4) for _, graph in runs],
                    **differences(exact, [found for found, _ in runs]),
                }
            )
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
