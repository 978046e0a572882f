"""How much memory do `fit_graph` and ranking take with many labels, above their inputs?"""

from __future__ import annotations

from typing import Any

import numpy as np
from measuring import core_seconds, peak_mib, report
from scipy import sparse

import nearlabel as nl

QUESTION = "Memory of ML-kNN with many labels, given the graph"
LABELS_A_ROW, K, TOP = 5, 10, 10


def problem(n: int, q: int) -> tuple[nl.NeighborGraph, Any]:
    """A random graph, the worst case: the neighbors of a row have nothing in common."""
    rng = np.random.default_rng(0)
    # Distinct neighbors, none of them the row itself: different steps round a circle of rows.
    steps = np.sort(rng.integers(1, (n - 1) // K, (n, K)) + np.arange(K) * ((n - 1) // K), axis=1)
    indices = (np.arange(n)[:, None] + steps) % n
    graph = nl.NeighborGraph(indices, np.sort(rng.random((n, K)), axis=1), n)
    # Distinct labels, one from each fifth of the vocabulary, few of them often and most rarely.
    fifth = q // LABELS_A_ROW
    labels = (fifth * rng.random((n, LABELS_A_ROW)) ** 3).astype(np.int64)
    labels += fifth * np.arange(LABELS_A_ROW)
    indptr = np.arange(0, labels.size + 1, LABELS_A_ROW)
    return graph, sparse.csr_array((np.ones(labels.size, np.int8), labels.ravel(), indptr), (n, q))


def main() -> None:
    rows = []
    for n, q in ((10_000, 100_000), (100_000, 10_000), (100_000, 100_000), (100_000, 1_000_000)):
        graph, Y = problem(n, q)
        model = nl.MLkNN(n_neighbors=K)
        fit_mib = peak_mib(lambda: model.fit_graph(graph, Y))  # noqa: B023
        rank_mib = peak_mib(lambda: model.scores_from_graph(graph).rank(top=TOP))  # noqa: B023
        rows.append(
            {
                "n": n,
                "q": q,
                "labels_a_row": round(Y.nnz / n, 2),
                "k": K,
                "fit_graph_peak_mib": round(fit_mib),
                "rank_top_10_peak_mib": round(rank_mib),
                "dense_label_matrix_mib": round(n * q * 8 / 2**20),
                "fit_graph_core_seconds": round(
                    core_seconds(lambda: model.fit_graph(graph, Y)),  # noqa: B023
                    2,
                ),
                "rank_top_10_core_seconds": round(
                    core_seconds(lambda: model.scores_from_graph(graph).rank(top=TOP), 1),  # noqa: B023
                    2,
                ),
            }
        )
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
