"""Fields: the declarations of a method match its files."""

import numpy as np
import pytest
from method_hooks import HOOKS
from tree_paths import read_tree

import nearlabel as nl
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fields import Integer, Numbers, Real, Reals
from nearlabel.methods.registry import METHODS, estimator

pytestmark = pytest.mark.engines


@pytest.mark.parametrize("declared", [(), (Integer("more", "more_"), Real("other", "other_"))])
def test_what_is_learned_and_what_is_declared_must_agree(declared, f6):
    class Careless(nl.BRkNN):
        stored = declared

        def _learn(self, seen):
            self.more_ = 3

    X, Y, _ = f6
    with pytest.raises(TypeError, match="Careless.*other_" if declared else "Careless.*more_"):
        Careless(n_neighbors=3).fit(X, Y)


@pytest.mark.parametrize("name", METHODS)
def test_a_file_contains_what_the_fields_declare(name, tmp_path):
    data = nl.datasets.make_local_labels(60, 3, 5, random_state=0)
    model = estimator(name, 4, random_state=0).fit(data.X, data.Y)
    model.save(tmp_path / "model")
    learned = read_tree(tmp_path / "model")[0]["learned"]
    declared = {field.key for field in (*type(model).settings, *type(model).stored)}
    assert declared >= learned.keys() - {"without_label", "totals", "chances"}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (Real("rate", "rate_", low=0, high=1), 2.0, "rate.*2"),
        (Integer("size", "size_", low=1, at_most_rows=True), 9, "size.*9"),
        (Reals("cuts", "cuts_", "q"), np.zeros(2), "cuts"),
        (Reals("cuts", "cuts_", "q"), np.array([0, np.nan, 1.0]), "cuts"),
        (Reals("cuts", "cuts_", "q"), np.zeros(3, int), "cuts"),
        (Reals("of", "of_", "d"), np.zeros(3), "of.*vectors"),
        (Numbers("cluster", "cluster_", "n", below="q"), np.array([0, 1, 2, 3]), "cluster.*3"),
    ],
)
def test_values_that_no_file_may_contain(field, value, message):
    class Model:
        pass

    with pytest.raises((TypeError, ValueError), match=message):
        field.read(Model(), {field.key: value}, {"n": 4, "q": 3})


def test_the_hooks_are_at_most_ten():
    """The author of a method has to know them; docs/architecture.md lists them."""
    assert len(HOOKS) <= 10
    assert all(hasattr(NeighborClassifier, name) for name in HOOKS)
