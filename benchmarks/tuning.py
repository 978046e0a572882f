"""What does a search over fifty numbers of neighbors cost, compared with one fit?

The lower limit is one fit with ten neighbors. The competitor is scikit-learn's search over folds,
which searches neighbors again for every candidate and fold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measuring import report, taking_turns
from scipy import sparse
from sklearn.model_selection import GridSearchCV

import nearlabel as nl
from nearlabel.experiments.folds import Fold
from nearlabel.experiments.protocols import Part
from nearlabel.metrics import scorer
from nearlabel.metrics.scorers import measure

QUESTION = (
    "GraphSearchCV, 10,000 rows, 100 features, 50 labels, 4 per row: core-seconds on one thread, "
    "best of interleaved repeats, and as a multiple of one `MLkNN(n_neighbors=10).fit`"
)
N, D, Q = 10_000, 100, 50
SEVERAL = ["ranking_loss", "average_precision", "coverage", "one_error", "hamming_loss"]


def problem() -> tuple[Any, Any]:
    """Normal vectors, and labels that depend on them a little, so that k matters."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    tendency = X @ rng.standard_normal((D, Q)) + 10 * rng.standard_normal((N, Q))
    cut = np.quantile(tendency, 0.92, axis=0)
    return X, sparse.csr_array((tendency > cut).astype(np.int8))


def search(grid: dict[str, Any], **how: Any) -> Any:
    return nl.GraphSearchCV(nl.MLkNN(), grid, **how)


def scoring_alone(X: Any, Y: Any) -> Any:
    """Leave-one-out scores and losses of k = 1 to 50, given the graph."""
    graph = nl.neighbor_graph(X, 50)
    fold = Fold(Part(np.arange(N), np.arange(N), left_out=True), graph, graph, X, X)
    models, scorers = [nl.MLkNN(n_neighbors=k) for k in range(1, 51)], {"": scorer("ranking_loss")}
    return lambda: [measure(Y, answers, scorers) for _, answers in fold.all_answers(models, Y)]


def main() -> None:
    X, Y = problem()
    fifty, five = list(range(1, 51)), [5, 10, 20, 30, 50]
    both = {"n_neighbors": fifty, "smoothing": [0.5, 1.0, 2.0]}
    peer = GridSearchCV(nl.MLkNN(), {"n_neighbors": five}, scoring=scorer("ranking_loss"), cv=5)
    best = taking_turns(
        {
            "one fit, k = 10": lambda: nl.MLkNN(n_neighbors=10).fit(X, Y),
            "k = 1 to 50, leave-one-out": lambda: search({"n_neighbors": fifty}).fit(X, Y),
            "of it, scoring alone": scoring_alone(X, Y),
            "k = 1 to 50, three smoothings": lambda: search(both).fit(X, Y),
            "k = 1 to 50, five metrics": lambda: search(
                {"n_neighbors": fifty}, scoring=SEVERAL, refit=SEVERAL[0]
            ).fit(X, Y),
            "five k, five folds": lambda: search({"n_neighbors": five}, cv=5).fit(X, Y),
            "the same by scikit-learn's GridSearchCV": lambda: peer.fit(X, Y),
        }
    )
    fit = best["one fit, k = 10"]
    report(
        QUESTION,
        [
            {
                "what": what,
                "core_seconds": round(seconds, 4),
                "times_one_fit": round(seconds / fit, 2),
            }
            for what, seconds in best.items()
        ],
    )


if __name__ == "__main__":
    main()
