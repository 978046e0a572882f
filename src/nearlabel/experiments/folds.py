"""One graph for all parts: the neighbors of the training and test rows of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from nearlabel.baselines.baseline import Baseline
from nearlabel.common.arrays import Csr
from nearlabel.common.validation import check_dense_size, check_n_jobs
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.protocols import Part
from nearlabel.experiments.shared_work import can_sweep, left_out_sweep, with_known_centers
from nearlabel.graph import NeighborGraph
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.answers import no_neighbors
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.needs import needs_vectors
from nearlabel.search import (
    Progress,
    build_index,
    is_precomputed,
    neighbor_graph,
    neighbors_with_margin,
    restrict,
)

Model: TypeAlias = NeighborClassifier | Baseline
_AS_THEY_ARE = Preparing()
_LEAST_KEPT = 8  # a part must keep more than one of so many rows to read the graph of all


@dataclass(frozen=True)
class Searching:
    """How neighbors are searched: what models must have in common to read one graph.

    Searches of a user are the same if they are equal, which by default only one object is.
    """

    metric: Any
    search: Any
    n_jobs: int | None

    @classmethod
    def of(cls, model: Model) -> Searching:
        """How a model searches; a baseline does not, and has no metric here."""
        if isinstance(model, Baseline):
            return cls(None, None, None)
        return cls(model.metric, model.search, model.n_jobs)

    def __hash__(self) -> int:
        return hash((type(self.metric), type(self.search), self.n_jobs))  # these need have none

    def graph(self, X: Any, k: int, queries: Any, progress: Any) -> NeighborGraph:
        """The k nearest rows of X, of each other row or of each query; none for baselines."""
        n = X.shape[0] if queries is None else queries.shape[0]
        if self.metric is None:
            return no_neighbors(n, X.shape[0])
        check_dense_size("the neighbors of all rows", (n, k), 12, "fewer n_neighbors")
        how: dict[str, Any] = {"metric": self.metric, "search": self.search}
        return neighbor_graph(X, k, queries, n_jobs=self.n_jobs, progress=progress, **how)


@dataclass(frozen=True)
class Answers:
    """What a fitted model says of test rows, whose voting neighbors are in `graph`."""

    model: Model
    graph: NeighborGraph
    scores: LabelScores

    @cached_property
    def decided(self) -> Csr:
        """The label sets, shape (n, q)."""
        if isinstance(self.model, Baseline):
            return self.model.decided_sets(self.scores.toarray())
        return self.model._decide(self.scores, self.graph)


@dataclass(frozen=True)
class Fold:
    """One part with its training and test vectors, `X` and `new`, and the neighbors of its rows.

    In `graph` are those of the training rows, each left out of its own; in `queries` those of the
    test rows among the training rows, in leave-one-out the same graph; in `whole` those of all
    rows, where they were searched. `known` is what a model has found out that others can use, and
    `scale` how the vectors were scaled.
    """

    part: Part
    graph: NeighborGraph
    queries: NeighborGraph
    X: Any
    new: Any
    whole: NeighborGraph | None = None
    known: dict[Any, Any] = field(default_factory=dict)
    scale: str = "none"

    def left_out(self) -> Fold:
        """The training rows alone, each tried as if it were new."""
        part = Part(self.part.train, self.part.train, left_out=True)
        return Fold(part, self.graph, self.graph, self.X, self.X, known=self.known)

    def answers(self, model: Model, Y: Csr) -> Answers:
        """What a model says that learns from the labels Y of the training rows."""
        if isinstance(model, Baseline):
            if self.part.left_out:
                raise ValueError(
                    f"parts: {type(model).__name__} cannot leave out single rows, for each of "
                    "which it would have to learn again; use folds or a held-out part"
                )
            model = clone(model).fit(self.X, Y)
            return Answers(model, self.queries, model.label_scores(self.new))
        X, new = (self.X, self.new) if needs_vectors(model) else (None, None)
        model = copy(with_known_centers(model, X, self.known)).fit_graph(self.graph, Y, X)
        if self.part.left_out:
            graph = self.graph.head(min(model.n_neighbors_, self.graph.k))
            scores = model._left_out_scores(graph, X, np.arange(len(graph)))
        else:
            graph = self.queries.head(model.n_neighbors_)
            scores = model.scores_from_graph(graph, new)
        return Answers(model, graph, scores)

    def all_answers(self, models: Sequence[Model], Y: Csr) -> Iterator[tuple[int, Answers]]:
        """The answers of each model with its place, in any order; valid until the next ones."""
        swept: dict[float, list[int]] = defaultdict(list)  # by the smoothing
        for place, model in enumerate(models):
            if self.part.left_out and can_sweep(model, Y, self.graph.k):
                swept[float(model.smoothing)].append(place)
            else:
                yield place, self.answers(model, Y)
        n = len(self.graph)
        for smoothing, places in swept.items():
            neighbors = {place: models[place]._usable_neighbors(n) for place in places}
            rising = sorted(places, key=neighbors.__getitem__)
            each = left_out_sweep(self.graph, Y, smoothing, [neighbors[place] for place in rising])
            for place, scores in zip(rising, each, strict=True):
                yield place, Answers(models[place], self.graph.head(neighbors[place]), scores)


class RowsDone:
    """Progress over several searches and all answers, in rows."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._done, self._total = progress, 0, total

    def __call__(self, some: int, of: int) -> None:
        """Some rows of a search are done; all of them end it."""
        if self._progress is not None:
            self._progress(self._done + some, self._total)
        self._done += some if some == of else 0


def folds_of_models(
    X: Any,
    parts: Sequence[Part],
    models: Sequence[Model],
    *,
    answered: int,
    preparing: Preparing = _AS_THEY_ARE,
    Y: Csr | None = None,
    progress: Progress | None = None,
) -> tuple[Iterator[tuple[Part, dict[Searching, Fold]]], RowsDone]:
    """Each part with one fold for all models that search alike, and progress over all.

    The folds report the rows they search; the caller reports the `answered` ones, all in all. The
    labels Y are needed where the scale is to be chosen.
    """
    n = X.shape[0]
    groups: dict[Searching, list[Model]] = defaultdict(list)
    for model in models:
        groups[Searching.of(model)].append(model)
    searched = sum(_rows_to_search(X, parts, searching, preparing) for searching in groups)
    tell = RowsDone(progress, searched + answered)
    streams = {}
    for searching, group in groups.items():
        k = max(_most_neighbors(model, n) for model in group)
        how: dict[str, Any] = {"preparing": preparing, "Y": Y, "progress": tell}
        streams[searching] = folds(X, parts, k, searching, **how)
    each = ((part, {one: next(stream) for one, stream in streams.items()}) for part in parts)
    return each, tell


def _most_neighbors(model: Model, n: int) -> int:
    """Of n rows, those that a model asks for."""
    if isinstance(model, Baseline):
        return 0
    return n if model.n_neighbors is None else model.n_neighbors


def answers_of(
    models: Sequence[Model], each: Mapping[Searching, Fold], Y: Csr
) -> Iterator[tuple[int, Answers]]:
    """The answers of each model with its place, from the fold of its search."""
    for searching, fold in each.items():
        places = [place for place, one in enumerate(models) if Searching.of(one) == searching]
        for place, answers in fold.all_answers([models[place] for place in places], Y):
            yield places[place], answers


def folds(
    X: Any,
    parts: Sequence[Part],
    k: int,
    searching: Searching,
    *,
    preparing: Preparing = _AS_THEY_ARE,
    Y: Csr | None = None,
    progress: Progress | None = None,
) -> Iterator[Fold]:
    """Each part with the k nearest neighbors of its rows, or fewer where it has fewer rows.

    Vectors are prepared by what the training rows of each part say, so that each part has a search
    of its own then; the labels Y are needed where the scale is to be chosen.
    """
    n = X.shape[0]
    _check_parts(parts, n)
    if not _share_a_graph(X, parts, searching, preparing):
        for part in parts:
            yield _own_fold(X, Y, part, k, searching, preparing, progress)
        return
    # Enough neighbors that about k are left when the rows of a part are hidden.
    hidden = n - min(len(part.train) for part in parts)
    whole = searching.graph(X, neighbors_with_margin(k, n, hidden), None, progress)
    n_jobs = check_n_jobs(searching.n_jobs)

    def build(kept: Any) -> Any:
        return build_index(kept, searching.metric, searching.search)

    for part in parts:
        keep = np.zeros(n, bool)
        keep[part.train] = True
        # Rows that are in neither train nor test are hidden as well.
        graph, others = restrict(whole, X, keep, k, build, n_jobs=n_jobs)
        queries = others.take(np.searchsorted(np.flatnonzero(~keep), part.test))
        yield Fold(part, graph, queries, X[part.train], X[part.test], whole)


def _own_fold(
    X: Any,
    Y: Csr | None,
    part: Part,
    k: int,
    searching: Searching,
    preparing: Preparing,
    progress: Any,
) -> Fold:
    """A part with a search of its own."""
    learned, new = X[part.train], X[part.test]
    if is_precomputed(searching.metric):
        learned, new = learned[:, part.train], new[:, part.train]
    labels = None if Y is None else Y[part.train]
    preparing = preparing.chosen(learned, labels, searching.metric or "euclidean")
    transformer = preparing.transformer(learned)
    if transformer is not None:
        learned, new = transformer.fit_transform(learned, labels), transformer.transform(new)
    n = learned.shape[0]
    graph = searching.graph(learned, min(k, n - 1), None, progress)
    if part.left_out:
        return Fold(part, graph, graph, learned, learned, graph, scale=preparing.scale)
    queries = searching.graph(learned, min(k, n), new, progress)
    return Fold(part, graph, queries, learned, new, scale=preparing.scale)


def _share_a_graph(
    X: Any, parts: Sequence[Part], searching: Searching, preparing: Preparing
) -> bool:
    """Whether one search of all rows serves all parts.

    What prepares vectors is fitted in each part, so that distances differ from part to part; of
    given distances each part takes its own rows and columns. Where a part hides nearly all rows,
    hardly any of their neighbors would be left.
    """
    if len(parts) < 2 or preparing.is_needed(X) or searching.metric is None:
        return False
    if is_precomputed(searching.metric):
        return False
    return min(len(part.train) for part in parts) * _LEAST_KEPT >= int(X.shape[0])


def _rows_to_search(
    X: Any, parts: Sequence[Part], searching: Searching, preparing: Preparing
) -> int:
    """How many rows `folds` searches in all."""
    if searching.metric is None:
        return 0
    if _share_a_graph(X, parts, searching, preparing):
        return int(X.shape[0])
    return sum(len(part.train) + (0 if part.left_out else len(part.test)) for part in parts)


def _check_parts(parts: Sequence[Part], n: int) -> None:
    """Refuse parts that are not rows of n in rising order, each on one side."""
    if any(part.left_out for part in parts) and len(parts) > 1:
        raise ValueError("parts: leave-one-out must be the only part")
    for part in parts:
        for name, rows in (("train", part.train), ("test", part.test)):
            whole = isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind in "iu"
            if not whole or not len(rows) or rows[0] < 0 or rows[-1] >= n:
                raise ValueError(f"parts: {name} must be an array of rows, 0 to {n - 1}")
            if (rows[1:] <= rows[:-1]).any():
                raise ValueError(f"parts: {name} must hold rows in rising order, each once")
        if not part.left_out and np.intersect1d(part.train, part.test).size:
            raise ValueError("parts: a row must not be in train and in test")
