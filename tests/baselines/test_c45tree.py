import inspect
import sys
import warnings
from pathlib import Path

import j48_problems
import numpy as np
import pytest
from estimator_checks import parametrize_with_quick_checks
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples, label_matrices, vectors

import nearlabel as nl
from nearlabel.baselines.c45_growing import (
    GrowingData,
    Node,
    WeightedRows,
    grown_tree,
    largest_branch,
)
from nearlabel.baselines.c45_splits import (
    Columns,
    Split,
    clearly_best,
    estimated_errors,
)
from nearlabel.baselines.c45tree import c45_tree

FORMS = (np.asarray, sparse.csr_array)
RECORDED = Path(__file__).with_name("j48_trees")
# The worked example F6: label 2 never occurs, label 3 always.
X6 = np.array([[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]])
Y6 = np.array([[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]])


@parametrize_with_quick_checks([nl.C45Tree()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def training_of(X, classes, n_classes, n_values=None, min_leaf=2, actual_cuts=True):
    n_values = np.zeros(X.shape[1], int) if n_values is None else np.asarray(n_values)
    columns = Columns(X, n_values)
    entries = columns.sorted_entries()
    return GrowingData(columns, entries, np.asarray(classes), n_classes, min_leaf, actual_cuts)


def recorded(name):
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["iris", "glass", "mixed"])
def test_trees_that_j48_printed(name, form):
    problem = getattr(j48_problems, name)()
    X, classes = form(problem.X), problem.classes
    tree = c45_tree(training_of(X, problem.y, len(classes), problem.n_values), 0.25)
    assert tree.text(problem.features, classes) == recorded(name)


@pytest.mark.parametrize("form", FORMS)
def test_trees_of_labels_that_j48_printed(form):
    problem = j48_problems.labels()
    model = nl.C45Tree().fit(form(problem.X), problem.y)
    for label in range(4):
        assert model.tree_text(label) == recorded(f"labels_{label}")


def test_shares_that_j48_gave_rows_with_gaps():
    problem = j48_problems.mixed()
    tree = c45_tree(training_of(problem.X, problem.y, 3, problem.n_values), 0.25)
    columns = Columns(j48_problems.unseen_rows(problem), problem.n_values)
    expected = np.loadtxt(RECORDED / "mixed_scores.txt")
    np.testing.assert_allclose(tree.scores(columns, tree.shares()), expected, rtol=0, atol=1e-12)


@st.composite
def tables(draw):
    """X with gaps and nominal columns, classes, and numbers of values."""
    X = np.array(draw(vectors(st.integers(2, 30), st.integers(1, 4))), float) + 0.0
    n, d = X.shape
    n_values = np.array(draw(st.lists(st.sampled_from([0, 0, 2, 3, 12]), min_size=d, max_size=d)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nominal = n_values > 0
    X[:, nominal] = rng.integers(0, n_values[nominal], (n, nominal.sum()))
    n_classes = draw(st.integers(2, 4))
    hidden = X[:, 0] + X[:, -1] * draw(st.sampled_from([0, 1]))
    ranks = np.unique(hidden, return_inverse=True)[1]
    noise = rng.random(n) < draw(st.sampled_from([0.0, 0.2, 1.0]))
    classes = np.where(noise, rng.integers(0, n_classes, n), ranks % n_classes)
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2, 0.4]))] = np.nan
    return X, classes, n_classes, n_values


def nodes(node):
    yield node
    for child in node.children:
        yield from nodes(child)


@examples(100)
@given(
    table=tables(),
    min_leaf=st.sampled_from([1, 2, 5]),
    actual_cuts=st.booleans(),
)
def test_trees_of_any_table(table, min_leaf, actual_cuts):
    """They do not depend on the form; those with less confidence are not larger."""
    X, classes, n_classes, n_values = table
    how = classes, n_classes, n_values, min_leaf, actual_cuts
    trees = {
        confidence: [c45_tree(training_of(form(X), *how), confidence) for form in FORMS]
        for confidence in (0.5, 0.01)
    }
    names = [f"x{column}" for column in range(X.shape[1])]
    for dense, other in trees.values():
        assert dense.text(names, range(n_classes)) == other.text(names, range(n_classes))
        scores = dense.scores(Columns(X, n_values), dense.shares())
        assert (scores >= 0).all()
        np.testing.assert_allclose(scores.sum(axis=1), 1)
        numeric = (dense.feature >= 0) & (n_values[dense.feature] == 0)
        for feature, cut in zip(dense.feature[numeric], dense.cut[numeric], strict=True):
            assert not actual_cuts or cut in X[:, feature]
    assert len(trees[0.01][0].feature) <= len(trees[0.5][0].feature)
    for node in nodes(grown_tree(training_of(X, *how))):
        if node.split is not None:
            weights = sorted(child.counts.sum() for child in node.children)
            assert weights[-2] >= min_leaf - 1e-6


@given(X=vectors(), data=st.data())
def test_each_label_has_the_tree_of_its_own_classes(X, data):
    Y = data.draw(label_matrices(len(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = nl.C45Tree().fit(X, Y)
        scores = model.label_scores(X).toarray()
    assert ((scores >= 0) & (scores <= 1)).all()
    np.testing.assert_array_equal(model.predict(X), scores > 0.5)
    for label in range(Y.shape[1]):
        alone = c45_tree(training_of(np.asarray(X, float), Y[:, label], 2), 0.25)
        assert model.tree_text(label) == alone.text([f"x{f}" for f in range(X.shape[1])], "01")
        if Y[:, label].min() == Y[:, label].max():
            assert (scores[:, label] == Y[0, label]).all()


def test_the_worked_example():
    """With its cut halfway, the query is left of it; J48 moves the cut down to a value, 1."""
    query = [[2.2, 0.4]]
    halfway = nl.C45Tree(actual_cuts=False).fit(X6, Y6)
    assert halfway.tree_text(0).startswith("x0 <= 2.5: 1 (3.0)\nx0 > 2.5: 0 (3.0)\n")
    assert halfway.label_scores(query).toarray()[0, [0, 2, 3]].tolist() == [1, 0, 1]
    moved = nl.C45Tree().fit(X6, Y6)
    assert moved.tree_text(0).startswith("x0 <= 1: 1 (3.0)\nx0 > 1: 0 (3.0)\n")
    assert moved.label_scores(query).toarray()[0, [0, 2, 3]].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("n", "wrong", "expected"),
    # Quinlan 1993, section 4.2: U25% of (0, 6), (0, 9), (0, 1).
    [(6, 0, 6 * 0.206), (9, 0, 9 * 0.143), (1, 0, 0.75)],
)
def test_errors_to_expect_of_quinlans_leaves(n, wrong, expected):
    assert estimated_errors(np.array([n - wrong, wrong]), 0.25) == pytest.approx(expected, abs=5e-3)


def test_parts_of_an_error_are_interpolated():
    none, half, one = (estimated_errors(np.array([6 - e, e]), 0.25) for e in (0, 0.5, 1))
    assert half == pytest.approx((none + one) / 2)
    assert estimated_errors(np.array([16, 4]), 0.5) == pytest.approx(4.5)  # nothing but rounding
    # The one row and a half is wrong altogether, and no more than that.
    assert estimated_errors(np.array([0.5, 0.5, 0.5]), 0.25) == 1.5


def test_rows_that_are_all_missing_go_down_every_branch_alike():
    training = training_of(np.array([[0.0], [1], [2], [np.nan]]), [0, 0, 1, 1], 2, [3])
    parts = training.parts(Split(0, np.nan), WeightedRows(np.array([3]), np.array([0.9])))
    assert [part.rows.tolist() for part in parts] == [[3]] * 3
    assert [part.weights.tolist() for part in parts] == [[pytest.approx(0.3)]] * 3


def test_a_share_of_one_half_is_not_predicted():
    model = nl.C45Tree().fit(np.zeros((4, 1)), [[0], [1], [0], [1]])
    assert model.label_scores([[0]]).toarray() == 0.5
    assert model.predict([[0]]) == 0


@pytest.mark.parametrize(("few", "size"), [(24, 1), (25, 3)])
def test_no_branch_of_a_cut_needs_more_than_25_rows(few, size):
    """A tenth of the rows per class would be 60."""
    X = (np.arange(1200.0) >= few)[:, None]
    model = nl.C45Tree().fit(X, (X == 0).astype(int))
    assert f"Size of the tree : \t{size}" in model.tree_text(0)


def test_of_branches_of_equal_weight_the_last_one_is_raised():
    sample = WeightedRows(np.arange(2), np.ones(2))
    first, last = Node(sample, np.array([2.0, 0])), Node(sample, np.array([1.0, 1]))
    assert largest_branch([first, last]) is last
    assert largest_branch([first, Node(sample, np.array([1.0, 0.5]))]) is first


def test_values_that_are_nearly_equal_are_not_cut_apart():
    X = np.array([[0.0], [0], [0], [0.9e-5], [0.9e-5], [0.9e-5]])
    Y = np.array([[0], [0], [0], [1], [1], [1]])
    assert "Size of the tree : \t1" in nl.C45Tree().fit(X, Y).tree_text(0)
    assert "Size of the tree : \t3" in nl.C45Tree().fit(2 * X, Y).tree_text(0)


def test_the_first_of_equal_values_is_the_best():
    assert clearly_best([0.1, 0.3, 0.3 + 5e-7, 0.2]) == 1
    assert clearly_best([0.1, 0.3, 0.3 + 5e-7, 0.3 + 1.1e-6]) == 3
    assert clearly_best([5e-7, 0.0]) == -1
    assert clearly_best([]) == -1


def test_trees_may_be_deeper_than_python_recurses():
    """Each feature separates two rows of class 1 from all others, so the tree is one long path."""
    depth = 150
    X = np.vstack([np.repeat(np.eye(depth), 2, axis=0), np.zeros((300, depth))])
    training = training_of(X, [1] * (2 * depth) + [0] * 300, 2, [2] * depth)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        tree = c45_tree(training, 0.25)
    finally:
        sys.setrecursionlimit(limit)
    assert len(tree.feature) == 2 * depth + 1
    lines = tree.text([f"x{feature}" for feature in range(depth)], "01").split("\n")
    assert max(line.count("|   ") for line in lines) == depth - 1


@pytest.mark.parametrize("features", [[1, 3, 4], [False, True, False, True, True, False]])
def test_nominal_features(features, tmp_path):
    problem = j48_problems.mixed()
    Y = (problem.y[:, None] == np.arange(3)).astype(int)
    model = nl.C45Tree(nominal_features=features).fit(problem.X, Y)
    for label in range(3):
        tree = c45_tree(training_of(problem.X, Y[:, label], 2, problem.n_values), 0.25)
        assert model.tree_text(label) == tree.text([f"x{f}" for f in range(6)], "01")
    assert " = 2" in model.tree_text(0)
    model.save(tmp_path / "model")
    again = nl.load(tmp_path / "model").fit(problem.X, Y)
    assert [again.tree_text(label) for label in range(3)] == [
        model.tree_text(label) for label in range(3)
    ]


def test_a_code_that_no_training_row_has_is_missing():
    problem = j48_problems.mixed()
    model = nl.C45Tree(nominal_features=[1, 3, 4]).fit(problem.X, problem.y[:, None] == 2)
    rows = j48_problems.unseen_rows(problem)
    rows[:, 1] = np.nan
    expected = model.label_scores(rows).toarray()
    rows[:, 1] = 3
    np.testing.assert_array_equal(model.label_scores(rows).toarray(), expected)


@pytest.mark.parametrize(
    ("X", "Y"),
    [
        ([[0.0], [1]], [[0], [1]]),
        (np.zeros((9, 3)), np.eye(9, 4)),
        (np.full((9, 2), np.nan), np.eye(9, 4)),
        (np.arange(12.0).reshape(6, 2), np.zeros((6, 2))),
        (np.array([[-1e308], [1e308]] * 4), np.array([[0], [1]] * 4)),
    ],
    ids=["two rows", "constant", "all missing", "no label", "huge"],
)
def test_little_to_learn_from(X, Y):
    for form in FORMS:
        scores = nl.C45Tree().fit(form(X), np.asarray(Y, int)).label_scores(form(X)).toarray()
        assert ((scores >= 0) & (scores <= 1)).all()
    assert nl.C45Tree(nominal_features=[0]).fit(np.abs(np.sign(X)), np.asarray(Y, int)) is not None


def test_tree_text_names_features_labels_and_classes():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(X6, columns=["wide", "high"])
    model = nl.C45Tree().fit(X, Y6, label_names=["sea", "hill", "tree", "sky"])
    assert model.tree_text("sea") == model.tree_text(0)
    assert model.tree_text("sea").startswith("wide <= 1: 1 (3.0)\n")
    assert model.tree_text("sky") == (
        ": 1 (6.0)\n\nNumber of Leaves  : \t1\n\nSize of the tree : \t1"
    )
    for label, error in (("town", ValueError), (4, ValueError), (None, TypeError)):
        with pytest.raises(error, match="label"):
            model.tree_text(label)
    one = nl.C45Tree().fit(X6, np.where(Y6[:, 0], "yes", "no"))
    assert one.tree_text(0).startswith("x0 <= 1: yes (3.0)\n")


def test_queries_must_have_codes():
    model = nl.C45Tree(nominal_features=[0]).fit(X6, Y6)
    with pytest.raises(ValueError, match="X .*codes.*column 0.*2.5"):
        model.predict([[2.5, 0]])


def test_progress():
    told = []
    nl.C45Tree().fit(X6, Y6, progress=lambda *steps: told.append(steps))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
