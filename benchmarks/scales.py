"""Which feature scaling is best for ML-kNN? Needs the sets in the data folder."""

from __future__ import annotations

import sys
from typing import Any

from measuring import report

import nearlabel as nl
from nearlabel.experiments import SCALES, evaluate_splits, splits

QUESTION = (
    "ML-kNN with 20 neighbors by the scaling of dense features: average precision, convention "
    "paper, on the official test rows, or on a third of the rows"
)
SETS = ("emotions", "flags", "birds", "cal500", "image", "scene", "yeast")
K = 20


def row_of(name: str) -> dict[str, Any]:
    data = nl.datasets.load(name)
    kind = "holdout" if data.train is None else "official"
    parts = splits(data, kind)
    row: dict[str, Any] = {"data": name, "split": kind, "training_rows": len(parts[0].train)}
    for scale in (scale for scale in SCALES if scale != "tfidf"):  # which is for counts
        [[found]] = evaluate_splits(data, [nl.MLkNN(K)], parts, scale=scale)
        row[scale] = round(found.metrics["average_precision"], 4)
    return {**row, "chosen_by_auto": found.scale}  # the last one is auto


def main() -> None:
    try:
        rows = [row_of(name) for name in SETS]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
