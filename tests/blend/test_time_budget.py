"""How much of a blend fits into a time budget."""

import pytest

import nearlabel as nl
from nearlabel.blend import time_budget
from nearlabel.blend.time_budget import planned


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(400, 4, 3, labels_per_sample=2, random_state=0)


@pytest.fixture
def slow_clock(monkeypatch):
    """Every fit to m rows takes m (1 + what a blend has beyond methods) hundredths of a second."""
    now = [0.0]
    own = nl.BlendedNeighbors.fit

    def fit(self, X, y, **more):
        parts = 4 * (self.forest is not False) + 2 * self.learn_distance + 2 * self.ridge
        methods = 1 if self.readings is None else 0.5
        now[0] += X.shape[0] * (parts + methods) / 100
        return self

    monkeypatch.setattr(time_budget.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(nl.BlendedNeighbors, "fit", fit)
    monkeypatch.setattr(time_budget, "_FEW_ROWS", 100)
    monkeypatch.setattr(time_budget, "_FEWEST_TRIED", 10)
    yield
    monkeypatch.setattr(nl.BlendedNeighbors, "fit", own)


@pytest.mark.parametrize(
    ("seconds", "left_out", "told"),
    [
        (60, [], ""),
        (30, ["forest"], "within 30 s: the blend without a forest; the whole blend would"),
        (12, ["forest", "learn_distance", "ridge"], "within 12 s: the methods alone; the"),
        (1, ["forest", "learn_distance", "ridge"], "within 1 s: ML-kNN alone; the whole"),
    ],
)
def test_slow_parts_are_left_out(data, slow_clock, seconds, left_out, told):
    model, reason = planned(nl.BlendedNeighbors(), data.X, data.Y, seconds)
    parameters = ("forest", "learn_distance", "ridge")
    assert [name for name in parameters if getattr(model, name) is False] == left_out
    assert reason.startswith(told)
    assert bool(reason) == bool(left_out)


def test_with_few_rows_nothing_is_tried(data, slow_clock):
    model = nl.BlendedNeighbors()
    assert planned(model, data.X[:100], data.Y[:100], 0.001) == (model, "")


def test_auto_neighbors_reports_what_it_left_out(data, monkeypatch):
    monkeypatch.setattr(time_budget, "_FEW_ROWS", 100)
    model = nl.AutoNeighbors(time_budget=1e-6).fit(data.X, data.Y)
    assert model.plan_.startswith("within 0 s: ML-kNN alone; the whole blend would take")
    assert model.plan_ in model.summary()
    assert list(model.blend_.weights_) == ["ML-kNN (k = 10)", "frequency"]
    assert nl.AutoNeighbors(time_budget=1000).fit(data.X[:90], data.Y[:90]).plan_ == ""
