"""How fast does the command line start, compared with the import of scikit-learn?"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import report

import nearlabel as nl

QUESTION = "Start of the command line: wall-clock seconds, median of nine interleaved runs"
RUNS = 9


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.npz"
        nl.datasets.save(nl.datasets.make_local_labels(600, 72, 6, labels_per_sample=2), path)
        commands = {
            "python -c pass": ["-c", "pass"],
            "python -c 'import sklearn'": ["-c", "import sklearn"],
            "nearlabel --help": ["-m", "nearlabel", "--help"],
            "nearlabel datasets describe, 600 rows": [
                *("-m", "nearlabel", "datasets", "describe", str(path)),
            ],
            "nearlabel evaluate, 600 rows": ["-m", "nearlabel", "evaluate", str(path)],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, arguments in commands.items():
                start = time.perf_counter()
                subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
                seconds[name].append(time.perf_counter() - start)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    floor = median["python -c 'import sklearn'"]
    report(
        QUESTION,
        [
            {
                "command": name,
                "seconds": round(value, 2),
                "fastest": round(min(seconds[name]), 2),
                "slowest": round(max(seconds[name]), 2),
                "of_importing_scikit_learn": round(value / floor, 2),
            }
            for name, value in median.items()
        ],
    )


if __name__ == "__main__":
    main()
