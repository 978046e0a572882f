"""Protocols: which rows a method learns from and which it is tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from nearlabel.arrays import Array
from nearlabel.base import NeighborModel
from nearlabel.datasets import Dataset
from nearlabel.experiments.scaling import scaler
from nearlabel.metrics import evaluate
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


def evaluate_splits(
    data: Dataset,
    models: Sequence[NeighborModel],
    parts: Sequence[tuple[Array, Array]],
    *,
    scale: str = "none",
    convention: str = "paper",
    at: int = 5,
    progress: Callable[[int, int], None] | None = None,
) -> list[list[dict[str, float]]]:
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
    progress : callable, optional
        Called with (rows searched, rows in all), over all splits.

    Returns
    -------
    list of list of dict
        For each model the metrics of each split.
    """
    searches = {(str(model.metric), str(model.search), model.n_jobs) for model in models}
    if len(searches) != 1:
        raise ValueError("models must be at least one, all with the same metric, search and n_jobs")
    models = [clone(model) for model in models]
    results: list[list[dict[str, float]]] = [[] for _ in models]
    done, total = 0, sum(len(train) + len(test) for train, test in parts)

    def tell(rows: int, of: int) -> None:
        nonlocal done
        if progress is not None:
            progress(done + rows, total)
        done += rows if rows == of else 0

    for train, test in parts:
        for place, metrics in _one_split(data, models, train, test, scale, convention, at, tell):
            results[place].append(metrics)
    return results


def _one_split(
    data: Dataset,
    models: Sequence[NeighborModel],
    train: Array,
    test: Array,
    scale: str,
    convention: str,
    at: int,
    progress: Callable[[int, int], None],
) -> Iterator[tuple[int, dict[str, float]]]:
    X, new = data.X[train], data.X[test]
    transformer = scaler(scale, X)
    if transformer is not None:
        X, new = transformer.fit_transform(X), transformer.transform(new)
    n = len(train)
    k = max(n if model.n_neighbors is None else model.n_neighbors for model in models)
    first = models[0]
    search: dict[str, Any] = {"metric": first.metric, "search": first.search}
    search.update(n_jobs=first.n_jobs, progress=progress)
    graph = neighbor_graph(X, min(k, n - 1), **search)
    queries = neighbor_graph(X, min(k, n), new, **search)
    for place, model in enumerate(models):
        vectors = (X, new) if model._needs_vectors else (None, None)
        model.fit_graph(graph, data.Y[train], vectors[0])
        scores = model.scores_from_graph(queries, vectors[1])
        predicted = model.predict_from_graph(queries, vectors[1], scores=scores)
        yield place, evaluate(data.Y[test], scores, predicted, convention, at=at)
