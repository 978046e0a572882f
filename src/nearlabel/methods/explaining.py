"""Explaining and retrieving: what every neighbor method can say about its answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Floats, runs
from nearlabel.common.validation import check_integer
from nearlabel.graph import NeighborGraph
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.base import NeighborModel
from nearlabel.methods.explanations import Explanation, LabelExplanation, LabelGroup, Voter
from nearlabel.search import is_precomputed, pair_distances

_NEIGHBORS_AT_ONCE = 2**22  # of the copies of one item that lack a neighbor each


class NeighborClassifier(NeighborModel):
    """Base of the methods: a neighbor model that explains its answers."""

    @abstractmethod
    def _terms(self, label: int, graph: NeighborGraph, X: Any) -> Mapping[str, float]:
        """The numbers that make the score of a label of one query, in the method's own words."""

    def explain(self, x: Any, top: int = 5, *, labels: Any = None) -> Explanation:
        """Say why one item gets its labels.

        Parameters
        ----------
        x : array-like of shape (d,) or (1, d), or a sparse row
            The item.
        top : int, default=5
            How many of its best labels.
        labels : int, str or sequence of these, optional
            Columns or names of labels to explain instead, such as one that was expected and is
            missing.

        Returns
        -------
        Explanation
            For each label its score, the numbers that make it, the neighbors that carry it, and
            what the score would be without each of them.
        """
        top = check_integer(top, "top", low=1)
        X = self._check_queries(_as_one_row(x))
        if X.shape[0] != 1:
            raise ValueError(f"explain takes one item; x has {X.shape[0]} rows")
        graph, further = self._voters(X)
        scores = self._scores(graph, X)
        chosen = scores.top(top)[0][0] if labels is None else self._columns(labels)
        chosen_scores = scores.at(np.zeros(len(chosen), np.intp), chosen).tolist()
        carried = self._labels[graph.indices[0]][:, chosen].toarray() == 1
        score_without = self._chosen_without(further, carried, X, chosen)
        predicted = np.isin(chosen, self._decide(scores, graph).indices)
        ids, distances = self._ids(graph.indices[0]).tolist(), graph.distances[0].tolist()

        explained = []
        for column, (label, score) in enumerate(zip(chosen.tolist(), chosen_scores, strict=True)):
            voters = [
                Voter(ids[place], distances[place], left, score - left)
                for place, left in enumerate(score_without[:, column].tolist())
                if carried[place, column]
            ]
            explained.append(
                LabelExplanation(
                    label=label,
                    name=self._name(label),
                    score=score,
                    predicted=bool(predicted[column]),
                    terms=self._terms(label, graph, X),
                    neighbors=tuple(voters),
                )
            )
        return Explanation(tuple(explained), graph.k)

    def _voters(self, X: Any) -> tuple[NeighborGraph, NeighborGraph]:
        """The neighbors of one query; and these with the next nearest one, if there is any."""
        k, n = self.n_neighbors_, self._labels.shape[0]
        if sparse.issparse(X) and is_precomputed(self._metric) and X.nnz <= k < n:
            raise ValueError(
                f"explain needs the {k + 1} nearest training rows, one more than n_neighbors; "
                f"the graph of x holds {X.nnz}"
            )
        further = self._neighbors_of(X, min(k + 1, n))
        return further.head(k), further

    def _scores_without(self, further: NeighborGraph, X: Any, left_out: Array) -> LabelScores:
        """Row i: the scores of one query if the training row left_out[i] were not there."""
        copies = np.zeros(len(left_out), np.intp)
        return self._scores(further.take(copies).without(left_out), X[copies])

    def _chosen_without(
        self, further: NeighborGraph, carried: Array, X: Any, chosen: Array
    ) -> Floats:
        """Row i: the scores of the chosen labels of one query if neighbor i were not there.

        Only for neighbors that carry one of them. They are left out a few at a time: with all
        training rows as neighbors there are many, each with a graph of all others.
        """
        result = np.full(carried.shape, np.nan)
        some = np.flatnonzero(carried.any(axis=1))
        for run in runs(np.full(len(some), further.k), _NEIGHBORS_AT_ONCE):
            scores = self._scores_without(further, X, further.indices[0, some[run]])
            row, label = np.indices((len(scores), len(chosen))).reshape(2, -1)
            result[some[run]] = scores.at(row, chosen[label]).reshape(-1, len(chosen))
        return result

    def retrieve(self, X: Any, top: int = 5, per_label: int = 8) -> list[list[LabelGroup]]:
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
        found: list[list[LabelGroup]] = [[] for _ in range(X.shape[0])]
        by_label = self._labels_by_column()
        vectors = None if self._store is None else self._store.vectors

        def look(place: slice, scores: LabelScores, graph: NeighborGraph, queries: Any) -> None:
            labels, values = scores.top(top)
            for row in range(len(graph)):
                near, x = graph.rows(row, row + 1), queries[row : row + 1]
                for label, score in zip(labels[row].tolist(), values[row].tolist(), strict=True):
                    carriers = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
                    items, distances = self._nearest_of(carriers, vectors, near, x, per_label)
                    name, ids = self._name(label), self._ids(items)
                    group = LabelGroup(label, name, score, ids, distances)
                    found[place.start + row].append(group)

        self._each_run(look, X)
        return found

    def _labels_by_column(self) -> Csr:
        """Which rows carry each label, kept for the next question: it takes long with many rows."""
        if self._by_label is None:
            self._by_label = self._labels.tocsc()
        return self._by_label

    def _nearest_of(
        self, carriers: Array, vectors: Any, near: NeighborGraph, x: Any, m: int
    ) -> tuple[Array, Floats]:
        """The m nearest of `carriers`: from the neighbors if enough of these are carriers."""
        among = np.isin(near.indices[0], carriers)
        items, distances = near.indices[0][among], near.distances[0][among]
        if len(items) < min(m, len(carriers)):
            only = np.zeros(len(carriers), np.intp)
            distances = pair_distances(vectors, self._metric, x, only, carriers)
            known = np.isfinite(distances)  # a sparse precomputed graph does not hold all
            items, distances = carriers[known], distances[known]
        order = np.lexsort((items, distances))[:m]
        return items[order], distances[order]

    def _columns(self, labels: Any) -> Array:
        """Columns of labels that are given by column or by name."""
        q, names = self._labels.shape[1], self.label_names_
        columns = []
        for label in [labels] if isinstance(labels, str) or np.ndim(labels) == 0 else labels:
            if isinstance(label, str):
                at = np.flatnonzero(names == label) if names is not None else np.empty(0, int)
                if not at.size:
                    raise ValueError(f"labels holds {label!r}, which is no name of a label")
                columns.append(int(at[0]))
            else:
                columns.append(check_integer(label, "a column of labels", low=0, high=q - 1))
        return np.array(columns, np.intp)

    def _name(self, label: int) -> Any:
        return label if self.label_names_ is None else str(self.label_names_[label])

    def _ids(self, rows: Any) -> Array:
        assert self._store is not None
        return np.asarray(self._store.ids[rows])


def _as_one_row(x: Any) -> Any:
    """One item, given as a 1-d row or a matrix of one row, as the latter."""
    if hasattr(x, "iloc") and x.ndim == 1:  # a Series of pandas: keep the names of the features
        return x.to_frame().T
    if sparse.issparse(x):
        return x.reshape((1, -1)).tocsr() if x.ndim == 1 else x
    return np.reshape(x, (1, -1)) if np.ndim(x) == 1 else x
