"""Protocols: which rows a method learns from and which it is tried on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from nearlabel.arrays import Array, Csr
from nearlabel.base import NeighborModel
from nearlabel.datasets import Dataset
from nearlabel.experiments.scaling import scaler
from nearlabel.graph import NeighborGraph
from nearlabel.metrics import evaluate
from nearlabel.scores import LabelScores
from nearlabel.search import neighbor_graph
from nearlabel.validation import check_choice, check_integer, check_real

SPLITS = ("official", "holdout", "cv10")
_FOLDS = 10


def splits(
    data: Dataset, kind: str | None = None, *, test_size: float = 1 / 3, seed: int = 0
) -> list[tuple[Array, Array]]:
    """Pairs of the rows to learn from and the rows to be tried on.

    Parameters
    ----------
    data : Dataset
    kind : {"official", "holdout", "cv10"}, optional
        The split that the data set has; one random part held out; ten random parts, each held out
        once. By default the official one where there is one, else ten parts.
    test_size : float, default=1/3
        Share of the rows that are held out.
    seed : int, default=0
    """
    n = len(data)
    kind = check_choice(usual_split(data) if kind is None else kind, "split", SPLITS)
    if kind == "official":
        if data.train is None or data.test is None:
            raise ValueError(
                "split='official': this data set has no split of its own; use 'holdout' or 'cv10'"
            )
        return [(np.flatnonzero(data.train), np.flatnonzero(data.test))]
    shuffled = np.random.default_rng(check_integer(seed, "seed", low=0)).permutation(n)
    if kind == "holdout":
        share = check_real(test_size, "test_size", low=0, high=1)
        tests = [shuffled[: round(share * n)]]
    else:
        tests = np.array_split(shuffled, _FOLDS)
    if any(not 0 < len(test) < n - 1 for test in tests):
        raise ValueError(f"split={kind!r} leaves too few of {n} rows on one side")
    return [(np.setdiff1d(shuffled, test), np.sort(test)) for test in tests]


def usual_split(data: Dataset) -> str:
    """The split that a data set has, or else ten parts."""
    return "cv10" if data.train is None else "official"


@dataclass(frozen=True)
class SplitResult:
    """How a model did on one split.

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
    models: Sequence[NeighborModel],
    parts: Sequence[tuple[Array, Array]],
    *,
    scale: str = "none",
    convention: str = "paper",
    at: int = 5,
    refusals: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[list[SplitResult]]:
    """Metrics of each model on each split: one search a split serves all models.

    Parameters
    ----------
    data : Dataset
    models : sequence of NeighborModel
        Unfitted, of one metric and search; they may differ in `n_neighbors`.
    parts : sequence of pairs of rows, as `splits` gives them
    scale : {"none", "minmax", "standard"}
        Fitted to the rows to learn from, in each split.
    convention, at
        See `nearlabel.metrics.evaluate`.
    refusals : bool, default=False
        Whether a model that refuses data of this size is noted, instead of ending it all.
    progress : callable, optional
        Called with (steps done, steps in all), over all splits: a step is a row that was searched,
        or that a model has answered for.

    Returns
    -------
    list of list of SplitResult
        For each model its result on each split.
    """
    searches = {(str(model.metric), str(model.search), model.n_jobs) for model in models}
    if len(searches) != 1:
        raise ValueError("models must be at least one, all with the same metric, search and n_jobs")
    models = [clone(model) for model in models]
    results: list[list[SplitResult]] = [[] for _ in models]
    rows_in_all = sum(len(train) + len(test) for train, test in parts)
    done, total = 0, rows_in_all * (1 + len(models))

    def tell(rows: int, of: int) -> None:
        nonlocal done
        if progress is not None:
            progress(done + rows, total)
        done += rows if rows == of else 0

    for train, test in parts:
        X, new = _scaled(data.X[train], data.X[test], scale)
        graph, queries = _graphs(models, X, new, tell)
        for model, found in zip(models, results, strict=True):
            start, rows = time.process_time(), len(train) + len(test)
            try:
                scores, predicted = _answers(model, graph, queries, data.Y[train], X, new)
            except MemoryError as error:
                if not refusals:
                    raise
                found.append(SplitResult({}, 0.0, str(error)))
                tell(rows, rows)
                continue
            seconds = time.process_time() - start
            metrics = evaluate(data.Y[test], scores, predicted, convention, at=at)
            found.append(SplitResult(metrics, seconds))
            tell(rows, rows)
    return results


def _scaled(X: Any, new: Any, scale: str) -> tuple[Any, Any]:
    """Both parts, scaled as the first one asks for."""
    transformer = scaler(scale, X)
    if transformer is None:
        return X, new
    return transformer.fit_transform(X), transformer.transform(new)


def _graphs(
    models: Sequence[NeighborModel], X: Any, new: Any, progress: Callable[[int, int], None]
) -> tuple[NeighborGraph, NeighborGraph]:
    """Neighbors of the training rows and of the new ones: as many as the models need at most."""
    n, first = X.shape[0], models[0]
    k = max(n if model.n_neighbors is None else model.n_neighbors for model in models)
    search: dict[str, Any] = {"metric": first.metric, "search": first.search}
    search.update(n_jobs=first.n_jobs, progress=progress)
    return neighbor_graph(X, min(k, n - 1), **search), neighbor_graph(X, min(k, n), new, **search)


def _answers(
    model: NeighborModel, graph: NeighborGraph, queries: NeighborGraph, Y: Csr, X: Any, new: Any
) -> tuple[LabelScores, Any]:
    """Scores and decisions for new rows; vectors are given to methods that look at them only."""
    if not model._needs_vectors:
        X = new = None
    model.fit_graph(graph, Y, X)
    scores = model.scores_from_graph(queries, new)
    return scores, model.predict_from_graph(queries, new, scores=scores)
