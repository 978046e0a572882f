"""The store of a collection in memory, with the interface needed by a learner."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.collection.learner import Learner
from nearlabel.collection.learning_methods import DEFAULT_METHOD
from nearlabel.collection.records import Rows
from nearlabel.collection.tag_answers import StateAnswers

WIDTH = 4


class Store:
    """A source in memory: items with vectors, and the tags of decided items."""

    def __init__(self, *, is_sparse: bool = False) -> None:
        self.values: dict[int, Any] = {}
        self.tags: dict[int, list[int]] = {}
        self.order: dict[int, int] = {}
        self.is_sparse, self._next = is_sparse, 0

    def decide(self, item: int, tags: list[int] | None) -> None:
        """Give an item tags; None makes it undecided."""
        if tags is None:
            self.tags.pop(item, None)
            self.order.pop(item, None)
            return
        self.tags[item] = sorted(tags)
        if item not in self.order:
            self._next += 1
            self.order[item] = self._next

    def put(self, item: int, vector: Any) -> None:
        """Give an item a vector, or replace it."""
        self.values[item] = np.asarray(vector, np.float32)
        if item in self.order:
            self.order.pop(item)
            self.decide(item, self.tags[item])

    def drop(self, item: int) -> None:
        """Remove an item and all of it."""
        self.decide(item, None)
        self.values.pop(item, None)

    def rows(self, ids: Any = None) -> Rows:
        wanted = self.order if ids is None else [one for one in ids if one in self.order]
        found = sorted(wanted, key=lambda item: self.order[item])
        sets = [self.tags[item] for item in found]
        return Rows(
            np.array(found, np.int64),
            np.array([self.order[item] for item in found], np.int64),
            np.concatenate([[0], np.cumsum([len(tags) for tags in sets])]).astype(np.int64),
            np.array([tag for tags in sets for tag in tags], np.int64),
        )

    def vectors(self, ids: Any) -> Any:
        zeros = np.zeros(WIDTH, np.float32)
        rows = np.array([self.values.get(item, zeros) for item in ids], np.float32)
        rows = rows.reshape(len(ids), WIDTH)
        return sparse.csr_array(rows) if self.is_sparse else rows

    def tag_names(self, tags: Any) -> dict[int, Any]:
        return {tag: tag for tag in tags}


def answers(learner: Learner) -> StateAnswers:
    """What the current state of a learner answers."""
    return StateAnswers(learner.state, learner.metric, learner._source, lambda *_: None)


def chosen(**method: Any) -> dict[str, Any]:
    """The default method with other parameters."""
    return {**DEFAULT_METHOD, **method}


def filled(n: int, seed: int = 0, **how: Any) -> Store:
    """A store of n items, two of three of them with tags; vectors on a grid, so that many tie."""
    random, store = np.random.default_rng(seed), Store(**how)
    for item in range(1, n + 1):
        store.put(item, random.integers(0, 3, WIDTH))
    for item in random.permutation(np.arange(1, n + 1))[: 2 * n // 3].tolist():
        store.decide(item, random.permutation(8)[: random.integers(0, 4)].tolist())
    return store
