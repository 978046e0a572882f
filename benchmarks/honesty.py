"""Are leave-one-out scores too optimistic? With random labels, there is nothing to learn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from measuring import report

import nearlabel as nl
from nearlabel.blend.joined_space import label_scales
from nearlabel.blend.ridge import LabelRidge, best_kernel, label_ridges
from nearlabel.common.arrays import canonical_csr
from nearlabel.labels.scores import DenseScores

QUESTION = (
    "Random labels, 20 seeds: average precision of leave-one-out scores, of the same model on "
    "1,000 new rows, and of the labels' true frequencies on these; differences with standard "
    "errors"
)
SEEDS, NEW, K = 20, 1_000, 10


class Shape(NamedTuple):
    """Numbers of rows and features, and the frequencies of the labels."""

    rows: int
    features: int
    shares: np.ndarray
    kind: str


_FEW, _RARE = np.array([0.5, 0.3, 0.2, 0.1]), np.linspace(0.01, 0.03, 60)
_FALLING = 0.5 / np.arange(1, 61)
SHAPES = (
    Shape(120, 6, _FEW, "4 labels"),
    Shape(120, 200, _FEW, "4 labels"),
    Shape(400, 30, _FEW, "4 labels"),
    Shape(400, 8, _FALLING, "60 labels, 1 % to 50 %"),
    Shape(400, 8, _RARE, "60 labels, 1 % to 3 %"),
)
Scores = tuple[Any, Any]  # leave-one-out scores of the training rows, and scores of new rows


def by_vectors(X: Any, Y: Any, new: Any, _: int) -> Scores:
    model = nl.MLkNN(K).fit(X, Y)
    return model.left_out_scores(), model.label_scores(new)


def by_learned_distance(X: Any, Y: Any, new: Any, seed: int) -> Scores:
    space = nl.LabelSpace(random_state=seed)
    return by_vectors(space.fit_transform(X, Y), Y, space.transform(new), seed)


def by_means_of_others(X: Any, Y: Any, new: Any, seed: int) -> Scores:
    """Neighbors by predictions that leave a row out completely, also of the labels' means."""
    (ridge,) = label_ridges(X, Y, ("linear",), random_state=seed).values()
    left_out, fresh = _scores_of(ridge, new)
    scales = label_scales(ridge.mean, 0.5)
    return by_vectors(left_out.toarray() * scales, Y, fresh.toarray() * scales, seed)


def by_regression(X: Any, Y: Any, new: Any, seed: int) -> Scores:
    ridges = label_ridges(X, Y, random_state=seed)
    return _scores_of(ridges[best_kernel(ridges)], new)


def by_fixed_regression(X: Any, Y: Any, new: Any, seed: int) -> Scores:
    """Nothing is chosen, and so nothing is chosen on the rows that are left out."""
    (ridge,) = label_ridges(X, Y, ("linear",), 1.0, seed).values()
    return _scores_of(ridge, new)


def _scores_of(ridge: LabelRidge, new: Any) -> Scores:
    weights, rows = ridge.weights(), np.arange(ridge.X.shape[0])
    left_out = weights.left_out_scores(ridge.X, rows, ridge.Y)
    return DenseScores(left_out.toarray()), DenseScores(weights.scores(new).toarray())


def by_blend(X: Any, Y: Any, new: Any, seed: int) -> Scores:
    model = nl.BlendedNeighbors(random_state=seed).fit(X, Y)
    return model.left_out_scores(), model.label_scores(new)


MODELS: dict[str, Callable[[Any, Any, Any, int], Scores]] = {
    "ML-kNN on the vectors": by_vectors,
    "ML-kNN after LabelSpace": by_learned_distance,
    "the same, means of the other rows": by_means_of_others,
    "ridge regression": by_regression,
    "linear ridge regression, alpha = 1": by_fixed_regression,
    "BlendedNeighbors": by_blend,
}


def row_of(shape: Shape, name: str) -> dict[str, Any]:
    values = []
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        n, d, shares, _ = shape
        X = random.normal(size=(n + NEW, d))
        Y = canonical_csr((random.random((n + NEW, len(shares))) < shares).astype(np.int8))
        left_out, fresh = MODELS[name](X[:n], Y[:n], X[n:], seed)
        prior = DenseScores(np.tile(shares, (NEW, 1)))
        pairs = (Y[:n], left_out), (Y[n:], fresh), (Y[n:], prior)
        values.append([nl.metrics.average_precision(*pair) for pair in pairs])
    left_out, fresh, prior = np.transpose(values)
    row: dict[str, Any] = {
        "labels": shape.kind,
        "rows": shape.rows,
        "features": shape.features,
        "scores_of": name,
        "left_out": round(float(left_out.mean()), 4),
        "new_rows": round(float(fresh.mean()), 4),
        "prior": round(float(prior.mean()), 4),
    }
    for key, other in (("new_rows", fresh), ("prior", prior)):
        gain = left_out - other
        row[f"left_out_less_{key}"] = round(float(gain.mean()), 4)
        row[f"standard_error_{key}"] = round(float(gain.std(ddof=1)) / math.sqrt(SEEDS), 4)
    return row


def main() -> None:
    warnings.simplefilter("ignore")
    report(QUESTION, [row_of(shape, name) for shape in SHAPES for name in MODELS])


if __name__ == "__main__":
    main()
