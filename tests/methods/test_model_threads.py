"""Concurrent readers and writers: every prediction belongs to an actual state."""

import copy
import io
import os
import pickle
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import nearlabel as nl
from nearlabel.common.threads import ForkSafeLock
from nearlabel.search.living.kept_neighbors import KeptNeighbors

pytestmark = pytest.mark.filterwarnings(
    "ignore:the training rows were changed:UserWarning", "ignore:n_neighbors=:UserWarning"
)
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = (rng.random((120, 4)) < 0.4).astype(int)
Q = rng.normal(size=(2, 3))
MODELS = {
    "mlknn": lambda: nl.MLkNN(4),
    "lamlknn": lambda: nl.LAMLkNN(4, n_clusters=2, random_state=0),
    "brknn": lambda: nl.BRkNN(4),
    "iblr": lambda: nl.IBLR(4),
    "thresholds": lambda: nl.LabelThresholds(nl.MLkNN(4)),
}
ANSWERS = {
    "rank": lambda model: model.rank(Q, top=3).scores.tobytes(),
    "predict": lambda model: model.predict(Q).tobytes(),
    "explain": lambda model: str(model.explain(Q[:1])),
    "retrieve": lambda model: str([group.ids.tolist() for group in model.retrieve(Q[:1], 2)[0]]),
}


@pytest.fixture(autouse=True)
def _switching_all_the_time():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@contextmanager
def working(*works):
    """Repeat some works in threads until the block ends; none may fail."""
    stop, errors = threading.Event(), []

    def repeat(work):
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=(work,), daemon=True) for work in works]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        stop.set()
        for one in threads:
            one.join()
    if errors:
        raise errors[0]


def edits(model, first=60, steps=24):
    """Changes one after the other; yields after each."""
    for step in range(steps):
        row = first + step % 20
        if step % 3 == 0:
            model.partial_fit(X[row : row + 1], Y[row : row + 1], ids=[1000 * first + step])
        elif step % 3 == 1:
            model.relabel([step % 30], 1 - Y[step % 30 : step % 30 + 1])
        else:
            model.forget(1000 * first + step - 2 if step % 2 else first - 1 - step // 6)
        yield


@pytest.mark.parametrize("steps", [6, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_readers_see_only_actual_states(name, steps):
    model = MODELS[name]().fit(X[:60], Y[:60])
    states = {key: {answer(model)} for key, answer in ANSWERS.items()}
    seen = {key: set() for key in ANSWERS}

    def read(keys):
        for key in keys:
            seen[key].add(ANSWERS[key](model))

    with working(lambda: read(["rank", "explain"]), lambda: read(["predict", "retrieve"])):
        for _ in edits(model, steps=steps):
            state = model._caught_up()
            for key, answer in ANSWERS.items():
                states[key].add(answer(state))
    for key in ANSWERS:
        assert seen[key] <= states[key], key
    assert len(seen["rank"]) > 1
    assert model.verify()


def test_a_change_right_after_learning_again():
    """The answer is that of the state that has learned again, not of the one after it."""
    model = nl.IBLR(4).fit(X[:60], Y[:60]).forget(0)
    wanted = nl.IBLR(4).fit(X[1:60], Y[1:60]).predict_proba(Q)

    class Impatient(ForkSafeLock):
        """Lets another writer in as soon as the lock is free."""

        depth = 0

        @contextmanager
        def held(self):
            self.depth += 1
            yield
            self.depth -= 1
            if not self.depth and model.history_.forgotten == 1:
                model.forget(1)

    model.items_.lock = Impatient()
    np.testing.assert_allclose(model.predict_proba(Q), wanted, rtol=1e-9)
    assert model.history_.forgotten == 2
    model.save(os.devnull)


@pytest.mark.parametrize("name", ["mlknn", "iblr"])
def test_copies_of_a_model_that_is_being_changed(name, tmp_path):
    """Pickles, deep copies and files are of one state, and go on from there."""
    model = MODELS[name]().fit(X[:60], Y[:60])
    copies = []

    def file():
        model.save(tmp_path / "model")
        return nl.load(tmp_path / "model")

    ways = [lambda: pickle.loads(pickle.dumps(model)), lambda: copy.deepcopy(model), file]

    def copier(way):
        return lambda: copies.append(way())

    with working(*(copier(way) for way in ways), lambda: ANSWERS["retrieve"](model)):
        for _ in edits(model, steps=12):
            pass
    for one in copies[:: max(1, len(copies) // 9)]:
        assert one.verify(), str(one.verify())
        one.partial_fit(X[100:102], Y[100:102], ids=[-1, -2]).forget(40)
        assert one.verify(), str(one.verify())


def test_a_pickle_is_not_of_half_a_change():
    """A writer changes the kept neighbors in place while they are pickled."""
    model = nl.MLkNN(4).fit(X[:60], Y[:60]).partial_fit(X[60:80], Y[60:80])
    content = io.BytesIO()

    class Interrupted(pickle.Pickler):
        def persistent_id(self, part):
            if isinstance(part, KeptNeighbors) and model.history_.added == 20:
                model.partial_fit(X[80:90], Y[80:90])

    Interrupted(content).dump(model)
    assert model.history_.added == 30
    again = pickle.loads(content.getvalue())
    assert again.history_.added == 20
    assert again.verify(), str(again.verify())
    again.partial_fit(X[90:], Y[90:])
    assert again.verify(), str(again.verify())


@pytest.mark.parametrize("name", MODELS)
def test_two_writers(name):
    model = MODELS[name]().fit(X[:60], Y[:60])

    def write(first, last):
        for row in range(first, last):
            model.partial_fit(X[row : row + 1], Y[row : row + 1], ids=[row])
            model.forget(row - 60)
            model.relabel(row, 1 - Y[row : row + 1])

    writers = [threading.Thread(target=write, args=part) for part in ((60, 75), (75, 90))]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert (model.history_.added, model.history_.forgotten, model.history_.relabelled) == (30,) * 3
    items = model.items_
    assert sorted(items.ids(items.places).tolist()) == [*range(30, 90)]
    labels = items.labels[items.places_of(np.arange(60, 90))].toarray()
    np.testing.assert_array_equal(labels, 1 - Y[60:90])
    assert model.verify()


def test_another_search_while_others_read():
    model = nl.MLkNN(4).fit(X[:60], Y[:60]).forget([1, 2])
    wanted = model.predict_proba(Q).tobytes()
    seen = set()
    with working(*[lambda: seen.add(model.predict_proba(Q).tobytes())] * 2):
        for step in range(100):
            model.search_with(["exact", "auto"][step % 2])
    assert seen == {wanted}


def test_a_copy_with_a_different_search_is_independent(tmp_path):
    nl.MLkNN(4).fit(X[:60], Y[:60]).save(tmp_path / "model")
    one = nl.load(tmp_path / "model")
    two = copy.copy(one).search_with("exact")
    assert one.items_.search == "auto"
    one.forget([*range(0, 40, 3)])
    two.partial_fit(X[60:70], Y[60:70])
    assert one.verify(), str(one.verify())
    assert two.verify(), str(two.verify())
