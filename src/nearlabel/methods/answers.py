"""Answers of a model to many queries: searched, scored and read in runs of rows.

Neither the neighbors nor the scores of all rows are held at once, unless they are the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.threads import run_slices
from nearlabel.common.validation import ArgumentError, check_dense_size, check_n_jobs
from nearlabel.graph import NeighborGraph, Recall
from nearlabel.labels.counts import blocks_of_votes
from nearlabel.labels.ranked_labels import RankedLabels
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.items import Items
from nearlabel.methods.label_forms import LabelForm
from nearlabel.search import is_precomputed

# To search a row takes about as long as to count or to rank the labels of so many. Progress is told
# in steps of equal length, so that the time left is about right.
ROWS_A_SEARCH = 8
# Of queries that are searched together: 48 MiB, and 40,000 queries of 100 neighbors, so that a
# search by lists has many queries for each list.
_NEIGHBORS_AT_ONCE = 2**22
_FEW_NEIGHBORS = 2**8  # of queries that are answered at once
_SCORES_AT_ONCE = 2**22  # of methods that score every label of every row
_NEXT = 2.0**-20  # how near to 1/2 a probability is moved that the decision does not follow
# The floats next to 0 and 1: predict_proba stays strictly inside (0, 1).
_SMALLEST, _LARGEST = np.finfo(np.float64).tiny, 1 - 2.0**-53
# Takes the place, the scores, the neighbors and the vectors of a run of queries.
ScoredRun = Callable[[slice, LabelScores, NeighborGraph, Any], None]


def each_run(
    model: Any,
    work: ScoredRun,
    X: Any,
    graph: NeighborGraph | None = None,
    *,
    dense: bool = False,
    progress: Progress | None = None,
) -> None:
    """Call `work` with runs of queries, in threads: never the scores of all rows at once.

    The neighbors are searched unless they are given; then X may be None. `dense` says that the
    scores will be made dense, which those of some methods are anyway.
    """
    needs, Y = model.needs, model._items.labels
    if graph is None and progress is None and X.shape[0] * model.n_neighbors_ <= _FEW_NEIGHBORS:
        near = _neighbors(model, X)  # too little to divide
        work(slice(0, X.shape[0]), model._scores(near, X), near, X)
        return
    # A method that reads no graph searches by itself, in threads of its own.
    n_jobs = check_n_jobs(model.n_jobs) if needs.graph else 1
    found = neighbor_blocks(model, X, progress) if graph is None else [(0, graph, progress)]
    for start, near, told in found:
        if dense or needs.dense_scores:
            parts = near.blocks(max(1, _SCORES_AT_ONCE // Y.shape[1]))
        else:
            parts = blocks_of_votes(near, Y)

        def score(run: slice, start: int = start, near: NeighborGraph = near) -> None:
            part = near.rows(run.start, run.stop)
            place = slice(start + run.start, start + run.stop)
            vectors = None if X is None else X[place]
            work(place, model._scores(part, vectors), part, vectors)

        run_slices(score, [run for run, _ in parts], n_jobs, told)


def neighbor_blocks(
    model: Any, X: Any, progress: Progress | None = None
) -> Iterator[tuple[int, NeighborGraph, Progress | None]]:
    """Neighbors of runs of queries, the first row of each, and progress of answering it.

    One run unless there are many queries or neighbors.
    """
    n, k = X.shape[0], model.n_neighbors_
    stages = Stages(progress, n)
    for start in range(0, n, max(1, _NEIGHBORS_AT_ONCE // k)):
        rows = min(max(1, _NEIGHBORS_AT_ONCE // k), n - start)
        answering = rows // (1 + ROWS_A_SEARCH) if model.needs.graph else rows
        near = _neighbors(model, X[start : start + rows], stages.next(rows - answering))
        yield start, near, stages.next(answering)


def _neighbors(model: Any, X: Any, progress: Progress | None = None) -> NeighborGraph:
    """The neighbors of queries, or a graph without any for a method that searches by itself."""
    items: Items = model._items
    k = model.n_neighbors_
    if model.needs.graph:
        return items.neighbors(X, k, n_jobs=check_n_jobs(model.n_jobs), progress=progress)
    return no_neighbors(X.shape[0], items.n_places)


def no_neighbors(n: int, n_base: int, recall: Recall | None = None) -> NeighborGraph:
    """A graph of n rows without any neighbors."""
    return NeighborGraph.unchecked(np.empty((n, 0), np.int32), np.empty((n, 0)), n_base, recall)


def all_scores(
    model: Any, X: Any, graph: NeighborGraph | None = None, progress: Progress | None = None
) -> LabelScores:
    """Scores of all queries at once."""
    n = X.shape[0] if graph is None else len(graph)
    if model.needs.dense_scores:
        shape = (n, model._items.labels.shape[1])
        check_dense_size("label_scores' result", shape, 8, "rank")
    found: dict[int, LabelScores] = {}

    def keep(place: slice, scores: LabelScores, *_: Any) -> None:
        found[place.start] = scores

    each_run(model, keep, X, graph, progress=progress)
    scores = LabelScores.joined([found[start] for start in sorted(found)])
    scores.label_names = model.label_names_
    return scores


def left_out_scores(model: Any, rows: Any = None) -> LabelScores:
    """Scores of training rows, all if None, each as if it were new."""
    items: Items = model._items
    if items.store is None:
        raise ValueError("this model was fitted from a graph without X and cannot search")
    n, q = len(items), items.labels.shape[1]
    chosen = np.arange(n) if rows is None else np.asarray(rows)
    is_known = chosen.dtype.kind in "iu" and np.all((chosen >= 0) & (chosen < n))
    if chosen.ndim != 1 or not (is_known or not len(chosen)):
        raise ArgumentError(f"rows must be positions of training rows, 0 to {n - 1}", "rows")
    if model.needs.dense_scores:
        check_dense_size("left_out_scores' result", (len(chosen), q), 8, "fewer rows")
    places = items.places[chosen]
    if model.needs.graph:
        k = min(model.n_neighbors_, n - 1)
        graph = items.left_out_neighbors(places, k, n_jobs=check_n_jobs(model.n_jobs))
    else:
        graph = no_neighbors(len(chosen), items.n_places)
    X = None if is_precomputed(items.metric) else items.store.take(places)
    scores: LabelScores = model._left_out_scores(graph, X, places)
    scores.label_names = model.label_names_
    return scores


def ranked(
    model: Any,
    X: Any,
    graph: NeighborGraph | None,
    top: int,
    progress: Progress | None = None,
    also: ScoredRun | None = None,
) -> RankedLabels:
    """The best labels of each query; `also` sees the same runs."""
    n = X.shape[0] if graph is None else len(graph)
    r = min(top, model._items.labels.shape[1])
    check_dense_size(f"the {r:,} best labels", (n, r), 12, "rank(top) of fewer")
    labels, best = np.empty((n, r), np.int32), np.empty((n, r))

    def rank(place: slice, scores: LabelScores, *more: Any) -> None:
        scores.fill_top(labels[place], best[place])
        if also is not None:
            also(place, scores, *more)

    each_run(model, rank, X, graph, progress=progress)
    return RankedLabels(labels, best, model.label_names_)


def label_sets(
    model: Any, X: Any, graph: NeighborGraph | None = None, progress: Progress | None = None
) -> Any:
    """The label sets of queries, in the form of the y given to fit."""
    items: Items = model._items
    if not (items.sparse_output or items.tags or is_one_column(model)):
        shape = (X.shape[0] if graph is None else len(graph), model._items.labels.shape[1])
        check_dense_size("predict's result", shape, 8, "fit with a sparse y, or rank")
    found: dict[int, Csr] = {}

    def decide(place: slice, scores: LabelScores, near: NeighborGraph, _: Any) -> None:
        found[place.start] = model._decide(scores, near)

    each_run(model, decide, X, graph, progress=progress)
    decided = sparse.vstack([found[start] for start in sorted(found)], format="csr")
    return in_the_form_of_y(model, decided)


def in_the_form_of_y(model: Any, decided: Csr) -> Any:
    """Label sets as `predict` gives them."""
    form: LabelForm = model._form
    if form.tags is not None:
        return form.tags.rows(decided, model.label_names_)
    if is_one_column(model):
        return model.classes_[decided.toarray().ravel()]
    return sparse.csr_array(decided) if form.sparse_output else decided.toarray()


def chances(model: Any, scores: LabelScores) -> Floats:
    """How likely all labels are by their scores, wherever the decisions are; shape (n, q)."""
    found: Floats = model._probabilities(scores.toarray(), np.arange(scores.shape[1]))
    return found


def probabilities(model: Any, X: Any, progress: Progress | None = None) -> Floats:
    """Probabilities of all labels, on the side of 1/2 that the decisions are on."""
    shape = (X.shape[0], model._items.labels.shape[1])
    check_dense_size("predict_proba's result", shape, 8, "label_scores or rank")
    result = np.empty(shape)

    def fill(place: slice, scores: LabelScores, graph: NeighborGraph, _: Any) -> None:
        decided = model._decide(scores, graph).toarray() == 1
        result[place] = beside_half(chances(model, scores), decided)

    each_run(model, fill, X, dense=True, progress=progress)
    return in_the_columns_of_classes(model, result)


def in_the_columns_of_classes(model: Any, found: Floats) -> Floats:
    """Probabilities as `predict_proba` gives them: strictly inside (0, 1), two where y was 1-d."""
    if is_one_column(model):
        found = np.hstack([1 - found, found])
    return np.clip(found, _SMALLEST, _LARGEST, out=found)


def is_one_column(model: Any) -> bool:
    """Whether y was 1-d."""
    return isinstance(model.classes_, np.ndarray)


def beside_half(probabilities: Floats, decided: Array) -> Floats:
    """Probabilities above 1/2 where it is decided so, and at most 1/2 elsewhere.

    Those that were on the other side come next to 1/2, by their own order; 1/2 itself, which
    scikit-learn rounds down, becomes the next greater number where it is decided so.
    """
    low, high = decided & (probabilities <= 0.5), ~decided & (probabilities > 0.5)
    step = np.where(probabilities[low] < 0.5, probabilities[low] * _NEXT, 0.0)
    probabilities[low] = np.maximum(0.5 + step, np.nextafter(0.5, 1))
    probabilities[high] = 0.5 - (1 - probabilities[high]) * _NEXT
    return probabilities
