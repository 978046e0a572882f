"""What does a cluster cost compared with one process, and how much memory does a worker need?"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster
from measuring import MIB, report

import nearlabel as nl

QUESTION = (
    "On a cluster: core-seconds of two single-thread worker processes, the scheduler and the "
    "client together, compared with one process with one thread; exact search, one folder of "
    "blocks. Every graph is the same to the last bit"
)
ROWS_AT_ONCE = 2**14
PYTHON_MIB = 180  # of a worker that has imported everything and read nothing yet
MOST_USED = 0.7  # of the limit of a worker, which pauses above 0.8


@contextmanager
def two_workers(memory: str | None = None) -> Iterator[Client]:
    """Two worker processes with one thread each, and their client."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(nl.neighbor_graph, np.eye(4), 2)  # imports happen only once
        yield client


def core_seconds_of_all(client: Client, work: Callable[[], Any]) -> tuple[float, Any]:
    """The result of some work, and the CPU time of all workers and of this process."""

    def now() -> float:
        return float(time.process_time() + sum(client.run(time.process_time).values()))

    start = now()
    result = work()
    return now() - start, result


def peak_of_worker() -> float:
    """Peak memory of this process in MiB. Linux."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def write_blocks(folder: Path, rows: Any, size: int) -> None:
    folder.mkdir()
    for start in range(0, len(rows), size):
        np.save(folder / f"{start:09}.npy", rows[start : start + size])


def digest(graphs: Any) -> str:
    """A digest of a graph, independent of its division into parts."""
    indices, distances = hashlib.sha256(), hashlib.sha256()
    for graph in graphs:
        indices.update(graph.indices.astype(np.int64).tobytes())
        distances.update(graph.distances.astype(np.float64).tobytes())
    return indices.hexdigest() + distances.hexdigest()


def alone(X: Any, k: int) -> tuple[float, str]:
    """Core-seconds of one process with one thread, and a digest of its graph."""
    nl.neighbor_graph(X[:1000], k, search="exact", n_jobs=1)  # imports everything first
    start = time.process_time()
    graph = nl.neighbor_graph(X, k, search="exact", n_jobs=1)
    taken = time.process_time() - start
    return taken, digest(block for _, block in graph.blocks(ROWS_AT_ONCE))


def by_two(X: Any, k: int, size: int, one: tuple[float, str], folder: Path) -> dict[str, Any]:
    """Two workers with blocks of one size, compared with one process."""
    blocks, (n, d) = folder / f"blocks-{size}", X.shape
    write_blocks(blocks, X, size)
    with two_workers() as client, tempfile.TemporaryDirectory(dir=folder) as scratch:
        search = partial(nl.distributed.neighbor_graph, blocks, k, client)
        work = partial(search, search="exact", folder=scratch)
        taken, found = core_seconds_of_all(client, work)
        parts = (part for block in found.blocks() for _, part in block.blocks(ROWS_AT_ONCE))
        same = digest(parts) == one[1]
        peak = max(client.run(peak_of_worker).values())
    count = -(-n // size)
    return {
        "measured": "graph of the rows",
        "n": n,
        "d": d,
        "k": k,
        "rows_a_block": size,
        "calls": count * (count + 1) // 2,
        "one_process": round(one[0], 1),
        "two_workers": round(taken, 1),
        "times": round(taken / one[0], 3),
        "peak_mib_of_a_worker": round(peak),
        "same_to_the_last_bit": same,
    }


def overhead(n: int, d: int, k: int, sizes: tuple[int, ...], folder: Path) -> list[dict[str, Any]]:
    """One process, and two workers with blocks of several sizes."""
    X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    one = alone(X, k)
    return [by_two(X, k, size, one, folder) for size in sizes]


def constants(rows: list[dict[str, Any]], n: int, folder: Path) -> list[dict[str, Any]]:
    """The constants of the cost model: products, reading and writing of lists, and calls."""
    first, last = rows[0], rows[-1]
    products = first["one_process"] / (first["n"] ** 2 * first["d"])
    blocks = [-(-row["n"] // row["rows_a_block"]) for row in (first, last)]
    lists = (first["two_workers"] - last["two_workers"]) / (blocks[0] - blocks[1])
    X = np.random.default_rng(0).standard_normal((n, 4), dtype=np.float32)
    size = n // 40
    write_blocks(folder / "small", X, size)
    with two_workers() as client, tempfile.TemporaryDirectory(dir=folder) as scratch:
        taken, _ = core_seconds_of_all(
            client,
            lambda: nl.distributed.neighbor_graph(folder / "small", 5, client, folder=scratch),
        )
    return [
        {
            "constant": "rows x rows x features",
            "nanoseconds": round(1e9 * products, 5),
        },
        {
            "constant": "rows x neighbors x blocks: lists that are read, merged and written",
            "nanoseconds": round(1e9 * lists / (first["n"] * first["k"]), 5),
        },
        {
            "constant": "calls: two blocks of little work",
            "nanoseconds": round(1e9 * taken / (40 * 41 / 2)),
        },
    ]


def larger_than_memory(limit_mib: int, folder: Path) -> dict[str, Any]:
    """A fit to vectors three times as large as the memory of two workers together.

    There are few wide rows: their products take seconds, while as many numbers in many rows would
    take hours. They vary in 16 directions only, so that their distances differ.
    """
    random = np.random.default_rng(0)
    d = 100_000
    size = int(MOST_USED * limit_mib - PYTHON_MIB) * MIB // (16 * d)
    n = 6 * limit_mib * MIB // (4 * d) + size
    blocks = folder / "wide"
    blocks.mkdir()
    directions = random.standard_normal((16, d), dtype=np.float32)
    for start in range(0, n, size):
        rows = random.standard_normal((min(size, n - start), 16), dtype=np.float32)
        np.save(blocks / f"{start:09}.npy", rows @ directions)
    Y = (random.random((n, 20)) < 0.2).astype(np.int8)
    with two_workers(f"{limit_mib}MiB") as client:
        before = client.run(os.getpid)
        taken, model = core_seconds_of_all(
            client,
            lambda: nl.distributed.fit(
                nl.MLkNN(n_neighbors=10, search="exact"), blocks, Y, client, folder=folder / "fit"
            ),
        )
        peaks = client.run(peak_of_worker)
        survived = client.run(os.getpid) == before
    return {
        "measured": "fit of MLkNN, two workers with a memory limit each",
        "n": n,
        "d": d,
        "k": model.n_neighbors_,
        "rows_a_block": size,
        "data_mib": round(n * d * 4 / MIB),
        "limit_mib_of_a_worker": limit_mib,
        "times_the_limits_together": round(n * d * 4 / MIB / (2 * limit_mib), 2),
        "peak_mib_of_a_worker": round(max(peaks.values())),
        "no_worker_died": survived,
        "core_seconds": round(taken, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="use fewer to try the script")
    parser.add_argument("--mib", type=int, default=512, help="memory limit of a worker")
    arguments = parser.parse_args()
    n = arguments.rows
    with tempfile.TemporaryDirectory(prefix="nearlabel-") as name:
        folder = Path(name)
        sizes = (n // 16, n // 8, n // 4)
        rows = overhead(n, 128, 100, sizes, folder)
        rows += constants(rows, n // 50, folder)
        rows.append(larger_than_memory(arguments.mib, folder))
    report(QUESTION, rows, peers=("dask", "distributed"))


if __name__ == "__main__":
    main()
