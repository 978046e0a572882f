"""Which lists a query probes: by a number, or by the distances of their centers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.search import InvertedLists, neighbor_graph
from nearlabel.search.approximate.inverted_lists import ListIndex
from nearlabel.search.approximate.probes import Probes


@st.composite
def centers_far_away(draw):
    """Distances of centers to some queries, sorted, often equal."""
    m, count = draw(st.integers(1, 6)), draw(st.integers(2, 12))
    whole = st.lists(st.integers(0, 9), min_size=count, max_size=count)
    return np.sort(np.array([draw(whole) for _ in range(m)], float), axis=1)


@given(centers_far_away(), st.data())
def test_a_margin_keeps_a_share_of_the_lists(distances, data):
    m, count = distances.shape
    most = data.draw(st.integers(1, count))
    share = data.draw(st.sampled_from([0.1, 0.3, 0.5, 1.0]))
    rule = Probes.adapted(most, share, distances)
    if most in (1, count):
        assert rule == Probes.fixed(most)
        return
    farther = distances[:, 1:most] - distances[:, :1]
    assert rule.most == most
    assert np.mean(farther <= rule.margin) >= share
    assert np.sum(farther < rule.margin) < share * farther.size
    assert rule.usual == pytest.approx(1 + np.sum(farther <= rule.margin) / m)


@pytest.mark.parametrize("rule", [Probes.fixed(1), Probes.fixed(7), Probes(9, 0.5, 4.0)])
def test_more_lists_up_to_all(rule):
    steps = [rule]
    while steps[-1].most < 50:
        steps.append(steps[-1].more(50))
    assert steps[-1] == Probes.fixed(50)
    assert all(one.most < other.most for one, other in pairwise(steps))
    assert all(one.margin <= other.margin for one, other in pairwise(steps))
    assert len(steps) < 30


def test_rules_for_other_numbers_of_lists():
    rule = Probes(9, 0.5, 4.0)
    assert rule.at_least(9) is rule
    assert rule.at_least(12) == Probes(12, 0.5, 4.0)
    assert Probes.fixed(2).at_least(5) == Probes.fixed(5)
    assert rule != Probes(9, 0.6, 4.0)


def with_noise(widths, n=4000, d=16):
    """Clusters around random centers, each as wide as one of the given numbers."""
    rng = np.random.default_rng(0)
    centers, widths = rng.normal(size=(60, d)), np.resize(widths, 60)
    home = rng.integers(0, 60, n)
    return centers[home] + widths[home, None] * rng.normal(size=(n, d))


@pytest.mark.usefixtures("small_lists")
@pytest.mark.engines
def test_a_margin_takes_fewer_lists_than_a_number_where_clusters_overlap():
    X = with_noise([0.7])
    index = InvertedLists(0.98).build(X)
    rule = index.ready(8, 1)[1].probes
    assert np.isfinite(rule.margin)
    queries = with_noise([0.7], n=300)
    exact = neighbor_graph(X, 8, queries, search="exact").distances[:, -1:].astype(np.float32)
    adapted, fixed = (
        np.mean(np.float32(index._listed.nearest(queries, 8, probes, 1).distances) <= exact)
        for probes in (rule, Probes.fixed(int(np.ceil(rule.usual))))
    )
    assert fixed < adapted
    assert adapted > 0.96


@pytest.mark.usefixtures("small_lists")
def test_a_number_serves_rows_without_clusters():
    rule = InvertedLists(0.9).build(with_noise([2.0])).ready(8, 1)[1].probes
    assert rule == Probes.fixed(rule.most)


@pytest.mark.usefixtures("small_lists")
@pytest.mark.engines
def test_a_rule_is_stored_with_its_margin():
    X = with_noise([0.7])
    index = InvertedLists(0.98).build(X)
    rule, found = index.ready(8, 1)[1].probes, index.graph(8, X[:20])
    tree = index._tree()
    back = ListIndex.from_tree(tree, index.stored()[1], "euclidean")
    assert back.ready(8, 1)[1].probes == rule
    np.testing.assert_array_equal(back.graph(8, X[:20]).indices, found.indices)
    # Files of version 1.0 have the number of lists alone.
    [plan] = tree["plans"]
    tree["plans"] = [{name: plan[name] for name in ("k", "probes", "recall")}]
    older = ListIndex.from_tree(tree, index.stored()[1], "euclidean")
    assert older.ready(8, 1)[1].probes == Probes.fixed(rule.most)
    assert np.all(older.graph(8, X[:20]).distances <= found.distances)


@pytest.mark.usefixtures("small_lists")
@pytest.mark.engines
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "manhattan"])
def test_the_lists_within_the_margin_are_probed(metric):
    X = with_noise([0.7])
    index = InvertedLists(0.98).build(X, metric)
    index.recall(8)
    listed, most = index._listed, 12
    near = neighbor_graph(listed.lists.centers, most, X[:300], metric=metric, search="exact")
    farther = near.distances - near.distances[:, :1]
    none, sizes = len(listed.lists), listed.lists.sizes
    for margin in (0.0, *np.quantile(farther, [0.1, 0.4, 0.9])):
        is_within = near.distances <= near.distances[:, :1] + margin
        within = np.where(is_within, near.indices, none)
        rule = Probes(most, margin, most)
        np.testing.assert_array_equal(listed._probed_lists(X[:300], rule, 0)[0], within)
        # Where these contain too few rows, all are probed.
        rows = np.where(is_within, sizes[near.indices], 0).sum(axis=1)
        needed = int(np.median(rows))
        within[rows < needed] = near.indices[rows < needed]
        probed, is_short = listed._probed_lists(X[:300], rule, needed)
        np.testing.assert_array_equal(probed, within)
        np.testing.assert_array_equal(is_short, sizes[near.indices].sum(axis=1) < needed)
