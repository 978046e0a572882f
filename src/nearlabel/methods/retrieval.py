"""Which training items carry the best labels of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.common.validation import check_integer
from nearlabel.graph import NeighborGraph
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.answers import each_run
from nearlabel.methods.explanations import name_of
from nearlabel.methods.items import Items


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
                group = LabelGroup(
                    label, name_of(model, label), score, items.ids(nearest), distances
                )
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
        distances = items.distances(x, only, carriers)
        known = np.isfinite(distances)  # a sparse precomputed graph does not hold all
        nearest, distances = carriers[known], distances[known]
    order = np.lexsort((nearest, distances))[:m]
    return nearest[order], distances[order]
