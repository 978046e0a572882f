"""How many answers does a collection need to learn the tags?

A simulated person starts with 20 tagged natural scenes, drawn at random, and then answers
questions, each with all tags of one picture. Every order of questions starts from the same
pictures. Pictures and networks are not part of the package: see docs/features.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from measuring import core_seconds, report

import nearlabel as nl
from nearlabel.collection.question_choice import (
    LOOKED_AT,
    certain,
    looked_at,
    mixed,
    seen_by,
    telling,
)
from nearlabel.common.arrays import Array
from nearlabel.experiments.papers.picture_data import picture_vectors_by_name

QUESTION = "Teaching a collection: average precision on the other pictures by number of answers"
NETWORKS = {"efficientnet-lite0": "scenes_lite0", "pplcnetv2": "scenes_pplcnet"}
START, ANSWERS, SEEDS = 20, 200, 10
TOLD = range(0, ANSWERS + 1, 10)  # numbers of answers after which precision is measured
SHOWN = (0, 50, 100, 150, 200)  # those shown in tables
BATCH = 5  # questions that are chosen together
HELD_OUT = 500  # pictures that are never asked about, if precision is measured on these
FEW = (20, 30, 45, 70, 100, 150, 220)  # tagged pictures
NEIGHBORS = (1, 3, 5, 7, 10)
TAGGED = (1000, 10_000, 50_000)  # synthetic items, for the time to choose questions
Order = Callable[[Array, Any, Any], Array]


def random(X: Array, _: Any, rng: Any) -> Array:
    """Questions in random order."""
    return np.asarray(rng.permutation(len(X))[:BATCH])


def confident(X: Array, model: Any, rng: Any) -> Array:
    """The items with the most certain tags; random ones if there are no suggestions."""
    rows = [*certain(seen_by(model, X), BATCH), *rng.permutation(len(X))]
    return np.array([*dict.fromkeys(rows)][:BATCH])


ORDERS: dict[str, Order] = {
    "random": random,
    "learn": lambda X, model, _: telling(X, seen_by(model, X), BATCH),
    "mixed": lambda X, model, _: mixed(X, seen_by(model, X), BATCH)[0],
    "confident": confident,
}


def taught(X: Array, Y: Array, order: Order, seed: int, held_out: int = 0) -> Iterator[float]:
    """Average precision after each of TOLD, on all untagged pictures or on held-out ones."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(X))
    hidden, pool = shuffled[:held_out], shuffled[held_out:]
    tagged, others = pool[:START], pool[START:]
    model = nl.MLkNN(10, metric="cosine").fit(X[tagged], Y[tagged])
    for answers in range(0, ANSWERS + 1, BATCH):
        if answers in TOLD:
            yield precision(model, X, Y, hidden if held_out else others)
        looked_at = rng.permutation(others)[:LOOKED_AT]
        asked = looked_at[order(X[looked_at], model, rng)]
        model.partial_fit(X[asked], Y[asked])
        others = np.setdiff1d(others, asked)


def precision(model: Any, X: Array, Y: Array, rows: Array) -> float:
    found = nl.metrics.evaluate(Y[rows], model.label_scores(X[rows]), convention="paper")
    return float(found["average_precision"])


def by_answers(network: str, X: Array, Y: Array) -> Iterator[dict[str, Any]]:
    """A row for each order of questions: means over the seeds."""
    for held_out, names in ((0, tuple(ORDERS)), (HELD_OUT, ("random", "learn"))):
        reached: float | None = None  # by random order, in the end
        for name in names:
            order = ORDERS[name]
            runs = np.array([[*taught(X, Y, order, seed, held_out)] for seed in range(SEEDS)])
            mean = runs.mean(axis=0)
            reached = float(mean[-1]) if reached is None else reached
            enough = [told for told, value in zip(TOLD, mean, strict=True) if value >= reached]
            yield {
                "network": network,
                "measured_on": f"{held_out} never asked about" if held_out else "all untagged",
                "order": name,
                "seeds": SEEDS,
                **{f"after_{n}": round(float(mean[n // TOLD.step]), 4) for n in SHOWN},
                "deviation": round(float(runs[:, -1].std(ddof=1)), 4),
                "answers_for_what_random_has_in_the_end": enough[0] if enough else None,
                "curve": [round(float(value), 4) for value in mean],
            }


def by_neighbors(network: str, X: Array, Y: Array) -> Iterator[dict[str, Any]]:
    """The best number of neighbors if few random pictures are tagged."""
    for k in NEIGHBORS:
        found = dict.fromkeys(FEW, 0.0)
        for seed in range(SEEDS):
            rows = np.random.default_rng(seed).permutation(len(X))
            for n in FEW:
                model = nl.MLkNN(k, metric="cosine").fit(X[rows[:n]], Y[rows[:n]])
                found[n] += precision(model, X, Y, rows[n:]) / SEEDS
        cells = {f"{n}_tagged": round(value, 4) for n, value in found.items()}
        yield {"network": network, "neighbors": k, **cells}


def times() -> Iterator[dict[str, Any]]:
    """The time to choose questions, which does not depend on the number of untagged items."""
    rng = np.random.default_rng(0)
    for n in TAGGED:
        m = looked_at(n)
        X = rng.standard_normal((n + m, 1280), dtype=np.float32)
        Y = (rng.random((n, 50)) < 0.05).astype(np.int8)
        model = nl.MLkNN(10, metric="cosine").fit(X[:n], Y)
        for name in ("learn", "mixed", "confident"):
            order = ORDERS[name]

            def choose(order: Order = order, model: Any = model, some: Array = X[-m:]) -> Array:
                return order(some, model, rng)

            yield {
                "tagged": n,
                "looked_at": m,
                "features": 1280,
                "tags": 50,
                "order": name,
                "questions": BATCH,
                "core_seconds_for_all_of_them": round(core_seconds(choose), 2),
            }


def main() -> None:
    rows: list[dict[str, Any]] = []
    for network, name in NETWORKS.items():
        try:
            data = picture_vectors_by_name()[name].load(n_jobs=2)
        except (ValueError, OSError, ImportError) as error:
            sys.exit(f"teaching: {error}")
        X, Y = np.asarray(data.X, np.float32), data.Y.toarray()
        rows += by_answers(network, X, Y)
        rows += by_neighbors(network, X, Y)
        print(f"{network} is done", file=sys.stderr, flush=True)
    report(QUESTION, [*rows, *times()], ("onnxruntime",))


if __name__ == "__main__":
    main()
