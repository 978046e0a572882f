"""How many published cells are reproduced, and how long does it take?

Usage: python reproduction.py [FOLDER]

Runs the command line as a user would, with an empty results folder, and then again. With a FOLDER
for results, an interrupted run is continued, and times are not reported.
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

from nearlabel.experiments.papers.table_reproduction import reproduce
from nearlabel.experiments.papers.verdicts import Verdict
from nearlabel.experiments.reporting.method_differences import order_views

QUESTION = (
    "`nearlabel reproduce`: published cells by verdict, and the orders of Zhang and Zhou (2007). "
    "Wall-clock seconds and core-seconds of the first run of all five papers, and wall-clock "
    "seconds of a second run, which reads the stored results"
)

VERDICTS = [one for one in Verdict if one not in (Verdict.BETTER, Verdict.NEW)]


def agreement(rows: list[dict[str, Any]], paper: str) -> dict[str, Any]:
    """The number of cells of a paper that agree, among those that were run."""
    some = [row for row in rows if row["paper"] == paper]
    agree = sum(row[name] for row in some for name in VERDICTS if name.agrees)
    off = sum(row[Verdict.OFF] for row in some)
    return {"cells_of": paper, "agree": agree, "of": agree + off}


def orders(folder: str) -> list[dict[str, Any]]:
    """The relations of each metric, and the total orders: printed, and from our runs."""
    return [
        {"order": view.heading, "metric": metric, **dict(zip(view.sources, texts, strict=True))}
        for view in order_views(reproduce(results=folder).cells)
        for metric, texts in view.rows.items()
    ]


def run(folder: str) -> tuple[list[dict[str, Any]], float, float]:
    """The output of a run, and its wall-clock seconds and core-seconds."""
    wall, core = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "nearlabel", "reproduce", "--json", "--results", folder]
    done = subprocess.run([*command, "--jobs", "2"], stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - core.ru_utime - core.ru_stime
    return json.loads(done.stdout), time.monotonic() - wall, used


def measured(folder: str, *, with_times: bool) -> list[dict[str, Any]]:
    records, wall, core = run(folder)
    again, second, _ = run(folder)
    if again != records:
        raise SystemExit("the second run has different numbers than the first")
    groups: dict[tuple[str, str], Counter[str]] = {}
    for one in records:
        of_pictures = one["table"].endswith("-pictures")  # features differ from the paper's
        if one["published"] is not None and not of_pictures:
            groups.setdefault((one["paper"], one["algorithm"]), Counter())[one["verdict"]] += 1
    rows: list[dict[str, Any]] = [
        {"paper": paper, "algorithm": algorithm, **{name: counted[name] for name in VERDICTS}}
        for (paper, algorithm), counted in groups.items()
    ]
    rows += [agreement(rows, paper) for paper in dict.fromkeys(row["paper"] for row in rows)]
    rows += orders(folder)
    if with_times:
        times = {"first_run": round(wall), "its_cores": round(core)}
        rows.append({**times, "second_run": round(second, 1)})
    return rows


def main() -> None:
    if sys.argv[1:]:
        report(QUESTION, measured(sys.argv[1], with_times=False))
        return
    with tempfile.TemporaryDirectory() as folder:
        report(QUESTION, measured(folder, with_times=True))


if __name__ == "__main__":
    main()
