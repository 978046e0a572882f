"""scikit-learn's contract, once, for every neighbor method: answers in the form of y.

Learning is in `fitting.py`; what a model says about its answers is in `explaining.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.threads import run_slices
from nearlabel.common.validation import (
    check_dense_size,
    check_integer,
    check_n_jobs,
    check_same_length,
    checked_vectors,
)
from nearlabel.graph import NeighborGraph, as_query_graph
from nearlabel.labels.counts import blocks_of_votes
from nearlabel.labels.scores import LabelScores, RankedLabels
from nearlabel.methods.fitting import ROWS_A_SEARCH, LearningModel, needed_neighbors
from nearlabel.search import build_index, check_search

# Of queries that are searched together: 48 MiB, and 40,000 queries of 100 neighbors, so that a
# search by lists has many queries for each list.
_NEIGHBORS_AT_ONCE = 2**22
_SCORES_AT_ONCE = 2**22  # of methods that score every label of every row
# Takes the place, the scores, the neighbors and the vectors of a run of queries.
ScoredRun = Callable[[slice, LabelScores, NeighborGraph, Any], None]
_NEXT = 2.0**-20  # how near to 1/2 a probability is told that the decision does not follow
# The floats next to 0 and 1: predict_proba stays strictly inside (0, 1).
_SMALLEST, _LARGEST = np.finfo(np.float64).tiny, 1 - 2.0**-53


class NeighborModel(LearningModel):
    """Base of the methods that read labels off a neighbor graph: learning and answering."""

    def label_scores(self, X: Any, *, progress: Progress | None = None) -> LabelScores:
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
        X = self._check_queries(X)
        self._check_score_size(X.shape[0])
        return self._all_scores(X, progress=progress)

    def _all_scores(
        self, X: Any, graph: NeighborGraph | None = None, progress: Progress | None = None
    ) -> LabelScores:
        """Scores of all queries at once; see `_each_run`."""
        found: dict[int, LabelScores] = {}

        def keep(place: slice, scores: LabelScores, *_: Any) -> None:
            found[place.start] = scores

        self._each_run(keep, X, graph, progress=progress)
        if not found:  # no queries
            return self._scores(self._graph_of(X) if graph is None else graph, X)
        return LabelScores.joined([found[start] for start in sorted(found)])

    def _check_score_size(self, n: int) -> None:
        """Refuse dense scores of n rows that would not fit."""
        if self._dense_scores:
            shape = (n, self._labels.shape[1])
            check_dense_size("label_scores' result", shape, 8, "rank")

    def scores_from_graph(self, graph: Any, X: Any = None) -> LabelScores:
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
        graph, X = self._given_neighbors(graph, X)
        self._check_score_size(len(graph))
        return self._all_scores(X, graph)

    def _given_neighbors(self, graph: Any, X: Any) -> tuple[NeighborGraph, Any]:
        """A graph of queries and their vectors, checked; only the neighbors in use."""
        check_is_fitted(self)
        graph = as_query_graph(graph, self._labels.shape[0])
        if X is not None:
            X = self._check_queries(X)
            check_same_length(graph=len(graph), X=X.shape[0])
        elif self._needs_vectors:
            raise ValueError(f"X is missing: {type(self).__name__} needs the vectors of queries")
        return needed_neighbors(graph, self.n_neighbors_), X

    def predict_from_graph(
        self, graph: Any, X: Any = None, *, scores: LabelScores | None = None
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
        graph, X = self._given_neighbors(graph, X)
        if scores is not None:
            check_same_length(graph=len(graph), scores=len(scores))
            return self._answer(self._decide(scores, graph))
        self._check_answer_size(len(graph))
        return self._answer(self._decided(X, graph))

    def predict(self, X: Any, *, progress: Progress | None = None) -> Any:
        """Decide the labels of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        ndarray of int or csr_array, shape (n, q); or ndarray of classes, shape (n,)
            In the form of the y given to fit.
        """
        X = self._check_queries(X)
        self._check_answer_size(X.shape[0])
        return self._answer(self._decided(X, progress=progress))

    def _check_answer_size(self, n: int) -> None:
        """Refuse dense label sets of n rows that would not fit."""
        if not (self._sparse_output or self._one_column):
            shape = (n, self._labels.shape[1])
            check_dense_size("predict's result", shape, 8, "fit with a sparse y, or rank")

    def _decided(
        self, X: Any, graph: NeighborGraph | None = None, progress: Progress | None = None
    ) -> Csr:
        """Label sets of queries, by runs of rows; see `_each_run`."""
        found: dict[int, Csr] = {}

        def decide(place: slice, scores: LabelScores, near: NeighborGraph, _: Any) -> None:
            found[place.start] = self._decide(scores, near)

        self._each_run(decide, X, graph, progress=progress)
        return sparse.vstack([found[start] for start in sorted(found)], format="csr")

    def _answer(self, decided: Csr) -> Any:
        """Label sets in the form of the y given to fit."""
        if self._one_column:
            return self.classes_[decided.toarray().ravel()]
        return sparse.csr_array(decided) if self._sparse_output else decided.toarray()

    def predict_proba(self, X: Any, *, progress: Progress | None = None) -> Floats:
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
            probability on the other side is told as one next to 1/2, in the same order.
        """
        X = self._check_queries(X)
        shape = (X.shape[0], self._labels.shape[1])
        check_dense_size("predict_proba's result", shape, 8, "label_scores or rank")
        result = np.empty(shape)

        def fill(place: slice, scores: LabelScores, graph: NeighborGraph, _: Any) -> None:
            decided = self._decide(scores, graph).toarray() == 1
            result[place] = _beside_half(self._probabilities(scores.toarray()), decided)

        self._each_run(fill, X, dense=True, progress=progress)
        if self._one_column:
            result = np.hstack([1 - result, result])
        return np.clip(result, _SMALLEST, _LARGEST, out=result)

    def rank(self, X: Any, top: int = 10, *, progress: Progress | None = None) -> RankedLabels:
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
            Best first; equal scores in the order of the columns.
        """
        top = check_integer(top, "top", low=1)
        X = self._check_queries(X)
        self._check_rank_size(X.shape[0], top)
        return self._rank(X.shape[0], X, None, top, progress)

    def rank_from_graph(
        self, graph: Any, X: Any = None, top: int = 10, *, progress: Progress | None = None
    ) -> RankedLabels:
        """Rank the labels of queries whose neighbors were searched before.

        Parameters
        ----------
        graph, X
            As in `scores_from_graph`. The scores of all rows are never held at once.
        top : int, default=10
            How many labels; all of them if there are fewer.
        progress : callable, optional
            Called with (rows done, rows in all).

        Returns
        -------
        RankedLabels
            Best first; equal scores in the order of the columns.
        """
        top = check_integer(top, "top", low=1)
        graph, X = self._given_neighbors(graph, X)
        self._check_rank_size(len(graph), top)
        return self._rank(len(graph), X, graph, top, progress)

    def _check_rank_size(self, n: int, top: int) -> None:
        r = min(top, self._labels.shape[1])
        check_dense_size(f"the {r:,} best labels", (n, r), 12, "rank(top) of fewer")

    def _rank(
        self, n: int, X: Any, graph: NeighborGraph | None, top: int, progress: Progress | None
    ) -> RankedLabels:
        r = min(top, self._labels.shape[1])
        labels, best = np.empty((n, r), np.int32), np.empty((n, r))

        def rank(place: slice, scores: LabelScores, *_: Any) -> None:
            labels[place], best[place] = scores.top(r)

        self._each_run(rank, X, graph, progress=progress)
        return RankedLabels(labels, best, self.label_names_)

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
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
            Training rows, nearest first, ties by row.
        """
        check_is_fitted(self)
        graph = self._neighbors_of(None if X is None else self._check_queries(X), n_neighbors)
        return (graph.distances, graph.indices) if return_distance else graph.indices

    def _check_queries(self, X: Any) -> Any:
        """Vectors of queries, checked."""
        check_is_fitted(self)
        return checked_vectors(partial(validate_data, self, reset=False), X, "X")

    def _neighbors_of(
        self, X: Any, k: int | None = None, progress: Progress | None = None
    ) -> NeighborGraph:
        """Neighbors of checked queries among the training rows; of these rows where X is None."""
        if self._store is None:
            raise ValueError(
                "this model was fitted from a graph without X and cannot search; "
                "give X to fit_graph, or use scores_from_graph"
            )
        if self._index is None:  # the model came from a file or a graph
            self._index = build_index(self._store.vectors, self._metric, self._search)
        n = self._labels.shape[0]
        asked, most = (n, n - 1) if X is None else (X.shape[0], n)
        k = min(self.n_neighbors_, most) if k is None else k
        k = check_integer(k, "n_neighbors", low=1, high=most)
        instead = "rank or predict, which search block by block"
        check_dense_size("the neighbors of all rows", (asked, k), 12, instead)
        how: dict[str, Any] = {"n_jobs": check_n_jobs(self.n_jobs)}
        if progress is not None:
            how["progress"] = progress
        return self._index.graph(k, X, **how)

    def _search_by(self, search: Any) -> None:
        """Search in another way from now on."""
        check_search(search)
        self._search, self._index = search, None

    def _use_threads(self, n_jobs: int) -> None:
        """Answer with so many threads from now on."""
        self.n_jobs = n_jobs

    def _graph_of(self, X: Any, progress: Progress | None = None) -> NeighborGraph:
        """The graph of checked queries that `_scores` reads; empty where it reads none."""
        if self._needs_graph:
            return self._neighbors_of(X, progress=progress)
        shape = (X.shape[0], 0)
        return NeighborGraph.unchecked(
            np.empty(shape, np.int32), np.empty(shape), self._labels.shape[0]
        )

    def _each_run(
        self,
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
        q = self._labels.shape[1]
        # A method that reads no graph searches by itself, in threads of its own.
        n_jobs = check_n_jobs(self.n_jobs) if self._needs_graph else 1
        if graph is None:
            blocks = self._neighbor_blocks(X, progress)
        else:
            blocks = iter([(0, graph, progress)])
        for start, near, told in blocks:
            if dense or self._dense_scores:
                parts = near.blocks(max(1, _SCORES_AT_ONCE // q))
            else:
                parts = blocks_of_votes(near, self._labels)

            def score(run: slice, start: int = start, near: NeighborGraph = near) -> None:
                part = near.rows(run.start, run.stop)
                place = slice(start + run.start, start + run.stop)
                vectors = None if X is None else X[place]
                work(place, self._scores(part, vectors), part, vectors)

            run_slices(score, [run for run, _ in parts], n_jobs, told)

    def _neighbor_blocks(
        self, X: Any, progress: Progress | None = None
    ) -> Iterator[tuple[int, NeighborGraph, Progress | None]]:
        """Neighbors of runs of queries, the first row of each, and progress of answering it.

        One run unless there are many queries or neighbors.
        """
        n = X.shape[0]
        stages = Stages(progress, n)
        size = max(1, _NEIGHBORS_AT_ONCE // self.n_neighbors_)
        for start in range(0, n, size):
            rows = min(size, n - start)
            answering = rows // (1 + ROWS_A_SEARCH) if self._needs_graph else rows
            near = self._graph_of(X[start : start + rows], stages.next(rows - answering))
            yield start, near, stages.next(answering)

    @property
    def _one_column(self) -> bool:
        """Whether y was 1-d."""
        return isinstance(self.classes_, np.ndarray)


def _beside_half(probabilities: Floats, decided: Array) -> Floats:
    """Probabilities above 1/2 where it is decided so, and at most 1/2 elsewhere.

    Those that were on the other side come next to 1/2, by their own order; 1/2 itself, which
    scikit-learn rounds down, becomes the next greater number where it is decided so.
    """
    low, high = decided & (probabilities <= 0.5), ~decided & (probabilities > 0.5)
    step = np.where(probabilities[low] < 0.5, probabilities[low] * _NEXT, 0.0)
    probabilities[low] = np.maximum(0.5 + step, np.nextafter(0.5, 1))
    probabilities[high] = 0.5 - (1 - probabilities[high]) * _NEXT
    return probabilities
