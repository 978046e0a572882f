"""How good are the baselines of the papers on real data? Needs the sets in the data folder.

Usage: python baselines.py [BASELINE …]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from measuring import peak_mib, report
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import nearlabel as nl
from nearlabel.experiments import splits

QUESTION = (
    "The baselines of the papers on real data, on the official test rows, convention paper. "
    "Core-seconds of learning"
)
DENSE = ("flags", "birds", "medical", "emotions", "enron", "scene", "yeast")
TEXTS = ("medical", "enron", "yahoo_arts", "yahoo_health", "slashdot", "bibtex")
TREES = ("emotions", "scene", "yeast", "medical", "enron")
ROUNDS = (10, 30, 50, 100, 200, 500)
METRICS = ("average_precision", "ranking_loss", "one_error", "hamming_loss", "micro_f1")
Row = dict[str, Any]


def tried(model: Any, data: Any, X: Any = None) -> Row:
    """The metrics of a model on the test rows of a data set, and the time of its fit."""
    X = data.X if X is None else X
    start = time.process_time()
    model.fit(X[data.train], data.Y[data.train])
    seconds = time.process_time() - start
    scores, sets = model.label_scores(X[data.test]), model.predict(X[data.test])
    found = nl.metrics.evaluate(data.Y[data.test], scores, sets)
    return {
        **{name: round(found[name], 4) for name in METRICS},
        "labels_predicted": round(float(sets.sum() / sets.shape[0]), 2),
        "core_seconds": round(seconds, 2),
    }


def adaboostmh() -> Iterator[Row]:
    for name in DENSE:
        data = nl.datasets.load(name)
        n, d = data.X[data.train].shape
        sizes = {"rows": n, "features": d, "labels": data.Y.shape[1]}
        for smoothing in ("program", "article"):
            model = nl.AdaBoostMH(smoothing=smoothing)
            yield {"data": name, **sizes, "smoothing": smoothing, **tried(model, data)}
    for name in ("flags", "yeast", "medical", "birds"):
        data = nl.datasets.load(name)
        model = nl.AdaBoostMH().fit(data.X[data.train], data.Y[data.train])
        stages = enumerate(model.staged_label_scores(data.X[data.test]), 1)
        found = {
            f"after_{done}": round(nl.metrics.average_precision(data.Y[data.test], scores), 4)
            for done, scores in stages
            if done in ROUNDS
        }
        yield {"data": name, **found}


def adtboostmh() -> Iterator[Row]:
    for name in DENSE:
        data = nl.datasets.load(name)
        model = nl.ADTBoostMH()
        found = tried(model, data)
        below = int(np.count_nonzero(model.parents_))  # the root is node 0
        yield {"data": name, "conditions_below_the_root": below, **found}


def ranksvm() -> Iterator[Row]:
    # First, since memory freed by other runs would not be counted in the peak.
    yeast_data = nl.datasets.load("yeast")
    X, Y = yeast_data.X[yeast_data.train], yeast_data.Y[yeast_data.train]
    yield {
        "learned": "yeast, degree 8",
        "peak_mib": round(peak_mib(lambda: nl.RankSVM().fit(X, Y))),
    }
    yeast: tuple[Row, ...] = (
        *({"kernel": "poly", "degree": degree} for degree in (8, 3)),
        *({"kernel": "linear", "C": C} for C in (1.0, 100.0)),
        {"kernel": "rbf"},
    )
    both = yeast[:2]
    kinds = {"yeast": yeast, "emotions": both, "scene": (*both, {"kernel": "rbf"})}
    for name, settings in {**kinds, "yahoo_arts": both[:1]}.items():
        data = nl.datasets.load(name)
        X = data.X
        if name in ("emotions", "scene"):
            X = StandardScaler().fit(X[data.train]).transform(X)
        for one in settings:
            model = nl.RankSVM(**one)
            found = tried(model, data, X)
            solved = {"gap": float(f"{model.dual_gap_:.1e}"), "iterations": model.n_iter_}
            yield {"data": name, "parameters": one, **found, **solved}
        yield {"data": name, "parameters": "MLkNN", **tried(nl.MLkNN(), data, X)}
    enron = nl.datasets.load("enron")
    some = np.flatnonzero(np.asarray(enron.train))[:300]
    for degree in (8, 3):
        model = nl.RankSVM(degree=degree, max_iter=1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(enron.X[some], enron.Y[some])
        gap = float(f"{model.dual_gap_:.0e}")
        yield {"rows_of_enron": 300, "degree": degree, "iterations": model.n_iter_, "gap": gap}


def c45tree() -> Iterator[Row]:
    for name in TREES:
        data = nl.datasets.load(name)
        model = nl.C45Tree()
        found = tried(model, data)
        q = data.Y.shape[1]
        nodes = [int(model.tree_text(label).rpartition(":")[2]) for label in range(q)]
        sizes = {"labels": q, "nodes_per_tree": round(float(np.mean(nodes)))}
        yield {"data": name, "method": "C45Tree", **sizes, **found}
        yield {"data": name, "method": "MLkNN", **tried(nl.MLkNN(), data)}
    data = nl.datasets.load("emotions")
    for model in (nl.C45Tree(), nl.MLkNN()):
        parts = splits(data, "cv10")
        every = [
            tried(model, replace(data, train=rows_in(part.train, len(data)))) for part in parts
        ]
        means = {name: round(float(np.mean([one[name] for one in every])), 4) for name in METRICS}
        yield {"ten_folds_of": "emotions", "method": type(model).__name__, **means}


def rows_in(some: Any, n: int) -> Any:
    """A mask that selects some of n rows."""
    mask = np.zeros(n, bool)
    mask[some] = True
    return mask


def pmm() -> Iterator[Row]:
    for name in TEXTS:
        data = nl.datasets.load(name)
        per_row = {"labels_per_row": round(float(data.Y.sum() / data.Y.shape[0]), 2)}
        for order in (1, 2):
            model = nl.PMM(order=order)
            found = tried(model, data)
            start = time.process_time()
            model.label_scores(data.X[data.test])
            scoring = {"scoring_seconds": round(time.process_time() - start, 2)}
            told = {"data": name, "method": f"PMM{order}", **per_row}
            yield {**told, **found, "updates": model.n_iter_, **scoring}
        for metric in ("euclidean", "cosine"):
            told = {"data": name, "method": f"MLkNN, {metric}", **per_row}
            yield {**told, **tried(nl.MLkNN(metric=metric), data)}
    for name in ("yahoo_arts", "yahoo_health"):
        data = nl.datasets.load(name)
        X = sparse.csr_array(data.X)
        for words, values in (("times 100", 100 * X), ("occurs", (X > 0).astype(float))):
            found = tried(nl.PMM(), data, values)
            yield {"data": name, "words": words, "average_precision": found["average_precision"]}


MEASURED: dict[str, Callable[[], Iterator[Row]]] = {
    "AdaBoostMH": adaboostmh,
    "ADTBoostMH": adtboostmh,
    "RankSVM": ranksvm,
    "C45Tree": c45tree,
    "PMM": pmm,
}


def main() -> None:
    try:
        rows = [
            {"baseline": name, **row}
            for name in sys.argv[1:] or MEASURED
            for row in MEASURED[name]()
        ]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
