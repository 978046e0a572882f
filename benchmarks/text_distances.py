"""Does another distance or scaling help on text, where the papers took features as they are?

Everything that a method can choose is chosen by leave-one-out on the rows to learn from, for each
distance and scaling by itself; what is told was measured on the data's own rows to be tried on.
"""

from __future__ import annotations

from typing import Any

from measuring import report

import nearlabel as nl
from nearlabel.experiments import splits
from nearlabel.experiments.candidates import usual_candidates
from nearlabel.experiments.evaluation import select_and_evaluate
from nearlabel.metrics import scorer

QUESTION = (
    "Text, ML-kNN and BRkNN with k up to 100 (and weights) by leave-one-out: average precision and "
    "ranking loss on the rows to be tried on, by distance and scaling. Features of 0 and 1 are "
    "min-max scaled already: such columns are left empty"
)
BINARY = ("enron", "medical", "slashdot", "bibtex", "ohsumed", "tmc2007_500")
# Word counts as rows of unit length, but for the few documents without any of the words: these are
# nearer, by the Euclidean distance, to nearly all others than most of the others are.
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
    """The metrics of each method, one way beside the other."""
    data = nl.datasets.load(name)
    parts = splits(data, "official")
    n = len(parts[0].train)
    rows: dict[str, dict[str, Any]] = {}
    for way in ways:
        scale, metric = WAYS[way]
        candidates = {
            method: usual_candidates(method, n, metrics=(metric,)) for method in ("MLkNN", "BRkNN")
        }
        by = scorer("ranking_loss")
        found = select_and_evaluate(data, candidates, parts, by, scale=scale)
        for method, (one,) in found.items():
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
