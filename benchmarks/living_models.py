"""What does a change of a model cost compared with a new fit, and how does it affect readers?

Usage: python living_models.py [--rows N] [--large-rows N]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measuring import peak_anonymous_mib, report
from scipy import sparse

import nearlabel as nl

QUESTION = (
    "changes of MLkNN: medians and 99th percentiles in wall-clock milliseconds of single changes, "
    "with two threads; batches in rows per second; vectors and labels by make_collection"
)
D = 128
SINGLE = 200  # timed changes of each kind
READS = 1_500
RATE = 100  # changes a second while others read
BATCH = 10_000  # rows added at once while others read
BATCHES = 3  # of many rows at once


def collection(n: int, more: int, q: int, **how: Any) -> tuple[Any, Any, Any, Any]:
    """Vectors and labels of n items, and of some that are added later."""
    made = nl.datasets.make_collection(n + more, D, q, **how).data
    X, Y = np.asarray(made.X, np.float32), sparse.csr_array(made.Y)
    return X[:n], Y[:n], X[n:], Y[n:]


def seconds(work: Callable[[], Any]) -> float:
    """Wall-clock time of some work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def milliseconds(times: list[float]) -> dict[str, float]:
    """The median and the 99th percentile of some times."""
    half, most = 1e3 * np.quantile(times, [0.5, 0.99])
    return {"half_within_ms": round(float(half), 2), "99_percent_within_ms": round(float(most), 2)}


def single_changes(model: Any, X: Any, Y: Any, seed: int = 0) -> list[dict[str, Any]]:
    """Times to add, relabel and forget rows one by one."""
    random = np.random.default_rng(seed)
    alive = random.permutation(model.items_.places)
    works: dict[str, Callable[[int], Any]] = {
        "one row added": lambda i: model.partial_fit(X[i : i + 1], Y[i : i + 1]),
        "one row relabelled": lambda i: model.relabel(int(alive[i]), Y[i : i + 1]),
        "one row forgotten": lambda i: model.forget(int(alive[-1 - i])),
    }
    found = []
    for name, work in works.items():
        work(0)  # the first change prepares those that follow
        times = [seconds(partial(work, i)) for i in range(1, SINGLE + 1)]
        found.append({"measured": name, **milliseconds(times)})
    return found


def readers(model: Any, queries: Any, X: Any, Y: Any) -> list[dict[str, Any]]:
    """Times of single predictions: no writer, RATE changes a second, and BATCH rows at once."""
    newest = int(model.ids_[-1])

    def change(i: int) -> None:
        nonlocal newest
        row = i // 2 % len(X)
        if i % 2:
            model.forget(newest)
        else:
            model.partial_fit(X[row : row + 1], Y[row : row + 1])
            newest += 1

    def paced(done: threading.Event) -> int:
        start, changes = time.perf_counter(), 0
        while not done.wait(max(0.0, start + changes / RATE - time.perf_counter())):
            change(changes)
            changes += 1
        return changes

    def read() -> list[float]:
        return [seconds(partial(model.rank, queries[i % 500 : i % 500 + 1])) for i in range(READS)]

    change(0)  # the first change prepares those that follow
    change(1)
    read()
    alone, done, counts = read(), threading.Event(), []
    writer = threading.Thread(target=lambda: counts.append(paced(done)))
    writer.start()
    start = time.perf_counter()
    meanwhile = read()
    lasted = time.perf_counter() - start
    done.set()
    writer.join()
    ratio = np.quantile(meanwhile, 0.99) / np.quantile(alone, 0.99)

    batch = np.arange(BATCH) % len(X)
    arrival = threading.Thread(target=model.partial_fit, args=(X[batch], Y[batch]))
    arrival.start()
    during: list[float] = []
    while arrival.is_alive():
        i = len(during) % 500
        during.append(seconds(partial(model.rank, queries[i : i + 1])))
    arrival.join()
    return [
        {"measured": "rank of one row, no writer", **milliseconds(alone)},
        {
            "measured": f"rank of one row, {RATE} changes a second asked for",
            **milliseconds(meanwhile),
            "changes_a_second": round(counts[0] / lasted, 1),
            "99_percent_ratio": round(float(ratio), 2),
        },
        {
            "measured": f"rank of one row, while {BATCH:,} rows are added",
            **milliseconds(during),
            "all_within_ms": round(1e3 * max(during), 1),
        },
    ]


def exact(n: int) -> list[dict[str, Any]]:
    """Changes of a model with exact search."""
    q, k = 1_000, 10
    X, Y, more, labels = collection(n, 2_000, q)
    model = nl.MLkNN(k, search="exact", n_jobs=2)
    fits = [seconds(lambda: model.fit(X, Y)) for _ in range(3)]
    rows = single_changes(model, more, labels)
    random = np.random.default_rng(1)

    def mixed() -> None:
        for i in range(1_000):
            what = i % 3
            if what == 0:
                model.partial_fit(more[i : i + 1], labels[i : i + 1])
            elif what == 1:
                model.relabel(int(random.choice(model.items_.places)), labels[i : i + 1])
            else:
                model.forget(int(random.choice(model.items_.places)))

    took, refit = seconds(mixed), min(fits)
    ratio = round(took / refit, 2)
    rows.append({"measured": "1,000 mixed changes", "seconds": round(took, 2), "fits": ratio})
    rows.append({"measured": "fit", "seconds": round(refit, 2)})
    rows += readers(model, more, more, labels)
    rows.append({"measured": "verify", "agrees": bool(model.verify())})
    return [{"search": "exact", "n": n, "q": q, "k": k, **row} for row in rows]


class Told(list[dict[str, Any]]):
    """Results, each printed as soon as it is added."""

    def append(self, row: dict[str, Any]) -> None:
        """Add a result."""
        print(row, file=sys.stderr, flush=True)
        super().append(row)


def approximate(n: int, q: int, folder: Path) -> list[dict[str, Any]]:
    """Changes of a large model with approximate search, and its file."""
    rows = Told()
    k, batch = 100, 10_000
    X, Y, more, labels = collection(n, n // 20 + batch + 1_000, q)
    model = nl.MLkNN(k, search=nl.InvertedLists(0.99), n_jobs=2)
    took = seconds(lambda: model.fit(X, Y))
    rows.append({"measured": "fit", "seconds": round(took, 1)})
    path = folder / "large.model"
    rows.append({"measured": "save", "seconds": round(seconds(lambda: model.save(path)), 1)})
    del model
    rows.append(first_answer(path, more))
    model = nl.load(path, mmap=True).set_params(n_jobs=2)
    first = seconds(lambda: model.partial_fit(more[-1:], labels[-1:]))
    rows.append({"measured": "the first change after that", "seconds": round(first, 2)})
    for row in single_changes(model, more[BATCHES * batch :], labels[BATCHES * batch :]):
        rows.append(row)
    peak = peak_anonymous_mib(lambda: batches(model, more, labels, batch, rows))
    rows.append({"measured": "peak memory of these batches", "gib": round(peak / 1024, 2)})
    half = n // 20 - (BATCHES + 1) * batch // 2 - SINGLE  # in total a tenth of the rows
    at = BATCHES * batch + 1_000
    model.partial_fit(more[at : at + half], labels[at : at + half])
    random = np.random.default_rng(2)
    model.forget(random.choice(model.items_.store.ids[model.items_.places], half, replace=False))
    recall = kept_recall(model)
    rows.append({"measured": "a tenth has changed", **recall})
    took = seconds(lambda: model.save(path))
    rows.append({"measured": "save of the changed model", "seconds": round(took, 1)})
    rows.append(first_answer(path, more))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows.append({"measured": "peak memory of all, mapped files included", "gib": round(most, 2)})
    return [{"search": "approximate", "n": n, "q": q, "k": k, **row} for row in rows]


def first_answer(path: Path, queries: Any) -> dict[str, Any]:
    """Times to load a mapped file, and of the first and the second prediction."""
    start = time.perf_counter()
    model = nl.load(path, mmap=True)
    loaded = time.perf_counter() - start
    model.rank(queries[:1])
    both = time.perf_counter() - start
    second = seconds(lambda: model.rank(queries[1:2]))
    return {
        "measured": "load with mmap, and the first answer",
        "load_seconds": round(loaded, 2),
        "seconds": round(both, 2),
        "second_answer_seconds": round(second, 3),
    }


def batches(model: Any, X: Any, Y: Any, size: int, rows: list[dict[str, Any]]) -> None:
    """Rows per second when many rows are added, or forgotten, at once."""
    runs = [slice(at * size, (at + 1) * size) for at in range(BATCHES)]
    first, *then = [seconds(partial(model.partial_fit, X[run], Y[run])) for run in runs]
    places = np.random.default_rng(3).choice(model.items_.places, size, replace=False)
    forgotten = seconds(partial(model.forget, model.items_.store.ids[places]))
    for name, took in (
        ("rows added, the first so many after the file was mapped", first),
        ("rows added, then", float(np.median(then))),
        ("rows forgotten", forgotten),
    ):
        rows.append({"measured": f"{size:,} {name}", "rows_a_second": round(size / took)})


def kept_recall(model: Any, rows: int = 512) -> dict[str, Any]:
    """The recall reported by the model, and that of its kept neighbors on a sample."""
    items = model.items_
    some = np.sort(np.random.default_rng(4).choice(items.places, rows, replace=False))
    own = items.lists.head(some)
    vectors = items.store.take(items.places)
    among = nl.neighbor_graph(
        vectors, own.k + 1, items.store.take(some), search="exact", n_jobs=2
    ).without(np.searchsorted(items.places, some))
    found = own.distances <= among.distances[:, -1:].astype(own.distances.dtype)
    told = model.search_recall_.value
    return {"recall_of_answers": round(told, 4), "recall_of_kept": round(float(found.mean()), 4)}


def main() -> None:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--large-rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=("exact", "approximate"))
    asked = parser.parse_args()
    rows = []
    if asked.only != "approximate":
        rows += exact(asked.rows)
    if asked.only != "exact":
        with tempfile.TemporaryDirectory() as folder:
            rows += approximate(asked.large_rows, 190_000, Path(folder))
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
