from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearlabel as nl


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(400, 8, 12)


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


def test_rows_that_are_equal_stay_neighbors():
    X = np.repeat(np.arange(6.0), 3)[:, None]
    found = nl.neighbor_graph(X, 2, search=KNeighborsTransformer(n_neighbors=2, algorithm="brute"))
    assert (found.distances == 0).all()
    assert (found.indices != np.arange(18)[:, None]).all()


def test_recall_where_the_distances_are_those_of_the_metric(monkeypatch):
    monkeypatch.setattr("nearlabel.search.plugged.foreign_answers._WORTH_MEASURING", 600)
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


def test_queries_go_block_by_block():
    X = np.random.default_rng(0).standard_normal((50, 3))
    queries, told = np.tile(X, (100, 1)), []
    search = KNeighborsTransformer(n_neighbors=4, algorithm="brute")
    nl.neighbor_graph(X, 4, queries, search=search, progress=lambda *step: told.append(step))
    assert told == [(4096, 5000), (5000, 5000)]


def test_errors(data):
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
        (Graphs(-good), ValueError, "search=Graphs .*distance.*negative.*row 0"),
        (Graphs(good * np.nan), ValueError, "search=Graphs .*distance.*finite.*row 0"),
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
