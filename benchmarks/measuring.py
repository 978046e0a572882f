"""Helpers of all benchmarks: core-seconds, peak memory, and one JSON line with the versions."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from nearlabel.common.versions import versions
from nearlabel.experiments.papers.printed_tables import cells

MIB = 2**20


def core_seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least CPU time of the whole process for `work`, over some repeats.

    Run with one BLAS thread (see run.py), so that waiting threads are not counted as work.
    """
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def taking_turns(
    works: Mapping[str, Callable[[], Any]],
    repeats: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """The least time of each of several works; they alternate, so that load affects all alike."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            start = clock()
            work()
            best[name] = min(best[name], clock() - start)
    return best


def use_memory(size: int = 2**31) -> None:
    """Write to memory and release it, so that what is measured next does not have to wait for it.

    A virtual machine gets a page when it is first written to, which may take 0.5 ms.
    """
    np.ones(size // 8)


def peak_mib(work: Callable[[], Any]) -> float:
    """Peak memory of the process during `work`, minus its memory before, in MiB. Linux."""
    before = _status("VmRSS") / MIB
    return process_peak_mib(work) - before


def process_peak_mib(work: Callable[[], Any]) -> float:
    """Peak memory of the process during `work`, including its memory before, in MiB. Linux."""
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    work()
    return _status("VmHWM") / MIB


def peak_anonymous_mib(work: Callable[[], Any]) -> float:
    """Peak memory of the process during `work` without mapped files, in MiB. Linux.

    It is sampled a hundred times per second.
    """
    peak, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], _status("RssAnon"))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        work()
    finally:
        done.set()
        looking.join()
    return peak[0] / MIB


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def printed(paper: str, dataset: str, algorithm: str, **parameters: Any) -> dict[str, float]:
    """The metrics printed in a paper for an algorithm on a data set."""
    return {
        cell.metric: float(cell.printed)
        for cell in cells()
        if (cell.paper, cell.dataset, cell.algorithm) == (paper, dataset, algorithm)
        and cell.printed is not None
        and parameters.items() <= dict(cell.parameters).items()
    }


def all_versions(peers: tuple[str, ...] = ()) -> dict[str, str]:
    """The versions of everything a measurement depends on."""
    found = versions()
    for peer in peers:
        try:
            found[peer] = version(peer)
        except PackageNotFoundError:
            found[peer] = "not installed"
    return found


def report(question: str, rows: list[dict[str, Any]], peers: tuple[str, ...] = ()) -> None:
    """Print the result: the question, one dict per measurement, and the versions."""
    result = {"question": question, "rows": rows, "versions": all_versions(peers)}
    json.dump(result, sys.stdout)
    sys.stdout.write("\n")
