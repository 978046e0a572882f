"""How long does a collection take to open, to suggest tags, and to learn from a tag?

Usage: python stored_collections.py [--items N] [--large-items N]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import report

QUESTION = (
    "collections of synthetic vectors, 99 of 100 items with tags, three on average: opening in a "
    "new process, answers and changes in milliseconds, with one thread"
)
D, TAGS, TAGS_AN_ITEM = 128, 2_000, 3.0
BATCH = 10_000  # items, or tagged items, per change
TIMES = 100  # questions and changes of each kind
UNTAGGED = 100  # one item in this many


def made(folder: Path, n: int) -> list[dict[str, Any]]:
    """Create a collection of n items, and report how long this took."""
    import nearlabel as nl
    from nearlabel.collection.records import NewItem, vector_content

    data = nl.datasets.make_collection(n, D, TAGS, labels_per_sample=TAGS_AN_ITEM).data
    X, Y, rows = data.X, data.Y.tocsr(), []

    def add(start: int) -> None:
        named = [(str(i), X[i]) for i in range(start, min(start + BATCH, n))]
        store.add([NewItem(vector_content(name, x), x, name=name) for name, x in named])

    def give(start: int) -> None:
        items = [i for i in range(start, min(start + BATCH, n)) if i % UNTAGGED]
        tags = {i: Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in items}
        store.decide([(i + 1, f"tag {tag}", True) for i in items for tag in tags[i]])

    with nl.collection.Collection.create(folder, kind="vectors") as store:
        for what, work in (("items added", add), ("items given their tags", give)):
            took = sum(timed(partial(work, start)).wall for start in range(0, n, BATCH))
            rows.append({"measured": what, "items_a_second": round(n / took)})
        saving = timed(store.save_index)
        rows.append({"measured": "learned from all, and saved", **saving.told()})
    for path in sorted(folder.iterdir()):
        if path.suffix in (".sqlite", ".bin", ".model"):
            name = path.name.split("-")[0]
            rows.append({"measured": f"size of {name}", "mib": round(path.stat().st_size / 2**20)})
    return rows


class Took(NamedTuple):
    """Wall-clock seconds and core-seconds of some work."""

    wall: float
    core: float

    def told(self) -> dict[str, float]:
        """Both, in the form of a result."""
        return {"seconds": round(self.wall, 2), "core_seconds": round(self.core, 2)}


def timed(work: Callable[[], Any]) -> Took:
    """How long some work takes."""
    wall, core = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - wall, time.process_time() - core)


def milliseconds(times: list[Took]) -> dict[str, float]:
    """The median and the 95th percentile of the times of some works."""
    half, most = (1e3 * np.quantile(times, share, axis=0) for share in (0.5, 0.95))
    return {
        "half_within_ms": round(float(half[0]), 1),
        "95_percent_within_ms": round(float(most[0]), 1),
        "core_half_within_ms": round(float(half[1]), 1),
        "core_95_percent_within_ms": round(float(most[1]), 1),
    }


def measured(folder: Path) -> list[dict[str, Any]]:
    """Open a collection created by another process, query it and change it."""
    import nearlabel as nl
    import nearlabel.collection.learner
    from nearlabel.methods.mlknn import MLkNN  # noqa: F401  # with scikit-learn

    def opened() -> None:
        store = nl.collection.Collection(folder)
        store.suggest(1)
        stores.append(store)

    stores: list[Any] = []
    rows = [{"measured": "open, and the first answer", **timed(opened).told()}]
    store = stores.pop()
    n, random = store.counts()["items"], np.random.default_rng(0)
    tagged = [int(i) for i in random.integers(1, n, 4 * TIMES) if (i - 1) % UNTAGGED]
    untagged = [int(i) for i in 1 + UNTAGGED * random.permutation(n // UNTAGGED)[: 2 * TIMES]]

    def given(item: int) -> None:
        store.tag([item], ["tag 3", "a new tag"])
        found = store.suggest(item - 1 or 2, 3)
        assert found

    works: dict[str, tuple[Callable[[int], Any], list[int]]] = {
        "tag of an item with tags": (store.suggest, tagged),
        "tag of an item without": (store.suggest, untagged),
        "tag given to an item without, and the next answer": (given, untagged),
        "tag given to an item with tags, and the next answer": (given, tagged),
        "retrieve": (store.retrieve, tagged),
    }
    for name, (work, items) in works.items():
        times = [timed(partial(work, item)) for item in items[:TIMES]]
        rows.append({"measured": name, **milliseconds(times)})
    store.close(save=False)
    what = f"open again, {2 * TIMES} items having changed"
    rows.append({"measured": what, **timed(opened).told()})
    stores.pop().close(save=False)
    return rows


def collection(n: int, folder: Path) -> list[dict[str, Any]]:
    """All results for a collection of n items."""
    rows = made(folder, n)
    asked = [sys.executable, __file__, "--measure", str(folder)]
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
    return [{"items": n, **row} for row in rows + json.loads(done.stdout)]


def main() -> None:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--large-items", type=int, default=1_000_000)
    parser.add_argument("--measure", type=Path)
    asked = parser.parse_args()
    if asked.measure is not None:
        print(json.dumps(measured(asked.measure)))
        return
    with tempfile.TemporaryDirectory() as folder:
        sizes = [n for n in (asked.items, asked.large_items) if n]
        rows = [row for n in sizes for row in collection(n, Path(folder) / str(n))]
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
