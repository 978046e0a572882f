"""What does each method cost with 100,000 rows and 100,000 labels?

Rows of one topic are near each other, and half of their labels are those of the topic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from label_kernels import TOPICS, topic_labels
from measuring import core_seconds, process_peak_mib, report

import nearlabel as nl
from nearlabel.common.arrays import Array, Csr
from nearlabel.methods.registry import METHODS, estimator

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
    model = estimator(name, K, random_state=0)
    told = {"method": name, "n": N, "q": Q, "k": K}
    works = {
        "fit": lambda: model.fit(X, Y),
        "rank": lambda: model.rank(new, top=TOP),
        "predict": lambda: model.predict(new),
    }
    seconds = {}

    def all_of_it() -> None:
        for what, work in works.items():
            seconds[what] = core_seconds(work, 1)

    try:
        peak = process_peak_mib(all_of_it)
    except MemoryError as error:
        return {**told, "refused": str(error)}
    return {
        **told,
        "fit_core_seconds": round(seconds["fit"], 2),
        "rank_ms_a_row": round(1000 * seconds["rank"] / NEW, 3),
        "predict_ms_a_row": round(1000 * seconds["predict"] / NEW, 3),
        "peak_mib_of_the_whole_process": round(peak),
    }


def main() -> None:
    X, Y, new = problem()
    nl.MLkNN(n_neighbors=K).fit(X[:1000], Y[:1000])  # so that imports are not counted
    report(QUESTION, [row(name, X, Y, new) for name in METHODS])


if __name__ == "__main__":
    main()
