"""Learning from a neighbor graph, once for every method, and what a method says of itself.

A method says what it learns from the graph of the training rows (`_learn`) and how it scores labels
from the graph of queries (`_scores`). A hook gets all that any method needs of it, and most methods
need less. Answers are in `base.py`.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import validate_data

from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import (
    Labels,
    check_dense_size,
    check_integer,
    check_labels,
    check_n_jobs,
    check_same_length,
    checked_vectors,
)
from nearlabel.graph import NeighborGraph, as_self_graph
from nearlabel.labels.decisions import labels_from
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.storing import StoredModel
from nearlabel.search import (
    Index,
    VectorStore,
    build_index,
    check_metric,
    check_search,
    is_precomputed,
)

_FEATURES = ("n_features_in_", "feature_names_in_")  # set by scikit-learn's validation
# To search a row takes about as long as to count or to rank the labels of so many. Progress tells
# steps of equal length, so that the time left is about right.
ROWS_A_SEARCH = 8
# The scores of `_left_out_scores` for a graph, labels, and rising numbers of neighbors. Each are
# there until the next are asked for.
Sweep = Callable[[NeighborGraph, Csr, Sequence[int]], Iterator[LabelScores]]
# What `_training_rows` says of a method that learns nothing from neighbors.
NO_ROWS = np.empty(0, np.int64)


class LearningModel(StoredModel, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """What a method says of itself, and learning from the graph of its training rows."""

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
        learning = 1 + searching // ROWS_A_SEARCH
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
        graph, rows = needed_neighbors(graph, min(k, n - 1)), self._training_rows(n)
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


def needed_neighbors(graph: NeighborGraph, k: int) -> NeighborGraph:
    """The first k neighbors of a graph, or an error where it has fewer."""
    if graph.k < k:
        raise ValueError(f"graph holds {graph.k} neighbors a row; n_neighbors={k} are needed")
    return graph.head(k)
