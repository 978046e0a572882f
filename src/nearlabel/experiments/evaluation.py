"""How well models do on parts of a data set: as they are, or after a choice among candidates."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nearlabel.common.arrays import Csr, Floats
from nearlabel.common.validation import UnsuitableDataError, label_matrix
from nearlabel.datasets import Dataset
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.candidates import best_place, warn_of_many_neighbors
from nearlabel.experiments.folds import Folds, Model, NeighborSearch, PartsOfModels, answers_of
from nearlabel.experiments.protocols import Part
from nearlabel.metrics import LabelResults, Scorer, per_label
from nearlabel.metrics.scorers import evaluate_and_per_row, measure
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
    models: Sequence[Model | Sequence[Model]],
    parts: Sequence[Part],
    *,
    scorer: Scorer | None = None,
    scale: str = "none",
    impute: str = "none",
    learn_distance: bool = False,
    convention: str = "paper",
    at: int = 5,
    by_label: bool = False,
    refusals: bool = False,
    progress: Progress | None = None,
) -> list[list[SplitResult]]:
    """Metrics of each model on each part; one search serves all models of a metric.

    It serves all parts, too, where the features need no preparation. Else what prepares them is
    fitted to the training rows of each part, and each part has a search of its own: scaling,
    filling of gaps, and words and texts of a frame as vectors.

    Parameters
    ----------
    data : Dataset
    models : sequence of estimators, or of sequences of them
        Unfitted methods and baselines. Of several candidates in place of a model, the best by
        `scorer` is chosen in each part by leave-one-out on its training rows; ties go to the
        fewer neighbors, then to the first.
    parts : sequence of Part, as `splits` gives them
    scorer : Scorer, optional
        Needed where there are candidates; parts must then hold out rows.
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
    groups = [list(each) if isinstance(each, Sequence) else [each] for each in models]
    if not groups or not all(groups):
        raise ValueError("models must be at least one, and so must the candidates for one")
    every_model = [model for group in groups for model in group]
    if scorer is not None:
        if any(part.left_out for part in parts):
            raise ValueError(
                "parts must hold out rows: in leave-one-out those that choose are those that are "
                "measured; use 'holdout' or 'cv10'"
            )
        warn_of_many_neighbors(every_model, min(len(part.train) for part in parts))
    compared = sum(len(group) for group in groups if len(group) > 1)
    each = PartsOfModels(
        data.X,
        parts,
        every_model,
        answered=sum(compared * len(part.train) + len(groups) * len(part.test) for part in parts),
        preparing=Preparing(scale, impute, data.text, learn_distance),
        Y=data.Y,
        progress=progress,
    )
    Y = label_matrix(data.Y, "Y")
    results: list[list[SplitResult]] = [[] for _ in groups]
    for part, folds in each:
        n = len(part.test)
        for group, of_group in zip(groups, results, strict=True):
            start = time.process_time()
            try:
                model, left_out = _best_of(group, scorer, folds, Y[part.train], each)
                fold = folds[NeighborSearch.of(model)]
                answers = fold.answers(model, Y[part.train])
                decided = answers.decided
            except (MemoryError, UnsuitableDataError) as error:  # about data
                if not refusals:
                    raise
                of_group.append(SplitResult.refused(str(error)))
            else:
                seconds = time.process_time() - start
                truth, scores = data.Y[part.test], answers.scores
                metrics, of_rows = evaluate_and_per_row(truth, scores, decided, convention, at=at)
                names = data.label_names
                labels = per_label(truth, scores, decided, label_names=names) if by_label else None
                result = SplitResult(
                    metrics,
                    seconds,
                    chosen=None if scorer is None else model,
                    left_out=left_out,
                    scale=fold.scale,
                    labels=labels,
                    rows=of_rows,
                )
                of_group.append(result)
            each.report(n, n)
    return results


def _best_of(
    models: Sequence[Model], scorer: Scorer | None, folds: Folds, Y: Csr, each: PartsOfModels
) -> tuple[Model, float]:
    """The model that does best on left-out training rows of a part, and its score there."""
    if len(models) == 1:
        return models[0], math.nan
    if scorer is None:
        raise ValueError("models: to choose among candidates takes a scorer")
    left_out_folds = {search: fold.left_out() for search, fold in folds.items()}
    values = np.full(len(models), np.nan)
    for place, answers in answers_of(models, left_out_folds, Y):
        values[place] = measure(Y, answers, {"score": scorer})["score"]
        each.report(Y.shape[0], Y.shape[0])
    best = best_place(values, models)
    return models[best], float(values[best])
