"""How good is the blend beside ML-kNN, and are its left-out scores honest? Needs the data folder.

Usage: python blend.py [NAME …]
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from measuring import report

import nearlabel as nl
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments import splits

QUESTION = (
    "AutoNeighbors, with everything chosen on the training rows, and ML-kNN with ten neighbors on "
    "the same scale: average precision and ranking loss, convention paper, and micro F1 of the "
    "decisions, on the sets' own test rows, or on a third of the rows by seed 0"
)
SETS = (
    *("emotions", "birds", "medical", "yeast", "scene", "image", "enron", "slashdot", "bibtex"),
    *("corel5k", "tmc2007_500", "mediamill_sample", "yahoo_arts", "yahoo_health", "delicious"),
)
K = 10
_RESAMPLES, _MANY_ROWS = 200, 5000


def row_of(name: str) -> dict[str, Any]:
    data = nl.datasets.load(name)
    kind = "holdout" if data.train is None else "official"
    [part] = splits(data, kind)
    train, test = data.rows(part.train), data.rows(part.test)
    start = time.process_time()
    model = nl.AutoNeighbors().fit(train.X, train.Y)
    fitted = time.process_time() - start
    scores = model.label_scores(test.X)
    found = nl.metrics.evaluate(test.Y, scores, model.predict(test.X))
    left_out = nl.metrics.average_precision(train.Y, model.left_out_scores())
    transformer = Preparing(model.scale_).transformer(train.X)
    X, queries = train.X, test.X
    if transformer is not None:
        X, queries = transformer.fit_transform(X), transformer.transform(queries)
    start = time.process_time()
    alone = nl.MLkNN(K).fit(X, train.Y)
    alone_fitted = time.process_time() - start
    own = nl.metrics.evaluate(test.Y, alone.label_scores(queries), alone.predict(queries))
    space = model.blend_.label_space_
    assert space is not None
    return {
        "data": name,
        "split": kind,
        "training_rows": len(part.train),
        "labels": int(train.Y.shape[1]),
        "scale": model.scale_,
        "kernel": space.kernel_,
        **{
            f"{metric}_{who}": round(float(values[metric]), 4)
            for metric in ("average_precision", "ranking_loss", "micro_f1")
            for who, values in (("blend", found), ("mlknn", own))
        },
        "left_out_average_precision": round(float(left_out), 4),
        "standard_error_of_test": round(_standard_error(test.Y, scores), 4),
        "core_seconds": round(fitted, 1),
        "times_mlknn": round(fitted / max(alone_fitted, 1e-3), 1),
    }


def _standard_error(Y: Any, scores: Any) -> float:
    """Of average precision, by drawing test rows again and again."""
    random, n = np.random.default_rng(0), len(scores)
    found = []
    for _ in range(_RESAMPLES if n < _MANY_ROWS else _RESAMPLES // 10):
        rows = random.integers(0, n, n)
        found.append(nl.metrics.average_precision(Y[rows], scores.take(rows)))
    return float(np.std(found))


def main() -> None:
    warnings.simplefilter("ignore")
    try:
        rows = [row_of(name) for name in sys.argv[1:] or SETS]
    except FileNotFoundError as error:
        sys.exit(f"skipped: {error}")
    report(QUESTION, rows)


if __name__ == "__main__":
    main()
