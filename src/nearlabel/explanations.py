"""Why a label was ranked where it was, and which items speak for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.arrays import Array, Csr, Floats
from nearlabel.graph import NeighborGraph
from nearlabel.scores import LabelScores
from nearlabel.search import Index, VectorStore
from nearlabel.validation import check_integer


@dataclass(frozen=True)
class Voter:
    """A neighbor that carries a label.

    Attributes
    ----------
    id : int or str
        The training item.
    distance : float
    score_without : float
        The label's score if this item were not there: the next nearest one takes its place among
        the neighbors. What was learnt in fit stays.
    part : float
        What the item adds to the score: the score less `score_without`.
    """

    id: Any
    distance: float
    score_without: float
    part: float


@dataclass(frozen=True)
class LabelExplanation:
    """One label of one item.

    Attributes
    ----------
    label : int
        Column of the label.
    name : str or int
        Its name, or its column where it has none.
    score : float
    predicted : bool
        Whether `predict` gives the label to the item.
    terms : mapping of str to float
        The numbers that make the score, in the method's own words.
    neighbors : tuple of Voter
        The neighbors that carry the label, nearest first.
    """

    label: int
    name: Any
    score: float
    predicted: bool
    terms: Mapping[str, float]
    neighbors: tuple[Voter, ...]


@dataclass(frozen=True)
class Explanation:
    """Labels of one item, best first, each with what speaks for it."""

    labels: tuple[LabelExplanation, ...]
    n_neighbors: int

    def __iter__(self) -> Iterator[LabelExplanation]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> LabelExplanation:
        return self.labels[place]

    def __str__(self) -> str:
        lines = []
        for label in self.labels:
            terms = ", ".join(f"{term} {value:.4g}" for term, value in label.terms.items())
            mark = "+" if label.predicted else "-"
            lines.append(f"{mark} {label.name}: {label.score:.4f} ({terms})")
            lines.append(f"    {len(label.neighbors)} of {self.n_neighbors} neighbors carry it")
            lines.extend(
                f"    {voter.id} at {voter.distance:.4g}; without it {voter.score_without:.4f}"
                for voter in label.neighbors
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class LabelGroup:
    """The nearest training items that carry one of an item's best labels.

    Attributes
    ----------
    label : int
    name : str or int
    score : float
    ids : ndarray of shape (m,)
        Items, nearest first.
    distances : ndarray of shape (m,)
    """

    label: int
    name: Any
    score: float
    ids: Array
    distances: Floats


class ExplainingMixin(ABC):
    """What a neighbor method can say about its answers: `explain` and `retrieve`."""

    n_neighbors_: int
    label_names_: Array | None
    _labels: Csr
    _store: VectorStore | None
    _index: Index | None

    @abstractmethod
    def _check_queries(self, X: Any) -> Any:
        """Vectors of queries, checked."""

    @abstractmethod
    def _neighbors_of(self, X: Any, k: int | None = None) -> NeighborGraph:
        """Neighbors of checked queries among the training rows."""

    @abstractmethod
    def _scores(self, graph: NeighborGraph, X: Any) -> LabelScores:
        """Score the labels of queries from their k neighbors among the training rows."""

    @abstractmethod
    def _score_blocks(
        self, X: Any, graph: NeighborGraph | None = None
    ) -> Iterator[tuple[slice, LabelScores]]:
        """Scores of runs of rows."""

    @abstractmethod
    def _decide(self, scores: LabelScores) -> Csr:
        """Label sets, shape (n, q)."""

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
        labels : sequence of int, optional
            Columns to explain instead, such as one that was expected and is missing.

        Returns
        -------
        Explanation
            For each label its score, the numbers that make it, the neighbors that carry it, and
            what the score would be without each of them.
        """
        if not sparse.issparse(x) and np.ndim(x) == 1:
            x = np.reshape(x, (1, -1))
        X = self._check_queries(x)
        if X.shape[0] != 1:
            raise ValueError(f"explain takes one item; x has {X.shape[0]} rows")
        k, q = self.n_neighbors_, self._labels.shape[1]
        further = self._neighbors_of(X, k + 1)  # there are at least k + 1 training rows
        graph = further.head(k)
        scores = self._scores(graph, X)
        chosen = scores.top(check_integer(top, "top", low=1))[0][0]
        if labels is not None:
            chosen = np.array([check_integer(a, "labels", low=0, high=q - 1) for a in labels])
        decided = self._decide(scores).indices
        without = self._scores(_each_left_out(further), X[np.zeros(k, np.intp)])
        carried = self._labels[graph.indices[0]][:, chosen].toarray() == 1
        return Explanation(
            tuple(
                LabelExplanation(
                    label=int(label),
                    name=self._name(label),
                    score=(score := float(scores.at(np.zeros(1, int), np.array([label]))[0])),
                    predicted=bool(np.isin(label, decided)),
                    terms=self._terms(int(label), graph, X),
                    neighbors=tuple(
                        self._voter(graph, without, int(label), int(place), score)
                        for place in np.flatnonzero(carried[:, column])
                    ),
                )
                for column, label in enumerate(chosen)
            ),
            k,
        )

    def _voter(
        self, graph: NeighborGraph, without: LabelScores, label: int, place: int, score: float
    ) -> Voter:
        score_without = float(without.at(np.array([place]), np.array([label]))[0])
        return Voter(
            id=self._ids(graph.indices[0, place]),
            distance=float(graph.distances[0, place]),
            score_without=score_without,
            part=score - score_without,
        )

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
        per_label = check_integer(per_label, "per_label", low=1)
        top = check_integer(top, "top", low=1)
        X = self._check_queries(X)
        graph = self._neighbors_of(X)
        by_label = self._labels.tocsc()
        groups: list[list[LabelGroup]] = []
        for place, scores in self._score_blocks(X, graph):
            labels, values = scores.top(top)
            for row, query in enumerate(range(place.start, place.stop)):
                x, near = X[query : query + 1], graph.rows(query, query + 1)
                groups.append([])
                for label, score in zip(labels[row], values[row], strict=True):
                    carriers = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
                    items, distances = self._nearest_of(carriers, near, x, per_label)
                    group = LabelGroup(
                        int(label), self._name(label), float(score), self._ids(items), distances
                    )
                    groups[-1].append(group)
        return groups

    def _nearest_of(
        self, carriers: Array, graph: NeighborGraph, x: Any, m: int
    ) -> tuple[Array, Floats]:
        """The m nearest of `carriers`: from the neighbors if enough of these are carriers."""
        assert self._index is not None
        near = np.isin(graph.indices[0], carriers)
        items, distances = graph.indices[0][near], graph.distances[0][near]
        if len(items) < min(m, len(carriers)):
            items = carriers
            distances = self._index.distances(x, np.zeros(len(items), np.intp), items)
            known = np.isfinite(distances)  # a sparse precomputed graph does not hold all
            items, distances = items[known], distances[known]
        order = np.lexsort((items, distances))[:m]
        return items[order], distances[order]

    def _name(self, label: int) -> Any:
        return int(label) if self.label_names_ is None else str(self.label_names_[label])

    def _ids(self, rows: Any) -> Any:
        assert self._store is not None
        return self._store.ids[rows]


def _each_left_out(further: NeighborGraph) -> NeighborGraph:
    """For one query with k + 1 neighbors: k rows, row i without neighbor i."""
    k = further.k - 1
    kept = np.array([[j for j in range(k + 1) if j != i] for i in range(k)])
    return NeighborGraph(further.indices[0, kept], further.distances[0, kept], further.n_base)
