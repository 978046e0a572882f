"""How fast is exact search on sparse rows, such as bags of words?"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
from measuring import report, taking_turns
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

import nearlabel as nl

QUESTION = (
    "Exact search on sparse rows, bags of words of length one and rows that hardly share any "
    "features: core-seconds on one thread, best of interleaved repeats"
)
TOPICS, K = 50, 10


def bags(n: int, d: int, words: int) -> Any:
    """Rows of `words` distinct words each: by Zipf's law, in a random order for each topic."""
    rng = np.random.default_rng(0)
    zipf = 1 / np.arange(1, d + 1)
    columns = np.empty((n, words), np.int64)
    for topic in range(TOPICS):
        rows = np.arange(topic, n, TOPICS)
        weights = zipf + zipf[rng.permutation(d)]  # common words, and those of the topic
        # The words with the least waiting times are a weighted sample without replacement.
        waiting = rng.exponential(size=(len(rows), d)) / weights
        columns[rows] = np.argpartition(waiting, words, axis=1)[:, :words]
    columns.sort(axis=1)
    counts = rng.geometric(0.5, columns.size).astype(np.float64)
    indptr = np.arange(0, columns.size + 1, words)
    X = sparse.csr_array(
        (counts, columns.ravel().astype(np.int32), indptr.astype(np.int32)), (n, d)
    )
    return normalize(X)


def strangers(n: int, d: int, words: int) -> Any:
    """Rows of `words` features each, all equally likely: most pairs of rows share none."""
    rng = np.random.default_rng(0)
    columns = np.sort([rng.choice(d, words, replace=False) for _ in range(n)]).ravel()
    return sparse.csr_array(
        (rng.random(n * words), columns, np.arange(0, n * words + 1, words)), (n, d)
    )


def search_times(data: str, X: Any, words: int, metric: str) -> dict[str, Any]:
    """Core-seconds of the graph of the rows of X."""
    brute = NearestNeighbors(n_neighbors=K, algorithm="brute", metric=metric).fit(X)
    best = taking_turns(
        {
            "nearlabel": partial(nl.neighbor_graph, X, K, metric=metric, n_jobs=1),
            "scikit_learn": brute.kneighbors,
        }
    )
    ours = nl.neighbor_graph(X, K, metric=metric, n_jobs=1).distances
    theirs = brute.kneighbors()[0]
    return {
        "data": data,
        "metric": metric,
        "n": X.shape[0],
        "d": X.shape[1],
        "stored_a_row": words,
        "k": K,
        **{name: round(seconds, 3) for name, seconds in best.items()},
        "times_faster_than_scikit_learn": round(best["scikit_learn"] / best["nearlabel"], 2),
        # Many distances tie, so rows may differ although distances are equal.
        "largest_difference_of_distances": float(f"{np.abs(ours - theirs).max():.1e}"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8000, help="use fewer to try the script")
    n = parser.parse_args().rows
    cases = [
        ("bags of words", bags(n, 10_000, 100), 100),
        ("bags of words", bags(n, 1000, 12), 12),
        ("nothing in common", strangers(n // 2, 2_000_000, 40), 40),
    ]
    rows = [search_times(*case, metric) for case in cases for metric in ("cosine", "euclidean")]
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
