"""Lists in use: reached rows, rows added later, and lists from files."""

import pickle
from copy import copy
from unittest import mock

import numpy as np
import pytest
from tree_paths import read_tree
from twin_graphs import assert_same

from nearlabel.common import engine
from nearlabel.common.files import write_tree
from nearlabel.graph import Recall
from nearlabel.search import (
    InvertedLists,
    neighbor_graph,
    pair_distances,
)
from nearlabel.search.approximate import inverted_lists, probing
from nearlabel.search.approximate.inverted_lists import ListIndex, planned_neighbors
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.approximate.probing import QueryPlan

pytestmark = [pytest.mark.usefixtures("small_lists"), pytest.mark.kernels]
METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan"]
SOME = [
    *("euclidean", "cosine"),
    *(pytest.param(metric, marks=pytest.mark.slow) for metric in ("sqeuclidean", "manhattan")),
]
TOLD = Recall(0.75, 0.01, 32, 8, "base")


def clustered(n, d, seed=0):
    """Clusters that overlap: some neighbors of a row are in other lists."""
    centers = 1.5 * np.random.default_rng(0).normal(size=(40, d))
    rng = np.random.default_rng(seed)
    return centers[rng.integers(0, 40, n)] + rng.normal(size=(n, d))


def probed(X, queries, centers, metric, probes, k):
    """Which rows each query is compared with: those of the lists that it probes, (m, n) bool.

    Where these hold fewer than k rows, the margin does not count; then all are probed.
    """
    home = neighbor_graph(centers, 1, X, metric=metric, search="exact").indices[:, 0]
    near = neighbor_graph(centers, probes.most, queries, metric=metric, search="exact")
    is_probed = near.distances <= near.distances[:, :1] + probes.margin
    is_near = ((home == near.indices[:, :, None]) & is_probed[:, :, None]).any(axis=1)
    short, count = is_near.sum(axis=1) < k, len(centers)
    if short.any():
        more = Probes.fixed(count if probes.margin == np.inf else probes.most)
        is_near[short] = probed(X, queries[short], centers, metric, more, k)
    return is_near


def measured(X, queries, metric):
    """All distances."""
    query, row = (ends.ravel() for ends in np.indices((len(queries), len(X))))
    return pair_distances(X, metric, queries, query, row).reshape(len(queries), len(X))


def in_float32(distances):
    with np.errstate(over="ignore"):
        return distances.astype(np.float32)


def probes_of(index, k):
    return index.ready(k, 1)[1].probes


def planned(index, probes, recall):
    """The same lists with other probes for eight neighbors."""
    index.ready(8, 1)
    other = copy(index)
    other._listed, other._plans = index._listed, {8: QueryPlan(probes, recall)}
    return other


def as_dict(reached):
    pairs = zip(reached.row.tolist(), reached.new.tolist(), strict=True)
    return dict(zip(pairs, reached.distance.tolist(), strict=True))


def check_answers(index, X, queries, k, limits, metric, centers, probes):
    """Neighbors and reached rows of queries, by brute force over the lists that they probe."""
    distances = measured(X, queries, metric)
    told = in_float32(distances)
    seen = probed(X, queries, centers, metric, probes, k)
    expected = {
        (row, query): told[query, row]
        for query, row in np.argwhere(seen & (told < limits)).tolist()
    }
    for n_jobs in (1, 2):
        graph, reached = index.nearest_and_reached(queries, k, limits, n_jobs=n_jobs)
        assert len(reached.row) == len(expected)
        assert as_dict(reached) == expected
        assert_same(graph, index.graph(k, queries))
    for query in range(len(queries)):
        rows = np.flatnonzero(seen[query])
        nearest = rows[np.lexsort((rows, distances[query, rows]))[:k]]
        its = distances[query, nearest].astype(graph.distances.dtype)
        order = np.lexsort((nearest, its))
        np.testing.assert_array_equal(graph.indices[query], nearest[order])
        np.testing.assert_array_equal(graph.distances[query], its[order])
    return reached


def kth_distances(X, k, metric):
    return neighbor_graph(X, k, metric=metric, search="exact").distances[:, -1].astype(np.float32)


# Reached rows


@pytest.mark.parametrize("metric", METRICS)
def test_reached_rows_are_those_of_the_probed_lists_within_their_limits(metric):
    X, queries = clustered(500, 6), clustered(60, 6, seed=1)
    limits = kth_distances(X, 12, metric)
    limits[::9] = -np.inf
    limits[1::90] = np.inf
    index = InvertedLists(0.8).build(X, metric)
    probes = probes_of(index, 10)
    centers = index._listed.lists.centers
    assert probes.most < len(centers)
    with mock.patch.object(probing, "_QUERIES_AT_ONCE", 13):
        reached = check_answers(index, X, queries, 10, limits, metric, centers, probes)
    assert len(reached.row)
    assert not set(reached.row.tolist()) & set(range(0, 500, 9))
    with mock.patch.object(engine, "core", return_value=None):
        twin = InvertedLists(0.8).build(X, metric).nearest_and_reached(queries, 10, limits)
    assert_same(twin[0], index.graph(10, queries))
    np.testing.assert_array_equal(np.array(twin[1]), np.array(reached))


@pytest.mark.engines
def test_a_row_at_its_limit_is_not_reached():
    X = np.random.default_rng(0).integers(0, 3, (400, 4)).astype(np.float32)
    with mock.patch("nearlabel.search.exact.equal_rows.equal_rows", return_value=None):
        index = InvertedLists(1.0).build(X)
    queries = X[:20] + np.float32(1)
    distances = in_float32(measured(X, queries[:1], "euclidean")[0])
    _, reached = index.nearest_and_reached(queries[:1], 3, distances)
    assert not len(reached.row)
    above = np.nextafter(distances, np.float32(np.inf))
    _, reached = index.nearest_and_reached(queries[:1], 3, above)
    assert sorted(reached.row.tolist()) == list(range(400))
    check_answers(index, X, queries, 5, above, "euclidean", *lists_of(index, 5))


def lists_of(index, k):
    probes = probes_of(index, k)
    return index._listed.lists.centers, probes


@pytest.mark.engines
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_queries_far_away_and_lists_far_from_each_other(metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5)) + 1e6 * rng.normal(size=(3, 5))[np.arange(1200) % 3]
    limits = kth_distances(X, 9, metric)
    limits[::100] = np.finfo(np.float32).max
    queries = np.vstack([X[::90] + 0.1, 1e25 * X[:2], 1e120 * X[:2], np.zeros((1, 5))])
    index = InvertedLists(0.9).build(X, metric)
    centers, probes = lists_of(index, 4)
    check_answers(index, X, queries, 4, limits, metric, centers, probes)


# More neighbors than planned


@pytest.mark.engines
def test_more_neighbors_than_planned_take_the_same_probes():
    X, queries = clustered(600, 6), clustered(30, 6, seed=1)
    index = InvertedLists(0.8).build(X)
    graph = index.graph(8, queries)
    more = index.graph(10, queries, planned_for=8)
    assert list(index._plans) == [8]
    np.testing.assert_array_equal(more.indices[:, :8], graph.indices)
    assert more.recall == graph.recall
    limits = np.full(len(X), -np.inf, np.float32)
    both, _ = index.nearest_and_reached(queries, 10, limits, planned_for=8)
    assert_same(both, more)
    most = index.graph(len(X), queries, planned_for=8)  # more than the lists hold
    np.testing.assert_array_equal(np.sort(most.indices), np.tile(np.arange(600), (30, 1)))
    assert list(index._plans) == [8]


# Rows that come later


def joined(index, vectors, old=0, first=0):
    """Rows in the lists of an index: `old` of its own, from `first` on, and others."""
    numbers = np.full(len(vectors), -1)
    numbers[:old] = first + np.arange(old)
    return index.renewal(10**9, 0)(vectors, numbers)


@pytest.mark.engines
def test_few_rows_in_many_lists():
    X, later = clustered(4000, 3), clustered(600, 3, seed=1)
    queries = np.vstack([clustered(80, 3, seed=2), [[50.0, 0, 0]]])
    index = InvertedLists(0.3).build(X)
    centers, probes = lists_of(index, 5)
    few, limits = joined(index, later), np.full(600, 0.4, np.float32)
    few._plans[8] = index._plans[8]
    for k in (5, 20, 600):
        few._plans[planned_neighbors(k, 600)] = few._plans[8]
        reached = check_answers(few, later, queries, k, limits, "euclidean", centers, probes)
        assert len(reached.row)
    seen = probed(later, queries, centers, "euclidean", probes, 5).sum(axis=1)
    assert 5 <= seen.min() < 600 == seen.max()


@pytest.mark.parametrize("metric", SOME)
@pytest.mark.parametrize("count", [1, 400])
def test_rows_join_the_lists_of_their_nearest_centers(metric, count):
    X, later, queries = clustered(600, 6), clustered(count, 6, seed=1), clustered(50, 6, seed=2)
    index = planned(InvertedLists(0.7).build(X, metric), Probes.fixed(6), TOLD)
    both = np.vstack([X[100:], later])
    centers, probes = lists_of(index, 8)
    limits = kth_distances(both, 9, metric)
    assert index.renewal(10, 0) is None
    with mock.patch.object(inverted_lists, "_SHARE_PLANNED", 1):
        more = joined(index, both, 500, 100)
    assert list(more._plans) == [8]
    check_answers(more, both, queries, 8, limits, metric, centers, probes)
    assert more.graph(8, queries).recall == TOLD
    assert not more.graph(8).has_self()
    with mock.patch.object(engine, "core", return_value=None):
        twin = planned(InvertedLists(0.7).build(X, metric), Probes.fixed(6), TOLD)
        with mock.patch.object(inverted_lists, "_SHARE_PLANNED", 1):
            twin = joined(twin, both, 500, 100).graph(8, queries)
    assert_same(more.graph(8, queries), twin)
    unlisted = joined(InvertedLists(0.7).build(X, metric), both, 500, 100)
    assert_same(unlisted.graph(8), InvertedLists(0.7).build(both, metric).graph(8))


# Lists from files


class Watched(np.ndarray):
    """Rows that note which of them are read, as mapped ones check those."""

    def __getitem__(self, rows):
        self.read[rows] = True
        return np.asarray(self)[rows]


def watched(rows):
    rows = rows.view(Watched)
    rows.read = np.zeros(len(rows), bool)
    return rows


def stored(index, tmp_path, mmap):
    """What a file gives back of an index: its tree and its rows."""
    write_tree(tmp_path / "lists.nl", {**index._tree(), "rows": index.stored()[1]})
    tree, _ = read_tree(tmp_path / "lists.nl", mmap=mmap)
    return tree, tree.pop("rows")


@pytest.mark.parametrize(
    ("metric", "kind", "mmap"),
    [
        *((metric, np.float32, True) for metric in ("euclidean", "sqeuclidean", "manhattan")),
        pytest.param("cosine", np.float32, True, marks=pytest.mark.engines),
        ("cosine", float, False),
        pytest.param("euclidean", np.int16, True, marks=pytest.mark.engines),
        ("euclidean", np.float16, False),
    ],
)
def test_an_index_comes_back_from_a_file(metric, kind, mmap, tmp_path):
    X, queries = (10 * clustered(500, 6)).astype(kind), (10 * clustered(40, 6, 1)).astype(kind)
    index = InvertedLists(0.8, 3).build(X, metric)
    graph, asked, limits = index.graph(8), index.graph(8, queries), kth_distances(X, 8, metric)
    tree, rows = stored(index, tmp_path, mmap)
    assert rows.dtype == X.dtype
    back = ListIndex.from_tree(tree, rows, metric)
    assert isinstance(back, ListIndex)
    with mock.patch.object(inverted_lists, "make_plan", side_effect=AssertionError):
        assert_same(back.graph(8, queries), asked)
        for ours, theirs in zip(
            back.nearest_and_reached(queries, 8, limits)[1],
            index.nearest_and_reached(queries, 8, limits)[1],
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)
    assert_same(back.graph(8), graph)
    assert_same(back.graph(12, queries), index.graph(12, queries))
    later = clustered(60, 6, 4)
    both = np.vstack([X, later])
    ours, theirs = (joined(part, both, 500).graph(5, queries) for part in (back, index))
    assert_same(ours, theirs)
    np.testing.assert_array_equal(np.asarray(back.vectors), X)
    some = np.array([7, 400, 7, 0])
    np.testing.assert_array_equal(back.vectors[some], X[some])
    np.testing.assert_array_equal(back.vectors[3:9], X[3:9])
    for again in (
        pickle.loads(pickle.dumps(back)),
        ListIndex.from_tree(back._tree(), rows, metric),
    ):
        assert_same(again.graph(8, queries), asked)
        assert_same(again.graph(8), graph)


@pytest.mark.parametrize(
    ("metric", "kind", "kept_bytes"),
    [
        ("euclidean", np.float32, 2**30),
        pytest.param("manhattan", np.float64, 3000, marks=pytest.mark.engines),
        ("cosine", np.float32, 3000),
        ("cosine", np.float16, 2**30),
    ],
)
def test_only_the_lists_of_a_query_are_read(metric, kind, kept_bytes):
    X = clustered(2000, 6).astype(kind)
    index = InvertedLists(0.5).build(X, metric)
    asked = index.graph(8, X[:3])
    tree = index._tree()
    rows = watched(index.stored()[1])
    with mock.patch.object(probing, "_PACKED_BYTES", kept_bytes):
        back = ListIndex.from_tree(tree, rows, metric)
        assert not rows.read.any()
        assert_same(back.graph(8, X[:3]), asked)
    assert 0 < rows.read.sum() <= 3 * probes_of(index, 8).most * index._listed.lists.sizes.max()
    assert rows.read.sum() < len(X) / 2


@pytest.mark.engines
def test_non_finite_numbers_are_refused_on_access():
    X = clustered(2000, 6)
    index = InvertedLists(0.5).build(X)
    asked = index.graph(8, X[:1])
    rows = index.stored()[1].copy()
    rows[index._listed.lists.starts[-2]] = np.nan
    back = ListIndex.from_tree(index._tree(), rows, "euclidean")
    last = index._listed.lists.centers[-1:]
    if engine.core() is not None:
        assert_same(back.graph(8, X[:1]), asked)
    for _ in range(2):
        with pytest.raises(ValueError, match="damaged.*not finite"):
            back.graph(8, last)
    with pytest.raises(ValueError, match="damaged.*not finite"):
        back.graph(8)


def changed(array, place, value):
    array = np.array(array)
    array[place] = value
    return array


DAMAGES = {
    "starts fall": ("starts", lambda a: changed(a, 1, a[2] + 1)),
    "starts end early": ("starts", lambda a: changed(a, -1, a[-1] - 1)),
    "starts begin late": ("starts", lambda a: changed(a, 0, 1)),
    "no starts": ("starts", lambda a: a[:1]),
    "starts are no numbers": ("starts", lambda a: "x"),
    "starts are floats": ("starts", lambda a: a.astype(float)),
    "a row twice": ("order", lambda a: changed(a, 0, a[1])),
    "a row beyond the last": ("order", lambda a: changed(a, 0, len(a))),
    "a row before the first": ("order", lambda a: changed(a, 0, -1)),
    "a row less": ("order", lambda a: a[1:]),
    "a row more": ("order", lambda a: np.append(a, 0)),
    "a center is none": ("centers", lambda a: changed(a, 0, np.nan)),
    "a center less": ("centers", lambda a: a[1:]),
    "narrow centers": ("centers", lambda a: a[:, 1:]),
    "flat centers": ("centers", lambda a: a[:, 0]),
    "bounds are a text": ("bounds", lambda a: "x"),
    "no center": ("bounds", lambda a: {**a, "center": a["center"][1:]}),
    "the center is none": ("bounds", lambda a: {**a, "center": np.inf * a["center"]}),
    "negative reach": ("bounds", lambda a: {**a, "reach": -1.0}),
    "tiny reach": ("bounds", lambda a: {**a, "reach": 1e-200}),
    "infinite reach": ("bounds", lambda a: {**a, "reach": float("inf")}),
    "no probes": ("plans", lambda a: [{**a[0], "probes": 0}]),
    "more probes than lists": ("plans", lambda a: [{**a[0], "probes": 10**6}]),
    "a negative margin": ("plans", lambda a: [{**a[0], "margin": -1.0}]),
    "a margin that is none": ("plans", lambda a: [{**a[0], "margin": np.nan}]),
    "a margin in words": ("plans", lambda a: [{**a[0], "margin": "wide"}]),
    "more neighbors than rows": ("plans", lambda a: [{**a[0], "k": 10**6}]),
    "no recall": ("plans", lambda a: [{**a[0], "recall": {}}]),
    "a recall that is none": ("plans", lambda a: [{**a[0], "recall": "high"}]),
    "plans are none": ("plans", lambda a: None),
    "recall above one": ("recall", lambda a: 2),
    "seed": ("seed", lambda a: -1),
}


@pytest.fixture(scope="module")
def small_index(small_lists):
    index = InvertedLists(0.8).build(clustered(300, 4))
    index.graph(5, np.zeros((1, 4)))
    return index


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_tree_is_refused(damage, small_index, core):
    index = small_index
    tree, (key, change) = index._tree(), DAMAGES[damage]
    ListIndex.from_tree(tree, index.stored()[1], "euclidean")
    with pytest.raises((ValueError, TypeError, KeyError)):
        ListIndex.from_tree({**tree, key: change(tree[key])}, index.stored()[1], "euclidean")
    missing = {name: value for name, value in tree.items() if name != key}
    with pytest.raises(KeyError, match=key):
        ListIndex.from_tree(missing, index.stored()[1], "euclidean")


@pytest.mark.engines
def test_a_tree_that_does_not_fit_the_model_is_refused(small_index):
    tree, rows = small_index._tree(), small_index.stored()[1]
    for metric in ("chebyshev", "precomputed", max):
        with pytest.raises(ValueError, match="metric.*lists"):
            ListIndex.from_tree(tree, rows, metric)
    for other in (rows[1:], rows[:, 1:], rows[:, 0]):
        with pytest.raises(ValueError, match=r"its|unpack"):
            ListIndex.from_tree(tree, other, "euclidean")
    with pytest.raises(ValueError, match="search"):
        ListIndex.from_tree({**tree, "search": "exact"}, rows, "euclidean")


def test_lists_that_were_not_built_are_not_stored():
    assert InvertedLists().build(clustered(300, 4))._tree() is None
