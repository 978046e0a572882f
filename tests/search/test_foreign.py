import pickle
import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearlabel as nl
from nearlabel.search import check_search

# Functions


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(400, 8, 12)


def brute(X, queries, k, scale=1.0, kind=np.float64):
    """Every row finds itself, in any order of the neighbors."""
    X = X.toarray() if sparse.issparse(X) else X
    queries = X if queries is None else queries
    queries = queries.toarray() if sparse.issparse(queries) else queries
    distances = np.sqrt((((queries[:, None] - X) * scale) ** 2).sum(-1))
    order = np.argsort(distances, axis=1, kind="stable")[:, :k][:, ::-1]
    return order, np.take_along_axis(distances, order, axis=1).astype(kind)


def without_itself(X, queries, k):
    """A function that excludes the row itself, and returns at most all other rows."""
    graph = nl.neighbor_graph(X, min(k, X.shape[0] - (queries is None)), queries)
    return graph.indices, graph.distances


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_neighbors_and_estimators(data, form):
    X, queries = form(data.X.astype(float)), form(data.X[:40] + 0.01)
    for search in (brute, without_itself):
        for asked, most in ((None, 399), (queries, 400)):
            for k in (1, 7, most):
                found = nl.neighbor_graph(X, k, asked, search=search)
                expected = nl.neighbor_graph(X, k, asked)
                np.testing.assert_array_equal(found.indices, expected.indices)
                np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-12)
        model = nl.MLkNN(search=search).fit(X, data.Y)
        expected = nl.MLkNN().fit(X, data.Y)
        np.testing.assert_array_equal(model.predict_proba(queries), expected.predict_proba(queries))


def test_distances_stay_in_float32_and_equal_ones_are_in_the_order_of_rows():
    X = np.array([[0.0], [1.0], [-1.0], [2.0], [-2.0]])
    found = nl.neighbor_graph(X, 4, search=partial(brute, kind=np.float32))
    assert found.distances.dtype == np.float32
    assert found.indices[0].tolist() == [1, 2, 3, 4]
    whole = nl.neighbor_graph(X, 4, search=partial(brute, kind=np.int8))
    assert whole.distances.dtype == np.float64


def test_recall_is_told_where_the_distances_are_those_of_the_metric(monkeypatch):
    monkeypatch.setattr("nearlabel.search.foreign._WORTH_MEASURING", 600)
    X = np.random.default_rng(0).standard_normal((700, 3))
    among = nl.neighbor_graph(X, 24)

    def worse(X, queries, k, factor=1.0):
        """Leaves out every fourth neighbor."""
        graph = among if queries is None else nl.neighbor_graph(X, 24, queries)
        kept = np.arange(24) % 4 > 0
        return graph.indices[:, kept], factor * graph.distances[:, kept]

    recall = nl.neighbor_graph(X, 12, search=worse).recall
    assert (recall.value, recall.standard_error) == (0.75, 0)
    assert nl.neighbor_graph(X, 12, X + 0.1, search=worse).recall.value == 0.75
    assert nl.neighbor_graph(X[:600], 12, search=without_itself).recall is None
    assert nl.neighbor_graph(X, 12, search=partial(worse, factor=1.01)).recall is None
    for metric in (lambda a, b: abs(a - b).sum(), "chebyshev"):  # would be slow to measure
        assert nl.neighbor_graph(X, 12, metric=metric, search=worse).recall is None


def test_function_queries_go_block_by_block_and_the_rows_themselves_at_once():
    X = np.random.default_rng(0).standard_normal((5000, 2))
    calls, told = [], []

    def spy(rows, queries, k):
        assert rows is X
        calls.append((None if queries is None else len(queries), k))
        return without_itself(rows, queries, k)

    index = check_search(spy).build(X)
    index.graph(3, progress=lambda *step: told.append(step))
    index.graph(3, X, progress=lambda *step: told.append(step))
    assert calls == [(None, 4), (4096, 3), (904, 3)]
    assert told == [(4096, 5000), (5000, 5000)] * 2


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda i, d: i, TypeError, "search=.*searching .*indices, distances.*ndarray"),
        (lambda i, d: None, TypeError, "search=.*searching .*NoneType"),
        (lambda i, d: (d, i), TypeError, "integer indices.*float64 and int64"),
        (lambda i, d: (i, d.astype(str)), TypeError, "real distances.* <U"),
        (lambda i, d: (i[1:], d[1:]), ValueError, r"\(30, 4\).*\(29, 4\) and \(29,"),
        (lambda i, d: (i[:, :2], d[:, :2]), ValueError, r"\(30, 4\).*\(30, 2\) and \(30, 2\)"),
        (lambda i, d: (i, d[:, :3]), ValueError, r"\(30, 4\) and \(30, 3\)"),
        (lambda i, d: (i.ravel(), d.ravel()), ValueError, r"\(120,\) and \(120,\)"),
        (lambda i, d: (i + 1, d), ValueError, "index.* 29 .*row 28"),
        (lambda i, d: (i - 2, d), ValueError, "index.* 29 .*row 0"),
        (lambda i, d: (np.where(i == 5, -1, i), d), ValueError, "k=3 .* row 4 "),
        (lambda i, d: ([[0, 1, 2, 1], *i[1:]], d), ValueError, "search=.*row 0 .*neighbor twice"),
        (lambda i, d: (i, d - 2), ValueError, "row 0 .*distance.*negative"),
        (lambda i, d: (i, np.where(d == 2, np.nan, d)), ValueError, "row 0 .*distance.*neg"),
        (lambda i, d: (i, np.where(i == 9, np.inf, d)), ValueError, "row 8 .*distance.*neg"),
    ],
)
def test_answers_that_are_wrong(change, error, message):
    def searching(X, queries, k):
        return change(*(array[:, ::-1] for array in brute(X, queries, k)))

    with pytest.raises(error, match=message):
        nl.neighbor_graph(np.arange(30.0)[:, None], 3, search=searching)


def test_not_a_search():
    for wrong in (3, None, "faiss", KeyError, object(), ["exact"]):
        with pytest.raises(
            ValueError, match=f"search .*'auto', 'exact', 'approximate'.*{re.escape(repr(wrong))}"
        ):
            nl.MLkNN(n_neighbors=2, search=wrong).fit(np.eye(4), np.eye(4, dtype=int))
    with pytest.raises(ValueError, match="metric='precomputed'.*X"):
        nl.MLkNN(2, metric="precomputed", search=brute).fit(np.eye(4), np.eye(4, dtype=int))


def test_a_search_of_other_rows_is_suspicious(monkeypatch):
    monkeypatch.setattr("nearlabel.search.foreign._WORTH_MEASURING", 50)
    X = np.random.default_rng(0).standard_normal((300, 8))
    order = np.random.default_rng(1).permutation(300)

    def shuffled(X, queries, k):
        graph = nl.neighbor_graph(X, k)
        near = order[graph.indices]
        return near, np.sqrt(((X[near] - X[:, None]) ** 2).sum(axis=2))

    with pytest.warns(UserWarning, match="search=.*shuffled .* % .*rows"):
        graph = nl.neighbor_graph(X, 5, search=shuffled)
    assert graph.recall.value < 0.1


# Transformers


class Graphs(BaseEstimator):
    """A transformer that returns given graphs, as PyNNDescentTransformer might."""

    def __init__(self, among=None, of_queries=None):
        self.among, self.of_queries = among, of_queries

    def fit(self, X):
        self.fitted_ = True
        return self

    def fit_transform(self, X):
        return self.fit(X).among

    def transform(self, X):
        assert self.fitted_
        return self.of_queries


def same(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_neighbors_of_scikit_learns_transformer(data, metric, form):
    X, queries = form(data.X.astype(float)), form(data.X[:50] + 0.1)
    search = KNeighborsTransformer(n_neighbors=6, metric=metric, algorithm="brute")
    for asked in (None, queries):
        expected = nl.neighbor_graph(X, 6, asked, metric=metric)
        same(nl.neighbor_graph(X, 6, asked, search=search), expected)
        same(nl.neighbor_graph(X, 4, asked, search=search), expected.head(4))
    assert not hasattr(search, "n_features_in_")


def test_recall_of_a_transformer_where_the_distances_are_those_of_the_metric(monkeypatch):
    monkeypatch.setattr("nearlabel.search.foreign._WORTH_MEASURING", 600)
    X = np.random.default_rng(0).standard_normal((700, 4)).astype(np.float32)
    search = KNeighborsTransformer(n_neighbors=5)
    assert nl.neighbor_graph(X, 5, search=search).recall.value == 1
    assert nl.neighbor_graph(X, 5, X + 1, search=search).recall.value == 1
    assert nl.neighbor_graph(X, 5, metric="sqeuclidean", search=search).recall is None
    rough = make_pipeline(FirstFeatures(), search)
    assert nl.neighbor_graph(X, 5, search=rough).recall is None


class FirstFeatures(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[:, :2]

    def __sklearn_is_fitted__(self):
        return True


def test_a_pipeline_has_a_metric_of_its_own(data):
    X, queries = data.X.astype(float), data.X[:50] + 0.1
    scaler = StandardScaler().fit(X)
    search = make_pipeline(StandardScaler(), KNeighborsTransformer(n_neighbors=6))
    model = nl.MLkNN(n_neighbors=6, search=search).fit(X, data.Y)
    expected = nl.MLkNN(n_neighbors=6).fit(scaler.transform(X), data.Y)
    for ours, theirs in ((None, None), (queries, scaler.transform(queries))):
        distances, indices = model.kneighbors(ours)
        expected_distances, expected_indices = expected.kneighbors(theirs)
        np.testing.assert_array_equal(indices, expected_indices)
        np.testing.assert_allclose(distances, expected_distances)
    np.testing.assert_array_equal(
        model.predict_proba(queries), expected.predict_proba(scaler.transform(queries))
    )


def test_scikit_learn_reaches_its_parameters(data):
    search = KNeighborsTransformer(n_neighbors=8)
    model = nl.MLkNN(n_neighbors=8, search=search)
    grid = {"search__metric": ["euclidean", "cosine"]}
    tried = GridSearchCV(model, grid, cv=2).fit(data.X, data.Y.toarray())
    alone = nl.MLkNN(n_neighbors=8, metric=tried.best_params_["search__metric"])
    expected = alone.fit(data.X, data.Y).predict(data.X[:9] + 0.1)
    np.testing.assert_array_equal(tried.predict(data.X[:9] + 0.1), expected.toarray())
    thawed = pickle.loads(pickle.dumps(tried.best_estimator_))
    np.testing.assert_array_equal(thawed.predict(data.X[:9] + 0.1), expected.toarray())


def test_parameters_that_are_changed_later_are_for_the_next_fit(data):
    search = KNeighborsTransformer(n_neighbors=6)
    model = nl.MLkNN(n_neighbors=6, search=search).fit(data.X, data.Y)
    expected = model.kneighbors()[1]
    search.set_params(n_neighbors=2)
    np.testing.assert_array_equal(model.kneighbors()[1], expected)
    with pytest.raises(ValueError, match="n_neighbors=2.* 6 neighbors"):
        model.fit(data.X, data.Y)


def test_graphs_with_itself_or_without_in_float32_and_any_order():
    among = np.array([[0, 3, 1, 9], [2, 0, 2, 5], [1, 2, 0, 4], [9, 5, 4, 0]], np.float32)
    with_itself = sparse.csr_array(among + 1)
    without = with_itself.copy()
    without.setdiag(0)
    without.eliminate_zeros()
    backwards = with_itself.copy()
    backwards.data = backwards.data.reshape(4, 4)[:, ::-1].ravel()
    backwards.indices = backwards.indices.reshape(4, 4)[:, ::-1].ravel()
    for graph in (with_itself, without, backwards, sparse.csc_matrix(with_itself)):
        found = nl.neighbor_graph(np.eye(4), 3, search=Graphs(graph))
        assert found.indices.tolist() == [[2, 1, 3], [0, 2, 3], [0, 1, 3], [2, 1, 0]]
        assert found.distances.tolist() == [[2, 4, 10], [3, 3, 6], [2, 3, 5], [5, 6, 10]]
        assert found.distances.dtype == np.float32


def test_errors_of_transformers(data):
    X = np.eye(5)
    good = sparse.csr_array(np.ones((5, 5)))
    beside = sparse.csr_array(np.tril(np.ones((5, 5))))
    for search, error, message in (
        (KNeighborsTransformer(n_neighbors=2), ValueError, "n_neighbors=2.* 3 neighbors"),
        (
            KNeighborsTransformer(mode="connectivity"),
            ValueError,
            "mode.*'distance'.*'connectivity'",
        ),
        (
            RadiusNeighborsTransformer(),
            ValueError,
            "search=RadiusNeighborsTransformer .*k=3 .*row 0 ",
        ),
        (
            Graphs(beside),
            ValueError,
            "search=Graphs .*k=3 .*row 0 ",
        ),
        (Graphs(good.toarray()), TypeError, r"sparse matrix.*\(5, 5\).*ndarray"),
        (Graphs(good[:4]), TypeError, r"\(5, 5\).*csr_array.*\(4, 5\)"),
        (Graphs(-good), ValueError, "search=Graphs.*row 0 .*distance.*negative"),
        (Graphs(good * np.nan), ValueError, "search=Graphs.*row 0 .*distance.*finite"),
        (StandardScaler(), TypeError, r"search=StandardScaler .*sparse matrix"),
        (KNeighborsTransformer, ValueError, "search .*<class"),
    ):
        with pytest.raises(error, match=message):
            nl.neighbor_graph(X, 3, search=search)
    short = sparse.csr_array([[0, 0, 1, 1, 1], [1, 0, 0, 0, 1]])
    with pytest.raises(ValueError, match="search=Graphs .*k=3 .*row 1$"):
        nl.neighbor_graph(X, 3, X[:2], search=Graphs(good, short))


@pytest.mark.slow
def test_pynndescent(data):
    """Compiles for a minute; pynndescent is no dependency of the tests."""
    pynndescent = pytest.importorskip("pynndescent", reason="not a dependency of the tests")
    X, queries = data.X.astype(np.float32), data.X[:50].astype(np.float32) + 0.1
    search = pynndescent.PyNNDescentTransformer(n_neighbors=10, random_state=0)
    for asked in (None, queries):
        found = nl.neighbor_graph(X, 10, asked, search=search)
        exact = nl.neighbor_graph(X, 10, asked)
        assert np.mean(found.indices == exact.indices) > 0.95
        np.testing.assert_allclose(found.distances[:, 0], exact.distances[:, 0], rtol=1e-4)
    model = nl.MLkNN(n_neighbors=10, search=search).fit(X, data.Y)
    exact = nl.MLkNN(n_neighbors=10).fit(X, data.Y)
    assert np.mean(model.predict(queries).toarray() == exact.predict(queries).toarray()) > 0.99


# Answers


@st.composite
def answers(draw):
    """Neighbors of some rows among twelve, in any order, some missing; distances with ties."""
    m, width = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    rows = [draw(st.permutations(range(12)))[:width] for _ in range(m)]
    missing = st.lists(st.booleans(), min_size=width, max_size=width)
    indices = [[-1 if no else i for i, no in zip(row, draw(missing), strict=True)] for row in rows]
    distance = st.lists(st.integers(0, 3), min_size=width, max_size=width)
    distances = [draw(distance) for _ in range(m)]
    return np.array(indices), np.array(distances, float), draw(st.integers(1, width))


@given(answer=answers())
def test_the_nearest_of_an_answer(answer):
    indices, distances, k = answer
    expected = [
        sorted((distance, index) for index, distance in zip(*row, strict=True) if index >= 0)[:k]
        for row in zip(indices.tolist(), distances.tolist(), strict=True)
    ]
    index = check_search(lambda *_: (indices, distances)).build(np.zeros((12, 1)))
    short = [row for row, pairs in enumerate(expected) if len(pairs) < k]
    if short:
        with pytest.raises(ValueError, match=f"fewer than k={k} neighbors of row {short[0]}$"):
            index.graph(k, np.zeros((len(indices), 1)))
        return
    graph = index.graph(k, np.zeros((len(indices), 1)))
    for near, far, pairs in zip(graph.indices, graph.distances, expected, strict=True):
        assert list(zip(far.tolist(), near.tolist(), strict=True)) == pairs
