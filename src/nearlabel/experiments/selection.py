"""Parameters chosen on the rows to learn from, and measured on rows that had no say in it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from nearlabel.common.arrays import Csr
from nearlabel.common.validation import label_matrix
from nearlabel.datasets import Dataset
from nearlabel.experiments.candidates import (
    LEAST_ROWS_A_NEIGHBOR,
    best_place,
    warn_of_many_neighbors,
)
from nearlabel.experiments.evaluation import SplitResult
from nearlabel.experiments.folds import Fold, RowsDone, Searching, answers_of, folds_of_models
from nearlabel.experiments.protocols import Part
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.registry import estimator
from nearlabel.metrics import Scorer, evaluate
from nearlabel.metrics.scorers import measure
from nearlabel.search import Progress

NEIGHBORS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
# What else is tried of a method. PositivekNN finds its rate by itself, by leave-one-out too.
_OWN: dict[str, dict[str, Sequence[Any]]] = {
    "LAMLkNN": {"n_clusters": (2, 3, 5, 10)},
    "BRkNN": {"weights": ("uniform", "distance")},
}
_FEW_NEIGHBORS = {"IBLR": (5, 10, 20, 40)}  # each takes as many regressions as there are labels


@dataclass(frozen=True)
class Selection:
    """The candidate that did best on the rows to learn from, and what it does on the others.

    Attributes
    ----------
    model : NeighborClassifier
        Unfitted.
    left_out : float
        Its score by leave-one-out; greater is better.
    result : SplitResult
    """

    model: NeighborClassifier | None
    left_out: float
    result: SplitResult


def usual_candidates(
    name: str,
    n: int,
    neighbors: Sequence[int] | None = None,
    metrics: Sequence[str] = ("euclidean", "cosine"),
    **shared: Any,
) -> list[Any]:
    """Unfitted models of an algorithm that are worth a try: k, the metric, and what else it has.

    Without `neighbors`: up to a quarter of the n rows to learn from.
    """
    ks = neighbors
    if ks is None:
        usual = _FEW_NEIGHBORS.get(name, NEIGHBORS)
        ks = [k for k in usual if k <= n // LEAST_ROWS_A_NEIGHBOR] or [1]
    own = _OWN.get(name, {})
    models = (
        estimator(name, k, metric=metric, **dict(zip(own, values, strict=True)), **shared)
        for metric, *values in product(metrics, *own.values())
        for k in ks
    )
    return list({str(model): model for model in models}.values())  # one may know no metric


def tried_parameters(name: str, model: NeighborClassifier) -> dict[str, Any]:
    """Of a candidate of `usual_candidates`, the parameters in which it may differ from others."""
    known = model.get_params(deep=False)
    tried = ("n_neighbors", "per_class", *_OWN.get(name, ()), "metric")
    return {parameter: known[parameter] for parameter in tried if parameter in known}


def select_and_evaluate(
    data: Dataset,
    candidates: Mapping[str, Sequence[NeighborClassifier]],
    parts: Sequence[Part],
    scorer: Scorer,
    *,
    scale: str = "none",
    convention: str = "paper",
    at: int = 5,
    progress: Progress | None = None,
) -> dict[str, list[Selection]]:
    """Choose among candidates of each name by leave-one-out, and try the chosen on held-out rows.

    One graph a metric, of all rows where nothing is scaled, serves all candidates and parts.

    Parameters
    ----------
    data : Dataset
    candidates : dict of str to sequence of NeighborClassifier
        Unfitted.
    parts : sequence of Part, as `splits` gives them
        In each the choice is made anew, on the rows to learn from alone.
    scorer : Scorer
        What decides. Ties go to the fewer neighbors, then to the first.
    scale, convention, at
        As in `evaluate_splits`.
    progress : callable, optional
        Called with (steps done, steps in all): a step is a row that was searched, or that a
        candidate has answered for.

    Returns
    -------
    dict of str to list of Selection
        For each name one a part. A name whose data would not fit has a refusal in its result.
    """
    if any(part.left_out for part in parts):
        raise ValueError(
            "parts must hold out rows: in leave-one-out those that choose are those that are "
            "measured; use 'holdout' or 'cv10'"
        )
    models = [model for some in candidates.values() for model in some]
    warn_of_many_neighbors(models, min(len(part.train) for part in parts))
    learned = sum(len(part.train) for part in parts) * len(models)
    tried = sum(len(part.test) for part in parts) * len(candidates)
    each, tell = folds_of_models(
        data.X, parts, models, answered=learned + tried, scale=scale, progress=progress
    )
    Y = label_matrix(data.Y, "Y")
    found: dict[str, list[Selection]] = {name: [] for name in candidates}
    for part, now in each:
        left_out = {searching: fold.left_out() for searching, fold in now.items()}
        for name, some in candidates.items():
            start = time.process_time()
            try:
                chosen, value = _best(some, left_out, Y[part.train], scorer, tell)
                answers = now[Searching.of(chosen)].answers(chosen, Y[part.train])
                scores, decided = answers.scores, answers.decided
            except MemoryError as error:
                found[name].append(Selection(None, np.nan, SplitResult({}, 0.0, str(error))))
                continue
            seconds = time.process_time() - start
            metrics = evaluate(Y[part.test], scores, decided, convention, at=at)
            tell(len(part.test), len(part.test))
            found[name].append(Selection(chosen, value, SplitResult(metrics, seconds)))
    return found


def _best(
    models: Sequence[NeighborClassifier],
    left_out: Mapping[Searching, Fold],
    Y: Csr,
    scorer: Scorer,
    tell: RowsDone,
) -> tuple[NeighborClassifier, float]:
    """The model with the best leave-one-out score, and that score."""
    values = np.full(len(models), np.nan)
    for place, answers in answers_of(models, left_out, Y):
        values[place] = measure(Y, answers, {"score": scorer})["score"]
        tell(Y.shape[0], Y.shape[0])
    best = best_place(values, models)
    return models[best], float(values[best])
