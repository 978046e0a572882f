"""How does ML-kNN compare with what else can be installed: time, and the published answer?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from measuring import core_seconds, report
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from skmultilearn.adapt import MLkNN as OtherMLkNN

import nearlabel as nl

QUESTION = "ML-kNN and its neighbor search against scikit-multilearn-ng and scikit-learn"
K = 10
# The worked example: six rows, and the posteriors that the formulas of the paper give.
SIX_ROWS = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
SIX_LABELS = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
PUBLISHED = [0.8, 0.294118, 0.048544, 0.951456]


def times(n: int, d: int, q: int) -> dict[str, Any]:
    """Core-seconds of fit and predict_proba on generated data."""
    data = nl.datasets.make_local_labels(n + n // 5, d, q, n_clusters=20, random_state=1)
    X, Y = data.X.astype(np.float64), data.Y.toarray()
    seen, labels, new = X[:n], Y[:n], X[n:]
    ours = core_seconds(lambda: nl.MLkNN(n_neighbors=K).fit(seen, labels).predict_proba(new))
    plain = core_seconds(
        lambda: (
            KNeighborsClassifier(n_neighbors=K, algorithm="brute")
            .fit(seen, labels)
            .predict_proba(new)
        )
    )
    other = core_seconds(lambda: OtherMLkNN(k=K).fit(seen, labels).predict_proba(new), 1)
    return {
        "measured": "fit and predict_proba",
        "n": n,
        "new": len(new),
        "d": d,
        "q": q,
        "nearlabel": round(ours, 3),
        "scikit_multilearn_ng": round(other, 3),
        "times_faster_than_ng": round(other / ours, 1),
        "scikit_learn_KNeighborsClassifier": round(plain, 3),
        "times_faster_than_sklearn": round(plain / ours, 2),
    }


def search_times(n: int, d: int) -> dict[str, Any]:
    """Core-seconds of the leave-one-out graph."""
    X = np.random.default_rng(0).normal(size=(n, d))
    ours = core_seconds(lambda: nl.neighbor_graph(X, K))
    brute = core_seconds(
        lambda: NearestNeighbors(n_neighbors=K, algorithm="brute").fit(X).kneighbors()
    )
    return {
        "measured": "graph of the rows among themselves",
        "n": n,
        "d": d,
        "nearlabel": round(ours, 3),
        "scikit_learn_brute": round(brute, 3),
        "times_faster_than_sklearn": round(brute / ours, 2),
    }


def worked_example() -> dict[str, Any]:
    """Posteriors of the worked example, and how far each library is from the formulas."""
    X, Y, query = np.array(SIX_ROWS), np.array(SIX_LABELS), np.array([[2.2, 0.4]])
    ours = nl.MLkNN(n_neighbors=3).fit(X, Y).predict_proba(query)[0]
    other = OtherMLkNN(k=3, s=1.0).fit(X, Y).predict_proba(query).toarray()[0]
    return {
        "measured": "posteriors of the worked example",
        "published": PUBLISHED,
        "nearlabel": [round(float(value), 6) for value in ours],
        "scikit_multilearn_ng": [round(float(value), 6) for value in other],
    }


def main() -> None:
    warnings.simplefilter("ignore")
    rows = [times(2000, 50, 20), times(2000, 50, 200), search_times(10_000, 100), worked_example()]
    report(QUESTION, rows, peers=("scikit-multilearn-ng",))


if __name__ == "__main__":
    main()
