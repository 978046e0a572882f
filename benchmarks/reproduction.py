"""How many published cells come out as printed, and how long does it take?

Runs the command line as a user would, into an empty folder of results, and then again.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import Any

from measuring import report

QUESTION = (
    "`nearlabel reproduce`: published cells of the neighbor methods by verdict. Wall seconds of "
    "the first run of all five papers, its core-seconds, and wall seconds of a second run, which "
    "reads its results"
)
VERDICTS = ("digits", "within std", "off", "not run")
SMALL = ("emotions", "scene", "yeast")
# Which cells are asked how often they agree: papers, data sets (all if None) and algorithms.
SHARES: dict[str, list[tuple[str, tuple[str, ...] | None, tuple[str, ...]]]] = {
    "ML-kNN of 2005 and 2007; ML-kNN, DML-kNN, IBLR-ML and positive samples of 2017": [
        ("000", None, ("ML-KNN",)),
        ("001", None, ("ML-kNN",)),
        ("004", SMALL, ("ML-kNN", "DML-kNN", "IBLR-ML", "positive-sample")),
    ],
    "ML-kNN and Mallows of 2009, but for reuters": [
        ("002", (*SMALL, "genbase", "image135"), ("ML-kNN", "Mallows")),
    ],
}


def agreement(records: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """How many of some cells are as printed or within a standard deviation."""
    verdicts = [
        one["verdict"]
        for one in records
        for paper, datasets, algorithms in SHARES[name]
        if one["paper"] == paper
        and (datasets is None or one["dataset"] in datasets)
        and one["algorithm"] in algorithms
        and one["published"] is not None
    ]
    agree = sum(verdict in ("digits", "within std") for verdict in verdicts)
    return {"cells_of": name, "agree": agree, "of": len(verdicts)}


def reproduce(folder: str) -> tuple[list[dict[str, Any]], float, float]:
    """What a run prints, and the wall and core seconds that it took."""
    wall, core = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "nearlabel", "reproduce", "--json", "--results", folder]
    done = subprocess.run([*command, "--jobs", "2"], stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - core.ru_utime - core.ru_stime
    return json.loads(done.stdout), time.monotonic() - wall, used


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        records, wall, core = reproduce(folder)
        again, second, _ = reproduce(folder)
    if again != records:
        raise SystemExit("the second run tells other numbers than the first")
    ran = [one for one in records if not str(one["reason"]).startswith("not a neighbor")]
    groups: dict[tuple[str, str], Counter[str]] = {}
    for one in ran:
        if one["published"] is not None:
            groups.setdefault((one["paper"], one["algorithm"]), Counter())[one["verdict"]] += 1
    rows: list[dict[str, Any]] = [
        {"paper": paper, "algorithm": algorithm, **{name: counted[name] for name in VERDICTS}}
        for (paper, algorithm), counted in groups.items()
    ]
    rows += [agreement(records, name) for name in SHARES]
    rows.append(
        {"first_run": round(wall), "its_cores": round(core), "second_run": round(second, 1)}
    )
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
