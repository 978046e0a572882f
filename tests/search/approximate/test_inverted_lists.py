"""Inverted lists: the requested recall, and the same graph for all engines, threads, blocks."""

import os
import threading
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from forking import ends_well_in_a_fork
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, vectors
from twin_graphs import assert_same

import nearlabel as nl
from nearlabel.common import engine
from nearlabel.search import InvertedLists, neighbor_graph, pair_distances
from nearlabel.search.approximate import inverted_lists, probing
from nearlabel.search.approximate import probe_counts as plans
from nearlabel.search.approximate.probes import Probes
from nearlabel.search.exact.packed_bounds import DenseBounds

pytestmark = [pytest.mark.usefixtures("small_lists"), pytest.mark.kernels]
ALL = InvertedLists(recall=1.0)
METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan"]
SOME = [
    *("euclidean", "cosine"),
    *(pytest.param(metric, marks=pytest.mark.slow) for metric in ("sqeuclidean", "manhattan")),
]


def clustered(n, d, seed=0):
    """Clusters that overlap: some neighbors of a row are in other lists."""
    rng = np.random.default_rng(seed)
    centers = 1.5 * rng.normal(size=(max(2, n // 40), d))
    return centers[rng.integers(0, len(centers), n)] + rng.normal(size=(n, d))


def check(graph, X, metric, queries=None):
    """Check the invariants of a graph, and compare its distances with the canonical ones."""
    nl.NeighborGraph(graph.indices, graph.distances, graph.n_base, graph.recall)
    assert graph.n_base == len(X)
    assert len(graph) == len(X if queries is None else queries)
    assert queries is not None or not graph.has_self()
    rows = np.repeat(np.arange(len(graph)), graph.k)
    asked = X if queries is None else queries
    distances = pair_distances(X, metric, asked, rows, graph.indices.ravel())
    kind = graph.distances.dtype
    np.testing.assert_array_equal(graph.distances.ravel(), distances.astype(kind))


def in_float32(exact):
    """The exact graph in float32: rounded distances, ties by row."""
    distances = exact.distances.astype(np.float32)
    order = np.lexsort((exact.indices, distances), axis=1)
    indices = np.take_along_axis(exact.indices, order, axis=1)
    return indices, np.take_along_axis(distances, order, axis=1)


def assert_exact(graph, X, metric, queries=None):
    exact = neighbor_graph(X, graph.k, queries, metric=metric, search="exact")
    indices, distances = in_float32(exact)
    np.testing.assert_array_equal(graph.indices, indices)
    np.testing.assert_array_equal(graph.distances, distances)


def shares(graph, exact):
    """For each row, how many of its neighbors are within the k-th distance."""
    limit = exact.distances[:, -1].astype(np.float32)
    rows = zip(graph.distances, limit, strict=True)
    return np.array([sum(d <= most for d in row) / graph.k for row, most in rows])


def in_a_blob(rng):
    X = 1e-3 * rng.normal(size=(200, 4))
    X[::10] = 100 * rng.normal(size=(20, 4))
    return X


def some_of(X, rng):
    return X[rng.integers(0, len(X), 160)]


HARD = {
    "clusters": lambda rng: clustered(200, 6),
    "one feature": lambda rng: rng.normal(size=(160, 1)),
    "many features": lambda rng: clustered(70, 300),
    "half the same": lambda rng: np.vstack([np.full((90, 4), 0.3), rng.normal(size=(90, 4))]),
    "a blob and outliers": in_a_blob,
    "all the same": lambda rng: np.full((120, 3), 0.1),
    "few distinct rows": lambda rng: some_of(rng.normal(size=(5, 4)), rng),
    "few distinct distances": lambda rng: rng.integers(0, 2, (160, 6)).astype(float),
    "rows of zeros": lambda rng: rng.normal(size=(160, 6)) * (np.arange(160) % 3 > 0)[:, None],
    "far from the origin": lambda rng: clustered(160, 6) + 1e6,
    "one far row": lambda rng: np.vstack([rng.normal(size=(159, 6)), np.full((1, 6), 1e12)]),
    "large": lambda rng: clustered(160, 6) * 1e30,
    "small": lambda rng: clustered(160, 6) * 1e-30,
    "of all sizes": lambda rng: rng.normal(size=(160, 6)) * 10.0 ** rng.integers(-30, 1, (160, 1)),
    "tiny beside large": lambda rng: (
        np.round(rng.normal(size=(160, 6)), 1) * np.where(np.arange(160) < 9, 1, 1e-22)[:, None]
    ),
    "very large": lambda rng: clustered(160, 6) * 1e150,
}
TOO_FAR = {
    "euclidean": ("very large",),
    "manhattan": ("very large",),
    "sqeuclidean": ("large", "small", "very large"),
}


SQUARES = ["clusters", "large", "small", "of all sizes", "tiny beside large"]
ANGLES = ["clusters", "many features", "rows of zeros", "far from the origin", "large"]


@pytest.mark.parametrize(
    ("kind", "metric", "dtype"),
    [
        *((kind, "euclidean", np.float32) for kind in HARD if kind != "very large"),
        *(pytest.param(kind, "manhattan", np.float64, marks=pytest.mark.slow) for kind in HARD),
        *(
            pytest.param(kind, "sqeuclidean", np.float32, marks=pytest.mark.slow)
            for kind in SQUARES
        ),
        ("clusters", "manhattan", np.float64),
        ("clusters", "sqeuclidean", np.float32),
        *((kind, "cosine", np.float64) for kind in ANGLES),
        ("clusters", "euclidean", np.float64),
        ("far from the origin", "euclidean", np.float64),
        ("very large", "sqeuclidean", np.float64),
    ],
)
@pytest.mark.usefixtures("copies_listed")
def test_hard_data_in_both_engines(kind, metric, dtype, core):
    X = HARD[kind](np.random.default_rng(1)).astype(dtype)
    some = X[::29]
    for recall, k in ((1.0, 9), (0.6, 20)):
        index = InvertedLists(recall).build(X, metric)
        ours, asked = index.graph(k), index.graph(k, some)
        with mock.patch.object(engine, "core", return_value=None):
            twin = InvertedLists(recall).build(X, metric)
            assert_same(ours, twin.graph(k))
            assert_same(asked, twin.graph(k, some))
        check(ours, X, metric)
        check(asked, X, metric, some)
        # If float32 cannot represent the distances, the search is exact.
        assert isinstance(index, inverted_lists.ListIndex) == (ours.recall is not None)
        assert (ours.recall is None) == (kind in TOO_FAR.get(metric, ()))
        if recall == 1 and ours.recall is not None:
            assert ours.recall.value == asked.recall.value == 1
            assert_exact(ours, X, metric)
            assert_exact(asked, X, metric, some)
        assert ours.recall is None or ours.recall.value >= recall


@examples(10)
@given(
    data=st.data(),
    X=vectors(rows=st.integers(64, 80)),
    metric=st.sampled_from(METRICS),
    recall=st.sampled_from([0.0, 0.7, 1.0]),
)
def test_any_data_in_both_engines(data, X, metric, recall, core):
    k = data.draw(st.sampled_from([1, 7, len(X) // 2, len(X) - 1]))
    search = InvertedLists(recall, data.draw(st.integers(0, 9)))
    index = search.build(X, metric)
    ours, asked = index.graph(k, n_jobs=2), index.graph(k + 1, X[:5], n_jobs=2)
    with mock.patch.object(engine, "core", return_value=None):
        twin = search.build(X, metric)
        assert_same(ours, twin.graph(k))
        assert_same(asked, twin.graph(k + 1, X[:5]))
    check(ours, X, metric)
    check(asked, X, metric, X[:5])
    if recall == 1 and ours.recall is not None:
        assert_exact(ours, X, metric)
        assert_exact(asked, X, metric, X[:5])


# Recall


@pytest.fixture
def of_usual_size():
    """The numbers of rows that recall is measured on for users."""
    with mock.patch.multiple(plans, _ROWS_TUNED=256, ROWS_MEASURED=512):
        yield


@pytest.mark.parametrize(
    ("metric", "recall"),
    [
        ("euclidean", 0.9),
        ("cosine", 0.99),
        *(
            pytest.param(*other, marks=pytest.mark.slow)
            for other in (("euclidean", 0.99), ("cosine", 0.9))
        ),
    ],
)
def test_recall_is_as_requested_and_as_reported(recall, metric, of_usual_size, core):
    X, queries = np.split(clustered(3400, 10), [3000])
    k = 12
    index = InvertedLists(recall).build(X, metric)
    graph, asked = index.graph(k), index.graph(k, queries)
    exact = neighbor_graph(X, k, metric=metric, search="exact")
    assert graph.recall.value >= recall
    assert (graph.recall.rows, graph.recall.k, graph.recall.sample) == (512, k, "graph")

    # The reported recall is the mean over the measured rows of the final graph.
    of_rows = shares(graph, exact)
    plan = index._plans[16]
    measured = index._listed.lists.order[plan.rows]
    assert len(set(measured.tolist())) == 512
    assert graph.recall.value == pytest.approx(of_rows[measured].mean(), abs=1e-12)
    error = of_rows[measured].std(ddof=1) / np.sqrt(512)
    assert graph.recall.standard_error == pytest.approx(error, abs=1e-12)
    # Within its error, it is the recall of all rows; perfect lists would not test this.
    assert abs(of_rows.mean() - graph.recall.value) < 3 * error
    assert of_rows.mean() < 1

    # Queries have no pass; their recall is that of base rows searched in the same way.
    assert (asked.recall.rows, asked.recall.k, asked.recall.sample) == (512, 16, "base")
    assert asked.recall.value >= recall
    alone = index.graph(17, X[measured])
    its = shares(alone.without(measured), neighbor_graph(X, 16, metric=metric).take(measured))
    assert index._plans[24].probes != plan.probes or asked.recall.value == pytest.approx(its.mean())
    true = shares(asked, neighbor_graph(X, k, queries, metric=metric, search="exact"))
    error = np.hypot(asked.recall.standard_error, true.std(ddof=1) / np.sqrt(len(true)))
    assert true.mean() > asked.recall.value - 3 * error


@pytest.mark.usefixtures("copies_listed")
def test_recall_of_queries_is_measured_by_distance():
    """Many rows at one distance: which of them are found must not matter."""
    X = np.random.default_rng(0).integers(0, 2, (800, 9)).astype(float)
    index = InvertedLists(0.5).build(X)
    told = index.graph(8, X[:3]).recall
    plan, listed = index._plans[8], index._listed
    numbers = listed.lists.order[plan.rows]
    # Nine with the row itself, found by the probes for eight.
    index._plans[16] = plan
    found = index.graph(9, X[numbers]).without(numbers)
    exact = neighbor_graph(X, 8, search="exact").take(numbers)
    assert told.value == pytest.approx(shares(found, exact).mean())
    pairs = zip(found.indices.tolist(), exact.indices.tolist(), strict=True)
    by_row = np.mean([len(set(ours) & set(true)) / 8 for ours, true in pairs])
    assert by_row < told.value < 1


def test_more_probes_for_queries_where_the_measured_rows_need_them():
    X = clustered(1000, 8)
    for seed in range(12):  # with few rows to choose by, the choice is too low for some
        index = InvertedLists(0.9, seed).build(X)
        assert index.graph(8, X[:2]).recall.value >= 0.9


def test_recall_is_shown_kept_and_checked(tmp_path):
    X = clustered(300, 4)
    graph = neighbor_graph(X, 5, search=InvertedLists(0.8))
    told = graph.recall
    assert told.rows == 32
    assert repr(graph) == (
        f"NeighborGraph(n=300, k=5, n_base=300, recall={told.value:.4f} ± "
        f"{told.standard_error:.4f} at k=5 on 32 rows)"
    )
    asked = neighbor_graph(X, 5, X[:2], search=InvertedLists(0.8))
    assert repr(asked).endswith(" at k=8 on 32 base rows)")
    for one in (graph, asked, graph.head(2), graph.rows(3, 9), graph.take(np.array([4, 1]))):
        one.save(tmp_path / "graph.nl")
        assert_same(nl.load(tmp_path / "graph.nl"), one)
    assert neighbor_graph(X, 5, search="exact").recall is None


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"value": 1.5}, "recall"),
        ({"value": -0.1}, "recall"),
        ({"value": "high"}, "recall"),
        ({"value": None}, "recall"),
        ({"standard_error": -1.0}, "standard_error"),
        ({"rows": 0}, "rows"),
        ({"rows": 2.5}, "rows"),
        ({"k": 0}, r"\bk\b.*0"),
        ({"sample": "all"}, "sample"),
        ({"sample": 3}, "sample"),
        *((wrong, "graph.nl") for wrong in ("x", 7, [0.5])),  # instead of all of it
    ],
)
def test_a_file_with_an_invalid_recall_is_refused(change, error, tmp_path):
    graph = neighbor_graph(clustered(300, 4), 5, search=InvertedLists(0.8))
    tree = graph._tree()
    tree["recall"] = {**tree["recall"], **change} if isinstance(change, dict) else change
    with mock.patch.object(nl.NeighborGraph, "_tree", return_value=tree):
        graph.save(tmp_path / "graph.nl")
    with pytest.raises(ValueError, match=error):
        nl.load(tmp_path / "graph.nl")


@pytest.mark.parametrize(
    ("search", "error"),
    [
        (InvertedLists(recall=1.01), "recall.*0.*1.*1.01"),
        (InvertedLists(recall=-0.1), "recall.*0.*1.*-0.1"),
        (InvertedLists(recall=float("nan")), "recall.*nan"),
        (InvertedLists(random_state=-1), "random_state.*0.*-1"),
        (InvertedLists("high"), "recall"),
        (InvertedLists(random_state=0.5), "random_state"),
    ],
)
def test_invalid_parameters_are_refused(search, error):
    for X in (clustered(300, 4), np.eye(4)):  # also where the lists would not be made
        with pytest.raises((ValueError, TypeError), match=error):
            neighbor_graph(X, 2, search=search)


def test_rows_at_one_distance_take_no_more_probes():
    """Rows of zeros are at distance 1 from all others by cosine: any of these will do."""
    X = clustered(2000, 8)
    few = InvertedLists(0.9).build(X, "cosine")
    few.graph(8, X[:1])
    X[::20] = 0
    index = InvertedLists(0.9).build(X, "cosine")
    index.graph(8, X[:1])
    assert index._plans[8].probes.cost <= 2 * few._plans[8].probes.cost


# The same graph


def test_threads_and_blocks_change_nothing():
    X = clustered(300, 7)
    queries = X[::5] + 0.1
    search = InvertedLists(0.9)
    graph, asked = search.build(X).graph(11), search.build(X).graph(11, queries)
    assert graph.recall.value < 1
    for n_jobs in (2, 3):
        index = search.build(X)
        assert_same(index.graph(11, n_jobs=n_jobs), graph)
        assert_same(index.graph(11, queries, n_jobs=n_jobs), asked)
    for size in (1, 7, 70):
        with (
            mock.patch.object(probing, "_QUERIES_AT_ONCE", size),
            mock.patch.object(DenseBounds, "side", size),
            mock.patch.object(probing, "_PACKED_BYTES", 0),
        ):
            index = search.build(X)
            assert_same(index.graph(11, n_jobs=2), graph)
            assert_same(index.graph(11, queries), asked)


def test_the_seed_decides_the_lists():
    X = clustered(600, 5)
    built = [InvertedLists(0.8, seed).build(X) for seed in (0, 0, 1)]
    graphs = [index.graph(8) for index in built]
    assert_same(graphs[0], graphs[1])
    centers = [index._listed.lists.centers for index in built]
    np.testing.assert_array_equal(centers[0], centers[1])
    assert centers[2].shape != centers[0].shape or (centers[2] != centers[0]).any()
    assert (graphs[2].indices != graphs[0].indices).any()


# Sizes


@pytest.mark.parametrize("n", [63, 64, 65])
def test_the_fewest_rows(n):
    X = clustered(n, 4)
    for k in (1, n // 2, n - 2, n - 1):
        graph = neighbor_graph(X, k, search="approximate")
        assert (graph.recall is None) == (n == 63)
        check(graph, X, "euclidean")
    queries = clustered(2 * n, 4, seed=3)  # more than there are rows
    for k in (1, n - 1, n):
        asked = neighbor_graph(X, k, queries, search="approximate")
        check(asked, X, "euclidean", queries)
        if k == n:
            np.testing.assert_array_equal(np.sort(asked.indices), np.tile(np.arange(n), (2 * n, 1)))


# Queries


def test_distances_beyond_float64_are_refused_as_by_the_exact_search():
    X = clustered(300, 5)
    for search in ("exact", "approximate"):
        with pytest.raises(ValueError, match="float64.*X"):
            neighbor_graph(X, 3, X[:2] * 1e200, search=search)


# Progress


def told_by(search):
    told = []
    search(lambda *now: told.append(now))
    return told


def assert_rises(told, n):
    assert all(total == n for _, total in told)
    done = [done for done, _ in told]
    assert done == sorted(done)
    assert done[-1] == n
    assert done.count(n) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_rises_to_all_rows(n_jobs):
    X = clustered(500, 5)
    index = InvertedLists(0.9).build(X)
    with mock.patch.object(probing, "_QUERIES_AT_ONCE", 20):
        for _ in range(2):  # also if the lists exist already
            told = told_by(lambda tell: index.graph(5, n_jobs=n_jobs, progress=tell))
            assert_rises(told, 500)
            assert len(told) > 15
        told = told_by(lambda tell: index.graph(5, X[:90], n_jobs=n_jobs, progress=tell))
        assert_rises(told, 90)
        assert len(told) == 5 if n_jobs == 1 else len(told) >= 5


def test_probes_are_raised_until_the_recall_holds():
    X = clustered(1500, 8)
    search = InvertedLists(0.95)
    tried = []
    among = probing.ListedRows.among

    def spy(self, k, probes, *rest):
        tried.append(probes.most)
        return among(self, k, probes, *rest)

    index = search.build(X)
    index.recall(10)
    index._plans[16] = replace(index._plans[16], probes=Probes.fixed(1))
    with (
        mock.patch.object(probing.ListedRows, "among", spy),
        mock.patch.multiple(probing, _QUERIES_AT_ONCE=100),
    ):
        told = []
        graph = index.graph(10, progress=lambda *now: told.append(now))
    assert len(tried) > 2
    assert tried == sorted(set(tried))
    assert graph.recall.value >= 0.95
    check(graph, X, "euclidean")
    assert_rises(told, 1500)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_child_can_search_while_another_thread_prepares_the_lists():
    X = clustered(300, 4)
    index = InvertedLists().build(X)
    entered, leave, parent = threading.Event(), threading.Event(), os.getpid()
    make = inverted_lists.make_plan

    def slow_plan(*args):
        if os.getpid() == parent:
            entered.set()
            leave.wait(30)
        return make(*args)

    with mock.patch.object(inverted_lists, "make_plan", slow_plan):
        worker = threading.Thread(target=index.graph, args=(3, X[:5]))
        worker.start()
        assert entered.wait(30)
        try:
            assert ends_well_in_a_fork(lambda: index.graph(3, X[:5], n_jobs=2))
        finally:
            leave.set()
            worker.join()
    assert_same(index.graph(3, X[:5]), InvertedLists().build(X).graph(3, X[:5]))


@pytest.mark.parametrize("metric", SOME)
def test_lists_far_from_each_other(metric):
    """With a single center, float32 could not distinguish the rows of a list."""
    rng = np.random.default_rng(0)
    n = 1200  # bounds are tried on samples of 1,088 rows
    X = rng.normal(size=(n, 5)) + 1e6 * rng.normal(size=(3, 5))[np.arange(n) % 3]
    queries = X[::60] + 0.1
    index = ALL.build(X, metric)
    assert_exact(index.graph(7, n_jobs=2), X, metric)
    assert_exact(index.graph(7, queries), X, metric, queries)
    left = []
    by_numpy = probing.ListedRows._by_numpy

    def spy(self, queries, chosen, *more):
        left.extend(chosen)
        by_numpy(self, queries, chosen, *more)

    with mock.patch.object(probing.ListedRows, "_by_numpy", spy):
        index.graph(7)
    assert len(left) <= (len(X) if engine.core() is None else len(X) // 8)
