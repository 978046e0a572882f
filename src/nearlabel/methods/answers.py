"""Answers of a fitted model to many queries: searched, scored and read in runs of rows.

Neither the neighbors nor the scores of all rows are held at once, unless they are the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.common.arrays import Array, Csr, Floats, Matrix, MatrixLike
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.threads import run_slices
from nearlabel.common.validation import (
    ArgumentError,
    check_dense_size,
    check_integer,
    check_n_jobs,
    check_same_length,
    checked_vectors,
)
from nearlabel.graph import NeighborGraph, Recall, as_query_graph
from nearlabel.labels.counts import blocks_of_votes
from nearlabel.labels.ranked_labels import RankedLabels
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.explanations import Explanation, explain
from nearlabel.methods.fitted_model import FittedModel, of_one_state, uses_vectors
from nearlabel.methods.label_forms import LabelForms, beside_half
from nearlabel.methods.retrieval import LabelGroup, label_groups
from nearlabel.search import is_precomputed

# To search a row takes about as long as to count or to rank the labels of so many. Progress is told
# in steps of equal length, so that the time left is about right.
ROWS_A_SEARCH = 8
# Of queries that are searched together: 48 MiB, and 40,000 queries of 100 neighbors, so that a
# search by lists has many queries for each list.
_NEIGHBORS_AT_ONCE = 2**22
_FEW_NEIGHBORS = 2**8  # of queries that are answered at once
_SCORES_AT_ONCE = 2**22  # of methods that score every label of every row
_Part = TypeVar("_Part")
# Takes the place, the scores, the neighbors and the vectors of a run of queries.
ScoredRun = Callable[[slice, LabelScores, NeighborGraph, Matrix], None]


class AnsweringModel(FittedModel):
    """What a fitted model says of queries, and of its own rows."""

    @of_one_state
    def label_scores(self, X: MatrixLike, *, progress: Progress | None = None) -> LabelScores:
        """Score every label for each row: what the method ranks by.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        LabelScores
            Of shape (n, q), without a dense matrix.
        """
        return self._all_scores(self._check_queries(X), None, progress)

    @of_one_state
    def left_out_scores(self, rows: npt.ArrayLike | None = None) -> LabelScores:
        """Score every label for training rows, each as if it were new.

        A row is left out of its own neighbors and, where the method has tables, out of these. Its
        place among the neighbors of other rows stays. So these scores are those that `label_scores`
        gives for rows like the training rows: what to choose thresholds, parameters or weights by.

        Parameters
        ----------
        rows : array-like of int, optional
            Positions of training rows among `ids_`; by default all.

        Returns
        -------
        LabelScores
            Of shape (n, q).
        """
        check_is_fitted(self)
        items = self.items_
        if items.store is None:
            raise ValueError("this model was fitted from a graph without X and cannot search")
        n, q = len(items), items.n_labels
        chosen = np.arange(n) if rows is None else np.asarray(rows)
        is_known = chosen.dtype.kind in "iu" and np.all((chosen >= 0) & (chosen < n))
        if chosen.ndim != 1 or not (is_known or not len(chosen)):
            raise ArgumentError(f"rows must be positions of training rows, 0 to {n - 1}", "rows")
        if self.needs.dense_scores:
            check_dense_size("left_out_scores' result", (len(chosen), q), 8, "fewer rows")
        places = items.places[chosen]
        if self.needs.graph:
            k, n_jobs = self.n_neighbors_, check_n_jobs(self.n_jobs)
            graph = items.left_out_neighbors(places, k, n_jobs=n_jobs)
        else:
            graph = no_neighbors(len(chosen), items.n_places)
        X = None if is_precomputed(items.metric) else items.store.take(places)
        scores = self._left_out_scores(graph, X, places)
        scores.label_names = self.label_names_
        return scores

    @of_one_state
    def scores_from_graph(
        self, graph: NeighborGraph | Csr, X: MatrixLike | None = None
    ) -> LabelScores:
        """Score every label for queries whose neighbors were searched before.

        Parameters
        ----------
        graph : NeighborGraph or sparse matrix, n rows over the training rows
            Of at least `n_neighbors` neighbors.
        X : vectors of the queries, optional
            Needed only by methods that look at vectors.

        Returns
        -------
        LabelScores
        """
        return self._all_scores(*self._check_neighbors(graph, X))

    @of_one_state
    def predict(self, X: MatrixLike, *, progress: Progress | None = None) -> Any:
        """Decide the labels of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        ndarray of int or csr_array, shape (n, q); tags of n rows; or ndarray of classes, shape (n,)
            In the form of the y given to fit.
        """
        return self._label_sets(self._check_queries(X), None, progress)

    @of_one_state
    def predict_from_graph(
        self,
        graph: NeighborGraph | Csr,
        X: MatrixLike | None = None,
        *,
        scores: LabelScores | None = None,
    ) -> Any:
        """Decide the labels of queries whose neighbors were searched before.

        Parameters
        ----------
        graph, X
            As in `scores_from_graph`.
        scores : LabelScores, optional
            What `scores_from_graph` gave for them, where that is known already.

        Returns
        -------
        As `predict`.
        """
        X, graph = self._check_neighbors(graph, X)
        if scores is None:
            return self._label_sets(X, graph)
        check_same_length(graph=len(graph), scores=len(scores))
        return self._in_form_of_y(self._decide(scores, graph))

    @of_one_state
    def predict_proba(self, X: MatrixLike, *, progress: Progress | None = None) -> Floats:
        """Probability of each label for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        ndarray of float, shape (n, q); (n, 2) where y was 1-d
            Strictly between 0 and 1, and above 1/2 for just the labels that `predict` gives: a
            probability on the other side becomes one next to 1/2, in the same order.
        """
        X = self._check_queries(X)
        shape = (X.shape[0], self.items_.n_labels)
        check_dense_size("predict_proba's result", shape, 8, "label_scores or rank")
        result = np.empty(shape)

        def fill(place: slice, scores: LabelScores, graph: NeighborGraph, _: Matrix) -> None:
            decided = self._decide(scores, graph).toarray() == 1
            result[place] = beside_half(chances(self, scores), decided)

        each_run(self, fill, X, dense=True, progress=progress)
        return self._in_columns_of_classes(result)

    @of_one_state
    def rank(
        self, X: MatrixLike, top: int = 10, *, progress: Progress | None = None
    ) -> RankedLabels:
        """Rank the labels of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
            Searched and ranked in blocks: neither the neighbors nor the scores of all rows are
            ever held at once, so a memory map of many rows works.
        top : int, default=10
            How many labels; all of them if there are fewer.
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        RankedLabels
            Best first; equal scores in the order of the columns. A sequence of rows, each a list of
            names and scores, and arrays of all rows.
        """
        return self._ranked(self._check_queries(X), None, top, progress)

    @of_one_state
    def rank_from_graph(
        self,
        graph: NeighborGraph | Csr,
        X: MatrixLike | None = None,
        top: int = 10,
        *,
        progress: Progress | None = None,
    ) -> RankedLabels:
        """Rank the labels of queries whose neighbors were searched before.

        Parameters
        ----------
        graph, X
            As in `scores_from_graph`. The scores of all rows are never held at once.
        top, progress
            As in `rank`.

        Returns
        -------
        RankedLabels
        """
        return self._ranked(*self._check_neighbors(graph, X), top, progress)

    @of_one_state
    def kneighbors(
        self,
        X: MatrixLike | None = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> Any:
        """Find the nearest training rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d), optional
            By default the training rows themselves, each left out of its own neighbors by its row
            number: an equal row stays a neighbor.
        n_neighbors : int, optional
            By default that of the model.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of float, shape (n, n_neighbors)
            Only if `return_distance`.
        indices : ndarray of int, shape (n, n_neighbors)
            Training rows, nearest first, ties by row. They are numbered in order of arrival, and
            forgotten ones keep their numbers until `compact`.
        """
        check_is_fitted(self)
        X = None if X is None else self._check_queries(X)
        most = len(self.items_) - (X is None)
        k = min(self.n_neighbors_, most) if n_neighbors is None else n_neighbors
        graph = self.items_.neighbors(X, k, n_jobs=check_n_jobs(self.n_jobs))
        return (graph.distances, graph.indices) if return_distance else graph.indices

    @of_one_state
    def explain(
        self, x: MatrixLike, top: int = 5, *, labels: int | str | Sequence[int | str] | None = None
    ) -> Explanation | list[Explanation]:
        """Say why an item, or each of several, gets its labels.

        Parameters
        ----------
        x : array-like, sparse matrix or DataFrame, shape (d,) or (n, d)
            An item, or several, which are searched together.
        top : int, default=5
            How many of the best labels of each.
        labels : int, str or sequence of these, optional
            Columns or names of labels to explain instead, such as one that was expected and is
            missing.

        Returns
        -------
        Explanation, or list of n Explanation for more than one row
            For each label its score, the numbers that make it, the neighbors that carry it, and
            what the score would be without each of them.
        """
        return explain(self, self._check_queries(as_one_row(x)), top, labels)

    @of_one_state
    def retrieve(self, X: MatrixLike, top: int = 5, per_label: int = 8) -> list[list[LabelGroup]]:
        """For each of the best labels of each row, find the nearest items that carry it.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        top : int, default=5
            Labels of each row.
        per_label : int, default=8
            Items of each label, from all training items; fewer where fewer carry it.

        Returns
        -------
        list of n lists of LabelGroup
        """
        top = check_integer(top, "top", low=1)
        per_label = check_integer(per_label, "per_label", low=1)
        X = self._check_queries(X)
        groups: list[list[LabelGroup]] = [[] for _ in range(X.shape[0])]

        def look(place: slice, scores: LabelScores, graph: NeighborGraph, queries: Matrix) -> None:
            labels, values = scores.top(top)
            for row in range(len(graph)):
                near, x = graph.rows(row, row + 1), queries[row : row + 1]
                groups[place.start + row] = label_groups(
                    self, labels[row], values[row], near, x, per_label
                )

        each_run(self, look, X)
        return groups

    label_matrix = of_one_state(LabelForms.label_matrix)
    score = of_one_state(LabelForms.score)

    def __sklearn_is_fitted__(self) -> bool:
        return "items_" in vars(self)

    def _check_queries(self, X: MatrixLike) -> Matrix:
        """Vectors of queries, checked."""
        check_is_fitted(self)
        return checked_vectors(partial(validate_data, self, reset=False), X, "X")

    def _check_neighbors(
        self, graph: NeighborGraph | Csr, X: MatrixLike | None
    ) -> tuple[Matrix, NeighborGraph]:
        """Vectors of queries and their graph, checked; only the neighbors in use."""
        check_is_fitted(self)
        graph = as_query_graph(graph, self._labels.shape[0])
        if X is not None:
            X = self._check_queries(X)
            check_same_length(graph=len(graph), X=X.shape[0])
        elif uses_vectors(self):
            raise ValueError(f"X is missing: {type(self).__name__} needs the vectors of queries")
        return X, first_neighbors(graph, self.n_neighbors_)

    def _all_scores(
        self, X: Matrix, graph: NeighborGraph | None, progress: Progress | None = None
    ) -> LabelScores:
        """Scores of all queries at once."""
        if self.needs.dense_scores:
            n = X.shape[0] if graph is None else len(graph)
            check_dense_size("label_scores' result", (n, self.items_.n_labels), 8, "rank")
        parts = _of_each_run(self, lambda scores, _: scores, X, graph, progress)
        scores = LabelScores.joined(parts)
        scores.label_names = self.label_names_
        return scores

    def _ranked(
        self,
        X: Matrix,
        graph: NeighborGraph | None,
        top: int,
        progress: Progress | None = None,
        sizes: Array | None = None,
    ) -> RankedLabels:
        """The best labels of each query; `sizes`, if given, gets how many are predicted."""
        r = min(check_integer(top, "top", low=1), self.items_.n_labels)
        n = X.shape[0] if graph is None else len(graph)
        check_dense_size(f"the {r:,} best labels", (n, r), 12, "rank(top) of fewer")
        labels, best = np.empty((n, r), np.int32), np.empty((n, r))

        def rank(place: slice, scores: LabelScores, near: NeighborGraph, _: Matrix) -> None:
            scores.fill_top(labels[place], best[place])
            if sizes is not None:
                sizes[place] = np.diff(self._decide(scores, near).indptr)

        each_run(self, rank, X, graph, progress=progress)
        return RankedLabels(labels, best, self.label_names_)

    def _label_sets(
        self, X: Matrix, graph: NeighborGraph | None, progress: Progress | None = None
    ) -> Any:
        """The label sets of queries, in the form of the y given to fit."""
        if not (self._form.is_sparse or self._form.tags or self._is_one_column):
            shape = (X.shape[0] if graph is None else len(graph), self.items_.n_labels)
            check_dense_size("predict's result", shape, 8, "fit with a sparse y, or rank")
        parts = _of_each_run(self, self._decide, X, graph, progress)
        return self._in_form_of_y(sparse.vstack(parts, format="csr"))


def each_run(
    model: FittedModel,
    work: ScoredRun,
    X: Matrix,
    graph: NeighborGraph | None = None,
    *,
    dense: bool = False,
    progress: Progress | None = None,
) -> None:
    """Call `work` with runs of queries, in threads: never the scores of all rows at once.

    The neighbors are searched unless they are given; then X may be None. `dense` says that the
    scores will be made dense, which those of some methods are anyway.
    """
    needs, Y = model.needs, model.items_.labels
    if graph is None and progress is None and X.shape[0] * model.n_neighbors_ <= _FEW_NEIGHBORS:
        near = _neighbors(model, X)  # too little to divide
        work(slice(0, X.shape[0]), model._scores(near, X), near, X)
        return
    # A method that reads no graph searches by itself, in threads of its own.
    n_jobs = check_n_jobs(model.n_jobs) if needs.graph else 1
    blocks = neighbor_blocks(model, X, progress) if graph is None else [(0, graph, progress)]
    for start, near, answered in blocks:
        if dense or needs.dense_scores:
            parts = near.blocks(max(1, _SCORES_AT_ONCE // Y.shape[1]))
        else:
            parts = blocks_of_votes(near, Y)

        def score(run: slice, start: int = start, near: NeighborGraph = near) -> None:
            part = near.rows(run.start, run.stop)
            place = slice(start + run.start, start + run.stop)
            vectors = None if X is None else X[place]
            work(place, model._scores(part, vectors), part, vectors)

        run_slices(score, [run for run, _ in parts], n_jobs, answered)


def _of_each_run(
    model: FittedModel,
    read: Callable[[LabelScores, NeighborGraph], _Part],
    X: Matrix,
    graph: NeighborGraph | None,
    progress: Progress | None,
) -> list[_Part]:
    """What `read` says of the scores and neighbors of each run of queries, in their order."""
    parts: dict[int, _Part] = {}

    def note(place: slice, scores: LabelScores, near: NeighborGraph, _: Matrix) -> None:
        parts[place.start] = read(scores, near)

    each_run(model, note, X, graph, progress=progress)
    return [parts[start] for start in sorted(parts)]


def neighbor_blocks(
    model: FittedModel, X: Matrix, progress: Progress | None = None
) -> Iterator[tuple[int, NeighborGraph, Progress | None]]:
    """Neighbors of runs of queries, the first row of each, and progress of answering it.

    One run unless there are many queries or neighbors.
    """
    n, step = X.shape[0], max(1, _NEIGHBORS_AT_ONCE // model.n_neighbors_)
    stages = Stages(progress, n)
    for start in range(0, n, step):
        rows = min(step, n - start)
        answering = rows // (1 + ROWS_A_SEARCH) if model.needs.graph else rows
        near = _neighbors(model, X[start : start + rows], stages.next(rows - answering))
        yield start, near, stages.next(answering)


def _neighbors(model: FittedModel, X: Matrix, progress: Progress | None = None) -> NeighborGraph:
    """The neighbors of queries, or a graph without any for a method that searches by itself."""
    items, k = model.items_, model.n_neighbors_
    if model.needs.graph:
        n_jobs = check_n_jobs(model.n_jobs)
        return items.search_index().graph(k, X, n_jobs=n_jobs, progress=progress)
    return no_neighbors(X.shape[0], items.n_places)


def no_neighbors(n: int, n_base: int, recall: Recall | None = None) -> NeighborGraph:
    """A graph of n rows without any neighbors."""
    return NeighborGraph.unchecked(np.empty((n, 0), np.int32), np.empty((n, 0)), n_base, recall)


def first_neighbors(graph: NeighborGraph, k: int) -> NeighborGraph:
    """The first k neighbors of a graph, or an error if it has fewer."""
    if graph.k < k:
        raise ValueError(f"graph holds {graph.k} neighbors a row; n_neighbors={k} are needed")
    return graph.head(k)


def chances(model: FittedModel, scores: LabelScores) -> Floats:
    """How likely all labels are by their scores, wherever the decisions are; shape (n, q)."""
    return model._probabilities(scores.toarray(), np.arange(scores.shape[1]))


def chances_of(model: FittedModel, scores: Floats, labels: Array) -> Floats:
    """How likely labels are by their scores, wherever the decisions are."""
    return model._probabilities(scores, labels)


def as_one_row(x: Any) -> MatrixLike:
    """A single item given as a 1-d row, as a matrix of one row; anything else unchanged."""
    if hasattr(x, "iloc") and x.ndim == 1:  # a pandas Series: keep the names of the features
        return x.to_frame().T
    if sparse.issparse(x):
        return x.reshape((1, -1)).tocsr() if x.ndim == 1 else x
    return np.reshape(x, (1, -1)) if np.ndim(x) == 1 else x
