"""The nearest items that carry a label, however many items do."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import nearlabel as nl
from nearlabel.methods import retrieval


@pytest.mark.parametrize("widened", [12, 40, 1000])
@pytest.mark.parametrize("change", [False, True])
def test_more_neighbors_find_the_same_items(monkeypatch, widened, change):
    """Frequent labels are first searched among more neighbors, rare ones among all items."""
    random = np.random.default_rng(0)
    X, Y = random.integers(0, 4, (150, 3)), random.random((150, 4)) < [0.9, 0.5, 0.06, 0.01]
    queries, whole = random.integers(0, 4, (5, 3)), np.arange(150)
    model = nl.MLkNN(5).fit(X, Y.astype(int))
    if change:
        model.forget([3, 4]).partial_fit(X[:6], Y[:6].astype(int))
        whole = np.r_[whole[[*range(3), *range(5, 150)]], 150 + np.arange(6)]
        X, Y = np.vstack([X, X[:6]]), np.vstack([Y, Y[:6]])
    monkeypatch.setattr(retrieval, "_FEW_CELLS", 9)
    monkeypatch.setattr(retrieval, "_MANY_NEAR", widened)
    for query, groups in zip(queries, model.retrieve(queries, 4, 7), strict=True):
        assert len(groups) == 4
        for group in groups:
            carriers = whole[Y[whole, group.label]]
            distances = np.sqrt(((X[carriers] - query) ** 2).sum(axis=1))
            order = np.lexsort((carriers, distances))[:7]
            assert group.ids.tolist() == carriers[order].tolist()
            assert group.distances == pytest.approx(distances[order])


def far_carriers():
    """Items in two places, and labels of which all, or most, are in the first one."""
    random = np.random.default_rng(1)
    X = random.normal(size=(300, 6)) * (random.random((300, 6)) < 0.7)
    X[250:] = X[:50]  # so that some are equally far
    X[:, 0] = np.where(np.arange(300) % 50 < 20, -9, 9)
    is_first = X[:, 0] < 0
    return X, np.column_stack([is_first, random.random(300) < 0.4, is_first & (X[:, 1] > 0)])


@pytest.fixture
def searched(monkeypatch):
    """The number of carriers in each search, with a low limit for direct comparison."""
    counts, build = [], retrieval.build_index
    monkeypatch.setattr(retrieval, "_FEW_CELLS", 100)
    monkeypatch.setattr(retrieval, "_MANY_NEAR", 20)
    monkeypatch.setattr(
        retrieval,
        "build_index",
        lambda rows, *how: counts.append(rows.shape[0]) or build(rows, *how),
    )
    return counts


def assert_nearest_carriers(groups, distances, Y, there, m):
    assert sorted(group.label for group in groups) == [0, 1, 2]
    for group in groups:
        carriers = there[Y[there, group.label]]
        order = np.lexsort((carriers, distances[carriers]))[:m]
        assert group.ids.tolist() == carriers[order].tolist()
        assert group.distances == pytest.approx(distances[carriers[order]], abs=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("change", [False, True])
def test_many_carriers_of_which_few_are_near(searched, metric, form, change):
    X, Y = far_carriers()
    model, there = nl.MLkNN(5, metric=metric).fit(form(X), Y.astype(int)), np.arange(300)
    if change:
        model.forget([3, 6, 9])
        there = np.delete(there, [3, 6, 9])
    at = [20, 21, 49]  # in the second place
    for row, groups in zip(at, model.retrieve(form(X[at]), 3, 9), strict=True):
        assert_nearest_carriers(groups, cdist(X[[row]], X, metric)[0], Y, there, 9)
    for label in (0, 2):
        assert searched.count(np.count_nonzero(Y[there, label])) == len(at)


@pytest.mark.parametrize("m", [100, 1000])
def test_as_many_carriers_as_are_asked_for_or_all(searched, m):
    X, Y = far_carriers()
    (groups,) = nl.MLkNN(5).fit(X, Y.astype(int)).retrieve(X[:1], 3, m)
    assert_nearest_carriers(groups, cdist(X[:1], X)[0], Y, np.arange(300), m)
    assert searched


def test_carriers_by_another_search_or_by_given_distances(searched):
    """An external search and given distances are not searched for more neighbors."""
    X, Y = far_carriers()
    D = cdist(X, X)

    def search(rows, queries, k):
        distances = cdist(rows if queries is None else queries, rows)
        indices = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return indices, np.take_along_axis(distances, indices, axis=1)

    (groups,) = nl.MLkNN(5, search=search).fit(X, Y.astype(int)).retrieve(X[[20]], 3, 9)
    assert_nearest_carriers(groups, D[20], Y, np.arange(300), 9)
    assert len(searched) == 3
    (groups,) = nl.MLkNN(5, metric="precomputed").fit(D, Y.astype(int)).retrieve(D[[20]], 3, 9)
    assert_nearest_carriers(groups, D[20], Y, np.arange(300), 9)
    assert len(searched) == 3


def test_approximate_searches_are_not_planned_for_more_neighbors(monkeypatch):
    monkeypatch.setattr(retrieval, "_FEW_CELLS", 9)
    data = nl.datasets.make_local_labels(33_000, 8, 6)
    model = nl.MLkNN(5, search=nl.InvertedLists(recall=0.9)).fit(data.X, data.Y)
    for _ in range(2):
        plans = set(_lists(model)._plans)
        (groups,) = model.retrieve(data.X[:1], 3, 40)
        assert set(_lists(model)._plans) == plans
        for group in groups:
            carried = model.label_matrix(data.Y[: len(data.X)]).toarray()[:, group.label] == 1
            carriers = np.flatnonzero(carried)
            nearest = np.sort(np.sqrt(((data.X[carriers] - data.X[0]) ** 2).sum(axis=1)))[:40]
            assert np.mean(group.distances <= nearest[-1] * (1 + 1e-6)) > 0.8
        model.partial_fit(data.X[:2] + 9, data.Y[:2])


def _lists(model):
    index = model.items_.index
    return index.segments[0].index if hasattr(index, "segments") else index
