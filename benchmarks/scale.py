"""How much time and memory do a million items with 190,000 labels need, and how do they grow?

Each measurement runs in a separate process, which maps the vectors from a file.

Usage: python scale.py [--rows N] [--hard]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from hard_clusters import hard_clusters
from measuring import peak_anonymous_mib, report
from scipy import sparse

import nearlabel as nl

QUESTION = (
    "ML-kNN at scale: core-seconds and wall-clock seconds with two threads, and peak memory of the "
    "whole process without the mapped vectors; vectors, labels and new items by make_collection; "
    "the vectors of hard clusters by benchmarks/hard_clusters.py"
)
N, D, Q, K = 1_000_000, 128, 190_000, 100
HARD = 4.0  # overlap: regions overlap each other
SINGLE, BATCH = 1_000, 10_000


def make(folder: Path, n: int, d: int, q: int, overlap: float) -> None:
    """Write a collection as files."""
    made = nl.datasets.make_collection(
        n, d, q, overlap=overlap, n_queries=BATCH, out=folder / "vectors.npy"
    )
    sparse.save_npz(folder / "labels.npz", sparse.csr_matrix(made.data.Y), compressed=False)
    np.save(folder / "queries.npy", made.queries.X)


def make_hard(folder: Path, n: int, q: int) -> None:
    """Write hard clusters as files, with the labels of a collection."""
    make(folder, n, 1, q, 0.5)
    X, queries = hard_clusters(n, BATCH)
    np.save(folder / "vectors.npy", X)
    np.save(folder / "queries.npy", queries)


def collection(folder: Path, n: int) -> tuple[Any, Any, Any]:
    """The first n items of a collection, and its new ones."""
    X = np.load(folder / "vectors.npy", mmap_mode="r")[:n]
    return X, sparse.load_npz(folder / "labels.npz")[:n], np.load(folder / "queries.npy")


def fit(folder: Path, n: int, k: int, recall: float, answers: bool) -> dict[str, Any]:
    """One fit, and the time of its predictions."""
    X, Y, queries = collection(folder, n)
    search = nl.InvertedLists(recall)
    model = nl.MLkNN(n_neighbors=k, search=search, n_jobs=2)
    times = {}

    def work() -> None:
        core, wall = time.process_time(), time.perf_counter()
        model.fit(X, Y)
        times["core_seconds"] = round(time.process_time() - core, 1)
        times["wall_seconds"] = round(time.perf_counter() - wall, 1)

    times["peak_gib"] = round(peak_anonymous_mib(work) / 1024, 2)
    measured = model.search_recall_
    times["recall"] = 1.0 if measured is None else round(measured.value, 4)
    return {**times, **(rank(model, queries) if answers else {})}


def rank(model: Any, queries: Any) -> dict[str, Any]:
    """Times to rank the ten best labels of new items, one by one and in a batch."""
    model.set_params(n_jobs=1)
    seconds = []
    for row in range(SINGLE // 10 + SINGLE):
        start = time.perf_counter()
        model.rank(queries[row : row + 1], top=10)
        seconds.append(time.perf_counter() - start)
    seconds = seconds[SINGLE // 10 :]  # without the warm-up
    model.set_params(n_jobs=2)
    start = time.perf_counter()
    model.rank(queries, top=10)
    batch = time.perf_counter() - start
    return {
        "single_ms_half_within": round(1e3 * float(np.median(seconds)), 2),
        "single_ms_99_percent_within": round(1e3 * float(np.quantile(seconds, 0.99)), 2),
        "batch_items_a_second": round(len(queries) / batch),
    }


def exact(folder: Path, n: int, k: int) -> dict[str, Any]:
    """One exact search."""
    X, _, _ = collection(folder, n)
    core, wall = time.process_time(), time.perf_counter()
    nl.neighbor_graph(X, k, search="exact", n_jobs=2)
    return {
        "core_seconds": round(time.process_time() - core, 1),
        "wall_seconds": round(time.perf_counter() - wall, 1),
    }


def in_a_new_process(what: str, *arguments: object) -> Any:
    """The result of a function of this script, run in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "--do", what, *map(str, arguments)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)


def measured_fit(
    folder: Path, data: str, size: tuple[int, int, int, int], recall: float = 0.99, answers: int = 0
) -> dict[str, Any]:
    """A row of the report."""
    n, d, q, k = size
    found = in_a_new_process("fit", folder, n, k, recall, answers)
    print(data, size, recall, found, file=sys.stderr, flush=True)
    return {"measured": "MLkNN.fit", "data": data, "n": n, "d": d, "q": q, "k": k, **found}


def of_one_size(folder: Path, n: int) -> list[dict[str, Any]]:
    """The paper's size, with predictions; smaller sizes; the exact search; harder data."""
    parts = [n // 8, n // 4, n // 2]
    grown = []
    for part in parts:
        in_a_new_process("make", folder, part, D, Q, 0.5)
        grown.append(measured_fit(folder, "clusters", (part, D, Q, K)))
    in_a_new_process("make", folder, n, D, Q, 0.5)
    whole = measured_fit(folder, "clusters", (n, D, Q, K), answers=1)
    answered = ("single_ms_half_within", "single_ms_99_percent_within", "batch_items_a_second")
    said = {name: whole.pop(name) for name in answered}
    sizes = np.log([*parts, n])
    seconds = np.log([row["core_seconds"] for row in [*grown, whole]])
    rows = [*grown, whole]
    for part in (n // 32, n // 16, n // 8):
        found = in_a_new_process("exact", folder, part, K)
        rows.append({"measured": "exact graph", "n": part, "d": D, "k": K, **found})
    in_a_new_process("make", folder, n, D, Q, HARD)
    rows.append(measured_fit(folder, "overlapping clusters", (n, D, Q, K), 0.95))
    rows.append(
        {
            "measured": "growth of MLkNN.fit",
            "from_n": parts[0],
            "to_n": n,
            "exponent": round(float(np.polyfit(sizes, seconds, 1)[0]), 3),
        }
    )
    rows.append({"measured": "MLkNN.rank, the ten best labels", "n": n, "q": Q, **said})
    return rows


def of_many_sizes(folder: Path, n: int) -> list[dict[str, Any]]:
    """Changes the numbers of features, labels and neighbors one at a time."""
    rows = []
    for d in (32, 512):
        in_a_new_process("make", folder, n, d, Q, 0.5)
        rows.append(measured_fit(folder, "clusters", (n, d, Q, K)))
    for q in (1_000, 20_000):
        in_a_new_process("make", folder, n, D, q, 0.5)
        rows.append(measured_fit(folder, "clusters", (n, D, q, K)))
    in_a_new_process("make", folder, n, D, Q, 0.5)
    rows += [measured_fit(folder, "clusters", (n, D, Q, k)) for k in (10, 30)]
    return rows


def of_hard_clusters(folder: Path, n: int) -> list[dict[str, Any]]:
    """The paper's size with neighbors that are hard to find, with predictions."""
    in_a_new_process("make_hard", folder, n, Q)
    return [measured_fit(folder, "hard clusters", (n, D, Q, K), answers=1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=N, help="use fewer to try the script")
    parser.add_argument("--hard", action="store_true", help="only the hard clusters")
    parser.add_argument("--do", nargs="+", help="the work of a new process")
    arguments = parser.parse_args()
    if arguments.do:
        what, folder, *numbers = arguments.do
        values = [float(number) if "." in number else int(number) for number in numbers]
        works: dict[str, Any] = {"make": make, "make_hard": make_hard, "fit": fit, "exact": exact}
        done = works[what](Path(folder), *values)
        json.dump(done, sys.stdout)
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        if not arguments.hard:
            rows += of_one_size(Path(folder), arguments.rows)
            rows += of_many_sizes(Path(folder), arguments.rows // 4)
        rows += of_hard_clusters(Path(folder), arguments.rows)
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
