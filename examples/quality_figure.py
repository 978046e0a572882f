"""Mean ranks of all methods
=========================

Draw the mean ranks of all methods over the data sets, from the results of ``make bench``.

Usage: ``python examples/quality_figure.py FOLDER``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import matplotlib as mpl  # noqa: E402
from quality_tables import mean_ranks  # noqa: E402

mpl.use("agg")

from nearlabel.experiments.reporting.drawing import save  # noqa: E402
from nearlabel.experiments.reporting.figures import critical_difference  # noqa: E402


def main(folder: Path) -> None:
    rows = json.loads((BENCHMARKS / "results" / "quality.json").read_text())["rows"]
    for metric in ("average_precision", "ranking_loss"):
        _, pairs = mean_ranks(rows, metric)
        picture = folder / f"quality_{metric}.png"
        title = f"{metric.replace('_', ' ')}, mean ranks over {pairs.rows} sets"
        save(critical_difference(pairs, title=title), picture)
        print(f"wrote {picture}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/quality_figure.py FOLDER")
    main(Path(sys.argv[1]))
