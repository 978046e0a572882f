"""How well models do on parts of a data set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sklearn.base import clone

from nearlabel.datasets import Dataset
from nearlabel.experiments.folds import Searching, folds_of_models
from nearlabel.experiments.protocols import Part
from nearlabel.methods.base import NeighborClassifier
from nearlabel.metrics import evaluate
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
        Why the model refused the data: it would need too much.
    """

    metrics: dict[str, float]
    seconds: float
    refusal: str | None = None


def evaluate_splits(
    data: Dataset,
    models: Sequence[NeighborClassifier],
    parts: Sequence[Part],
    *,
    scale: str = "none",
    convention: str = "paper",
    at: int = 5,
    refusals: bool = False,
    progress: Progress | None = None,
) -> list[list[SplitResult]]:
    """Metrics of each model on each part; one search serves all models and, unscaled, all parts.

    Parameters
    ----------
    data : Dataset
    models : sequence of NeighborClassifier
        Unfitted, of one metric and search; they may differ in `n_neighbors`.
    parts : sequence of Part, as `splits` gives them
    scale : {"none", "minmax", "standard"}
        Fitted to the rows to learn from, in each part: each part has a search of its own then.
    convention, at
        See `nearlabel.metrics.evaluate`.
    refusals : bool, default=False
        Whether a model that refuses data of this size is noted, instead of ending it all.
    progress : callable, optional
        Called with (steps done, steps in all), over all parts: a step is a row that was searched,
        or that a model has answered for.

    Returns
    -------
    list of list of SplitResult
        For each model its result on each part.
    """
    if len({Searching.of(model) for model in models}) != 1:
        raise ValueError("models must be at least one, all with the same metric, search and n_jobs")
    models = [clone(model) for model in models]
    results: list[list[SplitResult]] = [[] for _ in models]
    answered = sum(len(part.test) for part in parts) * len(models)
    each, tell = folds_of_models(
        data.X, parts, models, answered=answered, scale=scale, progress=progress
    )
    for part, now in each:
        [fold] = now.values()
        truth, n = data.Y[part.test], len(part.test)
        for model, found in zip(models, results, strict=True):
            start = time.process_time()
            try:
                answers = fold.answers(model, data.Y[part.train])
                scores, predicted = answers.scores, answers.decided
            except MemoryError as error:
                if not refusals:
                    raise
                found.append(SplitResult({}, 0.0, str(error)))
            else:
                seconds = time.process_time() - start
                metrics = evaluate(truth, scores, predicted, convention, at=at)
                found.append(SplitResult(metrics, seconds))
            tell(n, n)
    return results
