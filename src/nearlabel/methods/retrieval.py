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
    items = model.items_
    by_label, groups = items.by_label, []
    wider = _Wider(model, near, x, left_out)
    for label, score in zip(labels.tolist(), scores.tolist(), strict=True):
        carriers = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        if left_out is not None:
            carriers = carriers[carriers != left_out]
        nearest, distances = _nearest_of(carriers, items, wider, x, per_label)
        groups.append(
            LabelGroup(label, model._name_of(label), score, items.ids(nearest), distances)
        )
    return groups


class _Wider:
    """The neighbors of one query: those already found, and more if these are too few."""

    def __init__(
        self, model: FittedModel, near: NeighborGraph, x: Matrix, left_out: int | None
    ) -> None:
        self.near = near
        self._items, self._x, self._left_out = model.items_, x, left_out
        self._planned_for = model.n_neighbors_
        may_grow = not (is_precomputed(self._items.metric) or is_plugged(self._items.search))
        self._more = _MANY_NEAR if may_grow else 0

    def grow(self) -> bool:
        """Search more neighbors, once; with as many probes as for few."""
        own = self._left_out is not None
        k, self._more = min(self._more, len(self._items) - own), 0
        if k <= self.near.k:
            return False
        near = self._items.neighbors(self._x, k + own, planned_for=self._planned_for)
        self.near = near.without(np.array([self._left_out])) if own else near
        return True


def _nearest_of(
    carriers: Array, items: Items, wider: _Wider, x: Matrix, m: int
) -> tuple[Array, Floats]:
    """The m nearest of `carriers`: from the neighbors if enough of these are carriers.

    Otherwise few carriers are compared directly; for many, more neighbors are searched first, and
    if these do not suffice, the carriers are compared as well.
    """
    nearest, distances = _carriers_among(wider.near, carriers)
    if len(nearest) < m and len(carriers) * x[0].size > _FEW_CELLS:
        if wider.grow():
            nearest, distances = _carriers_among(wider.near, carriers)
        if len(nearest) < m and not is_precomputed(items.metric):
            rows, _ = items.rows_of(carriers)
            near = build_index(rows, items.metric, "exact").graph(min(m, len(carriers)), x)
            return carriers[near.indices[0]], near.distances[0]
    if len(nearest) < min(m, len(carriers)):
        only = np.zeros(len(carriers), np.intp)
        distances = items.distances(x, only, carriers)
        known = np.isfinite(distances)  # a sparse precomputed graph does not have all
        nearest, distances = carriers[known], distances[known]
    order = np.lexsort((nearest, distances))[:m]
    return nearest[order], distances[order]


def _carriers_among(near: NeighborGraph, carriers: Array) -> tuple[Array, Floats]:
    """The neighbors of one query that are among `carriers`, which are sorted."""
    places = near.indices[0]
    at = np.minimum(np.searchsorted(carriers, places), len(carriers) - 1)
    among = carriers[at] == places if len(carriers) else np.zeros(len(places), bool)
    return places[among], near.distances[0][among]
