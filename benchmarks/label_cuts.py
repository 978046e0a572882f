"""Do learnt cuts beat the methods' own decisions? Needs the data sets in the data folder."""

from __future__ import annotations

import sys
from typing import Any

from measuring import report

import nearlabel as nl
from nearlabel.algorithms import ALGORITHMS, algorithm
from nearlabel.experiments import evaluate_splits, splits

QUESTION = "F1 of the methods' own decisions and of one cut a label (LabelThresholds), k = 10, raw"
SETS = ("enron", "bibtex", "corel5k")


def main() -> None:
    rows = []
    for name in SETS:
        try:
            data = nl.datasets.load(name)
        except FileNotFoundError as error:
            sys.exit(f"skipped: {error}")
        methods = [algorithm(each, 10, random_state=0) for each in ALGORITHMS]
        models = [*methods, *map(nl.LabelThresholds, methods)]
        parts = splits(data, "official")
        by_convention = {
            convention: [
                results[0].metrics
                for results in evaluate_splits(data, models, parts, convention=convention)
            ]
            for convention in ("paper", "sklearn")
        }
        for place, method in enumerate(methods):
            row: dict[str, Any] = {"data": name, "method": type(method).__name__}
            for metric, convention in (
                ("macro_f1", "paper"),
                ("macro_f1", "sklearn"),
                ("micro_f1", "paper"),
            ):
                found = by_convention[convention]
                own, cuts = found[place][metric], found[len(methods) + place][metric]
                row[f"{metric}_{convention}_own"] = round(own, 4)
                row[f"{metric}_{convention}_cuts"] = round(cuts, 4)
            rows.append(row)
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
