"""The k-d tree: the graph of the other searches, ties and overflows included."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import vectors

import nearlabel as nl
from nearlabel.search.exact import index as exact
from nearlabel.search.exact import kd_tree as tree

METRICS = ["euclidean", "sqeuclidean", "manhattan", "chebyshev"]
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.EfficiencyWarning"),
    pytest.mark.engines,
]


def by(wins, *arguments, **options):
    """The graph with or without the tree, and how many rows the tree left."""
    left = []
    search = tree.TreeIndex.search

    def spy(self, *more):
        left.append(search(self, *more))
        return left[-1]

    with (
        mock.patch.object(exact, "tree_wins", return_value=wins),
        mock.patch("nearlabel.search.exact.equal_rows.equal_rows", return_value=None),
        mock.patch.object(tree.TreeIndex, "search", spy),
    ):
        graph = nl.neighbor_graph(*arguments, **options)
    assert len(left) == wins
    return graph, len(left[0]) if wins else 0


def assert_same(X, *arguments, **options):
    (ours, left), (twin, _) = (by(wins, X, *arguments, **options) for wins in (True, False))
    np.testing.assert_array_equal(ours.indices, twin.indices)
    np.testing.assert_array_equal(ours.distances, twin.distances)
    return left


@given(data=st.data(), X=vectors(features=st.integers(1, 8)), metric=st.sampled_from(METRICS))
def test_equals_the_other_searches(data, X, metric):
    k = data.draw(st.integers(1, len(X) - 1))
    options = {"metric": metric, "n_jobs": data.draw(st.integers(1, 2))}
    with mock.patch.object(tree, "_MORE", data.draw(st.integers(0, 8))):
        assert_same(X, k, search=nl.ExactSearch(data.draw(st.sampled_from([1, 2**26]))), **options)
        assert_same(X, k + 1, X[:3] + 0.25, **options)


@pytest.mark.parametrize("metric", METRICS)
def test_larger_data(metric):
    rng = np.random.default_rng(0)
    assert assert_same(rng.normal(size=(3000, 3)), 10, metric=metric) == 0
    grid = rng.integers(0, 9, (900, 3)) / 3
    assert_same(grid, 10, metric=metric)
    assert assert_same(np.zeros((500, 2)), 3, metric=metric) == 500  # all tie
    assert_same(np.repeat(rng.normal(size=(50, 2)), 20, axis=0), 30, metric=metric)
    assert_same(rng.normal(size=(400, 2)) * 1e-170, 5, metric=metric)  # squares underflow


def test_distances_that_overflow_in_the_tree():
    rng = np.random.default_rng(0)
    X = np.concatenate([np.arange(10.0), 1e200 * (1 + rng.random(600))])[:, None]
    assert_same(X, 3, X[:4], metric="manhattan")
    assert_same(X, 3, X[:10], metric="euclidean")


def test_when_it_is_used():
    few, many = np.zeros((100, 2)), np.zeros((4000, 2))
    assert exact.tree_wins(many, "euclidean")
    assert exact.tree_wins(many, "chebyshev")
    assert not exact.tree_wins(few, "euclidean")
    assert not exact.tree_wins(many, "cosine")
    assert not exact.tree_wins(np.zeros((4000, 9)), "euclidean")
    assert not exact.tree_wins(many, min)


def test_progress_ends_when_all_is_done():
    told = []
    _, left = by(True, np.zeros((300, 2)), 3, progress=lambda *now: told.append(now))
    assert left == 300
    assert told == sorted(told)
    assert told[-1] == (300, 300)
    assert told.count((300, 300)) == 1
