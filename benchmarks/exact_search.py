"""How fast is exact search on dense rows, compared with the matrix product and with others?"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import faiss
import numpy as np
from measuring import MIB, core_seconds, peak_mib, report, taking_turns
from sklearn.neighbors import NearestNeighbors

import nearlabel as nl

QUESTION = (
    "Exact search on dense rows: core-seconds on one thread, best of interleaved repeats. "
    "The product is that of all rows with all rows in float32, by BLAS, in blocks; a graph of the "
    "rows among themselves needs only half of it"
)
BLOCKS = ((768, 768), (512, 8192), (1024, 4096), (2048, 2048))


def product(queries: Any, rows: Any, block: tuple[int, int]) -> None:
    """Compute all inner products without keeping them."""
    tall, wide = block
    out = np.empty((tall, wide), np.float32)
    for top in range(0, len(queries), tall):
        for left in range(0, len(rows), wide):
            a, b = queries[top : top + tall], rows[left : left + wide]
            np.matmul(a, b.T, out=out[: len(a), : len(b)])


def fastest_block(rows: Any) -> tuple[int, int]:
    """The block shape for which BLAS is fastest on this machine."""
    part = rows[:8192]
    works = {block: partial(product, part, part, block) for block in BLOCKS}
    seconds = {block: core_seconds(work) for block, work in works.items()}
    return min(BLOCKS, key=lambda block: seconds[block])


def shared(ours: Any, theirs: Any) -> float:
    """The share of our neighbors that others found; they may have one more, the row itself."""
    same = [len(np.intersect1d(a, b)) for a, b in zip(ours, theirs, strict=True)]
    return float(np.sum(same) / ours.size)


def searches(n: int, d: int, k: int, *, m: int | None = None, dtype: Any = np.float32) -> Any:
    """One case: the graph of n rows or, with m, the neighbors of m other rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=dtype)
    new = None if m is None else rng.standard_normal((m, d), dtype=dtype)
    rows = X.astype(np.float32)
    queries = rows if new is None else new.astype(np.float32)
    # Others do not exclude a row from its own neighbors.
    more = k + (new is None)
    brute = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X)
    works: dict[str, Callable[[], Any]] = {
        "product": partial(product, queries, rows, fastest_block(rows)),
        "nearlabel": lambda: nl.neighbor_graph(X, k, new, n_jobs=1),
        "faiss": lambda: faiss.knn(queries, rows, more),
        "scikit_learn": lambda: brute.kneighbors(new),
    }
    best = taking_turns(works)
    ours = best["nearlabel"]
    found = nl.neighbor_graph(X, k, new, n_jobs=1).indices
    return {
        "measured": "graph of the rows" if new is None else "other rows",
        "n": n,
        "m": n if m is None else m,
        "d": d,
        "k": k,
        "input": np.dtype(dtype).name,
        **{name: round(seconds, 3) for name, seconds in best.items()},
        "times_the_product": round(ours / best["product"], 2),
        "times_faster_than_faiss": round(best["faiss"] / ours, 2),
        "times_faster_than_scikit_learn": round(best["scikit_learn"] / ours, 2),
        "neighbors_as_faiss": round(shared(found, faiss.knn(queries, rows, more)[1]), 6),
    }


def threads(n: int, d: int, k: int) -> dict[str, Any]:
    """Wall-clock time with one thread and with two."""
    X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    works = {f"n_jobs_{jobs}": partial(nl.neighbor_graph, X, k, n_jobs=jobs) for jobs in (1, 2)}
    best = taking_turns(works, 5, time.perf_counter)
    return {
        "measured": "graph of the rows, wall-clock seconds",
        "n": n,
        "d": d,
        "k": k,
        **{name: round(seconds, 3) for name, seconds in best.items()},
        "times_faster": round(best["n_jobs_1"] / best["n_jobs_2"], 2),
    }


def awkward(n: int, d: int = 50) -> dict[str, Any]:
    """Data for which bounds from a product are loose."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return {
        "Gaussian": X,
        "two far clusters": X + 1e6 * (np.arange(n) % 2)[:, None],
        "unscaled features": X * 10.0 ** np.linspace(-3, 6, d),
        "integers with many ties": rng.integers(0, 2, (n, d)).astype(np.float64),
    }


def seconds_and_answers(n: int, k: int) -> dict[str, Any]:
    """Core-seconds of this process's engine on awkward data, and a digest of the graph."""
    found = {}
    for name, X in awkward(n).items():
        graph = nl.neighbor_graph(X, k, n_jobs=1)
        digest = hashlib.sha256(graph.indices.astype(np.int64).tobytes())
        digest.update(graph.distances.astype(np.float64).tobytes())
        seconds = core_seconds(partial(nl.neighbor_graph, X, k, n_jobs=1), 2)
        found[name] = {"seconds": seconds, "answer": digest.hexdigest()}
    return found


def mib_above_inputs(n: int, d: int, k: int) -> float:
    """Peak memory of the graph of n rows, in a new process."""
    X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    nl.neighbor_graph(X[: 2 * k], k)  # imports and starts threads
    return peak_mib(partial(nl.neighbor_graph, X, k))


def memory(n: int, d: int, k: int) -> dict[str, Any]:
    """Peak memory in addition to the graph itself."""
    return {
        "measured": "graph of the rows, peak MiB above the rows",
        "n": n,
        "d": d,
        "k": k,
        "peak_mib": round(in_a_new_process("auto", "--memory", n, d, k)),
        "graph_mib": round(n * k * 12 / MIB, 1),
    }


def in_a_new_process(engine: str, *arguments: object) -> Any:
    """The output of this script with some arguments and one of the engines."""
    done = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)],
        env={**os.environ, "NEARLABEL_ENGINE": engine},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def engines(n: int, k: int) -> list[dict[str, Any]]:
    """Both engines on awkward data, in separate processes that alternate."""
    runs: dict[str, list[Any]] = {"auto": [], "numpy": []}
    for _ in range(3):
        for engine, results in runs.items():
            results.append(in_a_new_process(engine, "--awkward", n, k))
    rows = []
    for name in runs["auto"][0]:
        best = {
            engine: min(run[name]["seconds"] for run in results) for engine, results in runs.items()
        }
        answers = {run[name]["answer"] for results in runs.values() for run in results}
        rows.append(
            {
                "measured": f"graph of the rows: {name}",
                "n": n,
                "k": k,
                "nearlabel": round(best["auto"], 3),
                "nearlabel_by_numpy": round(best["numpy"], 3),
                "times_faster_than_numpy": round(best["numpy"] / best["auto"], 2),
                "same_to_the_last_bit": len(answers) == 1,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="use fewer to try the script")
    parser.add_argument("--awkward", type=int, nargs=2, help="n and k; used by `engines`")
    parser.add_argument("--memory", type=int, nargs=3, help="n, d and k; used by `memory`")
    arguments = parser.parse_args()
    if arguments.awkward:
        json.dump(seconds_and_answers(*arguments.awkward), sys.stdout)
        return
    if arguments.memory:
        json.dump(mib_above_inputs(*arguments.memory), sys.stdout)
        return
    faiss.omp_set_num_threads(1)
    n = arguments.rows
    rows = [
        searches(n, 100, 10),
        searches(n, 100, 100),
        searches(n // 2, 500, 10),
        searches(n, 100, 10, m=n),
        searches(n, 100, 10, dtype=np.float64),
        *(threads(n, 100, k) for k in (10, 100)),
        *engines(n // 4, 10),
        *(memory(rows, 100, k) for rows in (n, 2 * n) for k in (10, 100)),
    ]
    report(QUESTION, rows, peers=("faiss-cpu",))


if __name__ == "__main__":
    main()
