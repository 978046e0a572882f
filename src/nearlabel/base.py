"""scikit-learn's contract, once, for every neighbor method.

A method says what it learns from the graph of the training rows (`_learn`) and how it scores labels
from the graph of queries (`_scores`). Validation, searching and answers in the form of y are here;
what a model says about its answers is in `explaining.py`.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nearlabel.arrays import Csr, Floats
from nearlabel.decisions import labels_from
from nearlabel.graph import NeighborGraph, as_query_graph, as_self_graph
from nearlabel.scores import LabelScores, RankedLabels
from nearlabel.search import Index, VectorStore, build_index, is_precomputed
from nearlabel.statistics import blocks_of_votes
from nearlabel.storing import StoredModel
from nearlabel.validation import (
    Labels,
    canonical_vectors,
    check_dense_size,
    check_integer,
    check_labels,
    check_n_jobs,
    check_same_length,
)

_FEATURES = ("n_features_in_", "feature_names_in_")  # set by scikit-learn's validation
# The floats next to 0 and 1: predict_proba stays strictly inside (0, 1).
_SMALLEST, _LARGEST = np.finfo(np.float64).tiny, 1 - 2.0**-53


class NeighborModel(StoredModel, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the methods that read labels off a neighbor graph: learning and answering."""

    n_neighbors: int
    metric: Any
    search: Any
    n_jobs: int | None

    @abstractmethod
    def _learn(self, graph: NeighborGraph, Y: Csr, X: Any) -> None:
        """Learn from the k neighbors of each training row, itself left out, and the labels."""

    @abstractmethod
    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        """Score the labels of queries from their k neighbors among the training rows."""

    def _decide(self, scores: LabelScores, graph: NeighborGraph, X: Any) -> Csr:  # noqa: ARG002
        """Label sets, shape (n, q): by default where the score is at least 1/2."""
        return labels_from(scores, 0.5)

    def _probabilities(self, scores: LabelScores, graph: NeighborGraph, X: Any) -> Floats:  # noqa: ARG002
        """Probabilities, shape (n, q): above 1/2 for just the labels that are decided for."""
        probabilities = scores.toarray()
        # A score of exactly 1/2 is decided for the label, but scikit-learn rounds it down: it is
        # told as the next greater number.
        probabilities[probabilities == 0.5] = np.nextafter(0.5, 1)
        return probabilities

    def _check_parameters(self) -> None:
        """Refuse parameters out of range; methods add their own."""
        check_integer(self.n_neighbors, "n_neighbors", low=1)
        check_n_jobs(self.n_jobs)

    def fit(self, X: Any, y: Any, *, label_names: Any = None, ids: Any = None) -> Self:
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

        Returns
        -------
        self
        """
        self._check_parameters()
        labels = check_labels(y, label_names)
        X, features = self._check_training(X)
        check_same_length(X=X.shape[0], y=labels.matrix.shape[0])
        store = VectorStore(X, ids)
        k = self._usable_neighbors(X.shape[0])
        index = build_index(X, self.metric, self.search)
        graph = index.graph(k, n_jobs=check_n_jobs(self.n_jobs))
        return self._adopt(graph, labels, store, index, features)

    def fit_graph(
        self, graph: Any, y: Any, X: Any = None, *, label_names: Any = None, ids: Any = None
    ) -> Self:
        """Learn from neighbors that were searched before.

        Parameters
        ----------
        graph : NeighborGraph or sparse matrix
            At least `n_neighbors` neighbors of each training row among the others: from
            `neighbor_graph`, or a graph in scikit-learn's precomputed form.
        y, label_names : labels and their names, as in `fit`
        X : training vectors, optional
            Needed only by what searches later: `predict` and the like on new vectors. Without them
            the model answers by `scores_from_graph`.
        ids : names of the rows of X, as in `fit`

        Returns
        -------
        self
        """
        self._check_parameters()
        labels = check_labels(y, label_names)
        graph = as_self_graph(graph)
        check_same_length(graph=len(graph), y=labels.matrix.shape[0])
        graph = _head(graph, self._usable_neighbors(len(graph)))
        if X is None:
            return self._adopt(graph, labels, None, None, {})
        X, features = self._check_training(X)
        check_same_length(X=X.shape[0], y=labels.matrix.shape[0])
        store = VectorStore(X, ids)
        index = build_index(X, self.metric, self.search)
        return self._adopt(graph, labels, store, index, features)

    def _check_training(self, X: Any) -> tuple[Any, dict[str, Any]]:
        """Training vectors, checked, and what scikit-learn keeps of their features.

        It is noted on a copy: a fit that is refused later leaves this model as it was.
        """
        noted = copy(self)
        X = canonical_vectors(validate_data(noted, X, accept_sparse="csr"))
        return X, {name: vars(noted)[name] for name in _FEATURES if name in vars(noted)}

    def _usable_neighbors(self, n: int) -> int:
        """Neighbors of each of n training rows: `n_neighbors`, or all others if they are fewer."""
        if n < 2:
            raise ValueError("X has 1 sample; neighbors among the training rows need at least 2")
        if self.n_neighbors > n - 1:
            warnings.warn(
                f"n_neighbors={self.n_neighbors} is more than the {n - 1} other training rows; "
                f"using {n - 1}",
                UserWarning,
                stacklevel=3,
            )
        return min(int(self.n_neighbors), n - 1)

    def _adopt(
        self,
        graph: NeighborGraph,
        labels: Labels,
        store: VectorStore | None,
        index: Index | None,
        features: dict[str, Any],
    ) -> Self:
        """Keep the training items and learn, after all has been checked and searched."""
        for name in _FEATURES:
            self.__dict__.pop(name, None)
        self.__dict__.update(features)
        self.n_neighbors_ = graph.k
        self.classes_ = labels.classes
        self.label_names_ = labels.names
        self._sparse_output = labels.sparse
        self._labels = labels.matrix
        self._store = store
        self._index, self._metric, self._search = index, self.metric, self.search
        self._learn(graph, self._labels, None if store is None else store.vectors)
        return self

    def label_scores(self, X: Any) -> LabelScores:
        """Score every label for each row: what the method ranks by.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)

        Returns
        -------
        LabelScores
            Of shape (n, q), without a dense matrix.
        """
        X = self._check_queries(X)
        return self._scores(self._neighbors_of(X), X)

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
        return self._scores(*self._given_neighbors(graph, X))

    def _given_neighbors(self, graph: Any, X: Any) -> tuple[NeighborGraph, Any]:
        """A graph of queries and their vectors, checked; only the neighbors in use."""
        check_is_fitted(self)
        graph = as_query_graph(graph, self._labels.shape[0])
        if X is not None:
            X = self._check_queries(X)
            check_same_length(graph=len(graph), X=X.shape[0])
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
        scores = self.scores_from_graph(graph, X) if scores is None else scores
        graph = _head(as_query_graph(graph, self._labels.shape[0]), self.n_neighbors_)
        return self._answer(self._decide(scores, graph, X))

    def predict(self, X: Any) -> Any:
        """Decide the labels of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)

        Returns
        -------
        ndarray of int or csr_array, shape (n, q); or ndarray of classes, shape (n,)
            In the form of the y given to fit.
        """
        X = self._check_queries(X)
        if not (self._sparse_output or self._one_column):
            shape = (X.shape[0], self._labels.shape[1])
            check_dense_size("predict's result", shape, 8, "fit with a sparse y, or rank")
        decided = sparse.vstack(
            [self._decide(*block) for _, block in self._score_blocks(X)], format="csr"
        )
        return self._answer(decided)

    def _answer(self, decided: Csr) -> Any:
        """Label sets in the form of the y given to fit."""
        if self._one_column:
            return self.classes_[decided.toarray().ravel()]
        return sparse.csr_array(decided) if self._sparse_output else decided.toarray()

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each label for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)

        Returns
        -------
        ndarray of float, shape (n, q); (n, 2) where y was 1-d
            Strictly between 0 and 1.
        """
        X = self._check_queries(X)
        shape = (X.shape[0], self._labels.shape[1])
        check_dense_size("predict_proba's result", shape, 8, "label_scores or rank")
        result = np.empty(shape)
        for place, block in self._score_blocks(X):
            result[place] = self._probabilities(*block)
        if self._one_column:
            result = np.hstack([1 - result, result])
        return np.clip(result, _SMALLEST, _LARGEST, out=result)

    def rank(self, X: Any, top: int = 10) -> RankedLabels:
        """Rank the labels of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n, d)
        top : int, default=10
            How many labels; all of them if there are fewer.

        Returns
        -------
        RankedLabels
            Best first; equal scores in the order of the columns.
        """
        top = check_integer(top, "top", low=1)
        X = self._check_queries(X)
        self._check_rank_size(X.shape[0], top)
        return self._rank(self._neighbors_of(X), X, top)

    def rank_from_graph(self, graph: Any, X: Any = None, top: int = 10) -> RankedLabels:
        """Rank the labels of queries whose neighbors were searched before.

        Parameters
        ----------
        graph, X
            As in `scores_from_graph`. The scores of all rows are never held at once.
        top : int, default=10
            How many labels; all of them if there are fewer.

        Returns
        -------
        RankedLabels
            Best first; equal scores in the order of the columns.
        """
        top = check_integer(top, "top", low=1)
        graph, X = self._given_neighbors(graph, X)
        self._check_rank_size(len(graph), top)
        return self._rank(graph, X, top)

    def _check_rank_size(self, n: int, top: int) -> None:
        r = min(top, self._labels.shape[1])
        check_dense_size(f"the {r:,} best labels", (n, r), 12, "rank(top) of fewer")

    def _rank(self, graph: NeighborGraph, X: Any, top: int) -> RankedLabels:
        n, r = len(graph), min(top, self._labels.shape[1])
        labels, best = np.empty((n, r), np.int32), np.empty((n, r))
        for place, (scores, _, _) in self._score_blocks(X, graph):
            labels[place], best[place] = scores.top(r)
        names = labels if self.label_names_ is None else self.label_names_[labels]
        return RankedLabels(labels, best, names)

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
        return canonical_vectors(validate_data(self, X, accept_sparse="csr", reset=False))

    def _neighbors_of(self, X: Any, k: int | None = None) -> NeighborGraph:
        """Neighbors of checked queries among the training rows; of these rows where X is None."""
        if self._store is None:
            raise ValueError(
                "this model was fitted from a graph without X and cannot search; "
                "give X to fit_graph, or use scores_from_graph"
            )
        if self._index is None:  # the model came from a file
            self._index = build_index(self._store.vectors, self._metric, self._search)
        n = self._labels.shape[0]
        k = self.n_neighbors_ if k is None else k
        k = check_integer(k, "n_neighbors", low=1, high=n - 1 if X is None else n)
        return self._index.graph(k, X, n_jobs=check_n_jobs(self.n_jobs))

    def _score_blocks(
        self, X: Any, graph: NeighborGraph | None = None
    ) -> Iterator[tuple[slice, tuple[LabelScores, NeighborGraph, Any]]]:
        """Scores, neighbors and vectors of runs of rows: never the scores of all at once.

        The neighbors are searched unless they are given; then X may be None.
        """
        graph = self._neighbors_of(X) if graph is None else graph
        for place, part in blocks_of_votes(graph, self._labels):
            vectors = None if X is None else X[place]
            yield place, (self._scores(part, vectors), part, vectors)

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


def _head(graph: NeighborGraph, k: int) -> NeighborGraph:
    if graph.k < k:
        raise ValueError(f"graph holds {graph.k} neighbors a row; n_neighbors={k} are needed")
    return graph.head(k)
