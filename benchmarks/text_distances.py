"""Does a different distance or scaling help on text? The papers use unscaled features.

All parameters are chosen by leave-one-out on the training rows, separately for each distance and
scaling; the results are those on the official test rows.
"""

from __future__ import annotations

from typing import Any

from measuring import report

import nearlabel as nl
from nearlabel.experiments import evaluate_splits, splits
from nearlabel.experiments.candidates import usual_candidates
from nearlabel.metrics import scorer

QUESTION = (
    "Text, ML-kNN and BRkNN with k up to 100 (and weights) by leave-one-out: average precision and "
    "ranking loss on the test rows, by distance and scaling. Features of 0 and 1 are already "
    "min-max scaled: such columns are left empty"
)
BINARY = ("enron", "medical", "slashdot", "bibtex", "ohsumed", "tmc2007_500")
# Word counts as rows of unit length, except for the few documents without any of the words: by
# Euclidean distance, these are nearer to nearly all other rows than most other rows are.
YAHOO = tuple(
    f"yahoo_{name}"
    for name in (
        *("arts", "business", "computers", "education", "entertainment", "health"),
        *("recreation", "reference", "science", "social", "society"),
    )
)
WAYS = {
    "raw": ("none", "euclidean"),
    "cosine": ("none", "cosine"),
    "minmax": ("minmax", "euclidean"),
}


def rows_of(name: str, ways: tuple[str, ...]) -> list[dict[str, Any]]:
    """The metrics of each method, by distance and scaling."""
    data = nl.datasets.load(name)
    parts = splits(data, "official")
    n = len(parts[0].train)
    rows: dict[str, dict[str, Any]] = {}
    for way in ways:
        scale, metric = WAYS[way]
        methods, by = ("MLkNN", "BRkNN"), scorer("ranking_loss")
        candidates = [usual_candidates(method, n, metrics=(metric,)) for method in methods]
        found = evaluate_splits(data, candidates, parts, scorer=by, scale=scale)
        for method, (one,) in zip(methods, found, strict=True):
            row = rows.setdefault(method, {"data": name, "method": method})
            assert one.chosen is not None
            row[f"k_{way}"] = one.chosen.n_neighbors
            for short, full in (("ap", "average_precision"), ("rl", "ranking_loss")):
                row[f"{short}_{way}"] = round(one.metrics[full], 4)
    return list(rows.values())


def main() -> None:
    rows = [row for name in BINARY for row in rows_of(name, ("raw", "cosine"))]
    rows += [row for name in YAHOO for row in rows_of(name, ("raw", "cosine", "minmax"))]
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
