from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import nearlabel as nl
from nearlabel.search import check_search


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


def test_a_metric_of_its_own(data):
    X, queries = data.X.astype(float), data.X[:40] + 0.01
    scale = np.arange(1.0, 9.0)
    model = nl.BRkNN(weights="distance", search=partial(brute, scale=scale)).fit(X, data.Y)
    expected = nl.BRkNN(weights="distance").fit(X * scale, data.Y)
    np.testing.assert_allclose(
        model.kneighbors(queries)[0], expected.kneighbors(queries * scale)[0]
    )
    np.testing.assert_allclose(
        model.predict_proba(queries), expected.predict_proba(queries * scale), rtol=1e-9
    )


def test_distances_stay_in_float32_and_equal_ones_are_in_the_order_of_rows():
    X = np.array([[0.0], [1.0], [-1.0], [2.0], [-2.0]])
    found = nl.neighbor_graph(X, 4, search=partial(brute, kind=np.float32))
    assert found.distances.dtype == np.float32
    assert found.indices[0].tolist() == [1, 2, 3, 4]
    whole = nl.neighbor_graph(X, 4, search=partial(brute, kind=np.int8))
    assert whole.distances.dtype == np.float64


def test_recall_is_told_where_the_distances_are_those_of_the_metric(monkeypatch):
    monkeypatch.setattr("nearlabel.search.plugged.foreign_answers._WORTH_MEASURING", 600)
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


def test_queries_go_block_by_block_and_the_rows_themselves_at_once():
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
        (lambda i, d: ([[0, 1, 2, 1], *i[1:]], d), ValueError, "neighbor twice .*row 0"),
        (lambda i, d: (i, d - 1), ValueError, "distance.*negative.*row 0"),
        (lambda i, d: (i, np.where(d == 2, np.nan, d)), ValueError, "distance.*neg.*row 0"),
        (lambda i, d: (i, np.where(i == 9, np.inf, d)), ValueError, "distance.*neg.*row 8"),
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
    monkeypatch.setattr("nearlabel.search.plugged.foreign_answers._WORTH_MEASURING", 50)
    X = np.random.default_rng(0).standard_normal((300, 8))
    order = np.random.default_rng(1).permutation(300)

    def shuffled(X, queries, k):
        graph = nl.neighbor_graph(X, k)
        near = order[graph.indices]
        return near, np.sqrt(((X[near] - X[:, None]) ** 2).sum(axis=2))

    with pytest.warns(UserWarning, match="search=.*shuffled .* % .*rows"):
        graph = nl.neighbor_graph(X, 5, search=shuffled)
    assert graph.recall.value < 0.1
