"""The learner with so many rows that it uses lists; here the limit is lower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_store import Store, answers, chosen

from nearlabel.collection.learner import Learner
from nearlabel.collection.tag_answers import State, StateAnswers
from nearlabel.common.files import FileError

pytestmark = pytest.mark.slow
FEWEST, WIDTH = 33_000, 8


class ManyItems(Store):
    """Items whose tags follow from their vectors."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.X = np.random.default_rng(0).normal(size=(n, WIDTH)).astype(np.float32)
        self.values = dict(enumerate(self.X, 1))

    def learn(self, items: range) -> range:
        """Decide on some items."""
        for item in items:
            first, second = np.abs(self.values[item][:2] * 3).astype(int).tolist()
            self.decide(item, [first, 20 + second])
        return items

    def vectors(self, ids: Any) -> Any:
        return self.X[np.asarray(ids) - 1]


@pytest.fixture
def few_for_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearlabel.search.MOST_WORK", FEWEST**2 * WIDTH)


@pytest.mark.usefixtures("few_for_lists")
def test_rows_get_lists_when_they_become_many(tmp_path: Path) -> None:
    store = ManyItems(FEWEST + 200)
    store.learn(range(1, FEWEST - 99))
    learner = Learner(tmp_path, chosen(), store)
    learner.opened(None)
    learner.save(1)
    few = (tmp_path / "index-1.model").read_bytes()
    learner.follow(store.learn(range(FEWEST - 99, FEWEST + 100)))
    assert learner.verify()
    digest = learner.save(2)
    many = (tmp_path / "index-2.model").read_bytes()
    row = store.values[7].tobytes()
    assert row not in few
    assert row in many  # in the order of the lists
    model = learner._model
    assert learner.save(3)
    assert learner._model is model  # it has lists, and is not learned again
    assert "recall" in str(learner.verify())
    assert learner.verify()

    again = Learner(tmp_path, chosen(), store)
    assert again.opened(2, digest) == []
    items = range(1, 40)
    expected = [answers(learner).suggest(item) for item in items]
    assert [answers(again).suggest(item) for item in items] == expected
    store.decide(5, None)
    again.follow([5, *store.learn(range(FEWEST + 150, FEWEST + 160))])
    digest = again.save(4)
    assert again.verify()
    assert store.values[5].tobytes() not in (tmp_path / "index-4.model").read_bytes()

    at = many.index(row)
    path = tmp_path / "index-2.model"
    path.write_bytes(many[:at] + bytes([many[at] ^ 1]) + many[at + 1 :])
    damaged = Learner(tmp_path, chosen(), store)
    assert damaged.opened(2, None) == []  # vectors are not read yet
    errors = []

    def learn_again(state: State, error: FileError) -> State | None:
        errors.append(error)
        damaged.learn_all()
        return damaged.state

    assert StateAnswers(damaged.state, damaged.metric, store, learn_again).suggest(7)
    (error,) = errors
    assert "index-2.model is altered" in str(error)
    assert damaged.verify()
