"""Are learned thresholds better than the methods' own? Needs the data sets in the data folder."""

from __future__ import annotations

import sys
from typing import Any

from measuring import report

import nearlabel as nl
from nearlabel.methods.registry import METHODS, estimator

QUESTION = "F1 of the methods' own decisions and of LabelThresholds, raw features"
SETS = ("enron", "bibtex", "corel5k")
K = 10


def rows_of(name: str) -> list[dict[str, Any]]:
    data = nl.datasets.load(name)
    assert data.train is not None
    X, new, truth = data.X[data.train], data.X[~data.train], data.Y[~data.train]
    graph, queries = nl.neighbor_graph(X, K), nl.neighbor_graph(X, K, new)
    rows = []
    for method in METHODS:
        model = nl.LabelThresholds(estimator(method, K, random_state=0))
        model.fit_graph(graph, data.Y[data.train], X)
        scores = model.scores_from_graph(queries, new)
        row: dict[str, Any] = {"data": name, "method": method, "k": K}
        for who, decider in (("own", model.estimator_), ("cuts", model)):
            decided = decider.predict_from_graph(queries, new, scores=scores)
            for metric, convention in (
                ("macro_f1", "paper"),
                ("macro_f1", "sklearn"),
                ("micro_f1", "paper"),
                ("hamming_loss", "paper"),
            ):
                found = nl.metrics.evaluate(truth, scores, decided, convention)
                row[f"{metric}_{convention}_{who}"] = round(found[metric], 4)
        rows.append(row)
    return rows


def main() -> None:
    try:
        rows = [row for name in SETS for row in rows_of(name)]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
