"""One graph for all parts: the neighbors of the training and test rows of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from nearlabel.baselines.baseline import Baseline
from nearlabel.common.arrays import Csr
from nearlabel.common.validation import check_dense_size, check_n_jobs
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.part_vectors import AS_THEY_ARE, PreparedParts
from nearlabel.experiments.protocols import Part
from nearlabel.experiments.shared_work import can_sweep, left_out_sweep, with_known_centers
from nearlabel.graph import NeighborGraph
from nearlabel.methods.answers import no_neighbors
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fold_answers import FoldAnswers, FoldRows, decided_by_neighbors
from nearlabel.search import (
    Progress,
    build_index,
    is_precomputed,
    neighbor_graph,
    neighbors_with_margin,
    restrict,
)

Model: TypeAlias = NeighborClassifier | Baseline
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
    def of(cls, model: Any) -> Searching | None:
        """How a model searches; None for one that knows no neighbors."""
        return cls(model.metric, model.search, model.n_jobs) if model.keeps_items else None

    def __hash__(self) -> int:
        return hash((type(self.metric), type(self.search), self.n_jobs))  # these need have none

    def graph(self, X: Any, k: int, queries: Any, progress: Any) -> NeighborGraph:
        """The k nearest rows of X, of each other row or of each query."""
        n = X.shape[0] if queries is None else queries.shape[0]
        check_dense_size("the neighbors of all rows", (n, k), 12, "fewer n_neighbors")
        how: dict[str, Any] = {"metric": self.metric, "search": self.search}
        return neighbor_graph(X, k, queries, n_jobs=self.n_jobs, progress=progress, **how)


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

    def answers(self, model: Model, Y: Csr) -> FoldAnswers:
        """What a model says that learns from the labels Y of the training rows."""
        model = with_known_centers(model, self.X, self.known)
        test = None if self.part.left_out else FoldRows(self.new, self.queries)
        return model._fold_answers(Y, FoldRows(self.X, self.graph), test)

    def all_answers(self, models: Sequence[Model], Y: Csr) -> Iterator[tuple[int, FoldAnswers]]:
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
                graph = self.graph.head(neighbors[place])
                yield place, decided_by_neighbors(models[place], scores, graph)


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
    preparing: Preparing = AS_THEY_ARE,
    Y: Csr | None = None,
    progress: Progress | None = None,
) -> tuple[Iterator[tuple[Part, dict[Searching | None, Fold]]], RowsDone]:
    """Each part with one fold for all models that search alike, and progress over all.

    The folds report the rows they search; the caller reports the `answered` ones, all in all. The
    labels Y are needed where the scale is to be chosen.
    """
    n = X.shape[0]
    _check_parts(parts, n)
    groups: dict[Searching | None, list[Any]] = defaultdict(list)
    for model in models:
        groups[Searching.of(model)].append(model)
    prepared = PreparedParts(X, Y, preparing)
    searched = sum(_rows_to_search(prepared, parts, searching) for searching in groups)
    tell = RowsDone(progress, searched + answered)
    streams: dict[Searching | None, Iterator[Fold]] = {}
    for searching, group in groups.items():
        if searching is None:
            streams[searching] = (_without_neighbors(prepared, part) for part in parts)
        else:
            k = max(n if model.n_neighbors is None else model.n_neighbors for model in group)
            streams[searching] = folds(prepared, parts, k, searching, tell)
    each = ((part, {one: next(stream) for one, stream in streams.items()}) for part in parts)
    return each, tell


def answers_of(
    models: Sequence[Model], each: Mapping[Searching | None, Fold], Y: Csr
) -> Iterator[tuple[int, FoldAnswers]]:
    """The answers of each model with its place, from the fold of its search."""
    for searching, fold in each.items():
        places = [place for place, one in enumerate(models) if Searching.of(one) == searching]
        for place, answers in fold.all_answers([models[place] for place in places], Y):
            yield places[place], answers


def folds(
    prepared: PreparedParts,
    parts: Sequence[Part],
    k: int,
    searching: Searching,
    progress: Progress | None = None,
) -> Iterator[Fold]:
    """Each part with the k nearest neighbors of its rows, or fewer where it has fewer rows.

    Where vectors are prepared by what the training rows of each part say, each part has a search of
    its own.
    """
    if not _share_a_graph(prepared, parts, searching):
        for part in parts:
            yield _own_fold(prepared, part, k, searching, progress)
        return
    # Enough neighbors that about k are left when the rows of a part are hidden.
    X = prepared.X
    n = X.shape[0]
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
        train, test, _ = prepared.of(part, searching.metric)
        yield Fold(part, graph, queries, train, test, whole)


def _own_fold(
    prepared: PreparedParts, part: Part, k: int, searching: Searching, progress: Progress | None
) -> Fold:
    """A part with a search of its own."""
    train, test, scale = prepared.of(part, searching.metric)
    n = train.shape[0]
    graph = searching.graph(train, min(k, n - 1), None, progress)
    if part.left_out:
        return Fold(part, graph, graph, train, train, graph, scale=scale)
    queries = searching.graph(train, min(k, n), test, progress)
    return Fold(part, graph, queries, train, test, scale=scale)


def _without_neighbors(prepared: PreparedParts, part: Part) -> Fold:
    """A part for models that know no neighbors; the scale is chosen as for plain distances."""
    train, test, scale = prepared.of(part, "euclidean")
    n = train.shape[0]
    graphs = no_neighbors(n, n), no_neighbors(test.shape[0], n)
    return Fold(part, *graphs, train, test, scale=scale)


def _share_a_graph(prepared: PreparedParts, parts: Sequence[Part], searching: Searching) -> bool:
    """Whether one search of all rows serves all parts.

    What prepares vectors is fitted in each part, so that distances differ from part to part; of
    given distances each part takes its own rows and columns. Where a part hides nearly all rows,
    hardly any of their neighbors would be left.
    """
    if len(parts) < 2 or prepared.is_needed or is_precomputed(searching.metric):
        return False
    return min(len(part.train) for part in parts) * _LEAST_KEPT >= int(prepared.X.shape[0])


def _rows_to_search(
    prepared: PreparedParts, parts: Sequence[Part], searching: Searching | None
) -> int:
    """How many rows are searched in all."""
    if searching is None:
        return 0
    if _share_a_graph(prepared, parts, searching):
        return int(prepared.X.shape[0])
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
