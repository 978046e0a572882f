import pickle
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import EfficiencyWarning

import nearlabel as nl
from nearlabel.search import check_search

METRICS = {"euclidean": 1, "sqeuclidean": 1, "cosine": 0, "manhattan": 2}


@pytest.fixture(scope="module")
def faiss():
    faiss = pytest.importorskip("faiss", reason="needs faiss: Linux and NumPy 2")
    faiss.omp_set_num_threads(1)  # for tests that train an index themselves
    return faiss


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(400, 8, 12)


class Fake:
    """A mock of a faiss index: brute force, with results that tests can corrupt."""

    metric_type, is_trained = 1, True

    def __init__(self, d, spoil=lambda indices: indices):
        self.d, self.spoil = d, spoil
        self.rows = np.empty((0, d), np.float32)
        self.asked = []

    @property
    def ntotal(self):
        return len(self.rows)

    def train(self, rows):
        raise AssertionError("it is trained")

    def add(self, rows):
        assert rows.dtype == np.float32
        assert rows.flags.c_contiguous
        self.rows = np.concatenate([self.rows, rows])

    def search(self, queries, k):
        assert queries.dtype == np.float32
        assert queries.flags.c_contiguous
        self.asked.append(len(queries))
        distances = ((queries[:, None] - self.rows) ** 2).sum(-1)
        order = np.argsort(distances, axis=1)[:, :k]
        return np.take_along_axis(distances, order, axis=1), self.spoil(order)


def same(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_flat_index_gives_the_exact_graph(faiss, metric, kind):
    X = np.random.default_rng(0).standard_normal((500, 7)).astype(kind)
    X[100:160], X[200] = X[:60], 0  # equal rows, and one without a direction
    queries = np.asfortranarray(X[:90] + np.float32(0.1))
    index = faiss.IndexFlat(7, METRICS[metric])
    for asked, most in ((None, 499), (queries, 500)):
        for k in (1, 10, most):
            expected = nl.neighbor_graph(X, k, asked, metric=metric)
            found = nl.neighbor_graph(X, k, asked, metric=metric, search=index)
            if metric == "cosine" and k < most:  # the zero row has equal distances to all others
                others = np.flatnonzero(np.arange(len(found)) != 200)
                found, expected = found.take(others), expected.take(others)
            same(found, expected)
            assert found.indices.dtype == expected.indices.dtype
    assert index.ntotal == 0


@pytest.mark.parametrize(
    "kind",
    [
        *("IVF8,Flat", "HNSW8", "SQ8", "OPQ2_4,IVF4,PQ2x4", "PCA4,IVF4,Flat"),
        *("IDMap,Flat", "L2norm,Flat", "IVF4,PQ4x4fs,RFlat", "LSH", "NSG8"),
    ],
)
def test_any_kind_is_trained_and_filled_on_a_copy(faiss, data, kind):
    index = faiss.index_factory(8, kind)
    before = index.is_trained
    model = nl.MLkNN(n_neighbors=5, search=index)
    first, again = (model.fit(data.X, data.Y).kneighbors() for _ in range(2))
    for one, other in zip(first, again, strict=True):  # two fits do not pile up
        np.testing.assert_array_equal(one, other)
    distances, indices = first
    assert (index.ntotal, index.is_trained) == (0, before)
    pairs = data.X.astype(float)[indices] - data.X.astype(float)[:, None]
    np.testing.assert_allclose(distances, np.sqrt((pairs**2).sum(-1)), rtol=1e-12)
    assert (indices != np.arange(400)[:, None]).all()
    assert model.predict(data.X[:3] + 0.01).shape == (3, 12)


def test_parameters_of_the_search_are_copied(faiss, monkeypatch):
    monkeypatch.setattr("nearlabel.search.foreign._WORTH_MEASURING", 600)
    X = np.random.default_rng(0).standard_normal((1000, 16))
    index, recalls = faiss.index_factory(16, "IVF10,Flat"), []
    for index.nprobe in (1, 4, 10):
        recalls.append(nl.neighbor_graph(X, 10, search=index).recall.value)
    assert recalls[0] < 0.6 < recalls[1] < recalls[2] == 1


def test_the_recall_is_that_of_a_sample_of_a_large_graph(faiss):
    X = np.random.default_rng(0).standard_normal((4200, 12))
    index = faiss.index_factory(12, "HNSW4")
    found, exact = nl.neighbor_graph(X, 10, search=index), nl.neighbor_graph(X, 10)
    truly = np.mean(found.distances <= exact.distances[:, -1:])
    assert truly < 0.999
    assert abs(found.recall.value - truly) < 4 * found.recall.standard_error
    assert (found.recall.rows, found.recall.k) == (512, 10)
    assert nl.neighbor_graph(X[:4096], 10, search=index).recall is None


def test_rounding_in_float32_does_not_decide_the_last_neighbor():
    X = 1e4 + np.array([[0], [1.0004], [1.0001], [5]])
    assert np.float32(X[1, 0]) == np.float32(X[2, 0])
    assert nl.neighbor_graph(X, 1, search=Fake(1)).indices.ravel().tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize("alone", [True, False])
def test_rows_that_are_short_are_searched_exactly(alone):
    X = np.random.default_rng(0).standard_normal((300, 5))
    queries = None if alone else X[:250] + 0.1
    expected = nl.neighbor_graph(X, 6, queries)

    def lose(rows):
        def spoil(indices):
            indices = indices.copy()
            indices[rows, 4:] = -1
            indices[50, -1] = -1  # it has enough without
            return indices

        return spoil

    same(nl.neighbor_graph(X, 6, queries, search=Fake(5, lose([7, 99]))), expected)
    with pytest.warns(EfficiencyWarning, match="search=Fake .*k=6 .* 40 of"):
        found = nl.neighbor_graph(X, 6, queries, search=Fake(5, lose(np.arange(60, 100))))
    same(found, expected)


def test_an_index_that_holds_the_rows_already(faiss, data):
    X = data.X.astype(np.float64)
    expected = nl.neighbor_graph(X, 5)
    for kind in ("Flat", "HNSW32", "IVF1,Flat", "IDMap,Flat"):
        index = faiss.index_factory(8, kind)
        index.train(X.astype(np.float32))
        if kind.startswith("IDMap"):
            index.add_with_ids(X.astype(np.float32), np.arange(400))
        else:
            index.add(X.astype(np.float32))
        same(nl.neighbor_graph(X, 5, search=index), expected)
        assert index.ntotal == 400
    lossy = faiss.index_factory(8, "PQ8x4")
    lossy.train(X.astype(np.float32))
    lossy.add(X.astype(np.float32))
    nl.neighbor_graph(X, 5, search=lossy)
    for index, other in ((lossy, X[::-1]), (faiss.clone_index(lossy), 9 * X)):
        with pytest.raises(ValueError, match="search=IndexPQ .*rows of X"):
            nl.neighbor_graph(other, 5, search=index)
    flat = faiss.IndexFlatL2(8)
    flat.add(X.astype(np.float32))
    for other in (X[::-1], X * 1.01, np.roll(X, 1, axis=0)):
        with pytest.raises(ValueError, match="search=IndexFlatL2 .*rows of X"):
            nl.neighbor_graph(other, 5, search=flat)
    with pytest.raises(ValueError, match="search=IndexFlatL2 .*400 rows.*399 rows"):
        nl.neighbor_graph(X[1:], 5, search=flat)


def test_a_filled_index_for_cosine_holds_rows_of_length_one(faiss, data):
    X = data.X.astype(np.float32)
    index = faiss.IndexFlatIP(8)
    index.add(X)
    with pytest.raises(ValueError, match="search=.*rows of X.*length one"):
        nl.neighbor_graph(X, 5, metric="cosine", search=index)
    index.reset()
    index.add(X / np.linalg.norm(X, axis=1, keepdims=True))
    same(
        nl.neighbor_graph(X, 5, metric="cosine", search=index),
        nl.neighbor_graph(X, 5, metric="cosine"),
    )


def test_invalid_combinations_of_index_and_metric(faiss):
    X = np.eye(4)
    l2 = faiss.IndexFlatL2(4)
    for search, how, error, message in (
        (l2, {"metric": "cosine"}, ValueError, "metric='cosine' .*search=IndexFlat"),
        (l2, {"metric": max}, ValueError, "METRIC_L2.*'euclidean'"),
        (l2, {"metric": "precomputed"}, ValueError, "metric='precomputed'.*X"),
        (l2, {"metric": "cosin"}, ValueError, "metric .*'euclidean'.*'cosin'"),
        (faiss.IndexFlatIP(4), {}, ValueError, "METRIC_INNER_PRODUCT.*'cosine'"),
        (faiss.IndexFlat(4, 20), {}, ValueError, "metric 20.*no metric of nearlabel"),
        (faiss.IndexFlatL2(5), {}, ValueError, "search=IndexFlatL2 .*5 features.*X .*4"),
        (faiss.IndexBinaryFlat(8), {}, TypeError, "search=IndexBinaryFlat .*binary"),
        (faiss.IndexShards(4), {}, ValueError, "search=IndexShards.*copied.*rows of X"),
        (faiss.IndexFlatL2, {}, ValueError, "search .*<class 'faiss"),
        (
            faiss.index_factory(4, "IVF9,Flat"),
            {},
            ValueError,
            "search=IndexIVFFlat .*trained.*Number of training points .4. should",
        ),
    ):
        with pytest.raises(error, match=message):
            nl.neighbor_graph(X, 2, search=search, **how)
    with pytest.raises(TypeError, match="search=IndexFlatL2 .*dense.*X .*sparse"):
        nl.neighbor_graph(sparse.csr_array(X), 2, search=l2)
    same(nl.neighbor_graph(X, 2, sparse.csr_array(X), search=l2), nl.neighbor_graph(X, 2, X))
    for far in (X * 1e39, X * -1e300):
        with pytest.raises(ValueError, match="search=IndexFlatL2 .*float32"):
            nl.neighbor_graph(far, 2, search=l2)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda indices: np.where(indices == 3, 40, indices),
            "search=Fake .*index.* 39 .*row 0",
        ),
        (
            lambda indices: np.where(indices == 3, -2, indices),
            "search=Fake .*index.* 39 .*row 0",
        ),
        (
            lambda indices: np.where(indices == 3, 2, indices),
            "search=Fake: row 0 .*neighbor twice",
        ),
    ],
)
def test_an_index_that_is_broken(spoil, message):
    X = np.arange(40.0)[:, None]
    with pytest.raises(ValueError, match=message):
        nl.neighbor_graph(X, 38, search=Fake(1, spoil))


def test_an_index_that_returns_too_few_neighbors():
    X = np.arange(40.0)[:, None]
    for spoil in (lambda indices: indices[1:], lambda indices: indices[:, :2]):
        with pytest.raises(ValueError, match="search=Fake .*indices and distances.*shape"):
            nl.neighbor_graph(X, 3, search=Fake(1, spoil))


def test_queries_go_block_by_block():
    X = np.random.default_rng(0).standard_normal((60, 3))
    index, told = Fake(3), []
    index.add(X.astype(np.float32))
    queries = np.tile(X, (150, 1))
    graph = (
        check_search(index)
        .build(X)
        .graph(4, queries, n_jobs=2, progress=lambda *step: told.append(step))
    )
    same(graph, nl.neighbor_graph(X, 4, queries))
    assert index.asked == [4096, 4096, 808]
    assert told == [(4096, 9000), (8192, 9000), (9000, 9000)]

    def interrupt(done, of):
        raise KeyboardInterrupt

    index.asked.clear()
    with pytest.raises(KeyboardInterrupt):
        check_search(index).build(X).graph(4, queries, progress=interrupt)
    assert index.asked == [4096]


def test_threads_are_those_of_n_jobs(faiss, monkeypatch):
    X, seen = np.eye(5), []
    index = faiss.IndexFlatL2(5)
    index.add(X.astype(np.float32))
    search = index.search

    def spy(rows, k):
        seen.append(faiss.omp_get_max_threads())
        return search(rows, k)

    monkeypatch.setattr(index, "search", spy)
    before = faiss.omp_get_max_threads()
    for n_jobs in (None, 1, 3):
        nl.neighbor_graph(X, 2, n_jobs=n_jobs, search=index)
    assert seen == [1, 1, 3]
    assert faiss.omp_get_max_threads() == before

    def interrupt(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        nl.neighbor_graph(X, 2, n_jobs=3, search=index, progress=interrupt)
    assert faiss.omp_get_max_threads() == before  # although the frames of the search are kept
    assert caught.tb is not None


def test_rows_are_read_in_blocks(tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((1200, 4)).astype(np.float16)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    added = []

    class Spy(Fake):
        def add(self, rows):
            added.append(len(rows))
            super().add(rows)

    monkeypatch.setattr("nearlabel.search.exact.row_arithmetic.ELEMENTS_AT_ONCE", 2000)
    index = check_search(Spy(4)).build(mapped)
    same(index.graph(2), nl.neighbor_graph(X.astype(float), 2))
    index.graph(2, mapped[:5])
    assert added == [500, 500, 200]  # once


def test_estimators_equal_those_of_the_exact_search(faiss, data):
    X, Y, queries = data.X, data.Y, data.X[:40] + 0.01
    index = faiss.IndexFlatL2(8)
    for exact in (
        nl.MLkNN(),
        nl.LAMLkNN(n_clusters=2, random_state=0),
        nl.DMLkNN(),
        nl.BRkNN(weights="distance"),
        nl.MallowskNN(),
        nl.PositivekNN(n_neighbors=9),
        nl.MLCWkNN(),
        nl.IBLR(),
    ):
        other = deepcopy(exact).set_params(search=index, n_jobs=2)
        expected = exact.fit(X, Y).label_scores(queries).toarray()
        np.testing.assert_array_equal(other.fit(X, Y).label_scores(queries).toarray(), expected)
        thawed = pickle.loads(pickle.dumps(other))
        np.testing.assert_array_equal(thawed.label_scores(queries).toarray(), expected)
    assert index.ntotal == 0


def test_other_rows_are_searched_beside_an_index(data):
    filled = Fake(8)
    filled.add(data.X[:350].astype(np.float32))
    for index in (Fake(8), filled):
        model = nl.MLkNN(5, search=index).fit(data.X[:350], data.Y[:350])
        model.partial_fit(data.X[350:], data.Y[350:]).forget(np.arange(90))
        expected = nl.MLkNN(5).fit(data.X[90:], data.Y[90:])
        for ours, theirs in zip(model.kneighbors(), expected.kneighbors(), strict=True):
            np.testing.assert_array_equal(ours, theirs + 90 * (theirs.dtype.kind == "i"))
