"""How good are the label trees of other libraries with many rows and labels?

Usage: python trees_at_scale.py [ROWS LABELS]

Runs those that are installed, and ours next to them; PECOS needs a separate environment with an
older NumPy. The result file keeps the rows of the others, and those of other sizes.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from label_trees import LabelTree, RankedTree, version_of
from measuring import report

import nearlabel as nl
from nearlabel.common.arrays import canonical_csr

QUESTION = (
    "Label trees of napkinXC and PECOS, ML-kNN and the blend on the synthetic collection of "
    "blend_at_scale, one thread, default parameters: core-seconds of fit, and mean inverse rank "
    "and precision at 1, 3 and 5 on 2,000 new rows, with the 100 best labels of each tree"
)
ROWS, LABELS, D, QUERIES, TOP = 200_000, 20_000, 128, 2_000, 100
RESULT = Path(__file__).parent / "results" / "trees_at_scale.json"
TREES: dict[str, Any] = {"napkinXC": LabelTree, "PECOS": RankedTree}
OURS: dict[str, Any] = {"ML-kNN": nl.MLkNN, "blend": nl.BlendedNeighbors}


def row_of(name: str, n: int, q: int) -> dict[str, Any]:
    made = nl.datasets.make_collection(n, D, q, n_queries=QUERIES)
    start = time.process_time()
    model = (TREES | OURS)[name]().fit(made.data.X, made.data.Y)
    fitted = time.process_time() - start
    if name in TREES:
        version, scores = (
            version_of(name),
            canonical_csr(model.best_labels(made.queries.X, TOP)),
        )
    else:
        version, scores = nl.__version__, model.label_scores(made.queries.X)
    truth = made.queries.Y
    row: dict[str, Any] = {"rows": n, "labels": q, "what": name, "version": version}
    row["core_seconds"] = round(fitted, 1)
    row["mean_inverse_rank"] = round(float(nl.metrics.mean_inverse_rank(truth, scores)), 4)
    for r in (1, 3, 5):
        row[f"precision_at_{r}"] = round(float(nl.metrics.precision_at(truth, scores, r)), 4)
    return row


def main() -> None:
    warnings.simplefilter("ignore")
    n, q = (int(one) for one in sys.argv[1:3]) if len(sys.argv) > 2 else (ROWS, LABELS)
    trees = [name for name in TREES if version_of(name) is not None]
    if not trees:
        sys.exit("skipped: neither napkinXC nor PECOS is installed here")
    there = [*OURS, *trees]
    kept = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    others = [row for row in kept if row["what"] not in there or row["rows"] != n]
    report(QUESTION, [*others, *(row_of(name, n, q) for name in there)])


if __name__ == "__main__":
    main()
