"""The forest of a blend: scikit-learn's trees, votes by a literal count, bias, files."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.tree import ExtraTreeRegressor

import nearlabel as nl
from nearlabel.blend import voting_forest
from nearlabel.blend.voting_forest import VotingForest


@pytest.fixture
def data():
    return nl.datasets.make_local_labels(90, 6, 5, labels_per_sample=2, random_state=1)


@pytest.fixture
def forest(data):
    return VotingForest.fit(data.X[:60], data.Y[:60], 0)


def test_votes_are_those_of_rows_in_the_same_leaf(forest, data):
    Y = data.Y[:60].toarray()
    X = np.asarray(data.X[60:], np.float32)
    expected = np.zeros((30, 5))
    for tree in forest.trees:
        for row, leaf in enumerate(tree.leaves(X)):
            there = tree.leaf == leaf
            expected[row] += np.average(Y[there], axis=0, weights=tree.drawn[there])
    assert forest.scores(data.X[60:]).toarray() == pytest.approx(expected / 12)


def test_left_out_votes_are_those_of_trees_that_have_not_seen_the_row(forest, data):
    Y, found = data.Y[:60].toarray(), forest.left_out_scores(np.arange(60)).toarray()
    for row in (0, 17, 59):
        votes = [
            np.average(Y[tree.leaf == tree.leaf[row]], axis=0, weights=weight)
            for tree in forest.trees
            if tree.drawn[row] == 0
            for weight in [tree.drawn[tree.leaf == tree.leaf[row]]]
        ]
        assert 0 < len(votes) < 12
        assert found[row] == pytest.approx(np.mean(votes, axis=0))


def test_leaves_are_those_of_scikit_learn(data):
    X, Y = np.asarray(data.X[:60], np.float32), data.Y[:60].toarray()
    peer = ExtraTreeRegressor(random_state=0).fit(X, Y)
    grown = peer.tree_
    tree = voting_forest.GrownTree(
        np.maximum(grown.feature, -1),
        grown.threshold,
        np.column_stack([grown.children_left, grown.children_right]),
        peer.apply(X),
        np.ones(60, np.uint8),
    )
    new = np.asarray(data.X[60:], np.float32)
    assert (tree.leaves(new) == peer.apply(new)).all()


def test_sparse_rows_and_threads_change_nothing(forest, data, monkeypatch):
    mine = forest.scores(data.X[60:]).toarray()
    X = sparse.csr_array(data.X)
    for most in (2**26, 0):  # trees that grow on dense and on sparse rows
        monkeypatch.setattr(voting_forest, "_MOST_DENSE_CELLS", most)
        other = VotingForest.fit(X[:60], data.Y[:60], 0, n_jobs=2)
        assert (other.scores(X[60:]).toarray() == mine).all()
    monkeypatch.setattr("nearlabel.blend.rows.CELLS_AT_ONCE", 50)
    assert forest.scores(X[60:]).toarray() == pytest.approx(mine)


def test_many_labels_are_mixed(data, monkeypatch):
    monkeypatch.setattr(voting_forest, "_TARGETS", 3)
    forest = VotingForest.fit(data.X[:60], data.Y[:60], 0)
    scores = forest.scores(data.X[60:])
    assert nl.metrics.average_precision(data.Y[60:], scores) > 0.7


def test_on_random_labels_it_is_as_good_as_on_new_rows():
    gains = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        X = random.normal(size=(240, 6))
        Y = sparse.csr_array((random.random((240, 4)) < [0.5, 0.3, 0.2, 0.1]).astype(np.int8))
        forest = VotingForest.fit(X[:120], Y[:120], seed)
        left_out = nl.metrics.average_precision(Y[:120], forest.left_out_scores(np.arange(120)))
        gains.append(left_out - nl.metrics.average_precision(Y[120:], forest.scores(X[120:])))
    assert np.mean(gains) < 3 * np.std(gains, ddof=1) / np.sqrt(20)


def test_files(forest, data):
    again = VotingForest.from_tree(forest.tree(), data.Y[:60], 6)
    assert (again.scores(data.X[60:]).toarray() == forest.scores(data.X[60:]).toarray()).all()


@pytest.mark.parametrize("harm", ["feature", "circle", "beyond", "leaf", "threshold", "nodes"])
def test_damaged_files_are_refused(forest, data, harm):
    tree = {name: np.array(value) for name, value in forest.tree().items()}
    if harm == "feature":
        tree["feature"][0] = 6
    elif harm == "circle":
        tree["children"][0] = 0
    elif harm == "beyond":
        tree["children"][0] = 10_000
    elif harm == "leaf":
        tree["leaf"][0] = -1
    elif harm == "threshold":
        tree["threshold"][0] = np.nan
    else:
        tree["nodes"][0] += 1
    with pytest.raises((ValueError, IndexError)):
        VotingForest.from_tree(tree, data.Y[:60], 6)


def test_values_beyond_single_precision(data):
    X = np.asarray(data.X, np.float64) * 1e39
    forest = VotingForest.fit(X[:60], data.Y[:60], 0)
    assert np.isfinite(forest.scores(X[60:]).toarray()).all()
