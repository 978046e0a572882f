"""How does ML-kNN compare with other packages in time, and in the published example?"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from measuring import core_seconds, report, taking_turns
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from skmultilearn.adapt import MLkNN as OtherMLkNN

import nearlabel as nl

QUESTION = "ML-kNN and its neighbor search compared with scikit-multilearn-ng and scikit-learn"
K = 10
# The worked example: six rows, and their posteriors by the formulas of the paper.
SIX_ROWS = [[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]]
SIX_LABELS = [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
PUBLISHED = [0.8, 0.294118, 0.048544, 0.951456]


def times(n: int, d: int, q: int) -> dict[str, Any]:
    """Core-seconds of fit and predict_proba on generated data."""
    data = nl.datasets.make_local_labels(n + n // 5, d, q, n_clusters=20, random_state=1)
    X, Y = data.X.astype(np.float64), data.Y.toarray()
    seen, labels, new = X[:n], Y[:n], X[n:]
    plain = KNeighborsClassifier(n_neighbors=K, algorithm="brute")
    best = taking_turns(
        {
            "nearlabel": lambda: nl.MLkNN(n_neighbors=K).fit(seen, labels).predict_proba(new),
            "scikit_learn": lambda: plain.fit(seen, labels).predict_proba(new),
        }
    )
    # Once: it takes longer than all the rest, and a difference of a tenth does not matter.
    other = core_seconds(lambda: OtherMLkNN(k=K).fit(seen, labels).predict_proba(new), 1)
    return {
        "measured": "fit and predict_proba",
        "n": n,
        "new": len(new),
        "d": d,
        "q": q,
        "nearlabel": round(best["nearlabel"], 3),
        "scikit_multilearn_ng": round(other, 3),
        "times_faster_than_ng": round(other / best["nearlabel"], 1),
        "scikit_learn_KNeighborsClassifier": round(best["scikit_learn"], 3),
        "times_faster_than_sklearn": round(best["scikit_learn"] / best["nearlabel"], 2),
    }


def times_of_yeast(n: int = 1500, m: int = 917, d: int = 103, q: int = 14) -> list[dict[str, Any]]:
    """Fit and predict on data of the size of yeast, in core-seconds and wall-clock seconds."""
    data = nl.datasets.make_local_labels(n + m, d, q, n_clusters=20, random_state=1)
    X, Y = data.X.astype(np.float64), data.Y.toarray()
    seen, labels, new = X[:n], Y[:n], X[n:]
    plain = KNeighborsClassifier(n_neighbors=K, algorithm="brute")
    works = {
        "nearlabel": lambda: nl.MLkNN(n_neighbors=K).fit(seen, labels).predict(new),
        "scikit_multilearn_ng": lambda: OtherMLkNN(k=K).fit(seen, labels).predict(new),
        "scikit_learn_KNeighborsClassifier": lambda: plain.fit(seen, labels).predict(new),
    }
    rows = []
    for what, clock in (("core", time.process_time), ("wall-clock", time.perf_counter)):
        best = taking_turns(works, 5, clock)
        rows.append(
            {
                "measured": f"fit and predict on the sizes of yeast, {what} seconds",
                "n": n,
                "new": m,
                "d": d,
                "q": q,
                **{name: round(seconds, 4) for name, seconds in best.items()},
            }
        )
    return rows


def import_times(runs: int = 9) -> list[dict[str, Any]]:
    """Wall-clock seconds of imports in a new process each, minus those of NumPy and SciPy."""
    floor = "import numpy, scipy.sparse"
    codes = [
        floor,
        f"{floor}, nearlabel",
        f"{floor}, nearlabel; nearlabel.neighbor_graph",
        f"{floor}, nearlabel; nearlabel.MLkNN",
        f"{floor}, sklearn.neighbors",
    ]
    seconds: dict[str, list[float]] = {code: [] for code in codes}
    for _ in range(runs):
        for code in codes:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            seconds[code].append(time.perf_counter() - start)
    median = {code: statistics.median(values) for code, values in seconds.items()}
    return [
        {
            "imported": code,
            "median_seconds": round(median[code], 3),
            "above_numpy_and_scipy": round(median[code] - median[floor], 3),
        }
        for code in codes
    ]


def search_times(n: int, d: int) -> dict[str, Any]:
    """Core-seconds of the leave-one-out graph."""
    X = np.random.default_rng(0).normal(size=(n, d))
    brute = NearestNeighbors(n_neighbors=K, algorithm="brute")
    best = taking_turns(
        {
            "nearlabel": lambda: nl.neighbor_graph(X, K),
            "scikit_learn": lambda: brute.fit(X).kneighbors(),
        }
    )
    return {
        "measured": "graph of the rows among themselves",
        "n": n,
        "d": d,
        "nearlabel": round(best["nearlabel"], 3),
        "scikit_learn_brute": round(best["scikit_learn"], 3),
        "times_faster_than_sklearn": round(best["scikit_learn"] / best["nearlabel"], 2),
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000, help="use fewer to try the script")
    n = parser.parse_args().rows
    warnings.simplefilter("ignore")
    rows = [
        *(times(n // 5, 50, q) for q in (20, 200)),
        *(times(n, 100, q) for q in (20, 200)),
        *times_of_yeast(),
        search_times(n, 100),
        *import_times(),
        worked_example(),
    ]
    report(QUESTION, rows, peers=("scikit-multilearn-ng",))


if __name__ == "__main__":
    main()
