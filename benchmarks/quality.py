"""How good are our methods beside what people use instead? Needs the data folder.

Usage: python quality.py [--sets NAME …] [--others NAME …]

Runs of other learners are kept in the user's cache, and are not repeated: an interrupted benchmark
goes on where it was. A learner that is not installed here, such as PECOS, which needs an older
NumPy, can be run in an environment of its own with --others; its kept runs are read afterwards.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import threading
import warnings
from dataclasses import replace
from typing import Any

from measuring import report

import nearlabel as nl
from nearlabel.datasets import Dataset
from nearlabel.experiments import Part, SplitResult, splits
from nearlabel.experiments.candidates import tried_parameters, usual_candidates
from nearlabel.experiments.evaluation import select_and_evaluate
from nearlabel.experiments.others.other_methods import OTHERS
from nearlabel.experiments.others.other_results import BEST, evaluate_others
from nearlabel.experiments.others.other_runs import OVER, stop_after
from nearlabel.experiments.papers.result_store import ResultStore, data_key, result_key
from nearlabel.methods.registry import METHODS

QUESTION = (
    "Our methods, the blend and other learners on public sets, with every parameter chosen on the "
    "training rows by average precision, on the sets' own test rows or on a third of the rows by "
    "seed 0; an other that takes over one core-hour on a set is left out there, and one of our "
    "methods that takes over ten core-minutes"
)
# The sets of the comparison, and further ones.
SETS = (
    *("emotions", "birds", "medical", "yeast", "scene", "image", "enron", "slashdot", "bibtex"),
    *("corel5k", "tmc2007_500", "mediamill_sample", "yahoo_arts", "yahoo_health", "delicious"),
)
FURTHER = (
    *("flags", "genbase", "cal500", "image135", "corel16k001", "corel16k002", "corel16k003"),
    *("ohsumed", "reuters", "yahoo_business", "yahoo_computers", "yahoo_education"),
    *("yahoo_entertainment", "yahoo_recreation", "yahoo_reference", "yahoo_science"),
    *("yahoo_social", "yahoo_society"),
)
MEASURED = ("average_precision", "ranking_loss", "micro_f1", "one_error", "hamming_loss")
TUNED_BY = "average_precision"
MANY_ROWS = 10_000  # with more of them, fewer numbers of neighbors are tried
OWN_LIMIT = 600.0  # core-seconds of each of our methods on a set; others have an hour


def rows_of(name: str, others: list[str]) -> list[dict[str, Any]]:
    """One row for each method on a set."""
    data, kind, part = _split(name)
    rows = []
    if others == list(OTHERS):
        rows = [_row(name, method, own_result(name, method)) for method in METHODS]
        others = [BEST, *others]
    for learner in others:
        scoring = nl.metrics.scorer(TUNED_BY)
        [result] = evaluate_others(data, [learner], [part], scoring)[learner]
        rows.append(_row(name, learner, _kept_form(result)))
    return [{**row, "split": kind} for row in rows]


def own_result(name: str, method: str) -> dict[str, Any]:
    """What one of our methods reaches, kept until the code changes."""
    store, key = ResultStore(), _own_key(name, method)
    if store.get(key) is None:
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_measure_own, args=(name, method))
        process.start()
        process.join()
        if process.exitcode == OVER:
            why = f"it takes over {OWN_LIMIT / 60:.0f} minutes of a core"
            store.add(key, _kept_form(SplitResult({}, OWN_LIMIT, why)))
    result = store.get(key)
    if result is None:
        sys.exit(f"{method} on {name} came to no end")
    return result


def _own_key(name: str, method: str) -> str:
    return result_key({"quality": method, "tuned": TUNED_BY}, data_key(name) or "")


def _measure_own(name: str, method: str) -> None:
    """In a process of its own."""
    threading.Thread(target=stop_after, args=(OWN_LIMIT,), daemon=True).start()
    warnings.simplefilter("ignore")
    data, _, part = _split(name)
    few = (5, 10, 20, 40) if len(part.train) > MANY_ROWS else None
    candidates = {method: usual_candidates(method, len(part.train), few, random_state=0)}
    scoring = nl.metrics.scorer(TUNED_BY)
    [found] = select_and_evaluate(data, candidates, [part], scoring, scale="auto")[method]
    if found.chosen is not None:
        chosen = {"scale": found.scale, **tried_parameters(method, found.chosen)}
        found = replace(found, parameters=chosen)
    ResultStore().add(_own_key(name, method), _kept_form(found))


def _split(name: str) -> tuple[Dataset, str, Part]:
    data = nl.datasets.load(name)
    kind = "holdout" if data.train is None else "official"
    [part] = splits(data, kind)
    return data, kind, part


def _kept_form(found: SplitResult) -> dict[str, Any]:
    """A result as JSON can hold it."""
    told = {metric: float(found.metrics[metric]) for metric in MEASURED if found.metrics}
    return {
        **told,
        "held_out": found.left_out if found.left_out == found.left_out else None,
        "core_seconds": found.seconds,
        "chosen": found.parameters,
        "refusal": found.refusal,
    }


def _row(name: str, method: str, result: dict[str, Any]) -> dict[str, Any]:
    print(f"{name} {method} {result.get(TUNED_BY, result['refusal'])}", file=sys.stderr, flush=True)
    numbers = {metric: round(result[metric], 4) for metric in MEASURED if metric in result}
    seconds, held_out = round(result["core_seconds"], 2), result["held_out"]
    held_out = None if held_out is None else round(held_out, 4)
    more = {"held_out": held_out, "core_seconds": seconds}
    more |= {name: result[name] for name in ("chosen", "refusal")}
    return {"data": name, "method": method, **numbers, **more}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*SETS, *FURTHER])
    parser.add_argument("--others", nargs="+", default=list(OTHERS), choices=OTHERS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        rows = [row for name in arguments.sets for row in rows_of(name, arguments.others)]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
