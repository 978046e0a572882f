"""How good are our methods compared with learners of other libraries? Needs the data folder.

Usage: python quality.py [--sets NAME …] [--learners NAME …] [--again]

Each row is written to the result file as soon as it is measured, and existing rows are not
measured again without --again: all rows take about twenty core-hours, which may be spread over
several machines. Learners that are not installed are skipped. PECOS needs an older NumPy: run it
in a separate environment with --learners.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import multiprocessing
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from label_trees import LABEL_TREES, version_of
from measuring import all_versions

import nearlabel as nl
from nearlabel.common.files import replacing
from nearlabel.datasets import Dataset
from nearlabel.experiments import Part, SplitResult, evaluate_splits, splits
from nearlabel.experiments.candidates import tried_parameters, usual_candidates
from nearlabel.experiments.others import other_methods
from nearlabel.experiments.others.other_results import BEST, evaluate_others
from nearlabel.experiments.others.other_runs import OVER, stop_after
from nearlabel.methods.registry import METHODS

QUESTION = (
    "Our methods, the blend and other learners on public sets, with all parameters chosen on the "
    "training rows by average precision, on the official test rows or on a third of the rows drawn "
    "with seed 0; left out on a set are other learners that take more than one core-hour, and our "
    "methods that take more than ten core-minutes"
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
OTHERS = other_methods.OTHERS | LABEL_TREES
LEARNERS = [BEST, *METHODS, *OTHERS]
RESULT = Path(__file__).parent / "results" / "quality.json"
MEASURED = ("average_precision", "ranking_loss", "micro_f1", "one_error", "hamming_loss")
TUNED_BY = "average_precision"
MANY_ROWS = 10_000  # with more rows, fewer numbers of neighbors are tried
OWN_LIMIT = 600.0  # core-seconds of each of our methods on a set; others have an hour


def measured_row(name: str, learner: str) -> dict[str, Any] | None:
    """The results of a learner on a set; None if it is not installed."""
    if learner in METHODS:
        return _row(name, learner, _own_result(name, learner))
    if learner in LABEL_TREES and version_of(learner) is None:
        return None
    data, part = _split(name)
    scoring = nl.metrics.scorer(TUNED_BY)
    [result] = evaluate_others(data, [learner], [part], scoring, known=OTHERS)[learner]
    return _row(name, learner, _kept_form(result))


def kept_rows() -> list[dict[str, Any]]:
    """The rows of the result file."""
    rows: list[dict[str, Any]] = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    return rows


def keep(row: dict[str, Any]) -> None:
    """Write or replace a row of the result file; several processes may do so at the same time."""
    with RESULT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = json.loads(RESULT.read_text()) if RESULT.exists() else {"rows": [], "versions": {}}
        rows = {_place(one): one for one in kept["rows"]} | {_place(row): row}
        peers = tuple(dict.fromkeys(other.package for other in OTHERS.values()))
        found = all_versions(peers)
        installed = {peer: value for peer, value in found.items() if value != "not installed"}
        result = {
            "question": QUESTION,
            "rows": [rows[place] for place in sorted(rows)],
            "versions": kept["versions"] | installed,
        }
        with replacing(RESULT) as file:
            file.write((json.dumps(result, indent=2) + "\n").encode())


def _place(row: dict[str, Any]) -> tuple[int, int]:
    """A sort key: sets in their order, and learners within each."""
    return (*SETS, *FURTHER).index(row["data"]), LEARNERS.index(row["method"])


def _own_result(name: str, method: str) -> dict[str, Any]:
    """The results of one of our methods, in a separate process with a time limit."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_measure_own, args=(name, method, answer))
        process.start()
        process.join()
        if process.exitcode == OVER:
            why = f"it takes over {OWN_LIMIT / 60:.0f} minutes of a core"
            return _kept_form(SplitResult({}, OWN_LIMIT, why))
        if not answer.exists():
            sys.exit(f"{method} on {name} did not finish")
        result: dict[str, Any] = json.loads(answer.read_text())
        return result


def _measure_own(name: str, method: str, answer: Path) -> None:
    """Runs in a separate process."""
    threading.Thread(target=stop_after, args=(OWN_LIMIT,), daemon=True).start()
    warnings.simplefilter("ignore")
    data, part = _split(name)
    few = (5, 10, 20, 40) if len(part.train) > MANY_ROWS else None
    candidates = usual_candidates(method, len(part.train), few, random_state=0)
    scoring = nl.metrics.scorer(TUNED_BY)
    [[found]] = evaluate_splits(
        data, [candidates], [part], scorer=scoring, scale="auto", refusals=True
    )
    if found.chosen is not None:
        chosen = {"scale": found.scale, **tried_parameters(method, found.chosen)}
        found = replace(found, parameters=chosen)
    answer.write_text(json.dumps(_kept_form(found)))


def _split(name: str) -> tuple[Dataset, Part]:
    data = nl.datasets.load(name)
    kind = "holdout" if data.train is None else "official"
    [part] = splits(data, kind)
    return data, part


def _kept_form(found: SplitResult) -> dict[str, Any]:
    """A result as JSON."""
    told = {metric: float(found.metrics[metric]) for metric in MEASURED if found.metrics}
    return {
        **told,
        "standard_error": _standard_error(found),
        "held_out": found.left_out if found.left_out == found.left_out else None,
        "core_seconds": found.seconds,
        "chosen": found.parameters,
        "refusal": found.refusal,
    }


def _standard_error(found: SplitResult) -> float | None:
    """The standard error of average precision, a mean over test rows."""
    rows = found.rows.get(TUNED_BY)
    if rows is None:
        return None
    rows = rows[np.isfinite(rows)]
    return float(rows.std(ddof=1) / np.sqrt(len(rows)))


def _row(name: str, method: str, result: dict[str, Any]) -> dict[str, Any]:
    print(f"{name} {method} {result.get(TUNED_BY, result['refusal'])}", file=sys.stderr, flush=True)
    numbers = {metric: round(result[metric], 4) for metric in MEASURED if metric in result}
    more: dict[str, Any] = {
        key: None if result[key] is None else round(result[key], 4)
        for key in ("standard_error", "held_out")
    }
    more["core_seconds"] = round(result["core_seconds"], 2)
    more |= {name: result[name] for name in ("chosen", "refusal")}
    split = "holdout" if nl.datasets.load(name).train is None else "official"
    return {"data": name, "method": method, **numbers, **more, "split": split}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*SETS, *FURTHER], choices=[*SETS, *FURTHER])
    parser.add_argument("--learners", nargs="+", default=LEARNERS, choices=LEARNERS)
    parser.add_argument("--again", action="store_true", help="measure existing rows again")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        measure(arguments.sets, arguments.learners, again=arguments.again)
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    print(RESULT.read_text())


def measure(sets: Sequence[str], learners: Sequence[str], *, again: bool) -> None:
    """Measure the rows missing in the result file."""
    for name in sets:
        for learner in learners:
            kept = {(row["data"], row["method"]) for row in kept_rows()}
            if again or (name, learner) not in kept:
                row = measured_row(name, learner)
                if row is not None:
                    keep(row)


if __name__ == "__main__":
    main()
