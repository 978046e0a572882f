"""Limits from a sample: they save work, and where they are wrong, the graph is still exact."""

from functools import cache
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from twin_graphs import assert_same, by_numpy, bytes_wanted

import nearlabel as nl
from nearlabel.search.exact import compiled_index as compiled
from nearlabel.search.exact import expected_limits
from nearlabel.search.exact.byte_bounds import ByteBounds
from nearlabel.search.exact.expected_limits import ExpectedLimits
from nearlabel.search.exact.index import ExactIndex
from nearlabel.search.exact.numpy_index import NumpyIndex
from nearlabel.search.exact.packed_bounds import DenseBounds

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")
K = 32  # the fewest neighbors for which limits are expected in these tests
N = 32 * (K + 4)


@pytest.fixture(autouse=True)
def many_neighbors():
    with (
        mock.patch.object(ByteBounds, "many_neighbors", K),
        mock.patch.object(DenseBounds, "many_neighbors", K),
    ):
        yield


@pytest.fixture(params=[True, False], ids=["bytes", "float32"])
def either_bounds(request):
    vague = mock.patch.object(DenseBounds, "are_vague", return_value=False)
    with bytes_wanted(request.param), vague:
        yield request.param


@pytest.fixture
def searched_again():
    """The numbers of queries that are searched again, each time."""
    counts = []
    real = compiled._filled

    def spy(index, queries, some, *more):
        counts.append(len(some))
        return real(index, queries, some, *more)

    with mock.patch.object(compiled, "_filled", spy):
        yield counts


def in_clusters(rng, n, d):
    return 20 * rng.normal(size=(12, d))[np.arange(n) * 12 // n] + rng.normal(size=(n, d))


# By name: rows, of which 12 are also moved far away as queries.
DATA = {
    "in random order": lambda rng, n, d: rng.normal(size=(n, d)),
    "sorted by cluster": in_clusters,
    "with a period": lambda rng, n, d: (
        rng.normal(size=(n, d)) + 30 * np.sin(np.arange(n) * 2 * np.pi / 8)[:, None]
    ),
    "sorted by size": lambda rng, n, d: rng.normal(size=(n, d)) * np.linspace(0, 9, n)[:, None],
    "many ties": lambda rng, n, d: rng.integers(0, 2, (n, d)).astype(float),
    "duplicates": lambda rng, n, d: rng.normal(size=(n // 2, d))[np.arange(n) * 7 % (n // 2)],
    "mostly one row": lambda rng, n, d: (
        rng.normal(size=(n, d)) * (np.arange(n) % 3 == 0)[:, None] + 0.1
    ),
}
CASES = [
    *(("euclidean", kind, K) for kind in DATA),
    *(("cosine", kind, K + 4) for kind in DATA),
    *(
        pytest.param(metric, kind, k, marks=pytest.mark.slow)
        for metric, k in (("euclidean", K + 4), ("cosine", K), ("sqeuclidean", K))
        for kind in DATA
    ),
]


@cache
def data(kind, d=17, n=N):
    """Rows and queries: new ones, base rows, and some far away from all."""
    rng = np.random.default_rng(3)
    X = DATA[kind](rng, n, d)
    asked = X[rng.integers(0, n, 12)]
    return X, np.vstack([asked, asked + 0.1 * rng.normal(size=asked.shape), 1e3 * asked, -asked])


def built(X, metric="euclidean"):
    """An index of all rows, equal ones too."""
    return ExactIndex(X, metric, 2**18)


@cache
def twins(kind, k, metric):
    """The graphs of the rows and of the queries, by NumPy."""
    X, queries = data(kind)
    return by_numpy(X, k, metric=metric), by_numpy(X, k, queries, metric=metric)


def check_graphs(kind, k, metric="euclidean", n_jobs=1):
    X, queries = data(kind)
    index, (among, asked) = built(X, metric), twins(kind, k, metric)
    assert_same(index.graph(k, n_jobs=n_jobs), among)
    assert_same(index.graph(k, queries, n_jobs=n_jobs), asked)


@pytest.mark.usefixtures("either_bounds")
@pytest.mark.parametrize(("metric", "kind", "k"), CASES)
def test_graphs_equal_numpy(metric, kind, k):
    real = ExpectedLimits.of
    with mock.patch.object(ExpectedLimits, "of", autospec=True, side_effect=real) as of:
        check_graphs(kind, k, metric, n_jobs=2)
    assert of.called


WRONG = {
    "half": lambda limits: limits * np.float32(0.5),
    "all but nothing": lambda limits: limits * np.float32(1e-6),
    "zero": np.zeros_like,
    "negative": lambda limits: -limits,
    "just below zero": lambda limits: np.full_like(limits, -1e-30),
    "the lowest": lambda limits: np.full_like(limits, np.finfo(np.float32).min),
    "nothing at all": lambda limits: np.full_like(limits, -np.inf),
    "everything": lambda limits: np.full_like(limits, np.inf),
    "some nothing, some everything": lambda limits: np.where(
        np.arange(len(limits)) % 2, np.float32(np.inf), np.float32(-np.inf)
    ),
    "far too high": lambda limits: limits * np.float32(1e6),
}


TIED = ["many ties", "mostly one row"]


@pytest.mark.parametrize(
    "kind", ["in random order", *(pytest.param(kind, marks=pytest.mark.slow) for kind in TIED)]
)
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_limits_are_noticed(wrong, kind, either_bounds, searched_again):
    X, _ = data(kind)
    real = ExpectedLimits.of

    def of(self, *arguments, **options):
        return WRONG[wrong](real(self, *arguments, **options))

    with mock.patch.object(ExpectedLimits, "of", of):
        check_graphs(kind, K)
    if kind == "in random order" and wrong in (
        *("all but nothing", "zero", "negative", "just below zero", "the lowest"),
        *(["nothing at all"] if either_bounds else []),  # otherwise it is left to NumPy
    ):
        assert sum(searched_again) >= len(X)


@pytest.mark.parametrize("offset", [300.0, 1000.0])
def test_rows_within_a_limit_by_loose_bounds_only_are_not_enough(offset):
    """There are k of them, though none may be among the nearest."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 17)) + offset * (np.arange(N) % 2)[:, None]
    twin, real = by_numpy(X, K), ExpectedLimits.of
    with (
        bytes_wanted(False),
        mock.patch.object(DenseBounds, "are_vague", return_value=False),
    ):
        index = built(X)
        for lower in (0.2, 0.5, 1.0, 2.0):  # than expected, in typical distances between rows

            def of(self, *arguments, lower=lower, **options):
                limits = real(self, *arguments, **options)
                return limits - np.float32(lower * 2 * 17 * index.compiled._bounds.scale)

            with mock.patch.object(ExpectedLimits, "of", of):
                assert_same(index.graph(K), twin)


@pytest.mark.parametrize("kind", TIED)
@pytest.mark.usefixtures("either_bounds")
def test_ties_at_a_limit_of_zero(kind):
    with mock.patch.object(ExpectedLimits, "of", lambda self, q, *_, **__: np.zeros(len(q), "f4")):
        check_graphs(kind, K)


@pytest.mark.usefixtures("either_bounds")
@pytest.mark.parametrize("rank", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_sample_that_expects_too_much_is_noticed(rank, searched_again):
    with mock.patch.object(expected_limits, "_RANK", rank):
        check_graphs("in random order", K)
    assert sum(searched_again) > N / 8


@pytest.mark.usefixtures("either_bounds")
def test_few_queries_are_searched_again(searched_again):
    """That is what saves time."""
    X, _ = data("in random order", n=4 * N)
    queries = np.random.default_rng(5).normal(size=(600, X.shape[1]))
    index = built(X)
    index.graph(K)
    index.graph(K, queries)
    assert len(searched_again) <= 2
    assert sum(searched_again) < (len(X) + len(queries)) / 100


def test_equal_rows_beyond_a_limit_below_zero_are_not_missed():
    """The bounds of equal rows may differ in their last digits, and the lowest numbers win."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.zeros((2 * K, 16)), rng.normal(size=(N, 16))])
    index = built(X).compiled
    distances, rows = np.zeros((2, K)), np.zeros((2, K), np.int32)
    limits = np.array([-1e-9, 0.0], np.float32)
    np.testing.assert_array_equal(index._are_beyond(limits, rows, distances), [True, False])


@pytest.mark.parametrize(
    ("k", "n", "are_used"),
    [(K, N, True), (K - 1, N, False), (K + 4, N, True), (K + 5, N, False), (K, 32 * K, True)],
)
def test_few_neighbors_and_few_rows_have_no_limits(k, n, are_used):
    X, _ = data("in random order", n=n)
    with mock.patch.object(ExpectedLimits, "of", side_effect=StopIteration) as of:
        index = built(X)
        for queries in (None, X[:9]):
            if are_used:
                with pytest.raises((StopIteration, RuntimeError)):
                    index.graph(k, queries)
            else:
                index.graph(k, queries)
    assert of.called == are_used


def test_sparse_rows_far_clusters_and_few_queries_have_no_limits():
    X, queries = data("in random order", d=40)
    far = X + 1e6 * (np.arange(len(X)) % 2)[:, None]
    few = sparse.csr_array(X * (np.abs(X) > 2.5))
    with mock.patch.object(ExpectedLimits, "of", side_effect=AssertionError):
        assert_same(nl.neighbor_graph(few, K), by_numpy(few, K))
        index = built(far)
        assert index.compiled._bounds.centers is not None
        index.graph(K)
        built(X).graph(K, queries[:8])


@pytest.mark.usefixtures("either_bounds")
@pytest.mark.parametrize("lowered", [False, True])
def test_pairs_within_reach_are_reported_once(lowered):
    """Also those of a query that is searched again, and then given up."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N, 32)) + 1e3 * (np.arange(2 * N) % 2)[:, None]
    queries, limits = X[:40] + 0.01, np.full(len(X), 5.0)
    real = ExpectedLimits.of

    def of(self, *arguments, **options):
        limits = real(self, *arguments, **options)
        return np.full_like(limits, -9) if lowered else limits

    with (
        mock.patch.object(DenseBounds, "are_vague", return_value=False),
        mock.patch.object(ExpectedLimits, "of", of),
    ):
        graph, reached = built(X).nearest_and_reached(queries, K, limits)
    assert_same(graph, by_numpy(X, K, queries))
    pairs = sorted(zip(reached.new.tolist(), reached.row.tolist(), strict=True))
    apart = np.sqrt(((queries[:, None] - X) ** 2).sum(axis=2))
    assert pairs == [tuple(pair) for pair in np.argwhere(apart < 5).tolist()]


def test_searches_while_progress_is_reported_change_nothing():
    """A search within another one must not use the memory of its lists."""
    X, queries = data("in random order")
    index = built(X)
    for k in (5, K):
        expected, inside = by_numpy(X, k), by_numpy(X, k, queries)

        def report(done, n, k=k, inside=inside):
            assert_same(index.graph(k, queries), inside)

        for n_jobs in (1, 2):
            assert_same(index.graph(k, n_jobs=n_jobs, progress=report), expected)


def test_left_rows_are_few():
    """What limits leave is searched by the same index, not by NumPy."""
    X, queries = data("in random order")
    index = built(X)
    with (
        mock.patch.object(ExpectedLimits, "of", lambda self, q, *_, **__: np.zeros(len(q), "f4")),
        mock.patch.object(NumpyIndex, "fill", side_effect=AssertionError),
    ):
        index.graph(K)
        index.graph(K, queries[:24])


# Limits of a block


@pytest.mark.parametrize("width", [1, 7, 8, 9, 100, 1000])
def test_limits_of_rows_have_k_values_within_them(width):
    rng = np.random.default_rng(0)
    kinds = {
        "spread": rng.normal(size=(20, width)),
        "tied": rng.integers(0, 3, (20, width)),
        "equal": np.ones((20, width)),
        "of all sizes": 10.0 ** rng.integers(-30, 30, (20, width)),
        "some infinite": np.where(rng.random((20, width)) < 0.3, np.inf, rng.random((20, width))),
    }
    for kind, values in kinds.items():
        block = values.astype(np.float32)
        for k in {1, (width + 1) // 2, width}:
            limits = np.empty(20, np.float32)
            CORE.row_limits(block, k, limits)
            within = (block <= limits[:, None]).sum(axis=1)
            assert (within >= k).all()
            assert np.isin(limits, block).all() or (limits <= block.max(axis=1)).all()
            if kind == "spread":
                assert (within <= k + max(1, k // 16)).all()


def test_invalid_blocks_have_no_limits():
    block, limits = np.zeros((3, 4), np.float32), np.zeros(3, np.float32)
    for k in (0, -1, 5, 2**62, -(2**62)):
        with pytest.raises(ValueError, match=r"\bk\b"):
            CORE.row_limits(block, k, limits)
    with pytest.raises(ValueError, match=r"\bk\b"):
        CORE.row_limits(np.zeros((3, 0), np.float32), 1, limits)
    for count in (0, 2, 4):
        with pytest.raises(ValueError, match="limits"):
            CORE.row_limits(block, 1, np.zeros(count, np.float32))
    unwritable = np.zeros(3, np.float32)
    unwritable.flags.writeable = False
    for changed in (
        (block.astype(float), 1, limits),
        (block, 1, limits.astype(float)),
        (block, 1, unwritable),
        (block[:, ::2], 1, limits),
        (block.ravel(), 1, limits),
        (block, 1.5, limits),
        (None, 1, limits),
    ):
        with pytest.raises(TypeError):
            CORE.row_limits(*changed)
    CORE.row_limits(np.full((3, 4), np.nan, np.float32), 2, limits)  # any limits, no harm
    CORE.row_limits(np.zeros((0, 4), np.float32), 2, np.zeros(0, np.float32))
