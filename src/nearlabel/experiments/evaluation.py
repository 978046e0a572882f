"""How well models do on parts of a data set: as they are, or after a choice among candidates."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from nearlabel.common.arrays import Csr, Floats
from nearlabel.common.validation import UnsuitableDataError, label_matrix
from nearlabel.datasets import Dataset
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.candidates import best_place, warn_of_many_neighbors
from nearlabel.experiments.folds import (
    Fold,
    Model,
    RowsDone,
    Searching,
    answers_of,
    folds_of_models,
)
from nearlabel.experiments.protocols import Part
from nearlabel.methods.fold_answers import FoldAnswers
from nearlabel.metrics import LabelResults, Scorer, per_label
from nearlabel.metrics.scorers import evaluate_and_per_row, measure
from nearlabel.search import Progress

_REFUSALS = (MemoryError, UnsuitableDataError)  # of data, not of how they were given


@dataclass(frozen=True)
class SplitResult:
    """How a model did on one part.

    Attributes
    ----------
    metrics : dict
        Empty where the model refused the data.
    seconds : float
        Processor time of learning, scoring and deciding, without the search that models share.
    refusal : str or None
        Why the model refused the data: it would need too much memory, or is not made for them.
    chosen : estimator or None
        Unfitted; where the model was chosen among candidates.
    left_out : float
        Its score on training rows that were left out, by which it was chosen; greater is better.
        Not a number where there was no choice.
    scale : str
        How the features were scaled.
    labels : LabelResults or None
        Results per label, where they were asked for.
    rows : dict of ndarray
        Values of the test rows, by metric: see `nearlabel.metrics.per_row`.
    parameters : dict
        Those that were chosen, where there was a choice.
    """

    metrics: dict[str, float]
    seconds: float
    refusal: str | None = None
    chosen: Model | None = None
    left_out: float = math.nan
    scale: str = "none"
    labels: LabelResults | None = None
    rows: dict[str, Floats] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)


def evaluate_splits(
    data: Dataset,
    models: Sequence[Model],
    parts: Sequence[Part],
    *,
    scale: str = "none",
    impute: str = "none",
    learn_distance: bool = False,
    convention: str = "paper",
    at: int = 5,
    by_label: bool = False,
    refusals: bool = False,
    progress: Progress | None = None,
) -> list[list[SplitResult]]:
    """Metrics of each model on each part; one search serves all models.

    It serves all parts, too, where the features need no preparation. Else what prepares them is
    fitted to the training rows of each part, and each part has a search of its own: scaling,
    filling of gaps, and words and texts of a frame as vectors.

    Parameters
    ----------
    data : Dataset
    models : sequence of estimators
        Unfitted methods of one metric and search, which may differ in `n_neighbors`, and baselines.
    parts : sequence of Part, as `splits` gives them
    scale : {"none", "minmax", "standard", "rank", "tfidf", "auto"}
        Of numbers. "auto" takes the one whose neighbors' labels agree best with the labels of the
        training rows, by leave-one-out.
    impute : {"none", "mean", "median", "zero"}
        What a missing number becomes.
    learn_distance : bool, default=False
        Whether neighbors are searched by a distance learned from the labels: see `LabelSpace`.
    convention, at
        See `nearlabel.metrics.evaluate`.
    by_label : bool, default=False
        Whether results hold those of each label, too.
    refusals : bool, default=False
        Whether a model that refuses the data, as too large or unsuitable for it, is noted, instead
        of raising its error.
    progress : callable, optional
        Called with (steps done, steps in all), over all parts: a step is a row that was searched,
        or that a model has answered for.

    Returns
    -------
    list of list of SplitResult
        For each model its result on each part.
    """
    searchings = {Searching.of(model) for model in models} - {None}
    if not models or len(searchings) > 1:
        raise ValueError("models must be at least one, all with the same metric, search and n_jobs")
    copies = [(clone(model), Searching.of(model)) for model in models]
    results: list[list[SplitResult]] = [[] for _ in models]
    answered = sum(len(part.test) for part in parts) * len(models)
    preparing = Preparing(scale, impute, data.text, learn_distance)
    how: dict[str, Any] = {"preparing": preparing, "Y": data.Y}
    each, tell = folds_of_models(data.X, parts, models, answered=answered, progress=progress, **how)
    for part, now in each:
        truth, n = data.Y[part.test], len(part.test)
        for (model, searching), found in zip(copies, results, strict=True):
            fold = now[searching]
            start = time.process_time()
            try:
                answers = fold.answers(model, data.Y[part.train])
                scores, predicted = answers.scores, answers.decided
            except _REFUSALS as error:
                if not refusals:
                    raise
                found.append(SplitResult({}, 0.0, str(error)))
            else:
                seconds = time.process_time() - start
                both = truth, scores, predicted, convention
                metrics, rows = evaluate_and_per_row(*both, at=at)
                labels = _label_results(data, truth, answers) if by_label else None
                more: dict[str, Any] = {"labels": labels, "rows": rows}
                found.append(SplitResult(metrics, seconds, scale=fold.scale, **more))
            tell(n, n)
    return results


def select_and_evaluate(
    data: Dataset,
    candidates: Mapping[str, Sequence[Model]],
    parts: Sequence[Part],
    scorer: Scorer,
    *,
    scale: str = "none",
    impute: str = "none",
    learn_distance: bool = False,
    convention: str = "paper",
    at: int = 5,
    by_label: bool = False,
    progress: Progress | None = None,
) -> dict[str, list[SplitResult]]:
    """Choose among candidates of each name by leave-one-out, and try the chosen on held-out rows.

    The choice is made in each part, on its training rows alone; ties go to the fewer
    neighbors, then to the first candidate. A name that refuses the data has a refusal in its
    result. The options are those of `evaluate_splits`.
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
    preparing = Preparing(scale, impute, data.text, learn_distance)
    how: dict[str, Any] = {"preparing": preparing, "Y": data.Y}
    each, tell = folds_of_models(
        data.X, parts, models, answered=learned + tried, progress=progress, **how
    )
    Y = label_matrix(data.Y, "Y")
    found: dict[str, list[SplitResult]] = {name: [] for name in candidates}
    for part, now in each:
        left_out = {searching: fold.left_out() for searching, fold in now.items()}
        for name, some in candidates.items():
            start = time.process_time()
            try:
                chosen, value = _best(some, left_out, Y[part.train], scorer, tell)
                fold = now[Searching.of(chosen)]
                answers = fold.answers(chosen, Y[part.train])
                scores, decided = answers.scores, answers.decided
            except _REFUSALS as error:
                found[name].append(SplitResult({}, 0.0, str(error)))
                continue
            seconds = time.process_time() - start
            measured = Y[part.test], scores, decided, convention
            metrics, rows = evaluate_and_per_row(*measured, at=at)
            tell(len(part.test), len(part.test))
            labels = _label_results(data, Y[part.test], answers) if by_label else None
            choice = (None, chosen, value, fold.scale, labels)
            found[name].append(SplitResult(metrics, seconds, *choice, rows=rows))
    return found


def _label_results(data: Dataset, truth: Csr, answers: FoldAnswers) -> LabelResults:
    return per_label(truth, answers.scores, answers.decided, label_names=data.label_names)


def _best(
    models: Sequence[Model],
    left_out: Mapping[Searching | None, Fold],
    Y: Csr,
    scorer: Scorer,
    tell: RowsDone,
) -> tuple[Model, float]:
    """The model with the best leave-one-out score, and that score; there may be no choice."""
    if len(models) == 1:
        tell(Y.shape[0], Y.shape[0])
        return models[0], math.nan
    values = np.full(len(models), np.nan)
    for place, answers in answers_of(models, left_out, Y):
        values[place] = measure(Y, answers, {"score": scorer})["score"]
        tell(Y.shape[0], Y.shape[0])
    best = best_place(values, models)
    return models[best], float(values[best])
