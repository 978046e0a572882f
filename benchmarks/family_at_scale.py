"""What does each method take with 100,000 rows and 100,000 labels?

Rows of one topic are near each other, and half of their labels are the topic's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from label_kernels import TOPICS, measured, topic_labels
from measuring import report

import nearlabel as nl
from nearlabel.algorithms import ALGORITHMS, algorithm
from nearlabel.arrays import Array, Csr

QUESTION = "Every method with 100,000 rows and 100,000 labels: fit, and the ten best of new rows"
N, Q, D, K, NEW, TOP = 100_000, 100_000, 32, 10, 1_000, 10


def problem() -> tuple[Array, Csr, Array]:
    """Vectors and labels of rows, and vectors of new ones."""
    rng = np.random.default_rng(0)
    topic = rng.integers(TOPICS, size=N + NEW)
    centers = rng.normal(size=(TOPICS, D)).astype(np.float32)
    X = centers[topic] + rng.normal(size=(N + NEW, D)).astype(np.float32) / 2
    return X[:N], topic_labels(rng, topic[:N], Q), X[N:]


def row(name: str, X: Array, Y: Csr, new: Array) -> dict[str, Any]:
    model = algorithm(name, K, random_state=0)
    told = {"method": name, "n": N, "q": Q, "k": K}
    try:
        model, fitting = measured(lambda: model.fit(X, Y))
    except MemoryError as error:
        return {**told, "refused": str(error)}
    _, ranking = measured(lambda: model.rank(new, top=TOP))
    _, deciding = measured(lambda: model.predict(new))
    return {
        **told,
        "fit_core_seconds": fitting["core_seconds"],
        "fit_peak_mib": fitting["peak_mib"],
        "rank_ms_a_row": round(1000 * ranking["core_seconds"] / NEW, 3),
        "rank_peak_mib": ranking["peak_mib"],
        "predict_ms_a_row": round(1000 * deciding["core_seconds"] / NEW, 3),
        "predict_peak_mib": deciding["peak_mib"],
    }


def main() -> None:
    X, Y, new = problem()
    nl.MLkNN(n_neighbors=K).fit(X[:1000], Y[:1000])  # so that imports are nobody's memory
    report(QUESTION, [row(name, X, Y, new) for name in ALGORITHMS])


if __name__ == "__main__":
    main()
