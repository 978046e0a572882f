"""The search compared with the literal oracle: the same rows and distances, bit for bit."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import EfficiencyWarning
from strategies import vectors

import nearlabel as nl
from nearlabel.search import pair_distances
from nearlabel.search.exact.index import ExactIndex

pytestmark = pytest.mark.engines

METRICS = ["euclidean", "sqeuclidean", "cosine", "manhattan", "chebyshev", "hamming", "jaccard"]
SLOW = pytest.mark.filterwarnings("ignore::sklearn.exceptions.EfficiencyWarning")


def check(graph, X, k, queries=None, metric="euclidean"):
    indices, distances = oracles.neighbors(X, k, queries, metric)
    np.testing.assert_array_equal(graph.indices, indices)
    np.testing.assert_array_equal(graph.distances, distances)


@SLOW
@given(data=st.data(), X=vectors(), metric=st.sampled_from(METRICS))
def test_equals_the_oracle_dense_and_sparse_for_any_block_size_and_threads(data, X, metric):
    k = data.draw(st.integers(1, len(X) - 1))
    search = nl.ExactSearch(block_bytes=data.draw(st.sampled_from([1, 500, 2**27])))
    n_jobs = data.draw(st.integers(1, 3))
    for form in (X, sparse.csr_array(X)):
        graph = nl.neighbor_graph(form, k, metric=metric, search=search, n_jobs=n_jobs)
        check(graph, X, k, metric=metric)


@SLOW
@given(data=st.data(), X=vectors(), metric=st.sampled_from(METRICS))
def test_queries_equal_the_oracle_in_mixed_forms(data, X, metric):
    rows = data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=5))
    queries = X[rows] + data.draw(st.sampled_from([0, 1, 0.1]))
    k = data.draw(st.integers(1, len(X)))
    for base in (X, sparse.csr_matrix(X)):
        for asked in (queries, sparse.csc_matrix(queries)):
            check(nl.neighbor_graph(base, k, asked, metric=metric), X, k, queries, metric)


@pytest.mark.parametrize(
    ("n", "kind"),
    [
        *((600, kind) for kind in ("gaussian", "integers", "offset", "outlier", "tripled")),
        *((1500, kind) for kind in ("gaussian", "tripled")),
        *(
            pytest.param(1500, kind, marks=pytest.mark.slow)
            for kind in ("integers", "offset", "outlier")
        ),
    ],
)
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_larger_data_that_take_the_sampled_bound(n, kind, metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    if kind == "integers":
        X = rng.integers(0, 3, (n, 6)).astype(float)
    elif kind == "offset":
        X += 1e7
    elif kind == "outlier":
        X[7] = 1e9
    elif kind == "tripled":
        X = np.repeat(X[: n // 3], 3, axis=0)
    some = rng.choice(len(X), 12, replace=False)
    graph = nl.neighbor_graph(X, 9, metric=metric)
    expected = [oracles.neighbors(np.delete(X, i, 0), 9, X[[i]], metric) for i in some]
    for i, (indices, distances) in zip(some, expected, strict=True):
        indices = indices + (indices >= i)  # rows behind the one that was taken out
        np.testing.assert_array_equal(graph.indices[i], indices[0])
        np.testing.assert_array_equal(graph.distances[i], distances[0])
    assert not graph.has_self()
    via_csr = nl.neighbor_graph(sparse.csr_array(X), 9, metric=metric, n_jobs=2)
    np.testing.assert_array_equal(via_csr.indices, graph.indices)
    np.testing.assert_array_equal(via_csr.distances, graph.distances)


@pytest.mark.parametrize("kind", ["gaussian", "integers", "clusters", "outlier"])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "manhattan"])
def test_rows_within_a_margin_of_the_nearest(kind, metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(715, 20))
    if kind == "integers":
        X = np.round(X)
    elif kind == "clusters":
        X += 5 * rng.normal(size=(30, 20))[rng.integers(0, 30, len(X))]
    elif kind == "outlier":
        X[7] = 1e18
    index = ExactIndex(X[:700], metric, 2**26)
    indices, distances = oracles.neighbors(X[:700], 12, X[700:], metric)
    farther = distances - distances[:, :1]
    for margin in (0.0, *np.quantile(farther, [0.3, 0.7]), farther.max() + 1):
        graph = index.graph(12, X[700:], margin=margin, n_jobs=2)
        is_near = distances <= distances[:, :1] + margin
        np.testing.assert_array_equal(graph.indices[is_near], indices[is_near])
        np.testing.assert_array_equal(graph.distances[is_near], distances[is_near])
        is_missing = graph.distances != distances
        assert np.isinf(graph.distances[is_missing]).all()


def test_a_row_is_left_out_by_number_so_its_duplicates_stay():
    graph = nl.neighbor_graph(np.zeros((4, 2)), 3)
    assert graph.indices.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    assert not graph.distances.any()


def test_the_smallest_problem():
    graph = nl.neighbor_graph([[1], [3]], 1)
    assert graph.indices.tolist() == [[1], [0]]
    assert graph.distances.tolist() == [[2.0], [2.0]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8, bool])
def test_every_number_type_gives_what_its_float64_values_give(dtype):
    X = np.random.default_rng(1).integers(0, 3, (40, 4)).astype(dtype)
    for form in (X, sparse.csr_array(X) if dtype != np.float16 else X):
        for metric in ("euclidean", "cosine", "manhattan"):
            check(nl.neighbor_graph(form, 5, metric=metric), X, 5, metric=metric)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "manhattan"])
def test_every_layout_and_type_in_memory(metric, tmp_path):
    X = np.random.default_rng(0).integers(0, 256, (60, 30)).astype(np.float64)
    unaligned = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(X.shape)
    np.save(tmp_path / "x.npy", X)
    forms = [
        np.asfortranarray(X),
        np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
        X[::-1].copy()[::-1],
        unaligned,
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        pytest.importorskip("pandas").DataFrame(X),
    ]
    for form in [*forms, *(X.astype(kind) for kind in (">f8", np.longdouble, "f2", "i2", "u1"))]:
        check(nl.neighbor_graph(form, 5, metric=metric), X, 5, metric=metric)
        check(nl.neighbor_graph(form, 5, form, metric=metric), X, 5, X, metric)


def test_sparse_rows_that_are_empty_unsorted_or_hold_zeros_and_duplicates():
    data, indices = [1.0, 0.0, 2.0, 1.0, 1.0], [3, 1, 0, 2, 2]
    X = sparse.csr_matrix((data, indices, [0, 2, 2, 5, 5]), shape=(4, 4))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    for metric in ("euclidean", "cosine", "manhattan"):
        check(nl.neighbor_graph(X, 3, metric=metric), X.toarray(), 3, metric=metric)
    for kept, now in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(kept, now)


def test_sparse_rows_with_64_bit_indices_and_many_features():
    rng = np.random.default_rng(4)
    X = sparse.csr_matrix(rng.integers(0, 3, (60, 9)) * rng.integers(0, 2, (60, 9)), dtype=float)
    wide = sparse.csr_matrix((X.data, X.indices * 300_000, X.indptr), shape=(60, 3_000_000))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for metric in ("euclidean", "cosine", "manhattan"):
        check(nl.neighbor_graph(wide, 7, metric=metric), X.toarray(), 7, metric=metric)


def test_zero_rows_are_at_cosine_distance_one_as_in_scikit_learn():
    from sklearn.neighbors import NearestNeighbors

    X = np.array([[0, 0], [3, 4], [0, 0], [6, 8], [1e-200, 0], [1e200, 1e200]])
    ours = nl.neighbor_graph(X, 5, metric="cosine")
    theirs = NearestNeighbors(n_neighbors=5, metric="cosine").fit(X[:4]).kneighbors
    assert ours.distances[0].tolist() == [1, 1, 1, 1, 1]
    assert nl.neighbor_graph(X[:4], 3, metric="cosine").distances[1, 0] == 0
    np.testing.assert_allclose(theirs(n_neighbors=3)[0][0], [1, 1, 1])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "chebyshev"])
@SLOW
def test_agrees_with_scikit_learn_where_there_are_no_ties(metric):
    from sklearn.neighbors import NearestNeighbors

    X = np.random.default_rng(3).normal(size=(400, 7))
    distances, indices = NearestNeighbors(n_neighbors=6, metric=metric).fit(X).kneighbors()
    graph = nl.neighbor_graph(X, 6, metric=metric)
    np.testing.assert_array_equal(graph.indices, indices)
    np.testing.assert_allclose(graph.distances, distances, rtol=1e-10)


def test_a_function_as_metric_and_slow_metrics_warn():
    X = np.array([[0.0, 1], [2, 2], [5, 0]])
    with pytest.warns(EfficiencyWarning, match="function.*metric"):
        graph = nl.neighbor_graph(X, 2, metric=lambda a, b: float(abs(a - b).sum()))
    check(graph, X, 2, metric="manhattan")
    with pytest.warns(EfficiencyWarning, match="metric='hamming'"):
        nl.neighbor_graph(X, 2, metric="hamming")
    with (
        pytest.warns(EfficiencyWarning),
        pytest.raises(ValueError, match="metric.*-1"),
    ):
        nl.neighbor_graph(X, 2, metric=lambda a, b: -1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": [[1.0, np.nan], [0, 1]]}, "Input X contains NaN"),
        ({"X": [[1.0, np.inf], [0, 1]]}, "Input X contains infinity"),
        ({"X": [1.0, 2.0]}, "Expected 2D array"),
        ({"X": np.empty((0, 3))}, r"0 sample\(s\)"),
        ({"X": np.empty((3, 0))}, r"0 feature\(s\)"),
        ({"X": [[1.0]]}, "X has 1 sample"),
        ({"k": 0}, r"\bk\b.*1.*3.*0"),
        ({"k": 4}, r"\bk\b.*1.*3.*4"),
        ({"k": 5, "queries": [[0, 0]]}, r"\bk\b.*1.*4.*5"),
        ({"queries": [[1.0, 2, 3]]}, "queries.*X.*2.*3"),
        ({"queries": [[1.0, np.nan]]}, "Input queries contains NaN"),
        ({"metric": "euclid"}, "metric .*'euclidean', .*'euclid'"),
        ({"search": "approx"}, "search .*'auto', 'exact', 'approximate'.*'approx'"),
        ({"search": nl.ExactSearch}, "search .*'auto', 'exact', 'approximate'.*ExactSearch"),
        ({"n_jobs": 0}, "n_jobs .*1.*0"),
    ],
)
def test_bad_input_gets_one_clear_error(arguments, message):
    given = {"X": [[0.0, 0], [1, 0], [0, 2], [3, 3]], "k": 1, **arguments}
    with pytest.raises(ValueError, match=message):
        nl.neighbor_graph(**given)


@pytest.mark.parametrize("k", [1.0, "1", True, None])
def test_k_of_another_type_is_refused(k):
    with pytest.raises(TypeError, match=rf"\bk\b.*integer.*1.*2.*{k!r}"):
        nl.neighbor_graph(np.eye(3), k)


def test_distances_that_overflow_are_refused_and_underflow_is_a_tie():
    with pytest.raises(ValueError, match="float64.*X"):
        nl.neighbor_graph([[1e200], [-1e200], [0.0]], 2)
    tiny = np.array([[0.0], [1e-200], [2e-200], [1.0]])
    for form in (tiny, sparse.csr_array(tiny)):
        check(nl.neighbor_graph(form, 3), tiny, 3)


@pytest.mark.parametrize("seed", range(40))
def test_where_squares_overflow_but_distances_do_not(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 3))
    X = rng.normal(size=(5, d)) * 10 ** rng.uniform(152.5, 154, (5, 1))
    queries = rng.normal(size=(3, d)) * 10 ** rng.uniform(152.5, 154, (3, 1))
    distances = oracles.neighbors(X, 2, queries)[1]
    for form in (X, sparse.csr_array(X)):
        if np.isfinite(distances).all():
            check(nl.neighbor_graph(form, 2, queries), X, 2, queries)
        else:
            with pytest.raises(ValueError, match="float64.*X"):
                nl.neighbor_graph(form, 2, queries)


def test_only_distances_to_neighbors_have_to_be_finite():
    X = np.array([[0.0], [1.0], [1e160], [1e160 + 1e150]])
    with pytest.raises(ValueError, match="float64.*X"):
        nl.neighbor_graph(X, 2)
    check(nl.neighbor_graph(X, 1), X, 1)


def test_a_long_sparse_row_does_not_multiply():
    """A neighbor of all rows has 100,000 entries: all differences at once would be gigabytes."""
    n, d = 400, 200_000
    ones = [np.sort(np.random.default_rng(i).choice(d, 10, replace=False)) for i in range(n - 1)]
    long = np.arange(100_000)
    indptr = np.concatenate([np.arange(n) * 10, [(n - 1) * 10 + len(long)]])
    data = np.concatenate([np.ones((n - 1) * 10), np.full(len(long), 1e-9)])
    X = sparse.csr_array((data, np.concatenate([*ones, long]), indptr), shape=(n, d))
    tracemalloc.start()
    graph = nl.neighbor_graph(X, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (graph.indices[:-1, 0] == n - 1).all()
    assert peak < 300e6


def test_concurrent_searches_restore_the_threads_of_blas():
    from threadpoolctl import threadpool_info, threadpool_limits

    def blas_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    X = np.random.default_rng(5).normal(size=(300, 5))
    with threadpool_limits(2), ThreadPoolExecutor(4) as pool:  # independent of the machine
        before = blas_threads()
        graphs = list(pool.map(lambda _: nl.neighbor_graph(X, 5, n_jobs=2), range(12)))
        assert blas_threads() == before
    assert 2 in before
    assert all((graph.indices == graphs[0].indices).all() for graph in graphs)


def test_a_function_cannot_write_to_the_rows():
    def writes(a, b):
        a[0] = 7.0
        return 0.0

    with (
        pytest.warns(EfficiencyWarning),
        pytest.raises(ValueError, match="read-only"),
    ):
        nl.neighbor_graph(np.eye(3), 1, metric=writes)


def test_progress_counts_the_rows_up_to_all_of_them():
    told = []
    search = nl.ExactSearch(block_bytes=1)
    for n_jobs in (1, 2):
        told.clear()
        nl.neighbor_graph(
            np.eye(9), 2, search=search, n_jobs=n_jobs, progress=lambda *now: told.append(now)
        )
        assert told == [(done, 9) for done in range(1, 10)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_ends_the_search(n_jobs):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nl.neighbor_graph(
            np.eye(50), 2, search=nl.ExactSearch(1), n_jobs=n_jobs, progress=interrupt
        )


def test_n_jobs_counts_from_all_cores_when_negative():
    from nearlabel.common.validation import check_n_jobs

    assert check_n_jobs(None) == 1
    assert check_n_jobs(-1) >= 1
    assert check_n_jobs(-1000) == 1


def far_clusters(rng):
    """Rows that float32 distinguishes only with near centers; one query out of its range."""
    centers = 1e5 * rng.normal(size=(20, 12))
    X, queries = (centers[rng.integers(0, 20, n)] + rng.normal(size=(n, 12)) for n in (1500, 6))
    return X, np.concatenate([queries, 1e60 * queries[:1], np.zeros((1, 12))])


def sparse_rows(rng):
    """Most rows have nothing in common: for cosine they are at distance 1."""
    X = sparse.csr_array(rng.normal(size=(400, 200)) * (rng.random((400, 200)) < 0.01))
    return X, X[:9]


def few_features(rng):
    """For which a tree is made."""
    X = rng.normal(size=(900, 1))
    return X, X[:5] + 0.001


def single_query(rng):
    """Compared with several stripes by one call; one row is out of the range of float32."""
    X = rng.normal(size=(2600, 40))
    X[7] = 1e30
    return X, X[:1] + 0.1


@pytest.mark.parametrize("rows", [far_clusters, sparse_rows, few_features, single_query])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "manhattan"])
def test_rows_that_have_a_query_within_their_limit(rows, metric):
    rng = np.random.default_rng(0)
    X, queries = rows(rng)
    index = ExactIndex(X, metric, 2**26)
    query, row = (ends.ravel() for ends in np.indices((queries.shape[0], X.shape[0])))
    distances = pair_distances(X, metric, queries, query, row)
    limits = np.median(distances.reshape(-1, X.shape[0]), axis=0)
    limits[::3] = distances[: X.shape[0] : 3]  # a row at its limit is not reached
    limits[1::9], limits[2::9] = -np.inf, 1.5
    limits[5] = np.inf
    graph, reached = index.nearest_and_reached(queries, 4, limits, n_jobs=2)
    expected = index.graph(4, queries)
    np.testing.assert_array_equal(graph.indices, expected.indices)
    np.testing.assert_array_equal(graph.distances, expected.distances)
    order = np.lexsort((reached.row, reached.new))
    within = distances < limits[row]
    for found, wanted in zip(reached, (row, query, distances), strict=True):
        np.testing.assert_array_equal(found[order], wanted[within])
