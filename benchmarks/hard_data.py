"""How much longer do duplicates, ties and far clusters take than ordinary data?"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
from measuring import report, taking_turns
from scipy import sparse

import nearlabel as nl

QUESTION = (
    "Search of data with loose bounds, compared with ordinary data of the same shape, metric "
    "and search: core-seconds on one thread, best of interleaved repeats"
)
K = 10


def dense_data(n: int, d: int) -> dict[str, Any]:
    """Ordinary rows first, then rows for which bounds from a product are loose."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    row = np.arange(n)
    few = rng.standard_normal((64, d))
    return {
        "ordinary": X,
        "all rows equal": np.ones((n, d)),
        "half of the rows equal": np.where((row % 2)[:, None] == 0, X, 1.0),
        "every row three times": X[row % (n // 3)],
        "many equal distances": rng.integers(0, 2, (n, d)).astype(np.float64),
        "two far clusters": X + 1e6 * few[row % 2],
        "64 far clusters": X + 1e6 * few[row % 64],
        "two clusters, farther": X + 1e10 * few[row % 2],
    }


def dense(n: int, d: int, metric: str, how: str) -> list[dict[str, Any]]:
    """The graph of n dense rows."""
    searches = {"exact": nl.ExactSearch(), "approximate": nl.InvertedLists()}
    options: dict[str, Any] = {"metric": metric, "search": searches[how], "n_jobs": 1}
    works = {
        name: partial(nl.neighbor_graph, X, K, **options) for name, X in dense_data(n, d).items()
    }
    return _rows(works, {"measured": how, "metric": metric, "n": n, "d": d})


def rare_features(n: int, d: int) -> list[dict[str, Any]]:
    """Sparse rows that hardly share any features, compared with rows that share many."""
    rng = np.random.default_rng(0)
    stored = 40
    found = []
    for metric in ("euclidean", "cosine"):
        works = {}
        for name, features in (("ordinary", d // 1000), ("nothing in common", d)):
            columns = np.concatenate([rng.choice(features, stored, False) for _ in range(n)])
            parts = rng.random(n * stored), columns, np.arange(0, n * stored + 1, stored)
            X = sparse.csr_array(parts, shape=(n, d))
            X.sort_indices()
            works[name] = partial(nl.neighbor_graph, X, K, metric=metric, n_jobs=1)
        found += _rows(works, {"measured": "exact, CSR", "metric": metric, "n": n, "d": d})
    return found


def _rows(works: dict[str, Any], what: dict[str, Any]) -> list[dict[str, Any]]:
    best = taking_turns(works, 2)
    return [
        {
            **what,
            "k": K,
            "data": name,
            "seconds": round(seconds, 3),
            "times_ordinary": round(seconds / best["ordinary"], 2),
        }
        for name, seconds in best.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=33_000, help="use fewer to try the script")
    n = parser.parse_args().rows
    rows = [
        *(row for metric in ("euclidean", "cosine") for row in dense(n, 16, metric, "exact")),
        *(row for metric in ("euclidean", "cosine") for row in dense(n, 16, metric, "approximate")),
        *rare_features(min(n, 4000), 2_000_000),
    ]
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
