"""Candidates of a search for parameters: tried on the folds of one graph a metric."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearlabel.common.arrays import Csr, Floats
from nearlabel.common.validation import label_matrix
from nearlabel.experiments.folds import (
    Fold,
    RowsDone,
    Searching,
    folds,
    most_neighbors,
    rows_to_search,
    shares_a_graph,
    whole_graph,
)
from nearlabel.experiments.protocols import Part
from nearlabel.graph import NeighborGraph
from nearlabel.methods.base import NeighborClassifier
from nearlabel.metrics import Scorer
from nearlabel.metrics.scorers import measure
from nearlabel.search import Progress

LEAST_ROWS_A_NEIGHBOR = 4  # for leave-one-out; with fewer it flatters


@dataclass(frozen=True)
class Candidate:
    """A point of a grid.

    Attributes
    ----------
    place : int
        In the grid.
    parameters : dict
        As the grid has them.
    model : NeighborClassifier
        Unfitted, with these parameters.
    """

    place: int
    parameters: dict[str, Any]
    model: NeighborClassifier


@dataclass(frozen=True)
class Trial:
    """What trying all candidates gave.

    Attributes
    ----------
    scores : dict of str to ndarray of shape (candidates, folds)
        By the name of the scorer; greater is better.
    fit_seconds, score_seconds : ndarray of shape (candidates, folds)
        Wall time of learning and answering, without the search, and of measuring.
    graphs : dict of Searching to NeighborGraph
        The graphs of all rows that were searched.
    """

    scores: dict[str, Floats]
    fit_seconds: Floats
    score_seconds: Floats
    graphs: dict[Searching, NeighborGraph] = field(default_factory=dict)

    def defined(self, name: str) -> Floats:
        """The scores on the folds where the metric is defined, which the true labels decide."""
        scores = self.scores[name]
        kept = ~np.isnan(scores).all(axis=0)
        return scores[:, kept] if kept.any() else scores


def try_candidates(
    X: Any,
    Y: Csr,
    parts: Sequence[Part],
    candidates: Sequence[Candidate],
    scorers: Mapping[str, Scorer],
    *,
    scale: str = "none",
    progress: Progress | None = None,
) -> Trial:
    """Scores of each candidate on each part: one search a metric, whatever else they differ in.

    Where a `scale` is fitted to the rows to learn from, each part has a search of its own.
    """
    Y = label_matrix(Y, "Y")
    groups: dict[Searching, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[Searching.of(candidate.model)].append(candidate)
    shape = (len(candidates), len(parts))
    empty = {name: np.full(shape, np.nan) for name in scorers}
    trial = Trial(empty, np.zeros(shape), np.zeros(shape))
    n = X.shape[0]
    answered = sum(len(part.test) for part in parts) * len(candidates)
    searched = sum(rows_to_search(n, parts, searching, scale) for searching in groups)
    tell = RowsDone(progress, searched + answered)
    if any(part.left_out for part in parts):
        warn_of_many_neighbors([one.model for one in candidates], n)
    for searching, group in groups.items():
        k = most_neighbors([one.model for one in group], n)
        whole = None
        if shares_a_graph(n, parts, searching, scale):
            whole = trial.graphs[searching] = whole_graph(X, parts, k, searching, tell)
        each = folds(X, parts, k, searching, scale=scale, whole=whole, progress=tell)
        for place, fold in enumerate(each):
            if fold.part.left_out:
                trial.graphs[searching] = fold.graph
            _try_on(fold, place, Y, group, scorers, trial, tell)
    return trial


def _try_on(
    fold: Fold,
    place: int,
    Y: Csr,
    group: Sequence[Candidate],
    scorers: Mapping[str, Scorer],
    trial: Trial,
    tell: RowsDone,
) -> None:
    """Fill in what candidates do on one fold."""
    truth, n = Y[fold.part.test], len(fold.part.test)
    start = time.perf_counter()
    for one, answers in fold.all_answers([one.model for one in group], Y[fold.part.train]):
        candidate = group[one].place
        answered = time.perf_counter()
        for name, value in measure(truth, answers, scorers).items():
            trial.scores[name][candidate, place] = value
        trial.fit_seconds[candidate, place] = answered - start
        trial.score_seconds[candidate, place] = time.perf_counter() - answered
        tell(n, n)
        start = time.perf_counter()


def best_place(values: Floats, models: Sequence[NeighborClassifier]) -> int:
    """The place of the greatest value; of equal ones that of fewer neighbors, then the first."""
    known = np.where(np.isnan(values), -np.inf, values)
    best = np.flatnonzero(known == known.max())
    neighbors = [models[int(place)].n_neighbors for place in best]
    return int(best[np.argmin([np.inf if k is None else k for k in neighbors])])


def warn_of_many_neighbors(models: Iterable[NeighborClassifier], n: int) -> None:
    """Say that leave-one-out flatters models that count most of n rows as neighbors.

    A row is not among its own neighbors, but among those of the others: where nearly all rows are
    neighbors, a row's own label is what its count lacks. In the extreme of n - 1 neighbors tables
    tell it without a fault.
    """
    counts = [model.n_neighbors or n for model in models if model.needs.counts]
    many = [k for k in counts if k > n // LEAST_ROWS_A_NEIGHBOR]
    if many:
        warnings.warn(
            f"leave-one-out flatters n_neighbors={max(many)} with {n} rows: use at most "
            f"{n // LEAST_ROWS_A_NEIGHBOR}, or folds",
            UserWarning,
            stacklevel=4,
        )
