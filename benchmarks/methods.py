"""How good are the methods on real data, all on one graph? Needs the sets in the data folder.

Usage: python methods.py [METHOD …]
"""

from __future__ import annotations

import sys
from typing import Any

from measuring import report
from scipy import sparse

import nearlabel as nl
from nearlabel.experiments import evaluate_splits, splits
from nearlabel.methods.registry import METHODS, estimator

QUESTION = "Every method on real data: average precision, F1 and processor time"
# Small to large; with few and with many labels; measurements, pictures and texts.
SETS = (
    *("emotions", "flags", "birds", "genbase", "medical", "cal500", "enron", "image", "scene"),
    *("yeast", "slashdot", "corel5k", "bibtex"),
)
NEIGHBORS = (10, 40)


def rows_of(name: str) -> list[dict[str, Any]]:
    data = nl.datasets.load(name)
    scale = "none" if sparse.issparse(data.X) else "minmax"
    kind = "holdout" if data.train is None else "official"
    methods = sys.argv[1:] or METHODS
    models = [estimator(method, k, random_state=0) for k in NEIGHBORS for method in methods]
    found = evaluate_splits(data, models, splits(data, kind), scale=scale, refusals=True)
    rows = []
    for model, (result,) in zip(models, found, strict=True):
        metrics = {
            metric: round(result.metrics[metric], 4)
            for metric in ("average_precision", "ranking_loss", "hamming_loss", "macro_f1")
            if not result.refusal
        }
        told = {"data": name, "rows": len(data), "labels": int(data.Y.shape[1]), "scale": scale}
        method = {"method": type(model).__name__, "k": model.n_neighbors}
        rows.append({**told, **method, **metrics, "core_seconds": round(result.seconds, 3)})
    return rows


def main() -> None:
    try:
        rows = [row for name in SETS for row in rows_of(name)]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
