"""The training items with the best labels of a query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.graph import NeighborGraph
from nearlabel.methods.fitted_model import FittedModel
from nearlabel.methods.items import Items
from nearlabel.search import build_index, is_plugged, is_precomputed

_FEW_CELLS = 2**18  # of the carriers of a label: comparing them takes some 20 milliseconds
_MANY_NEAR = 2**9  # neighbors to search for labels with more carriers


@dataclass(frozen=True, eq=False)
class LabelGroup:
    """The nearest training items with one of an item's best labels.

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
    name: int | str
    score: float
    ids: Array
    distances: Floats


def label_groups(
    model: FittedModel,
    labels: Array,
    scores: Floats,
    near: NeighborGraph,
    x: Matrix,
    per_label: int,
    left_out: int | None = None,
) -> list[LabelGroup]:
    """The nearest items with each of some labels, for one query whose neighbors are known.

    A query that is a training row is `left_out`.
    """
    items, groups = model.items_, []
    by_label = items.by_label
    may_widen = not (is_precomputed(items.metric) or is_plugged(items.search))
    for label, score in zip(labels.tolist(), scores.tolist(), strict=True):
        carriers = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        if left_out is not None:
            carriers = carriers[carriers != left_out]
        nearest, distances = _carriers_among(near, carriers)
        if len(nearest) < min(per_label, len(carriers)):
            are_many = len(carriers) * x[0].size > _FEW_CELLS
            if are_many and may_widen:
                near, may_widen = _wider(model, near, x, left_out), False
                nearest, distances = _carriers_among(near, carriers)
            if len(nearest) < per_label:
                nearest, distances = _compared(carriers, items, x, per_label, are_many=are_many)
        ids, distances = items.ids(nearest[:per_label]), distances[:per_label]
        groups.append(LabelGroup(label, model._name_of(label), score, ids, distances))
    return groups


def _wider(
    model: FittedModel, near: NeighborGraph, x: Matrix, left_out: int | None
) -> NeighborGraph:
    """More neighbors of one query, found with as many probes as few; the same if there are none."""
    items, own = model.items_, left_out is not None
    k = min(_MANY_NEAR, len(items) - own)
    if k <= near.k:
        return near
    wider = items.neighbors(x, k + own, planned_for=model.n_neighbors_)
    return wider.without(np.array([left_out])) if own else wider


def _carriers_among(near: NeighborGraph, carriers: Array) -> tuple[Array, Floats]:
    """The neighbors of one query that are among `carriers`, which are sorted."""
    places = near.indices[0]
    at = np.minimum(np.searchsorted(carriers, places), len(carriers) - 1)
    among = carriers[at] == places if len(carriers) else np.zeros(len(places), bool)
    return places[among], near.distances[0][among]


def _compared(
    carriers: Array, items: Items, x: Matrix, m: int, *, are_many: bool
) -> tuple[Array, Floats]:
    """The m nearest of `carriers`, each of which is compared with the query."""
    if are_many and not is_precomputed(items.metric):
        rows, _ = items.rows_of(carriers)
        near = build_index(rows, items.metric, "exact").graph(min(m, len(carriers)), x)
        return carriers[near.indices[0]], near.distances[0]
    distances = items.distances(x, np.zeros(len(carriers), np.intp), carriers)
    known = np.isfinite(distances)  # a sparse precomputed graph does not have all
    nearest, distances = carriers[known], distances[known]
    order = np.lexsort((nearest, distances))
    return nearest[order], distances[order]
