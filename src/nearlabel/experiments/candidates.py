"""Candidates of a search for parameters: tried on the folds of one graph a metric."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearlabel.arrays import Csr, Floats
from nearlabel.base import NeighborModel
from nearlabel.experiments.folds import (
    Fold,
    Searching,
    folds,
    most_neighbors,
    shares_a_graph,
    whole_graph,
)
from nearlabel.experiments.protocols import Part
from nearlabel.graph import NeighborGraph
from nearlabel.metrics import Scorer
from nearlabel.metrics.scorers import measure
from nearlabel.validation import label_matrix


@dataclass(frozen=True)
class Candidate:
    """A point of a grid.

    Attributes
    ----------
    place : int
        In the grid.
    parameters : dict
        As the grid has them.
    model : NeighborModel
        Unfitted, with these parameters.
    """

    place: int
    parameters: dict[str, Any]
    model: NeighborModel


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


def try_candidates(
    X: Any,
    Y: Csr,
    parts: Sequence[Part],
    candidates: Sequence[Candidate],
    scorers: Mapping[str, Scorer],
    *,
    scale: str = "none",
    progress: Callable[[int, int], None] | None = None,
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
    tell = _Steps(progress, X.shape[0], parts, groups, scale)
    for searching, group in groups.items():
        k = most_neighbors([one.model for one in group], X.shape[0])
        whole = None
        if shares_a_graph(parts, searching, scale):
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
    tell: _Steps,
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


class _Steps:
    """Progress over several searches and all answers, told in rows."""

    def __init__(
        self,
        progress: Callable[[int, int], None] | None,
        n: int,
        parts: Sequence[Part],
        groups: Mapping[Searching, Sequence[Candidate]],
        scale: str,
    ) -> None:
        rows = sum(len(part.train) + (not part.left_out) * len(part.test) for part in parts)
        searched = [n if shares_a_graph(parts, one, scale) else rows for one in groups]
        answered = sum(len(part.test) for part in parts) * sum(map(len, groups.values()))
        self._progress, self._done, self._total = progress, 0, sum(searched) + answered

    def __call__(self, some: int, of: int) -> None:
        if self._progress is not None:
            self._progress(self._done + some, self._total)
        self._done += some if some == of else 0
