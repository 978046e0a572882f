"""How long does a collection take to open, to suggest tags, and to learn from a tag?

Usage: python stored_collections.py [--items N] [--large-items N] [--before CHECKOUT]

With `--before`, another checkout with its compiled core does the same in turn, and the ratios to it
are reported.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import report

QUESTION = (
    "collections of synthetic vectors, 99 of 100 items with tags, three on average: opening in a "
    "new process, answers and changes in milliseconds, with one thread"
)
FEATURES = {True: 1_280, False: 128}  # of fewer and of many items
MANY = 500_000  # items
TAGS, TAGS_AN_ITEM = 2_000, 3.0
BATCH = 10_000  # items, or tagged items, per change
TIMES = 100  # questions and changes of each kind
UNTAGGED = 100  # one item in this many


def made(folder: Path, n: int) -> list[dict[str, Any]]:
    """Create a collection of n items, and report how long this took."""
    import nearlabel as nl
    from nearlabel.collection.records import NewItem, vector_content

    d = FEATURES[n < MANY]
    data = nl.datasets.make_collection(n, d, TAGS, labels_per_sample=TAGS_AN_ITEM).data
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
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    rows.append({"measured": "size of all files", "mib": round(size / 2**20)})
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
    from nearlabel.collection.records import NewItem, vector_content
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

    def add(_: int) -> None:
        x = random.random(FEATURES[n < MANY], np.float32)
        name = f"later {random.integers(2**60)}"
        store.add([NewItem(vector_content(name, x), x, name=name)])

    works: dict[str, tuple[Callable[[int], Any], list[int]]] = {
        "tag of an item with tags": (store.suggest, tagged),
        "tag of an item without": (store.suggest, untagged),
        "tag given to an item without, and the next answer": (given, untagged),
        "tag given to an item with tags, and the next answer": (given, tagged),
        "tag given": (lambda item: store.tag([item], ["tag 4"]), tagged[TIMES:]),
        "item added": (add, tagged),
        "retrieve": (store.retrieve, tagged),
    }
    for name, (work, items) in works.items():
        times = [timed(partial(work, item)) for item in items[:TIMES]]
        rows.append({"measured": name, **milliseconds(times)})
    backup = timed(lambda: store.backup(folder.parent / f"{folder.name} backup"))
    rows.append({"measured": "backup", **backup.told()})
    forgetting = [timed(partial(store.forget, [item])) for item in tagged[:-4:-1]]
    rows.append({"measured": "item forgotten", **milliseconds(forgetting)})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    rows.append({"measured": "peak memory, mapped files included", "mib": round(peak)})
    store.close(save=False)
    what = f"open again, {2 * TIMES} items having changed"
    rows.append({"measured": what, **timed(opened).told()})
    stores.pop().close(save=False)
    return rows


def asked_of(source: Path | None, *arguments: str) -> list[dict[str, Any]]:
    """The results of another process, of this version of the code or that of a checkout."""
    env = os.environ if source is None else {**os.environ, "PYTHONPATH": str(source / "src")}
    asked = [sys.executable, __file__, *arguments]
    done = subprocess.run(asked, stdout=subprocess.PIPE, check=True, env=env)
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


def collection(n: int, folder: Path, source: Path | None = None) -> list[dict[str, Any]]:
    """All results for a collection of n items."""
    rows = asked_of(source, "--make", str(folder), "--items", str(n))
    return [{"items": n, **row} for row in rows + asked_of(source, "--measure", str(folder))]


def compared(n: int, folder: Path, before: Path) -> list[dict[str, Any]]:
    """Results of this version of the code, with ratios to another one: the least of two rounds."""
    versions: dict[str, list[list[dict[str, Any]]]] = {"before": [], "now": []}
    for _ in range(2):
        for name, rounds in versions.items():
            source = before if name == "before" else None
            with tempfile.TemporaryDirectory(dir=folder) as inner:
                rounds.append(collection(n, Path(inner) / "collection", source))
    results = []
    for rows in zip(*versions["now"], *versions["before"], strict=True):
        now, then = ({**rows[i], **least(rows[i : i + 2])} for i in (0, 2))
        ratios = {
            f"{name}_ratio": round(now[name] / then[name], 2)
            for name in ("seconds", "half_within_ms", "items_a_second", "mib")
            if then.get(name)
        }
        results.append({**now, **ratios})
    return results


def least(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The best of some results: the most for rates, the least for the rest."""
    first = {name: value for name, value in rows[0].items() if isinstance(value, int | float)}
    return {
        name: (max if name == "items_a_second" else min)(row[name] for row in rows)
        for name in first
    }


def main() -> None:
    """Measure, and print the result as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--large-items", type=int, default=1_000_000)
    parser.add_argument("--before", type=Path, help="another checkout, with its compiled core")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.make is not None:
        print(json.dumps(made(asked.make, asked.items)))
        return
    if asked.measure is not None:
        print(json.dumps(measured(asked.measure)))
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in filter(None, (asked.items, asked.large_items)):
            if asked.before is None:
                rows += collection(n, Path(folder) / str(n))
            else:
                rows += compared(n, Path(folder), asked.before.resolve())
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
