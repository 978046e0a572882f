"""Fit ML-kNN on generated data, evaluate it, and look at three items and the neighbors that voted.

Run it by `make demo`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import nearlabel as nl
from nearlabel.explanations import LabelExplanation

METRICS = {
    "hamming_loss": "wrong decisions, share of all",
    "one_error": "best label is wrong",
    "coverage": "labels to go down for all true ones",
    "ranking_loss": "pairs of labels in the wrong order",
    "average_precision": "true labels ranked high (greater is better)",
}


def main() -> None:
    data = nl.datasets.make_local_labels(2000, 20, 40, random_state=0)
    assert data.train is not None
    seen, new = np.flatnonzero(data.train), np.flatnonzero(~data.train)
    print(f"nearlabel {nl.__version__}: ML-kNN with 10 neighbors on generated data")
    print(data)
    print(f"{len(seen)} items to learn from, {len(new)} new ones\n")

    model = nl.MLkNN(n_neighbors=10)
    model.fit(data.X[seen], data.Y[seen], label_names=data.label_names)
    result = nl.metrics.evaluate(
        data.Y[new], model.label_scores(data.X[new]), model.predict(data.X[new])
    )
    for metric, meaning in METRICS.items():
        print(f"  {metric:<18} {result[metric]:7.4f}   {meaning}")

    print("\nThree of the new items. + is predicted, * is true; then the neighbors that")
    print("voted, nearest first, as item@distance.")
    for item in new[:3]:
        true = set(data.Y[[item]].indices.tolist())
        print(f"\nitem {item}")
        for label in model.explain(data.X[item], top=4):
            print("  " + line(label, seen, is_true=label.label in true))


def line(label: LabelExplanation, seen: Any, *, is_true: bool) -> str:
    """One label on one line of at most 80 columns; `seen` are the numbers of the training items."""
    marks = ("+" if label.predicted else " ") + ("*" if is_true else " ")
    voters = [f"{seen[voter.id]}@{voter.distance:.2f}" for voter in label.neighbors[:3]]
    more = f" and {len(label.neighbors) - 3} more" if len(label.neighbors) > 3 else ""
    shown = ", ".join(voters) + more or "none"
    return f"{marks} {label.name}  {label.score:.3f}  {len(label.neighbors):2d} of 10: {shown}"


if __name__ == "__main__":
    main()
