"""Model files with values that no method learns, each in a file that is otherwise as written."""

from contextlib import suppress
from functools import cache

import j48_problems
import numpy as np
import pytest
from tree_paths import read_tree

import nearlabel as nl
from nearlabel.baselines.algorithm_registry import ALGORITHMS, algorithm
from nearlabel.common.files import FileError, write_tree

X6 = np.array([[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]])
Y6 = np.array([[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]])
WORDS = np.array([[4, 1, 0], [3, 2, 0], [0, 1, 4], [1, 1, 3], [2, 2, 2], [3, 1, 2]], float)
DATA = nl.datasets.make_local_labels(20, 4, 6)
NAN, INF = np.nan, np.inf


@cache
def fitted(name):
    made = {"IBLR": {"keep_features": True}, "PMM": {"order": 2}, "LAMLkNN": {"n_clusters": 2}}
    model = algorithm(name)(**made.get(name, {}))
    if name == "C45Tree":
        problem = j48_problems.mixed()
        Y = (problem.y[:, None] == np.arange(3)).astype(int)
        return model.set_params(nominal_features=[1, 3, 4]).fit(problem.X, Y)
    if "neighbors" in str(model.get_params()) or name == "BalancedkNN":
        model.set_params(**{"per_class" if name == "BalancedkNN" else "n_neighbors": 3})
        is_small = name in ("DMLkNN", "MLCWkNN")
        return model.fit(X6, Y6) if is_small else model.fit(DATA.X, DATA.Y)
    if name == "PMM":
        return model.fit(WORDS, Y6[:, :2])
    if name == "RankSVM":
        return model.set_params(degree=3).fit(DATA.X[:6], DATA.Y[:6])
    return model.set_params(n_rounds=5).fit(X6, Y6)


def mistakes(value):
    """Changes to a value that no method learns: sizes, types, and numbers that are none."""
    yield "none", None
    if isinstance(value, dict):
        for key, part in value.items():
            for what, wrong in mistakes(part):
                yield f"{key} {what}", {**value, key: wrong}
    elif isinstance(value, np.ndarray):
        is_real = value.dtype.kind == "f"
        yield "shorter", value[:-1]
        yield "as text", "x"
        if value.ndim > 1:
            yield "narrower", value[..., :-1]
        if np.isfinite(value).all():
            yield "of another type", value.astype(int if is_real else float)
        for wrong in (NAN, INF) if is_real else (-1, 2**40):
            yield f"with {wrong}", changed(0, wrong)(value.astype(float if is_real else int))
    elif isinstance(value, str):
        yield "another", "another"
    elif value is not None:
        yield "as text", "x"
        yield "-1", -1


# Mistakes that may have been learned, or that no answer shows.
LEARNED = {
    "PositivekNN": ["loss none", "cut none", "cut -1"],
    "IBLR": ["intercepts with inf", "scale with inf"],
    "BalancedkNN": ["cuts with inf"],
    "BRkNN": ["fill none"],
    "AdaBoostMH": ["cuts with inf"],
    "ADTBoostMH": ["cuts with inf"],
    "C45Tree": ["cut with nan"],
    "DMLkNN": ["counts data none"],
    "MLkNN": ["with_label with 1099511627776", "without_label with 1099511627776"],
    "LAMLkNN": ["with_label with 1099511627776", "without_label with 1099511627776"],
    "PMM": ["log_posterior -1"],
    "RankSVM": ["threshold_intercept -1"],
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_mistake_in_what_is_learned_is_refused(name, tmp_path):
    path, taken = tmp_path / "model", []
    fitted(name).save(path)
    nl.load(path)
    tree, _ = read_tree(path)
    for key, value in tree["learned"].items():
        for what, wrong in mistakes(value):
            write_tree(path, {**tree, "learned": {**tree["learned"], key: wrong}})
            with suppress(FileError):
                nl.load(path)
                taken.append(f"{key} {what}")
    assert taken == LEARNED.get(name, [])


def changed(place, value):
    """A copy of an array with another value at a place."""

    def change(array):
        array = np.array(array)
        array.flat[place] = value
        return array

    return change


def of_counts(**parts):
    return lambda counts: {**counts, **parts}


# What else does not fit together.
WRONG = {
    "DMLkNN": [
        ("counts", of_counts(data=np.full(18, 4, np.int32)), "counts.*neighbors"),
        ("counts", of_counts(data=np.full(18, 0, np.int32)), "counts.*neighbors"),
        ("counts", of_counts(shape=[6, 5]), "counts.*labels"),
        ("counts", of_counts(indices=np.full(18, 9)), "damaged.*counts"),
        ("totals", np.array([3, 4, 1, 6]), "totals.*labels"),
    ],
    "MLCWkNN": [
        ("totals", np.array([3, 4, 0, 5]), "totals"),
        ("totals", np.array([3, 4, 0, 6, 0]), "totals"),
    ],
    "PositivekNN": [("rate", 0.0), ("loss", 2.0), ("cut", -2.0), ("totals", np.zeros(6, int))],
    "IBLR": [("scale", np.zeros(4)), ("scale", -np.ones(4))],
    "BalancedkNN": [
        ("cuts", -np.ones(6)),
        ("per_class", 0),
        ("per_class", 151),
        ("per_class", 2.5),
        ("scores", lambda scores: np.zeros(len(scores))),
        ("chances", lambda chances: np.linspace(0.9, 0.1, len(chances))),
        ("chances", changed(-1, 1.1)),
    ],
    "AdaBoostMH": [
        ("features", changed(4, 2)),
        ("outputs", np.full((5, 2, 4), 1e300)),
        ("outputs", np.zeros((5, 3, 4))),
        ("normalizers", -np.ones(5)),
        ("n_rounds", 4),
    ],
    "ADTBoostMH": [
        ("features", changed(2, 2)),
        ("parents", np.array([1, 0, 0, 0, 0])),
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
        ("cut", changed(-1, 1.0)),
        ("cut", lambda a: np.full_like(a, NAN)),
        ("cut", lambda a: np.full_like(a, INF)),
        ("counts", lambda a: np.concatenate([a[:1] * 0, a[1:]])),  # a tree of no rows
        ("counts", changed(6, -1)),
        ("tree_sizes", lambda a: np.array([a[0] + 1, a[1] - 1, *a[2:]])),
        ("tree_sizes", lambda a: np.array([a[0] + a[1], 0, *a[2:]])),
        ("tree_sizes", lambda a: np.array([2**62, 2**62, *a[2:]])),
        ("n_values", changed(1, 2)),
        ("confidence", 0.7),
        ("min_leaf", 0),
    ],
    "PMM": [
        ("word_probabilities", np.full((2, 3), 1 / 3)),  # (d, q) in files
        ("word_probabilities", np.full((3, 2), 0.5)),
        ("word_probabilities", np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])),
        ("pair_shares", np.full((2, 2), 0.4)),
        ("pair_shares", np.array([[0.5, 1.5], [-0.5, 0.5]])),
        ("label_rows", np.array([-1.0, 2])),
        ("xi", 0.0),
    ],
    "RankSVM": [("degree", 0), ("support_vectors", lambda a: {"dense": a["dense"][:, 1:]})],
}
CASES = [(name, *case) for name, cases in WRONG.items() for case in cases]


@pytest.mark.parametrize("case", CASES, ids=[f"{name}-{key}" for name, key, *_ in CASES])
def test_parts_that_do_not_fit_together_are_refused(case, tmp_path):
    name, key, wrong, *message = case
    path = tmp_path / "model"
    fitted(name).save(path)
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
