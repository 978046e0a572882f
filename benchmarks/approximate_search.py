"""How fast is the approximate graph of hard data, compared with faiss at the same recall?

Usage: python approximate_search.py [--rows N]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import faiss
import numpy as np
from measuring import report

import nearlabel as nl

QUESTION = (
    "The graph of overlapping clusters at a recall of 0.98, 128 features, 100 neighbors: "
    "core-seconds on one thread, including training and building. faiss is tuned on 1,000 rows: "
    "for each index, the cheapest setting that reaches the recall on them, with 2, 4 and 8 times "
    "the square root of twice the rows as lists, and graphs of 16 and 32 links. Its time for all "
    "rows is extrapolated from 10,000 random ones"
)
K, RECALL, TUNED, TIMED = 100, 0.98, 1_000, 10_000


def settings(first: int, last: int) -> list[int]:
    """Values to try, each a tenth larger than the previous one."""
    count = int(np.ceil(np.log(last / first) / np.log(1.1)))
    return sorted({round(first * 1.1**step) for step in range(count)} | {last})


def lists(n: int) -> Iterator[tuple[str, Any, Callable[[Any, int], None], list[int]]]:
    """Indexes of faiss with inverted lists, and the parameter for the number of probes."""
    for factor in (2, 4, 8):
        count = int(factor * np.sqrt(2 * n))

        def probe(index: Any, value: int) -> None:
            index.nprobe = value

        made = faiss.index_factory(128, f"IVF{count},Flat")
        yield f"faiss IVF{count},Flat", made, probe, settings(8, count)


def links(n: int) -> Iterator[tuple[str, Any, Callable[[Any, int], None], list[int]]]:  # noqa: ARG001
    """Indexes of faiss with a graph, and the parameter for the number of candidates."""
    for count in (16, 32):

        def sight(index: Any, value: int) -> None:
            index.hnsw.efSearch = value

        made = faiss.IndexHNSWFlat(128, count)
        made.hnsw.efConstruction = 80
        yield f"faiss HNSW{count}", made, sight, settings(K + 1, 4_000)


def recall(found: Any, farthest: Any, X: Any, rows: Any) -> float:
    """The share of neighbors, without the row itself, that are as near as the k-th nearest row."""
    shares = []
    for own, names, limit in zip(rows, found, farthest, strict=True):
        others = names[(names != own) & (names >= 0)][:K]
        apart = X[others].astype(np.float64) - X[own].astype(np.float64)
        shares.append(np.sum(np.sqrt((apart**2).sum(axis=1)) <= limit * (1 + 1e-6)) / K)
    return float(np.mean(shares))


def theirs(X: Any, rows: Any, farthest: Any, name: str, index: Any, tune: Any, steps: Any) -> Any:
    """Build an index, tune it, and search for the neighbors of all rows."""
    start = time.process_time()
    index.train(X)
    index.add(X)
    built = time.process_time() - start

    def reached(step: int) -> float:
        tune(index, step)
        return recall(index.search(X[rows], K + 1)[1], farthest, X, rows)

    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(steps[middle]) >= RECALL else (middle + 1, high)
    step = steps[high]
    found_recall = reached(step)
    if found_recall < RECALL:
        raise RuntimeError(f"{name} does not reach a recall of {RECALL}")
    some = X[np.random.default_rng(1).choice(len(X), min(len(X), TIMED), replace=False)]
    start = time.process_time()
    index.search(some, K + 1)
    searched = (time.process_time() - start) * len(X) / len(some)
    found = {
        "search": name,
        "setting": step,
        "recall": round(found_recall, 4),
        "build": round(built, 1),
        "all_rows": round(searched, 1),
        "core_seconds": round(built + searched, 1),
    }
    print(found, file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="use fewer to try the script")
    n = parser.parse_args().rows
    faiss.omp_set_num_threads(1)
    X = np.asarray(nl.datasets.make_collection(n, 128, 1_000, overlap=4.0, n_queries=1).data.X)
    start = time.process_time()
    graph = nl.neighbor_graph(X, K, search=nl.InvertedLists(RECALL), n_jobs=1)
    seconds = time.process_time() - start
    rows = np.sort(np.random.default_rng(0).choice(n, min(n, TUNED), replace=False))
    exact = nl.neighbor_graph(X, K + 1, X[rows], search="exact").without(rows)
    farthest = exact.distances[:, -1]
    ours = {
        "search": "nearlabel InvertedLists",
        "setting": RECALL,
        "recall": round(recall(graph.indices[rows], farthest, X, rows), 4),
        "build": None,
        "all_rows": None,
        "core_seconds": round(seconds, 1),
    }
    print(ours, file=sys.stderr, flush=True)
    found = [theirs(X, rows, farthest, *one) for kind in (lists, links) for one in kind(n)]
    start = time.process_time()
    nl.neighbor_graph(X, K, search="exact", n_jobs=1)
    exactly = {**ours, "search": "nearlabel exact", "setting": None, "recall": 1.0}
    exactly["core_seconds"] = round(time.process_time() - start, 1)
    table = [ours, exactly, *found]
    for row in table:
        row["times_slower"] = round(row["core_seconds"] / seconds, 2)
    report(QUESTION, [{"n": n, **row} for row in table], peers=("faiss-cpu",))


if __name__ == "__main__":
    main()
