"""What do changes of the code cost or save? Every way of the library, before and after.

Usage: python before_and_after.py BEFORE [--only NAME ...] [--rounds N]

BEFORE is another checkout, with its compiled core. Two processes, one for each checkout, prepare
the same work and then do it in turn, so that load and heat of the machine affect both alike.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse

QUESTION = (
    "Core-seconds on one thread after changes of the code, as a ratio to those before: medians of "
    "rounds in which both versions take turns in two processes"
)
HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"
Work = Callable[[], object]


def rows(n: int, d: int, seed: int = 0) -> Any:
    """Standard normal rows in float32."""
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def labels(n: int, q: int, a_row: int, seed: int = 0) -> Any:
    """Labels of n rows, `a_row` on average, the first ones more often."""
    random = np.random.default_rng(seed)
    column = (q * random.random(n * a_row) ** 2).astype(np.int64)
    row = np.repeat(np.arange(n), a_row)
    Y = sparse.csr_array((np.ones(len(row), np.int64), (row, column)), shape=(n, q))
    Y.data[:] = 1
    return Y


def graph(k: int) -> Work:
    """The exact graph of the rows themselves."""
    import nearlabel as nl

    X = rows(20_000, 100)
    return lambda: nl.neighbor_graph(X, k, search="exact")


def lists() -> Work:
    """The approximate graph of hard clusters, building included; see `hard_clusters.py`."""
    import nearlabel as nl

    random = np.random.default_rng(0)
    centers, features = rows(200_000 // 700, 64), rows(64, 128, 1)
    noise = random.standard_normal((200_000, 64), dtype=np.float32)
    X = (centers[random.integers(len(centers), size=len(noise))] + noise) @ features
    return lambda: nl.neighbor_graph(X, 100, search=nl.InvertedLists(0.98))


def plain_fit() -> Work:
    """A fit that is never changed."""
    import nearlabel as nl

    X, Y = rows(5_000, 50), labels(5_000, 50, 4).toarray()
    return lambda: nl.MLkNN(10).fit(X, Y)


def fitted() -> Any:
    """A model of 5,000 rows."""
    import nearlabel as nl

    return nl.MLkNN(10).fit(rows(5_000, 50), labels(5_000, 50, 4).toarray())


def probabilities() -> Work:
    """Dense answers to many rows."""
    model, X = fitted(), rows(2_000, 50, 1)
    return lambda: model.predict_proba(X)


def rank_one() -> Work:
    """The answer to one row."""
    model, x = fitted(), rows(1, 50, 1)
    return lambda: model.rank(x)


def rank_many() -> Work:
    """The best labels of many rows among very many labels."""
    import nearlabel as nl

    model = nl.MLkNN(10, search="exact").fit(rows(20_000, 32), labels(20_000, 20_000, 8))
    X = rows(10_000, 32, 1)
    return lambda: model.rank(X)


def large() -> Any:
    """A model of 100,000 rows."""
    import nearlabel as nl

    return nl.MLkNN(10, search="exact").fit(rows(100_000, 32), labels(100_000, 1_000, 5))


def adding() -> Work:
    """Rows added one by one."""
    model, X, Y = large(), rows(1_000, 32, 1), labels(1_000, 1_000, 5, 1)
    place = iter(range(len(X)))

    def work() -> None:
        i = next(place)
        model.partial_fit(X[i : i + 1], Y[i : i + 1])

    return work


def relabeling() -> Work:
    """Rows relabeled one by one."""
    model, Y, random = large(), labels(1, 1_000, 5, 1), np.random.default_rng(2)
    return lambda: model.relabel(int(random.integers(100_000)), Y)


def forgetting() -> Work:
    """Rows forgotten one by one."""
    model, left = large(), np.random.default_rng(2).permutation(100_000).tolist()
    return lambda: model.forget(left.pop())


def loading() -> Work:
    """A file of 100,000 rows loaded with memory mapping."""
    import nearlabel as nl

    folder = tempfile.TemporaryDirectory()  # as long as the process lives
    path = Path(folder.name) / "large.model"
    large().save(path)
    return lambda: (nl.load(path, mmap=True), folder)


def importing() -> Work:
    """A new process that imports the package."""
    command = [sys.executable, "-c", "import nearlabel"]
    return lambda: subprocess.run(command, check=True)


def everything_chosen() -> Work:
    """The flagship on yeast."""
    import nearlabel as nl

    data = nl.datasets.load("yeast")
    return lambda: nl.AutoNeighbors().fit(data.X, data.Y)


# How each work is prepared, and how often it is done in a round.
WORKS: dict[str, tuple[Callable[[], Work], int]] = {
    "graph of 20,000 x 100, k = 10": (lambda: graph(10), 4),
    "graph of 20,000 x 100, k = 100": (lambda: graph(100), 2),
    "lists, hard clusters of 200,000 x 128, k = 100": (lists, 1),
    "MLkNN.fit, 5,000 x 50, 50 labels": (plain_fit, 20),
    "predict_proba of 2,000": (probabilities, 50),
    "rank of one row": (rank_one, 1_000),
    "rank of 10,000, 20,000 labels": (rank_many, 5),
    "add one of 100,000": (adding, 50),
    "relabel one of 100,000": (relabeling, 50),
    "forget one of 100,000": (forgetting, 50),
    "load with mapping, 100,000 rows": (loading, 30),
    "import nearlabel": (importing, 40),
    "AutoNeighbors.fit, yeast": (everything_chosen, 1),
}


def seconds(work: Work) -> float:
    """Processor time of some work, that of its child processes included."""
    before = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    work()
    after = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(
        new.ru_utime + new.ru_stime - old.ru_utime - old.ru_stime
        for old, new in zip(before, after, strict=True)
    )


def serve(name: str) -> None:
    """Prepare a work, then time it for each line on standard input."""
    prepare, repeats = WORKS[name]
    work = prepare()
    work()  # the first change of a model prepares those that follow
    print("ready", flush=True)
    for _ in sys.stdin:
        print(seconds(lambda: [work() for _ in range(repeats)]) / repeats, flush=True)


class Version:
    """A process that has prepared a work with one version of the code."""

    def __init__(self, source: Path, name: str) -> None:
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, str(source)],
            env={**os.environ, **threads, "PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._line() != "ready":
            raise RuntimeError(f"{name} cannot be prepared with {source}")

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def seconds(self) -> float:
        """The time of the work, done once more."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self._line())

    def end(self) -> None:
        """End the process."""
        self.process.communicate()


def compared(name: str, before: Path, rounds: int) -> dict[str, Any]:
    """Medians of a work with both versions, which take turns."""
    old, new = Version(before, name), Version(SOURCE, name)
    times: dict[Version, list[float]] = {old: [], new: []}
    for number in range(rounds):
        for version in (old, new) if number % 2 == 0 else (new, old):
            times[version].append(version.seconds())
    old.end()
    new.end()
    ratios = [b / a for a, b in zip(times[old], times[new], strict=True)]
    return {
        "work": name,
        "before": float(f"{median(times[old]):.3g}"),
        "after": float(f"{median(times[new]):.3g}"),
        "ratio": round(median(times[new]) / median(times[old]), 3),
        "ratios_of_rounds": f"{min(ratios):.3f} to {max(ratios):.3f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="another checkout, with its compiled core")
    parser.add_argument("--only", nargs="+", choices=WORKS, help="some of the works")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    from measuring import report

    results = []
    for name in arguments.only or WORKS:
        results.append(compared(name, (arguments.before / "src").resolve(), arguments.rounds))
        print(results[-1], file=sys.stderr, flush=True)
    report(QUESTION, results)


if __name__ == "__main__":
    main()
