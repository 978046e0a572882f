"""After additions and removals, neighbors equal those of a search of the current rows."""

import pickle
from unittest import mock

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import nearlabel as nl
from nearlabel.search import VectorStore, build_index
from nearlabel.search.approximate import inverted_lists
from nearlabel.search.exact import equal_rows
from nearlabel.search.exact import index as exact_search
from nearlabel.search.living import living_index
from nearlabel.search.living.living_index import LivingIndex

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore:.*compares row by row")]

METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan", "chebyshev", "hamming", "jaccard"]
FORMS = [np.asarray, sparse.csr_array]


def lopsided(x, y):
    """A distance that depends on who asks."""
    return float(np.abs(x - y).sum() + max(0.0, x[0] - y[0]))


def searched_by(X, queries, k):
    """An external search with its own distances."""
    graph = nl.neighbor_graph(
        X, min(k, X.shape[0] - (queries is None)), queries, metric="manhattan"
    )
    return graph.indices, 2 * graph.distances


class OwnIndex:
    """An external index that only has `graph`."""

    def __init__(self, vectors, metric):
        self.index = build_index(vectors, metric, "exact")

    def graph(self, k, queries=None, *, n_jobs=1, progress=None):
        return self.index.graph(k, queries, n_jobs=n_jobs, progress=progress)


class OwnSearch:
    def build(self, vectors, metric="euclidean"):
        return OwnIndex(vectors, metric)


class Rows:
    """Added and removed rows, in a living index and as plain arrays."""

    def __init__(self, X, form, metric="euclidean", search="exact"):
        self.X, self.form, self.metric, self.search = X, form, metric, search
        self.store = VectorStore(form(X))
        index = build_index(self.store.vectors, metric, search)
        self.living = LivingIndex.of(index, self.store, metric)
        self.kind = np.float32 if isinstance(search, inverted_lists.InvertedLists) else np.float64

    @property
    def alive(self):
        alive = self.store.alive
        return np.arange(len(self.X)) if alive is None else np.flatnonzero(alive)

    def add(self, new, k):
        """Add rows, and compare what they bring with the graphs before and after."""
        old, first = self.alive, len(self.X)
        limits = np.full(first, -np.inf, self.kind)
        limits[old] = self.expected(k).distances[:, -1]
        self.X = np.concatenate([self.X, new])
        self.store = self.store.added(self.form(new))
        self.living = self.living.over(self.store)
        arrivals = self.living.arrivals(first, k, limits)
        after = self.expected(k)
        graph = nl.NeighborGraph.unchecked(
            after.indices[len(old) :], after.distances[len(old) :], 1
        )
        assert_same(arrivals.neighbors, graph)
        pairs = {
            (row, int(place)): distance
            for row, near, far in zip(old, after.indices, after.distances, strict=False)
            for place, distance in zip(near, far, strict=True)
            if place >= first and distance < limits[row]
        }
        row, new, distance = arrivals.reached
        found = dict(zip(zip(row.tolist(), new.tolist(), strict=True), distance, strict=True))
        assert len(found) == len(row)
        assert np.all(distance < limits[row])
        assert pairs.items() <= found.items()
        self.check_reached(found, first, limits)

    def check_reached(self, found, first, limits):
        """Compare with all distances, where we know them."""
        if isinstance(self.metric, str) and self.search != searched_by:
            distances = all_distances(self.X, self.X, self.metric).astype(self.kind)
            old, new = np.nonzero(distances[:first, first:] < limits[:, None])
            assert found.keys() == set(zip(old.tolist(), (new + first).tolist(), strict=True))

    def remove(self, places):
        self.store = self.store.removed(places)
        self.living = self.living.over(self.store)

    def expected(self, k, queries=None):
        """The graph of the rows that are there, by place."""
        alive = self.alive
        if self.kind == np.float32:  # with all lists probed
            asked = self.X[alive] if queries is None else queries
            distances = all_distances(self.X[alive], asked, self.metric).astype(np.float32)
            if queries is None:
                np.fill_diagonal(distances, np.inf)
            near = np.argsort(distances, axis=1, kind="stable")[:, :k]
            distances = np.take_along_axis(distances, near, axis=1)
            return nl.NeighborGraph.unchecked(alive[near], distances, len(self.X))
        graph = nl.neighbor_graph(
            self.form(self.X[alive]), k, queries, metric=self.metric, search=self.search
        )
        return nl.NeighborGraph.unchecked(alive[graph.indices], graph.distances, len(self.X))

    def check(self, k, queries):
        assert_same(self.living.graph(k), self.expected(k))
        assert_same(self.living.graph(k + 1, queries), self.expected(k + 1, queries))
        some = self.alive[::-2]
        expected = self.expected(k).take(np.searchsorted(self.alive, some))
        assert_same(self.living.left_out(some, k), expected)


def all_distances(X, queries, metric):
    graph = build_index(X, metric, "exact").graph(len(X), queries)
    distances = np.empty(graph.indices.shape)
    np.put_along_axis(distances, graph.indices, graph.distances, axis=1)
    return distances


def assert_same(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)


@st.composite
def searches(draw):
    metric = draw(st.sampled_from([*METRICS, *METRICS[:4], lopsided]))
    search = "exact"
    if metric == "manhattan":
        search = draw(st.sampled_from(["exact", "auto", searched_by, OwnSearch()]))
    return metric, search


@given(st.data(), searches(), st.sampled_from(FORMS), st.sampled_from([0, 2**18]))
def test_any_history(data, how, form, few):
    """Duplicates and ties; rows of zeros; rows that come again; removals down to k + 2 rows."""
    metric, search = how
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    k, d, highest = 2, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    kind = data.draw(st.sampled_from([np.float64, np.float32]))
    draw_rows = lambda n: rng.integers(-1, highest + 1, (n, d)).astype(kind)  # noqa: E731
    states = []
    with (
        mock.patch.object(exact_search, "_FEW", few),
        mock.patch.object(living_index, "_RECENT", 3),
        mock.patch.object(exact_search, "_FEWEST_ADDED", 12),
        mock.patch.object(exact_search, "_MOST_FEATURES", data.draw(st.sampled_from([0, 8]))),
    ):
        rows = Rows(draw_rows(data.draw(st.integers(4, 30))), form, metric, search)
        for _ in range(data.draw(st.integers(1, 5))):
            alive = rows.alive
            if data.draw(st.booleans()):
                rows.add(draw_rows(data.draw(st.integers(1, 9))), k)
            elif len(alive) > k + 2:
                gone = rng.choice(alive, data.draw(st.integers(1, len(alive) - k - 2)), False)
                rows.remove(gone)
            queries = rng.normal(size=(3, d))
            rows.check(k, queries)
            states.append((rows.living, rows.living.graph(k, queries), queries))
        for living, answer, queries in states:
            assert_same(living.graph(k, queries), answer)
        assert_same(pickle.loads(pickle.dumps(living)).graph(k, queries), answer)


@given(st.integers(0, 2**32), st.sampled_from(METRICS[:4]), st.sampled_from(FORMS))
def test_reached_rows_against_the_definition(seed, metric, form):
    rng = np.random.default_rng(seed)
    X, queries = rng.integers(-2, 3, (40, 3)) / 2, rng.integers(-2, 3, (5, 3)) / 2
    limits = np.where(rng.random(40) < 0.2, -np.inf, rng.integers(0, 6, 40) / 2)
    with mock.patch.object(exact_search, "_FEW", 0):
        index = build_index(form(X), metric, "exact")
        graph, reached = index.nearest_and_reached(queries, 4, limits)
    assert_same(graph, index.graph(4, queries))
    expected = {
        (row, query): oracles.distance(queries[query], X[row], metric)
        for row in range(40)
        for query in range(5)
        if oracles.distance(queries[query], X[row], metric) < limits[row]
    }
    found = zip(reached.row.tolist(), reached.new.tolist(), strict=True)
    assert dict(zip(found, reached.distance.tolist(), strict=True)) == expected


def test_rows_of_other_forms_and_types_are_added():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)).astype(np.float32)
    new = rng.normal(size=(3, 3))  # not representable in float32
    whole = nl.neighbor_graph(np.concatenate([X, new]), 4)
    for base, form in ((X, sparse.csr_array), (sparse.csr_array(X), np.asarray)):
        store = VectorStore(base)
        living = LivingIndex.of(build_index(base, "euclidean", "exact"), store, "euclidean")
        assert_same(living.over(store.added(form(new))).graph(4), whole)


def test_few_segments_and_none_of_them_large():
    """Too many would be slow to search, and a single one slow to build."""
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(500, 2)), np.asarray)
    with (
        mock.patch.object(living_index, "_RECENT", 8),
        mock.patch.object(exact_search, "_FEWEST_ADDED", 64),
    ):
        most = 0
        for _ in range(200):
            rows.store = rows.store.added(rng.normal(size=(1, 2)))
            before = rows.living
            rows.living = before.over(rows.store)
            kept = set(map(id, before.segments)) & set(map(id, rows.living.segments))
            assert len(kept) >= len(rows.living.segments) - 1
            most = max(most, len(rows.living.segments))
        assert 3 <= most <= 6
        assert rows.living.segments[0].stop > 500
        rows.X = rows.store.vectors
        rows.remove(np.arange(400))
        assert [len(one) for one in rows.living.segments] == [300]
        rows.check(3, rng.normal(size=(2, 2)))


def test_removed_rows_only_change_a_mask():
    rows = Rows(np.random.default_rng(0).normal(size=(60, 2)), np.asarray)
    before = rows.living
    rows.remove(np.array([3, 5]))
    assert rows.living.segments[0] is before.segments[0]
    assert before.store.alive is None
    assert np.count_nonzero(rows.living.store.alive) == 58


@pytest.mark.parametrize("form", FORMS)
def test_precomputed_distances_lose_rows(form):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (30, 2)) + 0.0
    between = nl.neighbor_graph(X, 29).to_csr().toarray()
    store = VectorStore(form(between))
    index = build_index(store.vectors, "precomputed", "auto")
    living = LivingIndex.of(index, store, "precomputed")
    gone = np.arange(0, 30, 2)
    shorter = living.over(store.removed(gone))
    if form is np.asarray:
        alive = np.arange(1, 30, 2)
        expected = nl.neighbor_graph(X[alive], 3)
        assert_same(
            shorter.graph(3), nl.NeighborGraph(alive[expected.indices], expected.distances, 30)
        )
    assert_same(living.graph(3), index.graph(3))


@pytest.fixture
def overlapping():
    """Clusters that overlap, so that some neighbors of a row are in other lists."""
    rng = np.random.default_rng(0)
    centers = 1.5 * rng.normal(size=(40, 6))
    return lambda n: centers[rng.integers(0, 40, n)] + rng.normal(size=(n, 6))


@pytest.mark.usefixtures("small_lists")
def test_recall_is_measured_again_after_many_changes(overlapping):
    rng = np.random.default_rng(1)
    X, later = overlapping(600), 3 * rng.normal(size=(900, 6))  # elsewhere
    store, k = VectorStore(X), 8
    living = LivingIndex.of(nl.InvertedLists(recall=0.8).build(X), store, "euclidean", k)
    recalls = [living.recall(k)]

    def change(after):
        nonlocal living
        living = living.over(after)
        recalls.append(living.recall(k))
        return after

    with (
        mock.patch.object(living_index, "_RECENT", 8),
        mock.patch.object(inverted_lists, "_MOST_BESIDE", 50),
    ):
        store = change(store.added(later[:52]))  # joins the lists
        assert recalls[1] == recalls[0]
        store = change(store.added(later[52:104]))
        assert recalls[2] != recalls[1]  # a tenth has changed
        store = change(store.added(later[104:]))
        store = change(store.removed(np.arange(0, 600, 2)))
    assert [len(part) for part in living.segments] == [1200]
    alive = np.flatnonzero(store.alive)
    exact = nl.neighbor_graph(store.vectors[alive], k, search="exact").distances[:, -1:]
    share = np.mean(living.left_out(alive, k).distances <= exact.astype(np.float32))
    assert recalls[-1].value >= 0.8
    assert abs(share - recalls[-1].value) < 0.1
    assert living.graph(k, X[:3]).recall == recalls[-1]
    exactly = LivingIndex.of(build_index(X, "euclidean", "exact"), VectorStore(X), "euclidean")
    assert exactly.recall(k) is None


@pytest.mark.usefixtures("small_lists")
@pytest.mark.parametrize("copies", [1, 2])
def test_lists_are_planned_for_one_number_of_neighbors(overlapping, copies):
    """A plan takes as long as the search of hundreds of rows."""
    X = np.repeat(overlapping(200), copies, axis=0)
    search, store = nl.InvertedLists(), VectorStore(X)
    living = LivingIndex.of(search.build(X), store, "euclidean", planned_for=8)
    store = store.removed(np.arange(0, len(X), 3)).added(overlapping(30))
    with mock.patch.object(inverted_lists, "_MOST_BESIDE", 12):
        living = living.over(store)
    living.left_out(np.arange(1, len(X), 3), 20)
    living.arrivals(len(X), 20, np.full(len(X), 1.0))
    living.graph(8, X[:3])
    index = living.segments[0].index
    assert isinstance(index, equal_rows.EqualRowsIndex) == (copies > 1)
    assert set(getattr(index, "index", index)._plans) == {8}
