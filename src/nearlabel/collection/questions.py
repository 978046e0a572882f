"""Questions of a collection to its owner: which items to ask about next, with suggestions."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearlabel.collection import question_choice as choice
from nearlabel.collection.change_log import last_change
from nearlabel.collection.choices import STRATEGIES
from nearlabel.collection.item_tables import known_tag
from nearlabel.collection.records import Suggestion
from nearlabel.collection.tag_names import tag_name
from nearlabel.common.arrays import Array, Matrix
from nearlabel.common.validation import check_choice, check_integer

if TYPE_CHECKING:
    from nearlabel.collection.collection import Collection
    from nearlabel.collection.opened_folder import OpenedFolder
    from nearlabel.collection.tag_answers import StateAnswers
    from nearlabel.search.exact.distances import Metric


class Question(NamedTuple):
    """An item that its owner is asked about.

    Attributes
    ----------
    item : int
    suggestions : list of Suggestion
        Its most probable tags; in questions about one tag only this one.
    why : str
        Why it is asked, for display.
    """

    item: int
    suggestions: list[Suggestion]
    why: str


def questions(
    collection: Collection,
    folder: OpenedFolder,
    n: int,
    strategy: str,
    tag: str | None,
    without: Iterable[int],
) -> list[Question]:
    """The result of `Collection.questions`."""
    n = check_integer(n, "n", low=1)
    check_choice(strategy, "strategy", STRATEGIES)
    with folder.learned.asking() as answers, folder.database.reading() as connection:
        left_out = set(without)
        if folder.kind != "vectors":  # they cannot be shown
            left_out.update(collection.ids(state="missing"))
        # The same questions in the same state, different ones after each change.
        rng = np.random.default_rng(last_change(connection))
        if tag is not None:
            number = known_tag(connection, tag_name(tag, "tag"))
            select = "SELECT item FROM decisions WHERE tag = ?"
            left_out.update(item for (item,) in connection.execute(select, [number]))
            return _about_tag(collection, answers, tag, number, n, left_out, rng)
        ids = _ids(collection.ids(state="undecided"), left_out)
        model = None if answers.state is None else answers.state.model
        ids = _sample(ids, choice.looked_at(0 if model is None else len(model.items_)), rng)
        X = collection.vectors(ids.tolist())
        seen = None if model is None or not len(ids) else choice.seen_by(model, X)
        rows, is_quick = _chosen(X, seen, n, strategy, answers.metric)
        slow = "many other items are like it"
        if seen is not None:
            slow = "the collection is unsure about its tags, and other items are like it"
        sure = "the collection is sure about its tags"
        return [
            Question(item, collection.suggest(item, 10), sure if quick else slow)
            for item, quick in zip(ids[rows].tolist(), is_quick.tolist(), strict=True)
        ]


def _chosen(
    X: Matrix, seen: choice.Seen | None, n: int, strategy: str, metric: Metric
) -> tuple[Array, Array]:
    """The rows of X to ask about, and which of them are quick to confirm."""
    if strategy == "mixed":
        return choice.mixed(X, seen, n, metric)
    is_quick = strategy == "confident"
    rows = choice.certain(seen, n) if is_quick else choice.telling(X, seen, n, metric)
    return rows, np.full(len(rows), is_quick)


def _about_tag(
    collection: Collection,
    answers: StateAnswers,
    tag: str,
    number: int,
    n: int,
    left_out: set[int],
    rng: np.random.Generator,
) -> list[Question]:
    """The items most likely to have a tag."""
    carriers = _sample(_ids(collection.ids(tag)), 64, rng)
    ids = _sample(_ids(collection.ids(), left_out), 20_000, rng)  # takes about a second
    if not len(carriers) or not len(ids):
        return []
    near = choice.nearest_to(
        collection.vectors(carriers.tolist()),
        lambda part: collection.vectors(ids[part].tolist()),
        len(ids),
        max(200, n),  # for which the probability of the tag is computed
        answers.metric,
    )
    ids, state = ids[near], answers.state
    probabilities = np.full(len(ids), 0.5)
    if state is not None:
        places = [state.place_of(item) for item in ids.tolist()]
        X = collection.vectors(ids.tolist())
        probabilities = choice.tag_probabilities(state.model, X, number, places)
    best = np.argsort(-probabilities, kind="stable")[:n]
    return [
        Question(int(ids[row]), [Suggestion(tag, float(probabilities[row]), [])], f"likely {tag}")
        for row in best
    ]


def _ids(ids: Iterable[int], left_out: Container[int] = ()) -> Array:
    return np.array([item for item in ids if item not in left_out], np.int64)


def _sample(ids: Array, most: int, rng: np.random.Generator) -> Array:
    """All ids, or a random sample if there are too many, in their order."""
    return ids if len(ids) <= most else np.sort(rng.choice(ids, most, replace=False))
