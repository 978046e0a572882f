"""Model files with values that no method learns, each in a file that is otherwise as written."""

from functools import cache

import j48_problems
import numpy as np
import pytest
from tree_paths import read_tree

import nearlabel as nl
from nearlabel.common.files import FileError, write_tree

X6 = np.array([[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]])
Y6 = np.array([[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]])
WORDS = np.array([[4, 1, 0], [3, 2, 0], [0, 1, 4], [1, 1, 3], [2, 2, 2], [3, 1, 2]], float)
DATA = nl.datasets.make_local_labels(20, 4, 6)
NAN, INF = np.nan, np.inf


@cache
def fitted(name):
    made = {"IBLR": {"keep_features": True}, "PMM": {"order": 2}, "RankSVM": {"max_iter": 99_999}}
    model = getattr(nl, name)(**made.get(name, {}))
    if name == "C45Tree":
        problem = j48_problems.mixed()
        Y = (problem.y[:, None] == np.arange(3)).astype(int)
        return model.set_params(nominal_features=[1, 3, 4]).fit(problem.X, Y)
    if "neighbors" in str(model.get_params()) or name == "BalancedkNN":
        model.set_params(**{"per_class" if name == "BalancedkNN" else "n_neighbors": 3})
        return model.fit(X6, Y6) if name in ("DMLkNN", "MLCWkNN") else model.fit(DATA.X, DATA.Y)
    if name == "PMM":
        return model.fit(WORDS, Y6[:, :2])
    if name == "RankSVM":
        return model.set_params(degree=3).fit(DATA.X[:6], DATA.Y[:6])
    return model.set_params(n_rounds=5).fit(X6, Y6)


def changed(place, value):
    """A copy of an array with another value at a place."""

    def change(array):
        array = np.array(array)
        array[place] = value
        return array

    return change


def of_counts(**parts):
    return lambda counts: {**counts, **parts}


WRONG = {
    "DMLkNN": [
        ("counts", of_counts(data=np.full(18, 4, np.int32)), "counts.*neighbors"),
        ("counts", of_counts(data=np.full(18, 0, np.int32)), "counts.*neighbors"),
        ("counts", of_counts(data=np.full(18, -1)), "counts.*neighbors"),
        ("counts", of_counts(data=np.full(18, 1.0)), "counts.*neighbors"),
        ("counts", of_counts(shape=[6, 5]), "counts.*labels"),
        ("counts", of_counts(indices=np.full(18, 9)), "damaged.*counts"),
        ("totals", np.array([3, 4, 1, 6]), "totals.*labels"),
        ("totals", np.array([3, 4]), "damaged.*labels"),
        ("tolerance", -1, "tolerance.*0.*-1"),
        ("smoothing", -1.0, "smoothing.*-1"),
        ("denominator", "rows", "denominator.*'rows'"),
    ],
    "MLCWkNN": [
        ("totals", np.array([3, 4, 0, 5]), "totals"),
        ("totals", np.array([3, 4, 0, 6, 0]), "totals"),
        ("totals", np.array([3, 4, 0, -6]), "totals"),
    ],
    "PositivekNN": [
        ("rate", 0.0),
        ("rate", "fit"),
        ("median_distance", -1.0),
        ("loss", 2.0),
        ("cut", -2.0),
        ("totals", np.zeros(6, np.int64)),
        ("totals", None),
    ],
    "IBLR": [
        ("label_weights", np.zeros((6, 5))),
        ("label_weights", np.full((6, 6), NAN)),
        ("label_weights", np.full((6, 6), INF)),
        ("label_weights", np.zeros((6, 6), int)),
        ("intercepts", np.zeros(5)),
        ("intercepts", np.full(6, NAN)),
        ("feature_weights", np.zeros((4, 5))),
        ("feature_weights", np.full((4, 6), INF)),
        ("center", np.full(4, NAN)),
        ("center", np.zeros(3)),
        ("scale", np.zeros(4)),
        ("scale", -np.ones(4)),
        ("scale", None),
    ],
    "BalancedkNN": [
        ("cuts", np.zeros(5)),
        ("cuts", np.full(6, NAN)),
        ("cuts", -np.ones(6)),
        ("cuts", np.zeros(6, int)),
        ("bandwidth", -1.0),
        ("bandwidth", "median"),
        ("per_class", 0),
        ("per_class", 151),
        ("per_class", 2.5),
        ("scores", lambda scores: np.zeros(len(scores))),
        ("chances", lambda chances: np.linspace(0.9, 0.1, len(chances))),
        ("chances", changed(-1, 1.1)),
        ("chances", lambda chances: chances[1:]),
    ],
    "AdaBoostMH": [
        ("features", changed(4, 2)),
        ("features", changed(4, -1)),
        ("features", np.array([0, 0])),
        ("cuts", changed(1, NAN)),
        ("outputs", np.full((5, 2, 4), NAN)),
        ("outputs", np.full((5, 2, 4), 1e300)),
        ("outputs", np.zeros((5, 3, 4))),
        ("outputs", np.zeros((5, 2, 3))),
        ("normalizers", -np.ones(5)),
        ("n_rounds", 4),
        ("smoothing", "none"),
    ],
    "ADTBoostMH": [
        ("root", changed(1, NAN)),
        ("root", np.zeros(3)),
        ("features", changed(2, 2)),
        ("parents", np.array([1, 0, 0, 0, 0])),
        ("parents", changed(2, -1)),
        ("parents", np.array([0, 0])),
        ("parents", np.zeros(5)),
        ("cuts", changed(1, NAN)),
        ("outputs", np.full((5, 2, 4), 1e300)),
        ("outputs", np.zeros((5, 1, 4))),
        ("losses", -np.ones(5)),
        ("n_rounds", 2),
    ],
    "C45Tree": [
        ("feature", changed(0, -1)),  # a leaf with children
        ("feature", changed(-1, 0)),  # a split without
        ("feature", changed(0, 6)),
        ("feature", changed(0, -2)),
        ("feature", lambda a: a[:-1]),
        ("feature", lambda a: a.astype(float)),
        ("cut", changed(-1, 1.0)),
        ("cut", lambda a: np.full_like(a, NAN)),
        ("cut", lambda a: np.full_like(a, INF)),
        ("cut", lambda a: a[1:]),
        ("counts", changed(0, 0)),  # a tree of no rows
        ("counts", changed(3, -1)),
        ("counts", changed(3, NAN)),
        ("counts", lambda a: a[:, :1]),
        ("tree_sizes", lambda a: a[:-1]),
        ("tree_sizes", lambda a: changed(slice(2), [a[0] + 1, a[1] - 1])(a)),
        ("tree_sizes", lambda a: changed(slice(2), [a[0] + a[1], 0])(a)),
        ("tree_sizes", changed(slice(2), [2**62, 2**62])),
        ("n_values", changed(0, -1)),
        ("n_values", changed(1, 2)),
        ("n_values", changed(0, 2**40)),
        ("n_values", lambda a: a[:-1]),
        ("confidence", 0.7),
        ("min_leaf", 0),
    ],
    "PMM": [
        ("word_probabilities", np.full((2, 3), 1 / 3)),  # (d, q) in files
        ("word_probabilities", np.full((3, 2), 0.5)),
        ("word_probabilities", np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])),
        ("word_probabilities", np.full((3, 2), NAN)),
        ("word_probabilities", None),
        ("pair_shares", np.full((2, 2), 0.4)),
        ("pair_shares", np.full((3, 3), 0.5)),
        ("pair_shares", np.array([[0.5, 1.5], [-0.5, 0.5]])),
        ("label_rows", np.array([-1.0, 2])),
        ("label_rows", np.array([INF, 2])),
        ("label_rows", np.ones(3)),
        ("log_posterior", None),
        ("n_iter", -1),
        ("xi", 0.0),
    ],
    "RankSVM": [
        ("dual_coef", lambda a: a[1:]),
        ("dual_coef", lambda a: a[:, 1:]),
        ("dual_coef", changed(0, NAN)),
        ("support_vectors", lambda a: {"dense": a["dense"][:, 1:]}),
        ("support_vectors", lambda a: {"dense": np.full_like(a["dense"], INF)}),
        ("support_vectors", lambda a: {"dense": a["dense"].astype(int)}),
        ("intercept", np.zeros(4)),
        ("intercept", np.full(6, INF)),
        ("threshold_coef", np.zeros(5)),
        ("threshold_intercept", "0"),
        ("gamma_in_use", -1.0),
        ("kernel", "cosine"),
        ("degree", 0),
        ("dual_gap", -1.0),
        ("n_iter", -1),
    ],
}
CASES = [(name, *case) for name, cases in WRONG.items() for case in cases]


@pytest.mark.parametrize("case", CASES, ids=[f"{name}-{key}" for name, key, *_ in CASES])
def test_wrong_values_are_refused(case, tmp_path):
    name, key, wrong, *message = case
    path = tmp_path / "model"
    fitted(name).save(path)
    nl.load(path)
    tree, _ = read_tree(path)
    known = tree["learned"]
    value = wrong(known[key]) if callable(wrong) else wrong
    write_tree(path, {**tree, "learned": {**known, key: value}})
    with pytest.raises(FileError, match=message[0] if message else "model .*damaged"):
        nl.load(path)


@pytest.mark.parametrize("name", ["MLCWkNN", "IBLR", "BalancedkNN"])
def test_vectors_that_a_method_needs(name, tmp_path):
    path = tmp_path / "model"
    fitted(name).save(path)
    tree, _ = read_tree(path)
    for wrong in ({"vectors": None}, {"metric": "precomputed"}):
        write_tree(path, {**tree, **wrong})
        with pytest.raises(FileError, match="model .*damaged.*(square|vectors)"):
            nl.load(path)
    write_tree(path, {**tree, "learned": {}})
    with pytest.raises(FileError, match="model .*damaged"):
        nl.load(path)


def test_nodes_in_a_circle_are_refused(tmp_path):
    """A tree with a node that is its own child; the number of nodes is right."""
    fitted("C45Tree").save(tmp_path / "model")
    tree, _ = read_tree(tmp_path / "model")
    learned = {
        "n_values": np.zeros(6, int),
        "tree_sizes": np.array([3, 1, 1]),
        "feature": np.array([-1, 0, -1, -1, -1]),
        "cut": np.array([NAN, 0.5, NAN, NAN, NAN]),
        "counts": np.ones((5, 2)),
    }
    write_tree(tmp_path / "model", {**tree, "learned": {**tree["learned"], **learned}})
    with pytest.raises(FileError, match="nodes"):
        nl.load(tmp_path / "model")
