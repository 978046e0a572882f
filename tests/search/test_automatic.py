"""The choice of a search, and its use in estimators and experiments."""

import pickle
from dataclasses import replace
from io import BytesIO
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from twin_graphs import assert_same

import nearlabel as nl
import nearlabel.search as choice
from nearlabel.search import InvertedLists, build_index, neighbor_graph, restrict

pytestmark = [pytest.mark.usefixtures("small_lists"), pytest.mark.engines]


def some_data(n=400, d=5, q=4):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 20, n)
    X = 2 * rng.normal(size=(20, d))[group] + rng.normal(size=(n, d))
    Y = (rng.random((20, q))[group] + 0.3 * rng.normal(size=(n, q)) > 0.5).astype(int)
    return X, Y


def test_auto_uses_lists_above_a_fixed_amount_of_work():
    X, _ = some_data()
    n, d = X.shape
    for most, is_exact in ((n * n * d, True), (n * n * d - 1, False)):
        with mock.patch.object(choice, "MOST_WORK", most):
            for queries in (None, X[:3]):
                ours = neighbor_graph(X, 5, queries)
                twin = neighbor_graph(X, 5, queries, search="exact" if is_exact else "approximate")
                assert_same(ours, twin)
                assert (ours.recall is None) == is_exact


def test_the_limit_of_auto_is_the_documented_one():
    assert choice.MOST_WORK == 10**13
    wide = np.lib.stride_tricks.as_strided(np.zeros(1), (280_000, 128), (0, 0))
    assert choice.takes_lists(wide.shape)
    assert not choice.takes_lists(wide[:279_000].shape)


def test_auto_is_exact_where_a_tree_is_fast():
    few = np.lib.stride_tricks.as_strided(np.zeros(1), (10**7, 6), (0, 0))
    more = np.lib.stride_tricks.as_strided(np.zeros(1), (10**7, 7), (0, 0))
    with mock.patch.object(choice, "_FEWEST_FEATURES", 7):  # as it is
        assert not choice.takes_lists(few.shape)
        assert choice.takes_lists(more.shape)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.EfficiencyWarning")
@pytest.mark.parametrize("search", ["auto", "exact", "approximate", InvertedLists(0.5)])
def test_sparse_rows_and_other_metrics_are_searched_exactly(search):
    X, _ = some_data(n=90)
    with mock.patch.object(choice, "MOST_WORK", 0):
        for form, metric in (
            (sparse.csr_array(X), "euclidean"),
            (sparse.csr_array(X), "cosine"),
            (X, "chebyshev"),
            (X > 0, "hamming"),
            (X > 0, "jaccard"),
            (X, lambda a, b: float(abs(a - b).max())),
            (np.abs(X[:, :1] - X[:, 0]), "precomputed"),
        ):
            graph = neighbor_graph(form, 4, metric=metric, search=search)
            assert graph.recall is None
            assert_same(graph, neighbor_graph(form, 4, metric=metric, search="exact"))


# Estimators


@pytest.mark.parametrize("search", ["approximate", "auto", InvertedLists(0.9, 3)])
def test_estimators_search_by_lists(search):
    X, Y = some_data()
    new = X[:7] + 0.1
    graph = neighbor_graph(X, 6, search=search if search != "auto" else "approximate")
    asked = neighbor_graph(X, 6, new, search=search if search != "auto" else "approximate")
    with mock.patch.object(choice, "MOST_WORK", 0):
        model = nl.MLkNN(6, search=search).fit(X, Y)
        twin = nl.MLkNN(6, search=search).fit_graph(graph, Y, X)
        scores = model.label_scores(new)
        np.testing.assert_array_equal(scores.toarray(), twin.scores_from_graph(asked).toarray())
        np.testing.assert_array_equal(model.rank(new, 3).labels, twin.rank(new, 3).labels)
        distances, indices = model.kneighbors(new)
        np.testing.assert_array_equal(indices, asked.indices)
        np.testing.assert_array_equal(distances, asked.distances)
        np.testing.assert_array_equal(model.kneighbors()[1], graph.indices)

        # Distances that are shown are those of the neighbors.
        told = model.explain(new[0], top=2)
        examples = model.retrieve(new[:1], top=2, per_label=3)
        assert told
        assert examples

        buffer = BytesIO()
        pytest.importorskip("joblib").dump(model, buffer)
        buffer.seek(0)
        copies = [
            pickle.loads(pickle.dumps(model)),
            pytest.importorskip("joblib").load(buffer),
            clone(model).fit(X, Y),
        ]
        for copied in copies:
            assert copied.search == search
            np.testing.assert_array_equal(copied.label_scores(new).toarray(), scores.toarray())


def test_what_is_explained_is_what_was_found():
    X, Y = some_data()
    new = X[0] + 0.1
    ours = nl.BRkNN(6, search=InvertedLists(1.0)).fit(X, Y).explain(new, top=4)
    exact = nl.BRkNN(6, search="exact").fit(X, Y).explain(new, top=4)
    for label, twin in zip(ours.labels, exact.labels, strict=True):
        assert (label.label, label.score) == (twin.label, twin.score)
        for voter, other in zip(label.neighbors, twin.neighbors, strict=True):
            assert voter == replace(other, distance=float(np.float32(other.distance)))


# Experiments


def test_parameters_are_chosen_on_the_approximate_graph():
    X, Y = some_data()
    grid = {"n_neighbors": [3, 6], "smoothing": [0.5, 1.0]}
    for cv in ("loo", 4):
        found = nl.GraphSearchCV(nl.MLkNN(search="approximate"), grid, cv=cv).fit(X, Y)
        assert found.best_estimator_.search == "approximate"
        every = nl.GraphSearchCV(nl.MLkNN(search=InvertedLists(1.0)), grid, cv=cv).fit(X, Y)
        exact = nl.GraphSearchCV(nl.MLkNN(search="exact"), grid, cv=cv).fit(X, Y)
        scores = [one.cv_results_["mean_test_score"] for one in (found, every, exact)]
        np.testing.assert_array_equal(scores[1], scores[2])
        np.testing.assert_allclose(scores[0], scores[2], atol=0.01)


def test_hiding_rows_of_an_approximate_graph():
    X, _ = some_data()
    keep = np.random.default_rng(0).random(len(X)) < 0.7
    base, others = X[keep], X[~keep]
    built = []

    def build(kept):
        built.append(kept)
        return build_index(kept, "euclidean", InvertedLists(1.0))

    # If everything is found, it equals a search of the kept rows.
    for searched in (6, 30):
        graph = neighbor_graph(X, searched, search=InvertedLists(1.0))
        parts = restrict(graph, X, keep, 6, build)
        twins = (
            neighbor_graph(base, 6, search=InvertedLists(1.0)),
            neighbor_graph(base, 6, others, search=InvertedLists(1.0)),
        )
        for part, twin in zip(parts, twins, strict=True):
            np.testing.assert_array_equal(part.indices, twin.indices)
            np.testing.assert_array_equal(part.distances, twin.distances)
            assert part.recall == graph.recall
    assert len(built) == 1

    # Not all: the nearest of what was found, and the recall says so.
    graph = neighbor_graph(X, 30, search=InvertedLists(0.6))
    part, _ = restrict(graph, X, keep, 6, build)
    number = np.cumsum(keep) - 1
    for row, found in zip(np.flatnonzero(keep), part.indices, strict=True):
        visible = [number[other] for other in graph.indices[row] if keep[other]]
        assert found.tolist() == visible[:6]
    assert part.recall == graph.recall


def test_short_rows_are_topped_up_in_the_order_of_their_own_distances():
    """The search of few rows may be exact, and its distances could tie in float32."""
    X = np.arange(200)[:, None] // 5 + 1e-9 * np.random.default_rng(0).normal(size=(200, 1))
    keep = np.arange(200) % 2 == 0
    for first, second in ((InvertedLists(1.0), "exact"), ("exact", InvertedLists(1.0))):
        graph = neighbor_graph(X, 10, search=first)
        parts = restrict(graph, X, keep, 9, lambda kept: build_index(kept, "euclidean", second))  # noqa: B023
        for part in parts:
            nl.NeighborGraph(part.indices, part.distances, part.n_base)
