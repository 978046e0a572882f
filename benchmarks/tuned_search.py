"""Helpers to compare searches at the same recall: ours, and indexes tuned on some of the rows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import nearlabel as nl

K, RECALL, TUNED = 100, 0.98, 1_000
Row = dict[str, Any]


class Index(NamedTuple):
    """An index of another library.

    `build` makes it from all rows. `search` finds the neighbors of the rows with the given
    numbers, with one of the settings. Each list of settings leads from the fastest to the most
    thorough.
    """

    name: str
    build: Callable[[Any], Any]
    search: Callable[[Any, Any, Any, Any], Any]
    settings: list[list[Any]]


class Sample(NamedTuple):
    """Some rows, and the distances of their k-th nearest neighbors."""

    rows: Any
    farthest: Any


def sample(X: Any) -> Sample:
    """The rows on which recall is measured."""
    rows = np.sort(np.random.default_rng(0).choice(len(X), min(len(X), TUNED), replace=False))
    exact = nl.neighbor_graph(X, K + 1, X[rows], search="exact").without(rows)
    return Sample(rows, exact.distances[:, -1])


def steps(first: int, last: int) -> list[int]:
    """Values to try, each a tenth larger than the previous one."""
    count = int(np.ceil(np.log(last / first) / np.log(1.1)))
    return sorted({round(first * 1.1**step) for step in range(count)} | {last})


def recall(found: Any, X: Any, some: Sample) -> float:
    """The share of neighbors, without the row itself, that are as near as the k-th nearest row."""
    shares = []
    for own, names, limit in zip(some.rows, found, some.farthest, strict=True):
        others = names[(names != own) & (names >= 0)][:K]
        apart = X[others].astype(np.float64) - X[own].astype(np.float64)
        shares.append(np.sum(np.sqrt((apart**2).sum(axis=1)) <= limit * (1 + 1e-6)) / K)
    return float(np.mean(shares))


def ours(X: Any, some: Sample) -> Row:
    """Our approximate graph of all rows."""
    start = time.process_time()
    graph = nl.neighbor_graph(X, K, search=nl.InvertedLists(RECALL), n_jobs=1)
    seconds = time.process_time() - start
    found = recall(graph.indices[some.rows], X, some)
    return _row("nearlabel InvertedLists", RECALL, found, seconds)


def ours_exactly(X: Any) -> Row:
    """Our exact graph of all rows."""
    start = time.process_time()
    nl.neighbor_graph(X, K, search="exact", n_jobs=1)
    return _row("nearlabel exact", None, 1.0, time.process_time() - start)


def theirs(X: Any, some: Sample, index: Index, timed: int) -> Row:
    """Build an index, tune it, and search for the neighbors of some rows, in place of all."""
    start = time.process_time()
    made = index.build(X)
    built = time.process_time() - start

    def searched(rows: Any, setting: Any) -> tuple[Any, float]:
        start = time.process_time()
        found = index.search(made, X, rows, setting)
        return found, time.process_time() - start

    def reached(setting: Any) -> tuple[float, float]:
        found, seconds = searched(some.rows, setting)
        return recall(found, X, some), seconds

    tuned = []
    for settings in index.settings:
        low, high = 0, len(settings) - 1
        while low < high:
            middle = (low + high) // 2
            enough = reached(settings[middle])[0] >= RECALL
            low, high = (low, middle) if enough else (middle + 1, high)
        found, seconds = reached(settings[high])
        tuned.append((found < RECALL, seconds, found, settings[high]))
    missed, _, found, setting = min(tuned)
    if missed:
        best = max(tuned, key=lambda one: one[2])
        raise RuntimeError(f"a recall of only {best[2]:.4f}, in {built:.1f} core-seconds + search")
    rows = np.random.default_rng(1).choice(len(X), min(len(X), timed), replace=False)
    seconds = searched(rows, setting)[1] * len(X) / len(rows)
    return _row(index.name, setting, found, built + seconds, built, seconds)


def _row(
    search: str,
    setting: Any,
    found: float,
    seconds: float,
    build: float | None = None,
    all_rows: float | None = None,
) -> Row:
    row = {
        "search": search,
        "setting": setting,
        "recall": round(found, 4),
        "build": None if build is None else round(build, 1),
        "all_rows": None if all_rows is None else round(all_rows, 1),
        "core_seconds": round(seconds, 1),
    }
    print(row, file=sys.stderr, flush=True)
    return row


def compared(n: int, rows: list[Row]) -> list[Row]:
    """The rows of a report, with times relative to the first."""
    first = rows[0]["core_seconds"]
    for row in rows:
        if "core_seconds" in row:
            row["times_slower"] = round(row["core_seconds"] / first, 2)
    return [{"n": n, **row} for row in rows]


def faiss_lists(n: int, factors: tuple[float, ...] = (2, 4, 8)) -> Iterator[Index]:
    """Inverted lists of faiss, and the numbers of probes."""

    def search(made: Any, X: Any, rows: Any, probes: int) -> Any:
        made.nprobe = probes
        return made.search(X[rows], K + 1)[1]

    for factor in factors:
        count = int(factor * np.sqrt(2 * n))
        name = f"IVF{count},Flat"
        yield Index(f"faiss {name}", partial(made_by_faiss, name), search, [steps(8, count)])


def faiss_graphs(n: int) -> Iterator[Index]:  # noqa: ARG001
    """Graphs of faiss, and the numbers of candidates."""

    def search(made: Any, X: Any, rows: Any, candidates: int) -> Any:
        made.hnsw.efSearch = candidates
        return made.search(X[rows], K + 1)[1]

    for links in (16, 32):
        name = f"HNSW{links}"
        yield Index(f"faiss {name}", partial(made_by_faiss, name), search, [steps(K + 1, 4_000)])


def made_by_faiss(name: str, X: Any) -> Any:
    """An index of all rows by its name in faiss."""
    import faiss

    faiss.omp_set_num_threads(1)
    made: Any = faiss.index_factory(X.shape[1], name)
    if name.startswith("HNSW"):
        made.hnsw.efConstruction = 80
    made.train(X)
    made.add(X)
    return made
