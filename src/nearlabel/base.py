"""scikit-learn's contract, once, for every neighbor method.

A method says what it learns from the graph of the training rows (`_learn`) and how it scores labels
from the graph of queries (`_scores`). Validation, searching and answers in the form of y are here;
what a model says about its answers is in `explaining.py`. A hook gets all that any method needs of
it, and most methods need less.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.arrays import Array, Csr, Floats
from nearlabel.decisions import labels_from
from nearlabel.graph import NeighborGraph, as_query_graph, as_self_graph
from nearlabel.progress import Progress, Stages
from nearlabel.scores import LabelScores, RankedLabels
from nearlabel.search import (
    Index,
    VectorStore,
    build_index,
    check_metric,
    check_search,
    is_precomputed,
)
from nearlabel.search.threads import run_slices
from nearlabel.statistics import blocks_of_votes
from nearlabel.storing import StoredModel
from nearlabel.validation import (
    Labels,
    check_dense_size,
    check_integer,
    check_labels,
    check_n_jobs,
    check_same_length,
    checked_vectors,
)

_FEATURES = ("n_features_in_", "feature_names_in_")  # set by scikit-learn's validation
# Of queries that are searched together: 48 MiB, and 40,000 queries of 100 neighbors, so that a
# search by lists has many queries for each list.
_NEIGHBORS_AT_ONCE = 2**22
_SCORES_AT_ONCE = 2**22  # of methods that score every label of every row
# To search a row takes about as long as to count or to rank the labels of so many. Progress tells
# steps of equal length, so that the time left is about right.
_ROWS_A_SEARCH = 8
# Takes the place, the scores, the neighbors and the vectors of a run of queries.
ScoredRun = Callable[[slice, LabelScores, NeighborGraph, Any], None]
# The scores of `_left_out_scores` for a graph, labels, and rising numbers of neighbors. Each are
# there until the next are asked for.
Sweep = Callable[[NeighborGraph, Csr, Sequence[int]], Iterator[LabelScores]]
# What `_training_rows` says of a method that learns nothing from neighbors.
NO_ROWS = np.empty(0, np.int64)
_NEXT = 2.0**-20  # how near to 1/2 a probability is told that the decision does not follow
# The floats next to 0 and 1: predict_proba stays strictly inside (0, 1).
_SMALLEST, _LARGEST = np.finfo(np.float64).tiny, 1 - 2.0**-53


class NeighborModel(StoredModel, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the methods that read labels off a neighbor graph: learning and answering."""

    n_neighbors: int | None
    metric: Any
    search: Any
    n_jobs: int | None

    _all_rows_allowed = False  # whether n_neighbors=None means all training rows
    _dense_scores = False  # whether every label has a score of its own in every row
    _needs_graph = True  # whether `_scores` reads the neighbors that it is given
    # Whether it learns how often labels are among the neighbors of training rows. Leave-one-out
    # does not take a row out of those counts.
    _learns_from_counts = False

    @property
    def _needs_vectors(self) -> bool:
        """Whether the method looks at vectors, not at the graph alone."""
        return False

    def _knowing(self, known: dict[Any, Any], X: Any) -> Self:
        """Give this model, or one that learns the same from X with less work.

        What is costly and the same for several models on X, whatever their neighbors, is kept in
        `known` by the first of them.
        """
        return self

    def _training_rows(self, n: int) -> Array | None:
        """Of n training rows those whose neighbors `_learn` wants to see; None for all."""
        return None

    def _check_size(self, Y: Csr, X: Any) -> None:
        """Refuse training data that the method has no room for, before anything is searched.

        Y has the labels and X the vectors, or None, of the training rows.
        """
        return

    @abstractmethod
    def _learn(
        self, graph: NeighborGraph, Y: Csr, X: Any, rows: Array, progress: Progress | None
    ) -> None:
        """Learn from the k neighbors of the training rows `rows`, each row left out of its own.

        Y and X have the labels and the vectors of all training rows; X is None where the model was
        fitted from a graph alone. Where this takes long, `progress` is told (steps done, steps in
        all).
        """

    @abstractmethod
    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        """Score the labels of queries from their k neighbors among the training rows.

        Called for runs of rows, by several threads: it must not change the model.
        """

    def _left_out_scores(self, graph: NeighborGraph, X: Any, rows: Array) -> LabelScores:
        """Score the training rows `rows`, with vectors X, as if each were new.

        The graph leaves each row out of its own neighbors; a method with tables takes the row's own
        entry out of them, too. Its place among the neighbors of other rows stays.
        """
        return self._scores(graph, X)

    def _sweep(self, Y: Csr, most: int) -> tuple[Any, Sweep] | None:
        """How to score all training rows, left out, for many numbers of neighbors at little cost.

        For methods that have a way, and whose `_decide` asks nothing of a fit: a key that models
        share which differ in `n_neighbors` only, and the sweep of one of them, which serves all.
        Their labels are Y, and `most` is the greatest number of neighbors.
        """
        return None

    def _decide(self, scores: LabelScores, graph: NeighborGraph) -> Csr:
        """Label sets, shape (n, q): by default where the score is at least 1/2."""
        return labels_from(scores, 0.5)

    def _probabilities(self, scores: Floats) -> Floats:
        """Probabilities of a dense matrix of scores, one column a label; by default the scores.

        `predict_proba` moves them to the side of 1/2 that the decision is on.
        """
        return scores

    def _check_parameters(self) -> None:
        """Refuse parameters out of range; methods add their own."""
        if not (self.n_neighbors is None and self._all_rows_allowed):
            check_integer(self.n_neighbors, "n_neighbors", low=1)
        check_n_jobs(self.n_jobs)
        if self._needs_vectors and is_precomputed(self.metric):
            raise ValueError(
                f"metric='precomputed': {type(self).__name__} needs the vectors themselves, "
                "not only distances"
            )

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        label_names: Any = None,
        ids: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Search the neighbors of the training rows and learn from them.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
            Training vectors; distances among them where ``metric="precomputed"``. Kept, not
            copied: do not write to them afterwards.
        y : array-like, sparse matrix or DataFrame of 0 and 1, shape (n, q)
            Labels: column l of row i is 1 where item i carries label l. Or 1-d with two classes.
        label_names : sequence of str, shape (q,), optional
            Names of the labels; by default the columns of y, where it is a DataFrame.
        ids : sequence of str or int, shape (n,), optional
            Names of the rows, each another, by which `explain` and `retrieve` speak of them; by
            default 0, 1, 2 …
        progress : callable, optional
            Called with (steps done, steps in all): a step is a row that was searched, or some that
            were learned from.

        Returns
        -------
        self
        """
        self._check_parameters()
        labels = check_labels(y, label_names)
        X, features = self._check_training(X)
        check_same_length(X=X.shape[0], y=labels.matrix.shape[0])
        self._check_size(labels.matrix, X)
        store = VectorStore(X, ids)
        k = self._usable_neighbors(X.shape[0])
        index = build_index(X, self.metric, self.search)
        rows = self._training_rows(X.shape[0])
        searching = X.shape[0] if rows is None else len(rows)
        learning = 1 + searching // _ROWS_A_SEARCH
        stages = Stages(progress, searching + learning)
        told = stages.next(searching)
        graph = self._left_out_graph(index, X, min(k, X.shape[0] - 1), rows, told)
        told = stages.next(learning)
        return self._adopt(graph, k, rows, labels, store, index, features, told)

    def fit_graph(
        self,
        graph: Any,
        y: Any,
        X: Any = None,
        *,
        label_names: Any = None,
        ids: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from neighbors that were searched before.

        Parameters
        ----------
        graph : NeighborGraph or sparse matrix
            At least `n_neighbors` neighbors of each training row among the others: from
            `neighbor_graph`, or a graph in scikit-learn's precomputed form.
        y, label_names : labels and their names, as in `fit`
        X : training vectors, optional
            Needed by what searches later: `predict` and the like on new vectors; without them the
            model answers by `scores_from_graph`. A few methods look at vectors and say so where
            they are missing.
        ids : names of the rows of X, as in `fit`
        progress : callable, optional
            Called with (steps done, steps in all).

        Returns
        -------
        self
        """
        self._check_parameters()
        labels = check_labels(y, label_names)
        graph = as_self_graph(graph)
        check_same_length(graph=len(graph), y=labels.matrix.shape[0])
        n = len(graph)
        k = self._usable_neighbors(n)
        graph, rows = _head(graph, min(k, n - 1)), self._training_rows(n)
        if rows is not None:
            graph = graph.take(rows)
        told = Stages(progress, n).next(n)
        if X is None:
            if self._needs_vectors:
                raise ValueError(
                    f"X is missing: {type(self).__name__} needs the vectors, not only a graph"
                )
            self._check_size(labels.matrix, None)
            return self._adopt(graph, k, rows, labels, None, None, {}, told)
        X, features = self._check_training(X)
        check_same_length(X=X.shape[0], y=labels.matrix.shape[0])
        self._check_size(labels.matrix, X)
        check_metric(self.metric)
        check_search(self.search)
        # The index is built when something is searched.
        store = VectorStore(X, ids)
        return self._adopt(graph, k, rows, labels, store, None, features, told)

    def _check_training(self, X: Any) -> tuple[Any, dict[str, Any]]:
        """Training vectors, checked, and what scikit-learn keeps of their features.

        It is noted on a copy: a fit that is refused later leaves this model as it was.
        """
        noted = copy(self)
        X = checked_vectors(partial(validate_data, noted), X, "X")
        return X, {name: vars(noted)[name] for name in _FEATURES if name in vars(noted)}

    def _usable_neighbors(self, n: int) -> int:
        """Neighbors of a query among n training rows: `n_neighbors`, n - 1 at most; n for None."""
        check_two_rows(n)
        if self.n_neighbors is None:
            return n
        if self.n_neighbors > n - 1:
            warnings.warn(
                f"n_neighbors={self.n_neighbors} is more than the {n - 1} other training rows; "
                f"using {n - 1}",
                UserWarning,
                stacklevel=3,
            )
        return min(int(self.n_neighbors), n - 1)

    def _left_out_graph(
        self, index: Index, X: Any, k: int, rows: Array | None, progress: Progress | None
    ) -> NeighborGraph:
        """Neighbors of some training rows, all if None, each left out of its own."""
        asked = X.shape[0] if rows is None else len(rows)
        check_dense_size("the neighbors of the training rows", (asked, k), 12, "fewer n_neighbors")
        how: dict[str, Any] = {"n_jobs": check_n_jobs(self.n_jobs)}
        if progress is not None:
            how["progress"] = progress
        if rows is None:
            return index.graph(k, **how)
        if not len(rows):
            return NeighborGraph.unchecked(np.empty((0, k), np.int32), np.empty((0, k)), X.shape[0])
        if is_precomputed(self.metric):  # it may hold no distance of a row to itself
            return index.graph(k, **how).take(rows)
        return index.graph(k + 1, X[rows], **how).without(rows)

    def _adopt(
        self,
        graph: NeighborGraph,
        k: int,
        rows: Array | None,
        labels: Labels,
        store: VectorStore | None,
        index: Index | None,
        features: dict[str, Any],
        progress: Progress | None,
    ) -> Self:
        """Keep the training items and learn, after all has been checked and searched.

        The graph has the neighbors of `rows`, of all training rows if None. All is done on a copy:
        a fit that fails or is interrupted leaves this model as it was.
        """
        model = copy(self)
        for name in _FEATURES:
            model.__dict__.pop(name, None)
        model.__dict__.update(features)
        model.n_neighbors_ = k
        model.classes_ = labels.classes
        model.label_names_ = labels.names
        model._sparse_output = labels.sparse
        model._labels, model._by_label = labels.matrix, None
        model._store = store
        model._index, model._metric, model._search = index, self.metric, self.search
        model.search_recall_ = graph.recall
        rows = np.arange(labels.matrix.shape[0]) if rows is None else rows
        vectors = None if store is None else store.vectors
        model._learn(graph, model._labels, vectors, rows, progress)
        if progress is not None:
            progress(1, 1)
        self.__dict__ = model.__dict__
        return self

    def _items(self) -> dict[str, Any]:
        """What is kept of the training items, whatever a method learned from them."""
        kept = ["n_neighbors_", "classes_", "label_names_", "search_recall_", *_FEATURES]
        kept += ["_labels", "_by_label", "_sparse_output", "_store", "_index", "_metric", "_search"]
        return {name: vars(self)[name] for name in kept if name in vars(self)}

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
        return _head(graph, self.n_neighbors_), X

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
            answering = rows // (1 + _ROWS_A_SEARCH) if self._needs_graph else rows
            near = self._graph_of(X[start : start + rows], stages.next(rows - answering))
            yield start, near, stages.next(answering)

    @property
    def _one_column(self) -> bool:
        """Whether y was 1-d."""
        return isinstance(self.classes_, np.ndarray)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.positive_only = tags.input_tags.pairwise  # distances
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags


def check_two_rows(n: int) -> None:
    """Refuse training rows that have no others among them."""
    if n < 2:
        raise ValueError("X has 1 sample; neighbors among the training rows need at least 2")


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


def _head(graph: NeighborGraph, k: int) -> NeighborGraph:
    if graph.k < k:
        raise ValueError(f"graph holds {graph.k} neighbors a row; n_neighbors={k} are needed")
    return graph.head(k)
