"""Candidates of a search for parameters, tried on the folds of one graph per metric."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from nearlabel.baselines.algorithm_registry import BASELINES, estimator
from nearlabel.common.arrays import Csr, Floats, Matrix, Tree
from nearlabel.common.validation import label_matrix
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.folds import Model, NeighborSearch, PartsOfModels, answers_of
from nearlabel.experiments.protocols import Part
from nearlabel.graph import NeighborGraph
from nearlabel.methods.base import NeighborClassifier
from nearlabel.metrics import Scorer
from nearlabel.metrics.scorers import measure
from nearlabel.search import Progress

LEAST_ROWS_A_NEIGHBOR = 4  # for leave-one-out; with fewer it flatters
NEIGHBORS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
# What else is tried of a method. PositivekNN finds its rate by itself, by leave-one-out too.
_OWN: dict[str, dict[str, Sequence[int | str]]] = {
    "LAMLkNN": {"n_clusters": (2, 3, 5, 10)},
    "BRkNN": {"weights": ("uniform", "distance")},
}


def usual_candidates(
    name: str,
    n: int,
    neighbors: Sequence[int] | None = None,
    metrics: Sequence[str] = ("euclidean", "cosine"),
    **shared: object,
) -> list[Model]:
    """Unfitted models of an algorithm that are worth a try: k, the metric, and what else it has.

    Without `neighbors`: up to a quarter of the n training rows. A baseline is tried as it is.
    """
    if name in BASELINES:
        return [estimator(name, 1, **shared)]
    ks = neighbors
    if ks is None:
        # Of IBLR each takes as many regressions as there are labels.
        usual = (5, 10, 20, 40) if name == "IBLR" else NEIGHBORS
        ks = [k for k in usual if k <= n // LEAST_ROWS_A_NEIGHBOR] or [1]
    own = _OWN.get(name, {})
    models = (
        estimator(name, k, metric=metric, **dict(zip(own, values, strict=True)), **shared)
        for metric, *values in product(metrics, *own.values())
        for k in ks
    )
    return list({str(model): model for model in models}.values())  # one may know no metric


def tried_parameters(name: str, model: Model) -> Tree:
    """Of a candidate of `usual_candidates`, the parameters in which it may differ from others."""
    known = model.get_params(deep=False)
    tried = ("n_neighbors", "per_class", *_OWN.get(name, ()), "metric")
    return {parameter: known[parameter] for parameter in tried if parameter in known}


@dataclass(frozen=True)
class Trial:
    """What trying all candidates gave: arrays of shape (candidates, folds).

    Scores by the name of the scorer, greater is better; wall time of learning and answering,
    without the search, and of measuring. `graphs` are those of all rows that were searched,
    `scales` how the vectors of each search were scaled.
    """

    scores: dict[str, Floats]
    fit_seconds: Floats
    score_seconds: Floats
    graphs: dict[NeighborSearch | None, NeighborGraph] = field(default_factory=dict)
    scales: list[str] = field(default_factory=list)

    def defined(self, name: str) -> Floats:
        """The scores on the folds where the metric is defined, which the true labels decide."""
        scores = self.scores[name]
        is_defined = ~np.isnan(scores).all(axis=0)
        return scores[:, is_defined] if is_defined.any() else scores


def try_candidates(
    X: Matrix,
    Y: Csr,
    parts: Sequence[Part],
    models: Sequence[Model],
    scorers: Mapping[str, Scorer],
    *,
    preparing: Preparing | None = None,
    progress: Progress | None = None,
) -> Trial:
    """Scores of each unfitted model on each part."""
    Y = label_matrix(Y, "Y")
    if any(part.left_out for part in parts):
        warn_of_many_neighbors(models, X.shape[0])
    shape = (len(models), len(parts))
    empty = {name: np.full(shape, np.nan) for name in scorers}
    trial = Trial(empty, np.zeros(shape), np.zeros(shape))
    answered = sum(len(part.test) for part in parts) * len(models)
    each = PartsOfModels(
        X, parts, models, answered=answered, preparing=preparing, Y=Y, progress=progress
    )
    for column, (part, folds) in enumerate(each):
        for search, fold in folds.items():
            trial.scales.append(fold.scale)
            if fold.whole is not None:
                trial.graphs[search] = fold.whole
        truth, n = Y[part.test], len(part.test)
        start = time.perf_counter()
        for place, answers in answers_of(models, folds, Y[part.train]):
            answered_at = time.perf_counter()
            for name, value in measure(truth, answers, scorers).items():
                trial.scores[name][place, column] = value
            trial.fit_seconds[place, column] = answered_at - start
            trial.score_seconds[place, column] = time.perf_counter() - answered_at
            each.report(n, n)
            start = time.perf_counter()
    return trial


def best_place(values: Floats, models: Sequence[Model]) -> int:
    """The place of the greatest value; of equal ones that of fewer neighbors, then the first."""
    known = np.where(np.isnan(values), -np.inf, values)
    best = np.flatnonzero(known == known.max())
    neighbors = [getattr(models[int(place)], "n_neighbors", None) for place in best]
    return int(best[np.argmin([np.inf if k is None else k for k in neighbors])])


def warn_of_many_neighbors(models: Iterable[Model], n: int) -> None:
    """Warn that leave-one-out flatters models that count most of n rows as neighbors.

    A row is not among its own neighbors, but among those of the others: where nearly all rows are
    neighbors, a row's own label is what its count lacks. In the extreme of n - 1 neighbors the
    tables give it away without an error.
    """
    methods = [model for model in models if isinstance(model, NeighborClassifier)]
    counts = [model.n_neighbors or n for model in methods if model.needs.counts]
    most = n // LEAST_ROWS_A_NEIGHBOR
    many = [k for k in counts if k > most]
    if many:
        warnings.warn(
            f"leave-one-out flatters n_neighbors={max(many)} with {n} rows: "
            f"use {f'at most {most}, or folds' if most else 'folds'}",
            UserWarning,
            stacklevel=4,
        )
