"""What a model says about its answers: why a label, and which items carry it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Floats, runs
from nearlabel.common.validation import check_integer, check_n_jobs
from nearlabel.graph import NeighborGraph
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.answers import each_run
from nearlabel.methods.items import Items
from nearlabel.search import is_precomputed, pair_distances

_NEIGHBORS_AT_ONCE = 2**22  # of the copies of one item that lack a neighbor each


@dataclass(frozen=True)
class Voter:
    """A neighbor that carries a label.

    Attributes
    ----------
    id : int or str
        The training item.
    distance : float
    score_without : float
        The label's score if this item were not there: the next nearest one, if there is any, takes
        its place among the neighbors. What was learnt in fit stays.
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


@dataclass(frozen=True, eq=False)
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


def explain(model: Any, x: Any, top: int, labels: Any = None) -> Explanation:
    """Why one item gets its best labels, or those that are asked for."""
    top = check_integer(top, "top", low=1)
    X = model._check_queries(as_one_row(x))
    if X.shape[0] != 1:
        raise ValueError(f"explain takes one item; x has {X.shape[0]} rows")
    graph, further = model._voters(X)
    scores, items = model._scores(graph, X), model._items
    chosen = scores.top(top)[0][0] if labels is None else _columns(model, labels)
    chosen_scores = scores.at(np.zeros(len(chosen), np.intp), chosen).tolist()
    carried = items.labels[graph.indices[0]][:, chosen].toarray() == 1
    score_without = _scores_without(model, further, carried, X, chosen)
    predicted = np.isin(chosen, model._decide(scores, graph).indices)
    ids, distances = items.ids(graph.indices[0]).tolist(), graph.distances[0].tolist()
    explained = []
    for column, (label, score) in enumerate(zip(chosen.tolist(), chosen_scores, strict=True)):
        voters = [
            Voter(ids[place], distances[place], left, score - left)
            for place, left in enumerate(score_without[:, column].tolist())
            if carried[place, column]
        ]
        terms = model._terms(label, len(voters), graph, X)
        explained.append(
            LabelExplanation(
                label=label,
                name=_name(model, label),
                score=score,
                predicted=bool(predicted[column]),
                terms={"count": len(voters), **terms},
                neighbors=tuple(voters),
            )
        )
    return Explanation(tuple(explained), graph.k)


def nearest_voters(model: Any, X: Any) -> tuple[NeighborGraph, NeighborGraph]:
    """The neighbors of one query; and these with the next nearest one, if there is any."""
    items, k = model._items, model.n_neighbors_
    n = items.labels.shape[0]
    if sparse.issparse(X) and is_precomputed(items.metric) and X.nnz <= k < n:
        raise ValueError(
            f"explain needs the {k + 1} nearest training rows, one more than n_neighbors; "
            f"the graph of x holds {X.nnz}"
        )
    further = items.neighbors(X, min(k + 1, n), n_jobs=check_n_jobs(model.n_jobs))
    return further.head(k), further


def _scores_without(
    model: Any, further: NeighborGraph, carried: Array, X: Any, chosen: Array
) -> Floats:
    """Row i: the scores of the chosen labels of one query if neighbor i were not there.

    Only for neighbors that carry one of them. They are left out a few at a time: with all
    training rows as neighbors there are many, each with a graph of all others.
    """
    result = np.full(carried.shape, np.nan)
    some = np.flatnonzero(carried.any(axis=1))
    for run in runs(np.full(len(some), further.k), _NEIGHBORS_AT_ONCE):
        left_out = further.indices[0, some[run]]
        copies = np.zeros(len(left_out), np.intp)
        if model.needs.graph:
            scores = model._scores(further.take(copies).without(left_out), X[copies])
        else:
            scores = model._left_out_scores(further, X[copies], left_out)
        row, label = np.indices((len(scores), len(chosen))).reshape(2, -1)
        result[some[run]] = scores.at(row, chosen[label]).reshape(-1, len(chosen))
    return result


def retrieve(model: Any, X: Any, top: int, per_label: int) -> list[list[LabelGroup]]:
    """The nearest items that carry each of the best labels of each query."""
    top = check_integer(top, "top", low=1)
    per_label = check_integer(per_label, "per_label", low=1)
    X = model._check_queries(X)
    found: list[list[LabelGroup]] = [[] for _ in range(X.shape[0])]
    items = model._items
    by_label = items.by_label

    def look(place: slice, scores: LabelScores, graph: NeighborGraph, queries: Any) -> None:
        labels, values = scores.top(top)
        for row in range(len(graph)):
            near, x = graph.rows(row, row + 1), queries[row : row + 1]
            for label, score in zip(labels[row].tolist(), values[row].tolist(), strict=True):
                carriers = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
                nearest, distances = _nearest_of(carriers, items, near, x, per_label)
                group = LabelGroup(label, _name(model, label), score, items.ids(nearest), distances)
                found[place.start + row].append(group)

    each_run(model, look, X)
    return found


def _nearest_of(
    carriers: Array, items: Items, near: NeighborGraph, x: Any, m: int
) -> tuple[Array, Floats]:
    """The m nearest of `carriers`: from the neighbors if enough of these are carriers."""
    among = np.isin(near.indices[0], carriers)
    nearest, distances = near.indices[0][among], near.distances[0][among]
    if len(nearest) < min(m, len(carriers)):
        only = np.zeros(len(carriers), np.intp)
        distances = pair_distances(items.vectors, items.metric, x, only, carriers)
        known = np.isfinite(distances)  # a sparse precomputed graph does not hold all
        nearest, distances = carriers[known], distances[known]
    order = np.lexsort((nearest, distances))[:m]
    return nearest[order], distances[order]


def _columns(model: Any, labels: Any) -> Array:
    """Columns of labels that are given by name or by column; an integer is a tag among such."""
    q = model._items.labels.shape[1]
    names = [] if model.label_names_ is None else model.label_names_.tolist()
    are_numbered = any(isinstance(name, int) for name in names)
    columns = []
    for label in [labels] if isinstance(labels, str) or np.ndim(labels) == 0 else labels:
        if isinstance(label, str) or are_numbered:
            if label not in names:
                raise ValueError(f"labels holds {label!r}, which is not the name of a label")
            columns.append(names.index(label))
        else:
            columns.append(check_integer(label, "a column of labels", low=0, high=q - 1))
    return np.array(columns, np.intp)


def _name(model: Any, label: int) -> Any:
    return label if model.label_names_ is None else model.label_names_[label : label + 1].item()


def as_one_row(x: Any) -> Any:
    """One item, given as a 1-d row or a matrix of one row, as the latter."""
    if hasattr(x, "iloc") and x.ndim == 1:  # a Series of pandas: keep the names of the features
        return x.to_frame().T
    if sparse.issparse(x):
        return x.reshape((1, -1)).tocsr() if x.ndim == 1 else x
    return np.reshape(x, (1, -1)) if np.ndim(x) == 1 else x
