"""How well models do on parts of a data set: as they are, or after a choice among candidates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from sklearn.base import clone

from nearlabel.common.arrays import Array, Floats
from nearlabel.common.validation import UnsuitableDataError, label_matrix
from nearlabel.datasets import Dataset
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.candidates import best_place, warn_of_many_neighbors
from nearlabel.experiments.folds import Model, NeighborSearch, PartsOfModels, answers_of
from nearlabel.experiments.protocols import Part
from nearlabel.metrics import LabelResults, Scorer, per_label
from nearlabel.metrics.scorers import Prediction, evaluate_and_per_row, measure
from nearlabel.search import Progress


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
    parameters: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def refused(cls, why: str, seconds: float = 0.0) -> SplitResult:
        """The result of a model that refused the data."""
        return cls({}, seconds, why)


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
    if not models or len({NeighborSearch.of(model) for model in models} - {None}) > 1:
        raise ValueError("models must be at least one, all with the same metric, search and n_jobs")
    preparing = Preparing(scale, impute, data.text, learn_distance)
    measure_rows = partial(_measured, data, convention, at, by_label)
    candidates = [[model] for model in models]
    return _evaluated(data, candidates, parts, None, preparing, measure_rows, refusals, progress)


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
    models = [model for of_name in candidates.values() for model in of_name]
    warn_of_many_neighbors(models, min(len(part.train) for part in parts))
    preparing = Preparing(scale, impute, data.text, learn_distance)
    measure_rows = partial(_measured, data, convention, at, by_label)
    groups = list(candidates.values())
    results = _evaluated(data, groups, parts, scorer, preparing, measure_rows, True, progress)
    return dict(zip(candidates, results, strict=True))


def _measured(
    data: Dataset, convention: str, at: int, by_label: bool, rows: Array, predicted: Prediction
) -> SplitResult:
    """The result of a prediction for some rows of a data set; its time is not known yet."""
    truth, scores, sets = data.Y[rows], predicted.scores, predicted.decided
    metrics, of_rows = evaluate_and_per_row(truth, scores, sets, convention, at=at)
    labels = per_label(truth, scores, sets, label_names=data.label_names) if by_label else None
    return SplitResult(metrics, 0.0, labels=labels, rows=of_rows)


def _evaluated(
    data: Dataset,
    candidates: Sequence[Sequence[Model]],
    parts: Sequence[Part],
    scorer: Scorer | None,
    preparing: Preparing,
    measure_rows: Callable[[Array, Prediction], SplitResult],
    refusals: bool,
    progress: Progress | None,
) -> list[list[SplitResult]]:
    """The results of the best of each group of candidates, on each part."""
    models = [model for group in candidates for model in group]
    compared = sum(len(group) for group in candidates if len(group) > 1)
    answered = sum(compared * len(part.train) + len(candidates) * len(part.test) for part in parts)
    each = PartsOfModels(
        data.X, parts, models, answered=answered, preparing=preparing, Y=data.Y, progress=progress
    )
    Y = label_matrix(data.Y, "Y")
    results: list[list[SplitResult]] = [[] for _ in candidates]
    for part, folds in each:
        labels, n = Y[part.train], len(part.test)
        for group, of_group in zip(candidates, results, strict=True):
            chosen, left_out = group[0], math.nan
            start = time.process_time()
            try:
                if scorer is not None and len(group) > 1:
                    left_out_folds = {search: fold.left_out() for search, fold in folds.items()}
                    values = np.full(len(group), np.nan)
                    for place, answers in answers_of(group, left_out_folds, labels):
                        values[place] = measure(labels, answers, {"score": scorer})["score"]
                        each.report(len(part.train), len(part.train))
                    best = best_place(values, group)
                    chosen, left_out = group[best], float(values[best])
                fold = folds[NeighborSearch.of(chosen)]
                # A clone would search by a copy of the search that models share.
                answers = fold.answers(clone(chosen) if scorer is None else chosen, labels)
                _ = answers.decided  # part of the work
            except (MemoryError, UnsuitableDataError) as error:  # about data
                if not refusals:
                    raise
                of_group.append(SplitResult.refused(str(error)))
            else:
                result = replace(
                    measure_rows(part.test, answers),
                    seconds=time.process_time() - start,
                    chosen=None if scorer is None else chosen,
                    left_out=left_out,
                    scale=fold.scale,
                )
                of_group.append(result)
            each.report(n, n)
    return results
