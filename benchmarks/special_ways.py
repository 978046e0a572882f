"""What does each special way of the exact search save, on data that it is for and on other data?

Every way is switched off by replacing one function or setting of the package.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from measuring import report

import nearlabel as nl
from nearlabel.search.exact import block_pairs, byte_bounds, compiled_index, equal_rows, index

QUESTION = (
    "Special ways of the exact search: how many times as long it takes without one, on data that "
    "it is for and on other data. Core-seconds on one thread, medians of rounds in which both take "
    "turns"
)
Work = Callable[[], object]


class Way(NamedTuple):
    """A way of searching that only some data need, and how it is switched off."""

    name: str
    module: Any
    attribute: str
    instead: object
    works: dict[str, Work]  # first those that it is for


def rows(n: int, d: int) -> Any:
    """Standard normal rows in float32."""
    return np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)


def graph(X: Any, k: int = 10) -> Work:
    """The exact graph of some rows, preparing them included."""
    return partial(nl.neighbor_graph, X, k, search="exact")


def between(n: int, d: int, limit: float) -> Work:
    """Neighbors between two blocks of rows, for both or for the first only."""
    X = rows(2 * n, d)
    near = [nl.neighbor_graph(X[part], 10).distances[:, -1] for part in (slice(n), slice(n, None))]
    limits = np.concatenate([near[0], np.minimum(near[1], limit)])
    return partial(block_pairs.neighbors_between, X, n, "euclidean", 10, limits)


def ways(n: int) -> list[Way]:
    """The ways, with data of up to 10 n rows."""
    no = mock.Mock(return_value=False)
    none = mock.Mock(return_value=None)
    X, few = rows(n, 100), rows(64, 16)
    two = rows(n, 16).astype(np.float64)
    twice = two + 1e6 * few[np.arange(n) % 2]
    return [
        Way(
            *("equal rows", equal_rows, "equal_rows", none),
            {
                "every row three times": graph(np.repeat(X[: n // 3], 3, axis=0)),
                "0 or 1 in 8 features": graph((rows(n, 8) > 0).astype(np.float32)),
                "no equal rows": graph(X),
            },
        ),
        Way(
            *("far clusters", compiled_index, "near_rows", none),
            {"two far clusters": graph(twice), "one cluster": graph(two)},
        ),
        Way(
            *("expected limits", compiled_index, "expected_limits", none),
            {"k = 200": graph(X, 200), "k = 100": graph(X, 100), "k = 10": graph(X)},
        ),
        Way(
            *("bounds from bytes", byte_bounds, "multiplies_bytes", no),
            {
                "100 features": graph(X),
                "lognormal features": graph(np.exp(2 * X)),
                "12 features": graph(rows(n, 12)),
            },
        ),
        Way(
            *("k-d tree", index, "tree_wins", no),
            {
                "2 features": graph(rows(10 * n, 2)),
                "4 features": graph(rows(10 * n, 4)),
                "12 features": graph(rows(n, 12)),
            },
        ),
        Way(
            *("few rows at once", index, "are_few", no),
            {"100 rows": graph(rows(100, 20)), "1,000 rows": graph(rows(1000, 20))},
        ),
        Way(
            *("pairs of blocks", block_pairs, "_compiled", none),
            {"both blocks": between(n // 2, 100, np.inf), "one block": between(n // 2, 100, -1)},
        ),
    ]


def seconds(work: Work) -> float:
    """Core-seconds of some work; short work is repeated."""
    repeats, start = 0, time.process_time()
    while repeats == 0 or time.process_time() - start < 0.05:
        work()
        repeats += 1
    return (time.process_time() - start) / repeats


def measured(way: Way, rounds: int) -> list[dict[str, Any]]:
    """The work of a way, with and without it in turn."""
    found = []
    for data, work in way.works.items():
        times: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(rounds):
            times["with"].append(seconds(work))
            with mock.patch.object(way.module, way.attribute, way.instead):
                times["without"].append(seconds(work))
        ratios = [b / a for a, b in zip(times["with"], times["without"], strict=True)]
        row: dict[str, Any] = {"way": way.name, "data": data}
        row |= {f"seconds_{name}": float(f"{median(t):.3g}") for name, t in times.items()}
        row |= {"times": round(median(ratios), 2)}
        row |= {"times_of_rounds": f"{min(ratios):.2f} to {max(ratios):.2f}"}
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="use fewer to try the script")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    report(
        QUESTION, [row for way in ways(arguments.rows) for row in measured(way, arguments.rounds)]
    )


if __name__ == "__main__":
    main()
