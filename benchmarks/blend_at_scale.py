"""What do a learned distance and the blend cost and gain with many rows and labels?

Usage: python blend_at_scale.py [ROWS LABELS]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

from measuring import process_peak_mib, report

import nearlabel as nl
from nearlabel.search.exact import byte_bounds

QUESTION = (
    "A synthetic collection with 128 features: a distance learned from the labels, and the blend "
    "with its four readings of two graphs, in core-seconds, as a multiple of the plain exact graph "
    "and of an ML-kNN fit; mean inverse rank and precision at 1, 3 and 5 on 2,000 new rows. The "
    "graph without bytes is the one of a processor that does not multiply them"
)
ROWS, LABELS, D, QUERIES = 200_000, 20_000, 128, 2_000
JOBS = 2


def graph_without_bytes(X: Any) -> Any:
    with mock.patch.object(byte_bounds, "multiplies_bytes", return_value=False):
        return nl.neighbor_graph(X, 40, search="exact", n_jobs=JOBS)


def main() -> None:
    warnings.simplefilter("ignore")
    n, q = (int(one) for one in sys.argv[1:3]) if len(sys.argv) > 2 else (ROWS, LABELS)
    made = nl.datasets.make_collection(n, D, q, n_queries=QUERIES)
    X, Y, queries = made.data.X, made.data.Y, made.queries
    works: dict[str, Callable[[], Any]] = {
        "plain exact graph, k = 40": lambda: nl.neighbor_graph(X, 40, search="exact", n_jobs=JOBS),
        "ML-kNN, k = 10": lambda: nl.MLkNN(n_jobs=JOBS).fit(X, Y),
        "plain exact graph without bytes": lambda: graph_without_bytes(X),
        "LabelSpace, linear": lambda: nl.LabelSpace("linear", n_jobs=JOBS).fit(X, Y),
        "LabelSpace": lambda: nl.LabelSpace(n_jobs=JOBS).fit(X, Y),
        "BlendedNeighbors": lambda: nl.BlendedNeighbors(n_jobs=JOBS).fit(X, Y),
    }
    taken: dict[str, float] = {}
    rows = []
    for name, work in works.items():
        made_by: list[Any] = []

        def keep(work: Callable[[], Any] = work, kept: list[Any] = made_by) -> None:
            kept.append(work())

        start = time.process_time()
        peak = process_peak_mib(keep)
        taken[name] = time.process_time() - start
        graph, fit, *_ = taken.values() if len(taken) > 1 else (taken[name], float("nan"))
        row = {
            "rows": n,
            "labels": q,
            "what": name,
            "core_seconds": round(taken[name], 1),
            "times_plain_graph": round(taken[name] / graph, 2),
            "times_mlknn": None if len(taken) < 2 else round(taken[name] / fit, 2),
            "peak_mib": round(peak),
        }
        if hasattr(made_by[0], "label_scores"):
            scores = made_by[0].label_scores(queries.X)
            truth = queries.Y
            row["mean_inverse_rank"] = round(float(nl.metrics.mean_inverse_rank(truth, scores)), 4)
            for r in (1, 3, 5):
                found = nl.metrics.precision_at(truth, scores, r)
                row[f"precision_at_{r}"] = round(float(found), 4)
        rows.append(row)
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
