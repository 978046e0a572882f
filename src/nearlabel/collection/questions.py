"""Questions of a collection to its owner: which items to ask about next, with suggestions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearlabel.collection import question_choice as choice
from nearlabel.collection.change_log import last_change
from nearlabel.collection.choices import STRATEGIES
from nearlabel.collection.item_tables import known_tag
from nearlabel.collection.learning_methods import estimator
from nearlabel.collection.records import Suggestion
from nearlabel.collection.tag_names import tag_name
from nearlabel.common.arrays import Array, Matrix
from nearlabel.common.validation import check_choice, check_integer

if TYPE_CHECKING:
    from nearlabel.collection.collection import Collection
    from nearlabel.collection.tag_answers import State
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
    n: int = 5,
    strategy: str = "mixed",
    *,
    tag: str | None = None,
    without: Iterable[int] = (),
) -> list[Question]:
    """The result of `Collection.questions`."""
    n = check_integer(n, "n", low=1)
    check_choice(strategy, "strategy", STRATEGIES)
    asking = collection._folder.learned.asking()
    with asking as learner, collection._database.reading() as connection:
        state = learner.state
        # The same questions in the same state, different ones after each change.
        rng = np.random.default_rng(last_change(connection))
        if tag is not None:
            number = known_tag(connection, tag_name(tag, "tag"), collection.path)
            return _about_tag(collection, state, tag, number, n, without, rng)
        ids = _askable(collection, collection.ids(state="undecided"), without)
        model = None if state is None else state.model
        ids = _sample(ids, choice.looked_at(0 if state is None else len(state.rows)), rng)
        X = collection.vectors(ids.tolist())
        seen = None if model is None or not len(ids) else choice.seen_by(model, X)
        rows, is_quick = _chosen(X, seen, n, strategy, _metric(collection))
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
    state: State | None,
    tag: str,
    number: int,
    n: int,
    without: Iterable[int],
    rng: np.random.Generator,
) -> list[Question]:
    """The items most likely to have a tag, among those undecided about it."""
    with collection._database.reading() as connection:
        decided = {
            item
            for (item,) in connection.execute("SELECT item FROM decisions WHERE tag = ?", [number])
        }
    carriers = _sample(np.array(collection.ids(tag), np.int64), 64, rng)
    open_ids = [item for item in collection.ids() if item not in decided]
    ids = _sample(_askable(collection, open_ids, without), 20_000, rng)  # takes about a second
    if not len(carriers) or not len(ids):
        return []
    wanted = max(200, n)  # the nearest, for which the probability of the tag is computed
    near = choice.nearest_to(
        collection.vectors(carriers.tolist()),
        lambda part: collection.vectors(ids[part].tolist()),
        len(ids),
        wanted,
        _metric(collection),
    )
    ids = ids[near]
    if state is None:
        probabilities = np.full(len(ids), 0.5)
    else:
        places = [state.place_of(item) for item in ids.tolist()]
        X = collection.vectors(ids.tolist())
        probabilities = choice.tag_probabilities(state.model, X, number, places)
    best = np.argsort(-probabilities, kind="stable")[:n]
    return [
        Question(int(ids[row]), [Suggestion(tag, float(probabilities[row]), [])], f"likely {tag}")
        for row in best
    ]


def _askable(collection: Collection, ids: list[int], without: Iterable[int]) -> Array:
    """Items that can be displayed."""
    left_out = set(without)
    if collection.settings.kind != "vectors":
        left_out.update(collection.ids(state="missing"))
    return np.array([item for item in ids if item not in left_out], np.int64)


def _sample(ids: Array, most: int, rng: np.random.Generator) -> Array:
    """All ids, or a random sample if there are too many, in their order."""
    return ids if len(ids) <= most else np.sort(rng.choice(ids, most, replace=False))


def _metric(collection: Collection) -> Metric:
    metric: Metric = estimator(collection.settings.method).metric
    return metric
