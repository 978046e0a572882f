"""One graph for all parts: the neighbors of the training and test rows of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import NamedTuple, TypeAlias, TypeGuard

import numpy as np
from sklearn.base import clone

from nearlabel.baselines.baseline import Baseline
from nearlabel.common.arrays import Csr, Matrix
from nearlabel.common.validation import check_dense_size, check_n_jobs
from nearlabel.datasets.preparing import Preparing
from nearlabel.experiments.protocols import Part
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals
from nearlabel.labels.scores import DenseScores, LabelScores
from nearlabel.labels.sweep import CountSweep, bytes_of_sweep
from nearlabel.methods.answers import no_neighbors
from nearlabel.methods.base import NeighborClassifier, usable_neighbors
from nearlabel.methods.fitted_model import uses_vectors
from nearlabel.methods.mlknn import MLkNN, posteriors
from nearlabel.search import (
    Index,
    Metric,
    Progress,
    build_index,
    is_precomputed,
    neighbor_graph,
    neighbors_with_margin,
    restrict,
)

Model: TypeAlias = NeighborClassifier | Baseline
_SWEEP_BYTES = 2**28  # up to which a sweep over k takes dense counts


@dataclass(frozen=True)
class NeighborSearch:
    """How neighbors are searched: what models must have in common to read one graph.

    Searches of a user are the same if they are equal, which by default only one object is.
    """

    metric: Metric
    search: object
    n_jobs: int | None

    @classmethod
    def of(cls, model: Model) -> NeighborSearch | None:
        """How a model searches; None for one that knows no neighbors."""
        if isinstance(model, Baseline) or not model.keeps_items:
            return None
        return cls(model.metric, model.search, model.n_jobs)

    def __hash__(self) -> int:
        return hash((type(self.metric), type(self.search), self.n_jobs))  # these need have none

    def graph(self, X: Matrix, k: int, queries: Matrix | None, progress: Progress) -> NeighborGraph:
        """The k nearest rows of X, of each other row or of each query."""
        n = X.shape[0] if queries is None else queries.shape[0]
        check_dense_size("the neighbors of all rows", (n, k), 12, "fewer n_neighbors")
        return neighbor_graph(
            X,
            k,
            queries,
            metric=self.metric,
            search=self.search,
            n_jobs=self.n_jobs,
            progress=progress,
        )


class PartVectors(NamedTuple):
    """Training and test vectors of a part, in leave-one-out the same, and how they were scaled."""

    train: Matrix
    test: Matrix
    scale: str = "none"


def part_vectors(
    part: Part, X: Matrix, Y: Csr | None, preparing: Preparing
) -> Callable[[Metric], PartVectors]:
    """The vectors of a part for each metric, by which the best scale may differ.

    They are prepared by what the training rows say, once for all that want the same. The labels Y
    are needed where the scale is to be chosen or a distance to be learned.
    """
    labels = None if Y is None else Y[part.train]

    @cache
    def plain(given: bool) -> PartVectors:
        """Training and test rows; of `given` distances those to training rows."""
        rows = [X[part.train]] if part.left_out else [X[part.train], X[part.test]]
        rows = [block[:, part.train] for block in rows] if given else rows
        return PartVectors(rows[0], rows[-1])

    @cache
    def prepared(given: bool, preparing: Preparing) -> PartVectors:
        train, test, _ = plain(given)
        transformer = preparing.transformer(train)
        if transformer is not None:
            train = transformer.fit_transform(train, labels)
            test = train if part.left_out else transformer.transform(test)
        return PartVectors(train, test, preparing.scale)

    chosen: dict[str | None, Preparing] = {}

    def vectors(metric: Metric) -> PartVectors:
        given = is_precomputed(metric)
        name = metric if isinstance(metric, str) else None  # others have no scale chosen for them
        if name not in chosen:
            chosen[name] = preparing.chosen(plain(given).train, labels, metric)
        return prepared(given, chosen[name])

    return vectors


@dataclass(frozen=True)
class FoldAnswers:
    """The scores of test rows, and the label sets that the model decides for by them."""

    scores: LabelScores
    decide: Callable[[LabelScores], Csr]

    @cached_property
    def decided(self) -> Csr:
        """The label sets, shape (n, q)."""
        return self.decide(self.scores)


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
    X: Matrix
    new: Matrix
    whole: NeighborGraph | None = None
    known: dict[Hashable, object] = field(default_factory=dict)
    scale: str = "none"

    def left_out(self) -> Fold:
        """The training rows alone, each tried as if it were new."""
        part = Part(self.part.train, self.part.train, left_out=True)
        return Fold(part, self.graph, self.graph, self.X, self.X, known=self.known)

    def answers(self, model: Model, Y: Csr) -> FoldAnswers:
        """What a copy of a model says that learns from the labels Y of the training rows."""
        if isinstance(model, Baseline):
            return self._baseline_answers(model, Y)
        X, new = (self.X, self.new) if uses_vectors(model) else (None, None)
        learned = copy(model._with_known(self.X, self.known)).fit_graph(self.graph, Y, X)
        if self.part.left_out:
            graph = self.graph.head(min(learned.n_neighbors_, self.graph.k))
            scores = learned._left_out_scores(graph, X, np.arange(len(graph)))
        else:
            graph = self.queries.head(learned.n_neighbors_)
            scores = learned.scores_from_graph(graph, new)
        return FoldAnswers(scores, lambda scores: learned._decide(scores, graph))

    def _baseline_answers(self, model: Baseline, Y: Csr) -> FoldAnswers:
        if self.part.left_out:
            raise ValueError(
                f"parts: {type(model).__name__} cannot leave out single rows, for each of which it "
                "would have to learn again; use folds or a held-out part"
            )
        learned = clone(model).fit(self.X, Y)
        scores = learned.label_scores(self.new)
        return FoldAnswers(scores, lambda scores: learned._decided_sets(scores.toarray()))

    def all_answers(self, models: Sequence[Model], Y: Csr) -> Iterator[tuple[int, FoldAnswers]]:
        """The answers of each model with its place, in any order; valid until the next ones."""
        swept: dict[float, list[tuple[int, int, MLkNN]]] = defaultdict(list)  # by the smoothing
        sweeps = self.part.left_out and bytes_of_sweep(Y, self.graph.k) <= _SWEEP_BYTES
        for place, model in enumerate(models):
            if sweeps and is_swept(model):
                k = usable_neighbors(model, len(self.graph))
                swept[float(model.smoothing)].append((k, place, model))
            else:
                yield place, self.answers(model, Y)
        for smoothing, rising in swept.items():
            rising.sort()
            each = left_out_sweep(self.graph, Y, smoothing, [k for k, *_ in rising])
            for (k, place, model), scores in zip(rising, each, strict=True):
                yield place, FoldAnswers(scores, partial(model._decide, graph=self.graph.head(k)))


def is_swept(model: object) -> TypeGuard[MLkNN]:
    """Whether `left_out_sweep` scores a model: ML-kNN as published, and none that extends it."""
    return type(model) is MLkNN and model.counts == "paper"


def left_out_sweep(
    graph: NeighborGraph, Y: Csr, smoothing: float, neighbors: Sequence[int]
) -> Iterator[LabelScores]:
    """ML-kNN's leave-one-out scores for rising numbers of neighbors, each valid until the next."""
    sweep, s, n = CountSweep(graph, Y), smoothing, np.array(Y.shape[0])
    totals = label_totals(Y)[:, None]
    n_with, others_with = np.minimum(totals, n - 1), np.maximum(totals - 1, 0)
    for k in neighbors:
        while sweep.k < k:
            sweep.add_neighbor()
        without, with_label = sweep.cells[:, :, : k + 1]
        # The row's own entry is taken out. Cells that no row is in are not looked up.
        table = np.stack(
            [
                posteriors(s, k, n - 1, n_with, with_label, np.maximum(without - 1, 0)),
                posteriors(s, k, n - 1, others_with, np.maximum(with_label - 1, 0), without),
            ]
        )
        yield DenseScores(sweep.look_up(table))


Folds: TypeAlias = Mapping[NeighborSearch | None, Fold]  # of one part


class PartsOfModels:
    """Each part with one fold for all models that search alike, and the progress over all.

    Where vectors need no preparation, one search of all rows serves all parts. Else what prepares
    them is fitted in each part, so that distances differ from part to part; of given distances
    each part takes its own rows and columns. Where a part hides nearly all rows, hardly any of
    their neighbors would be left. In these cases each part has a search of its own.

    The rows that are searched are reported here, the `answered` ones by the caller, all in all. The
    labels Y are needed where the scale is to be chosen.
    """

    def __init__(
        self,
        X: Matrix,
        parts: Sequence[Part],
        models: Sequence[Model],
        *,
        answered: int,
        preparing: Preparing | None = None,
        Y: Csr | None = None,
        progress: Progress | None = None,
    ) -> None:
        n = X.shape[0]
        _check_parts(parts, n)
        self._X, self._Y, self._parts = X, Y, parts
        self._preparing = preparing or Preparing()
        self._greatest_k: dict[NeighborSearch | None, int] = {}
        for model in models:
            search = NeighborSearch.of(model)
            k = 0 if isinstance(model, Baseline) else model.n_neighbors
            known = self._greatest_k.get(search, 0)
            self._greatest_k[search] = max(known, n if k is None else k)
        self._share = (
            len(parts) > 1
            and min(len(part.train) for part in parts) * 8 >= n
            and not self._preparing.is_needed(X)
        )
        self._progress, self._done, self._total = progress, 0, answered
        searched = sum(len(part.train) + len(part.test) * (not part.left_out) for part in parts)
        for search in self._greatest_k:
            if search is not None:
                self._total += n if self._shares(search) else searched

    def __iter__(self) -> Iterator[tuple[Part, Folds]]:
        n = self._X.shape[0]
        hidden = n - min(len(part.train) for part in self._parts)
        graphs = {  # enough neighbors that about k are left when rows of a part are hidden
            search: search.graph(self._X, neighbors_with_margin(k, n, hidden), None, self.report)
            for search, k in self._greatest_k.items()
            if search is not None and self._shares(search)
        }
        for part in self._parts:
            vectors = part_vectors(part, self._X, self._Y, self._preparing)
            folds: dict[NeighborSearch | None, Fold] = {}
            for search, k in self._greatest_k.items():
                # Without neighbors the scale is chosen as for plain distances.
                own = vectors("euclidean" if search is None else search.metric)
                if search is not None and search in graphs:
                    folds[search] = self._fold_of_all(part, own, search, k, graphs[search])
                else:
                    folds[search] = self._own_fold(part, own, search, k)
            yield part, folds

    def report(self, rows: int, of: int) -> None:
        """Some rows of a step are done; all of them end it."""
        if self._progress is not None:
            self._progress(self._done + rows, self._total)
        self._done += rows if rows == of else 0

    def _shares(self, search: NeighborSearch) -> bool:
        return self._share and not is_precomputed(search.metric)

    def _fold_of_all(
        self, part: Part, vectors: PartVectors, search: NeighborSearch, k: int, whole: NeighborGraph
    ) -> Fold:
        keep = np.zeros(self._X.shape[0], bool)
        keep[part.train] = True
        n_jobs = check_n_jobs(search.n_jobs)

        def build(rows: Matrix) -> Index:
            return build_index(rows, search.metric, search.search)

        # Rows that are in neither train nor test are hidden as well.
        graph, others = restrict(whole, self._X, keep, k, build, n_jobs=n_jobs)
        queries = others.take(np.searchsorted(np.flatnonzero(~keep), part.test))
        return Fold(part, graph, queries, vectors.train, vectors.test, whole)

    def _own_fold(
        self, part: Part, vectors: PartVectors, search: NeighborSearch | None, k: int
    ) -> Fold:
        """A part with a search of its own, or none for models that know no neighbors."""
        train, test, scale = vectors
        n, whole = train.shape[0], None
        if search is None:
            graph, queries = no_neighbors(n, n), no_neighbors(test.shape[0], n)
        else:
            graph = queries = search.graph(train, min(k, n - 1), None, self.report)
            if part.left_out:
                whole = graph
            else:
                queries = search.graph(train, min(k, n), test, self.report)
        return Fold(part, graph, queries, train, test, whole, scale=scale)


def answers_of(models: Sequence[Model], folds: Folds, Y: Csr) -> Iterator[tuple[int, FoldAnswers]]:
    """The answers of each model with its place, from the fold of its search."""
    for search, fold in folds.items():
        places = [place for place, own in enumerate(models) if NeighborSearch.of(own) == search]
        for place, answers in fold.all_answers([models[place] for place in places], Y):
            yield places[place], answers


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
