"""Answers of one state of what a collection has learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Container
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from nearlabel.collection.folder_checks import is_index
from nearlabel.collection.records import Suggestion, TaggedItems, Voter
from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.common.files import FileError
from nearlabel.common.validation import ArgumentError, check_integer, check_vectors
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.answers import as_one_row, chances_of
from nearlabel.methods.explanations import neighbors_of, scores_of, votes
from nearlabel.methods.retrieval import label_groups

if TYPE_CHECKING:
    from nearlabel.collection.learner import TrainingItems
    from nearlabel.methods.base import NeighborClassifier
    from nearlabel.methods.items import Items
    from nearlabel.search.exact.distances import Metric

_Answer = TypeVar("_Answer")
TagNames = Callable[[Sequence[int]], Mapping[int, str]]


class State(NamedTuple):
    """A model that does not change any more, and the item of each of its places."""

    model: NeighborClassifier
    items: Array

    @property
    def rows(self) -> Items:
        """The rows of the model."""
        return self.model.items_

    def place_of(self, item: int) -> int | None:
        """The position of an item; None if it is not a row."""
        places = np.flatnonzero(self.items[: self.rows.n_places] == item)
        alive = self.rows.alive
        places = places if alive is None else places[alive[places]]
        return int(places[0]) if len(places) else None


class StateAnswers:
    """What one state answers, whatever is learned meanwhile.

    Parameters
    ----------
    state : State or None
        None if there are too few rows to learn from.
    metric : Metric
        That of the method.
    source : TrainingItems
    learn_again : callable
        Takes a state with an error in its file; returns what is learned again from all rows.
    """

    def __init__(
        self,
        state: State | None,
        metric: Metric,
        source: TrainingItems,
        learn_again: Callable[[State, FileError], State | None],
    ) -> None:
        self.state, self.metric = state, metric
        self._source, self._learn_again = source, learn_again

    def suggest(
        self, query: object, top: int = 10, *, without: Container[int] = ()
    ) -> list[Suggestion]:
        """The most probable tags of an item, by its id, or of a vector; best first.

        An item that is a row is answered as if it were new. Tags whose numbers are in `without`,
        and tags that no other item has, are left out.
        """
        top = check_integer(top, "top", low=1)
        return self.answer(query, lambda state, asked: suggestions(state, asked, top), without)

    def retrieve(
        self, query: object, top: int = 5, per_tag: int = 8, *, without: Container[int] = ()
    ) -> list[TaggedItems]:
        """For each of the most probable tags, the nearest items that have it."""
        top, per_tag = check_integer(top, "top", low=1), check_integer(per_tag, "per_tag", low=1)
        return self.answer(query, lambda state, asked: groups(state, asked, top, per_tag), without)

    def answer(
        self,
        query: object,
        answer: Callable[[State, AskedVector], list[_Answer]],
        without: Container[int] = (),
    ) -> list[_Answer]:
        """What `answer` makes of the state and a query.

        Vectors in an index file are checked against their checksums on first access. If one is
        damaged, everything is learned again.
        """
        state = self.state
        if state is None:
            return []
        try:
            return answer(state, self._asked(state, query, without))
        except FileError as error:
            if error.path is None or not is_index(Path(error.path)):
                raise
            self.state = self._learn_again(state, error)
        return self.answer(query, answer, without)

    def _asked(self, state: State, query: object, without: Container[int]) -> AskedVector:
        place = None
        if not isinstance(query, int | np.integer):
            x = one_vector(query, state.model.n_features_in_)
        elif (place := state.place_of(int(query))) is None:
            x = self._source.vectors([int(query)])
        else:
            x, _ = state.rows.rows_of(np.array([place]))
        return AskedVector(x, place, without, self._source.tag_names)


class AskedVector(NamedTuple):
    """A vector that a state is asked about.

    Attributes
    ----------
    x : matrix of one row
    place : int or None
        The position of the vector, if it is that of a row: it is answered as if it were new.
    without : container of int
        Numbers of the tags that are not answered.
    names : callable
        The names of tags by their numbers.
    """

    x: Matrix
    place: int | None
    without: Container[int]
    names: TagNames

    @property
    def rows(self) -> Array | None:
        """The position as an array."""
        return None if self.place is None else np.array([self.place])


def one_vector(query: object, width: int | None) -> Matrix:
    """A vector as a matrix of one row, checked."""
    x = check_vectors(as_one_row(query), "query")
    if x.shape[0] != 1:
        raise ArgumentError(f"query must be one vector; got {x.shape[0]}", "query")
    if width is not None and x.shape[1] != width:
        raise ArgumentError(f"query must have {width} features; got {x.shape[1]}", "query")
    return x


def suggestions(state: State, asked: AskedVector, top: int) -> list[Suggestion]:
    """The most probable tags of a vector, and its neighbors that have them."""
    model, x, rows = state.model, asked.x, asked.rows
    further = neighbors_of(model, x, model.n_neighbors_ + 1, rows)
    near = further.head(min(model.n_neighbors_, further.k))
    columns, scores = _best(state, asked, scores_of(model, near, x, rows), top)
    carried, without = votes(model, near, further, x, columns[None], rows)
    items, distances = state.items[near.indices[0]].tolist(), near.distances[0].tolist()
    parts = (scores - without[0]).tolist()
    names, answers = asked.names(columns.tolist()), []
    probabilities = chances_of(model, scores, columns).tolist()
    for at, (tag, probability) in enumerate(zip(columns.tolist(), probabilities, strict=True)):
        voters = [
            Voter(items[near], distances[near], parts[near][at])
            for near in np.flatnonzero(carried[0, :, at]).tolist()
        ]
        if tag in names:
            answers.append(Suggestion(names[tag], probability, voters))
    return answers


def groups(state: State, asked: AskedVector, top: int, per_tag: int) -> list[TaggedItems]:
    """For each of the most probable tags of a vector, the nearest items that have it."""
    model, x, rows = state.model, asked.x, asked.rows
    near = neighbors_of(model, x, model.n_neighbors_, rows)
    columns, scores = _best(state, asked, scores_of(model, near, x, rows), top)
    names, answers = asked.names(columns.tolist()), []
    probabilities = chances_of(model, scores, columns)
    for group in label_groups(model, columns, probabilities, near, x, per_tag, asked.place):
        items = state.items[state.rows.places_of(group.ids)].tolist()
        tagged = list(zip(items, group.distances.tolist(), strict=True))
        if group.label in names:
            answers.append(TaggedItems(names[group.label], group.score, tagged))
    return answers


def _best(state: State, asked: AskedVector, scores: LabelScores, top: int) -> tuple[Array, Floats]:
    """The columns with the highest scores that another item has, and these; ties by column."""
    labels, totals = state.rows.labels, state.rows.totals
    is_answered = totals > 0
    if asked.place is not None:
        own = labels[[asked.place]].indices
        is_answered[own] = totals[own] > 1
    is_answered[[tag for tag in asked.without if tag < len(is_answered)]] = False
    r, q = top + 16, scores.shape[1]  # some labels are not answered
    while True:
        (columns,), (values,) = scores.top(r)
        chosen = np.flatnonzero(is_answered[columns])
        if len(chosen) >= top or r >= q:
            return columns[chosen[:top]], values[chosen[:top]]
        r *= 8
