"""Answers of a collection's model: tags by their numbers, items by their ids."""

from __future__ import annotations

from collections.abc import Collection as Container
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearlabel.collection.records import Voter
from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.answers import chances
from nearlabel.methods.explanations import explained
from nearlabel.methods.retrieval import label_groups

if TYPE_CHECKING:
    import numpy.typing as npt

    from nearlabel.methods.base import NeighborClassifier
    from nearlabel.methods.items import Items
    from nearlabel.search.vector_store import VectorStore


class TagScore(NamedTuple):
    """A tag by its number, its probability, and the neighbors that have it, nearest first."""

    tag: int
    probability: float
    voters: list[Voter]


class TagGroup(NamedTuple):
    """A tag by its number, its probability, and the nearest items that have it, with distances."""

    tag: int
    probability: float
    items: list[tuple[int, float]]


class State(NamedTuple):
    """A model that does not change any more, and the item of each of its places."""

    model: NeighborClassifier
    items: Array

    @property
    def rows(self) -> Items:
        """The rows of the model."""
        return self.model.items_

    @property
    def store(self) -> VectorStore:
        """The vectors of the model."""
        assert self.rows.store is not None
        return self.rows.store

    def place_of(self, item: int) -> int | None:
        """The position of an item; None if it is not a row."""
        places = np.flatnonzero(self.items[: self.rows.n_places] == item)
        alive = self.rows.alive
        places = places if alive is None else places[alive[places]]
        return int(places[0]) if len(places) else None

    def items_of(self, order: npt.ArrayLike) -> list[int]:
        """The items of rows by their ids in the model."""
        places = self.rows.places_of(np.asarray(order, np.int64))
        return list(self.items[places].tolist())


def suggestions(
    state: State, x: Matrix, place: int | None, top: int, without: Container[int]
) -> list[TagScore]:
    """The most probable tags of one vector, and who has them.

    The vector of a training row, at position `place`, is answered as if it were new.
    """
    chosen = _Chosen(state, place, top, without)
    rows = None if place is None else np.array([place])
    (explanation,) = explained(state.model, x, chosen.columns, rows)
    answers = []
    for label in explanation.labels:
        ids = state.items_of([voter.id for voter in label.neighbors])
        pairs = zip(ids, label.neighbors, strict=True)
        voters = [Voter(id, voter.distance, voter.part) for id, voter in pairs]
        answers.append(TagScore(label.label, float(chosen.probabilities[label.label]), voters))
    return answers


def groups(
    state: State, x: Matrix, place: int | None, top: int, per_tag: int, without: Container[int]
) -> list[TagGroup]:
    """For each of the most probable tags of one vector, the nearest items that have it."""
    model, chosen = state.model, _Chosen(state, place, top, without)
    if place is None:
        near = model.items_.neighbors(x, model.n_neighbors_)
        scores = model._scores(near, x)
    else:
        rows = np.array([place])
        near = model.items_.left_out_neighbors(rows, model.n_neighbors_)
        scores = model._left_out_scores(near, x, rows)
    columns = chosen.columns(scores)[0]
    values = chosen.probabilities[columns]
    answers = []
    for group in label_groups(model, columns, values, near, x, per_tag, place):
        items = state.items_of(group.ids)
        pairs = list(zip(items, group.distances.tolist(), strict=True))
        answers.append(TagGroup(group.label, group.score, pairs))
    return answers


class _Chosen:
    """Which labels of one query to return: the best of those that another item has."""

    def __init__(self, state: State, place: int | None, top: int, without: Container[int]) -> None:
        self._model, self._top = state.model, top
        labels, totals = state.rows.labels, state.rows.totals
        self._is_told = totals > 0
        if place is not None:
            own = labels[[place]].indices
            self._is_told[own] = totals[own] > 1
        self._is_told[[tag for tag in without if tag < len(self._is_told)]] = False
        self.probabilities: Floats = np.empty(0)

    def columns(self, scores: LabelScores) -> Array:
        """Their columns, best first, shape (1, c); ties in the order of the columns."""
        self.probabilities = chances(self._model, scores)[0]
        r, q = self._top + 16, scores.shape[1]  # some labels are not shown
        while True:
            best = scores.top(r)[0]
            columns: Array = best[self._is_told[best]]
            if len(columns) >= self._top or r >= q:
                return columns[None, : self._top]
            r *= 8
