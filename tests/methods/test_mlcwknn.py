from __future__ import annotations

import tracemalloc
from unittest import mock

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples, problems
from tree_paths import read_tree

import nearlabel as nl
from nearlabel.common import engine
from nearlabel.common.files import FileError, write_tree
from nearlabel.formulas.reconstruction import reconstruct
from nearlabel.search import ExactIndex

pytestmark = pytest.mark.engines


class TestWorkedExample:
    """The six-row worked example, with every intermediate number."""

    def test_gram_matrix_weights_and_conditions(self, f6):
        X, _, t = f6
        near = np.array([1, 3, 0])
        G = (X[near] - t) @ (X[near] - t).T
        np.testing.assert_allclose(
            G, [[1.6, -1.84, 2.8], [-1.84, 3.88, -3.64], [2.8, -3.64, 5]], atol=5e-7
        )
        weights, residuals = reconstruct(X, t, near[None])
        np.testing.assert_allclose(weights, [[0.624454, 0.375546, 0]], atol=5e-7)
        np.testing.assert_allclose(residuals, [0.555088], atol=5e-7)
        np.testing.assert_allclose(G @ weights[0], [0.308122, 0.308122, 0.381485], atol=5e-7)

    def test_scores_decisions_and_order(self, f6):
        X, Y, t = f6
        model = nl.MLCWkNN(n_neighbors=3).fit(X, Y)
        assert model.kneighbors(t)[1].tolist() == [[1, 3, 0]]
        scores = model.label_scores(t).toarray()
        np.testing.assert_allclose(scores, [[0.624454, 1, 0, 1]], atol=5e-7)
        assert scores[0, 1:].tolist() == [1, 0, 1]
        assert model.predict(t).tolist() == [[1, 1, 0, 1]]
        assert model.rank(t).labels.tolist() == [[1, 3, 0, 2]]
        # (w + 1/n) / (1 + 2/n) with n = 6.
        np.testing.assert_allclose(
            model.predict_proba(t), [[(0.624454 + 1 / 6) * 0.75, 0.875, 0.125, 0.875]], atol=5e-7
        )

    def test_explained(self, f6):
        X, Y, t = f6
        labels = nl.MLCWkNN(n_neighbors=3).fit(X, Y).explain(t[0], top=4)
        terms = {a.label: a.terms for a in labels}
        assert [terms[label]["count"] for label in range(4)] == [2, 2, 0, 3]
        np.testing.assert_allclose(
            [terms[label]["weight"] for label in range(4)], [0.624454, 1, 0, 1], atol=5e-7
        )
        assert [a.predicted for a in labels] == [True, True, True, False]
        np.testing.assert_allclose([a.terms["residual"] for a in labels], 0.555088, atol=5e-7)


@examples(150)
@given(
    problem=problems(),
    is_sparse=st.booleans(),
    metric=st.sampled_from(["euclidean", "euclidean", "manhattan", "cosine"]),
)
def test_equals_the_literal_method(problem, is_sparse, metric):
    X, Y, queries, k = problem
    found, _ = oracles.neighbors(X, k, queries, metric)
    _, expected = oracles.mlcwknn(X, Y, queries, found)
    form = sparse.csr_array if is_sparse else np.asarray
    model = nl.MLCWkNN(n_neighbors=k, metric=metric).fit(form(X), form(Y))
    scores = model.label_scores(form(queries)).toarray()
    np.testing.assert_allclose(scores, np.array(expected, float), rtol=0, atol=1e-10)
    # A label with exactly half of the weight is not predicted, despite rounding errors.
    clear = [[v == 0.5 or abs(v - 0.5) > 1e-12 for v in row] for row in expected]
    decided = np.array([[v > 0.5 for v in row] for row in expected])
    predicted = model.predict(form(queries))
    predicted = predicted.toarray() if is_sparse else predicted
    np.testing.assert_array_equal(predicted[clear], decided[clear])
    probabilities = model.predict_proba(form(queries))
    np.testing.assert_array_equal(probabilities > 0.5, predicted == 1)
    n = len(X)
    np.testing.assert_allclose(probabilities, (scores + 1 / n) / (1 + 2 / n), rtol=1e-15)


@examples(50)
@given(problem=problems())
def test_explain_gives_the_terms_and_the_score_without_each_neighbor(problem):
    X, Y, queries, k = problem
    queries = queries[:2]
    further, distances = oracles.neighbors(X, k + 1, queries)
    weights, expected = oracles.mlcwknn(X, Y, queries, further[:, :k])
    model = nl.MLCWkNN(n_neighbors=k).fit(X, Y)
    for query, t in enumerate(queries):
        explained = model.explain(t, top=99)
        assert [a.label for a in explained] == model.rank(t[None], 99).labels[0].tolist()
        average = np.array(weights[query], float) @ (X[further[query, :k]] - t)
        without = [
            oracles.mlcwknn(X, Y, [t], [np.delete(further[query], place)])[1][0]
            for place in range(k)
        ]
        for label in explained:
            column = label.label
            voters = [place for place in range(k) if Y[further[query, place], column]]
            assert [v.id for v in label.neighbors] == [further[query, place] for place in voters]
            assert label.terms["count"] == len(voters)
            assert label.terms["weight"] == pytest.approx(float(expected[query][column]), abs=1e-10)
            assert label.terms["residual"] == pytest.approx(
                np.linalg.norm(average), abs=1e-9 * (1 + np.abs(X - t).max())
            )
            for voter, place in zip(label.neighbors, voters, strict=True):
                assert voter.distance == distances[query, place]
                left = float(without[place][column])
                assert voter.score_without == pytest.approx(left, abs=1e-10)
                assert voter.part == label.score - voter.score_without


class TestProperties:
    def test_half_of_the_weight_is_not_enough(self):
        # Midway between neighbors that carry different labels.
        X = np.array([[0.1], [0.3], [7.0]])
        Y = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1]])
        model = nl.MLCWkNN(n_neighbors=2).fit(X, Y)
        assert model.label_scores([[0.2]]).toarray().tolist() == [[0.5, 0.5, 1]]
        assert model.predict([[0.2]]).tolist() == [[0, 0, 1]]
        assert model.predict_proba([[0.2]]).tolist() == [[0.5, 0.5, 0.8]]
        assert model.rank([[0.2]]).labels.tolist() == [[2, 0, 1]]
        one_column = nl.MLCWkNN(n_neighbors=2).fit(X, Y[:, 0])
        assert one_column.predict([[0.2]]).tolist() == [0]
        assert one_column.predict_proba([[0.2]]).tolist() == [[0.5, 0.5]]

    def test_an_item_that_is_known_has_its_own_labels(self):
        data = nl.datasets.make_local_labels(200, 3, 5)
        model = nl.MLCWkNN().fit(data.X, data.Y)
        np.testing.assert_array_equal(
            model.label_scores(data.X).toarray(), data.Y.toarray().astype(float)
        )

    def test_equal_items_share_their_weight(self):
        X = np.array([[0.0, 0], [0, 0], [0, 0], [0, 0], [5, 5], [6, 5]])
        Y = np.array([[1, 1], [1, 1], [1, 0], [0, 1], [0, 0], [1, 0]])
        model = nl.MLCWkNN(n_neighbors=5).fit(X, Y)
        assert model.label_scores([[0, 0]]).toarray().tolist() == [[0.75, 0.75]]
        shares = model.label_scores([[-0.3, 0.1]]).toarray()
        assert shares.tolist() == [[0.75, 0.75]]

    def test_a_far_neighbor_on_the_other_side_outweighs_a_near_one(self):
        # A later paper states that the weights follow the distance; they do not.
        X = np.array([[1.0, 0], [1.0, 0], [1.0, 0], [1.0, 0], [-3, 0]])
        weights, residuals = reconstruct(X, np.zeros((1, 2)), np.arange(5)[None])
        np.testing.assert_allclose(weights, [[3 / 16] * 4 + [1 / 4]], atol=1e-8)
        np.testing.assert_allclose(residuals, 0, atol=1e-7)

    def test_far_from_all_neighbors_the_nearest_face_decides(self):
        X = np.array([[0.0, 0], [1, 0], [0, 1], [9, 9]])
        weights, residuals = reconstruct(X, np.array([[2.0, 2]]), np.array([[1, 2, 0]]))
        np.testing.assert_allclose(weights, [[0.5, 0.5, 0]], atol=1e-9)
        np.testing.assert_allclose(residuals, np.sqrt(4.5), rtol=1e-9)

    def test_fit_searches_nothing(self):
        data = nl.datasets.make_local_labels(60, 3, 5)
        with mock.patch.object(ExactIndex, "graph", side_effect=AssertionError):
            model = nl.MLCWkNN().fit(data.X, data.Y)
        assert model.n_neighbors_ == 10

    def test_blocks_of_queries_do_not_matter(self):
        data = nl.datasets.make_local_labels(150, 4, 5)
        model = nl.MLCWkNN(n_neighbors=7).fit(data.X, data.Y)
        queries = data.X[:40] + np.float32(0.05)
        expected = model.label_scores(queries).toarray()
        one_by_one = np.vstack([model.label_scores(row[None]).toarray() for row in queries])
        np.testing.assert_array_equal(one_by_one, expected)

    def test_many_neighbors_in_few_dimensions(self):
        data = nl.datasets.make_local_labels(120, 1, 5)
        model = nl.MLCWkNN(n_neighbors=100).fit(data.X, data.Y)
        queries = data.X if engine.core() else data.X[::4]  # NumPy is slow at large programs
        scores = model.label_scores(queries + np.float32(1e-3)).toarray()
        assert (scores >= 0).all()
        assert (scores <= 1).all()


def test_vectors_are_needed(f6):
    X, Y, t = f6
    graph, asked = nl.neighbor_graph(X, 3), nl.neighbor_graph(X, 3, t)
    with pytest.raises(ValueError, match="X .*MLCWkNN"):
        nl.MLCWkNN(n_neighbors=3).fit_graph(graph, Y)
    with pytest.raises(ValueError, match="metric='precomputed'.*MLCWkNN"):
        nl.MLCWkNN(n_neighbors=3, metric="precomputed").fit(np.zeros((6, 6)), Y)
    model = nl.MLCWkNN(n_neighbors=3).fit_graph(graph, Y, X)
    with pytest.raises(ValueError, match="X .*MLCWkNN.*queries"):
        model.scores_from_graph(asked)
    expected = model.label_scores(t).toarray()
    np.testing.assert_array_equal(model.scores_from_graph(asked, t).toarray(), expected)
    np.testing.assert_array_equal(model.predict_from_graph(asked, t), model.predict(t))


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "ten", None])
def test_neighbors_out_of_range(f6, wrong):
    X, Y, _ = f6
    with pytest.raises((ValueError, TypeError), match="n_neighbors"):
        nl.MLCWkNN(n_neighbors=wrong).fit(X, Y)


def test_fewer_items_than_neighbors(f6):
    X, Y, t = f6
    with pytest.warns(UserWarning, match="n_neighbors=10 .* using 5"):
        model = nl.MLCWkNN().fit(X, Y)
    expected = nl.MLCWkNN(n_neighbors=5).fit(X, Y).predict_proba(t)
    np.testing.assert_array_equal(model.predict_proba(t), expected)


class TestFiles:
    @pytest.mark.parametrize("is_mapped", [False, True])
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_round_trip(self, tmp_path, is_mapped, form):
        data = nl.datasets.make_local_labels(80, 5, 7)
        X, queries = form(data.X * (data.X > 0)), form(data.X[:20] * 0.9)
        model = nl.MLCWkNN(n_neighbors=4, metric="cosine").fit(X, data.Y)
        model.save(tmp_path / "model")
        again = nl.load(tmp_path / "model", mmap=is_mapped)
        assert again.get_params() == model.get_params()
        np.testing.assert_array_equal(
            again.label_scores(queries).toarray(), model.label_scores(queries).toarray()
        )
        assert str(again.explain(queries[[3]])) == str(model.explain(queries[[3]]))

    @pytest.mark.parametrize(
        ("changed", "reason"),
        [
            ({"vectors": None}, "damaged.*vectors"),
            ({"metric": "precomputed"}, "damaged.*(square|vectors)"),
            ({"learned": {"totals": np.array([3, 4, 0, 5])}}, "damaged.*totals"),
            ({"learned": {"totals": np.array([3, 4, 0, 6, 0])}}, "damaged.*totals"),
            ({"learned": {"totals": np.array([3, 4, 0, -6])}}, "totals"),
            ({"learned": {}}, "damaged.*labels"),
        ],
    )
    def test_invalid_values_are_refused(self, tmp_path, f6, changed, reason):
        X, Y, _ = f6
        nl.MLCWkNN(n_neighbors=3).fit(X, Y).save(tmp_path / "model")
        tree, _ = read_tree(tmp_path / "model")
        write_tree(tmp_path / "model", {**tree, **changed})
        with pytest.raises(FileError, match=reason):
            nl.load(tmp_path / "model")


def test_memory_follows_the_labels_present():
    """Nothing of size rows x labels: even one byte each would be 1,000 MB here."""
    # Fewer rows, since NumPy solves the small programs one after the other.
    n, q, k, d = (10_000, 100_000, 10, 8) if engine.core() else (500, 400_000, 10, 8)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    labels = np.sort(rng.integers(0, q // 5, size=(n, 5)) * 5 + np.arange(5), axis=1)
    Y = sparse.csr_array(
        (np.ones(5 * n, np.int8), labels.ravel(), np.arange(0, 5 * n + 1, 5)), (n, q)
    )
    indices = (np.arange(n)[:, None] + np.arange(1, k + 1)) % n
    graph = nl.NeighborGraph(indices, np.tile(np.arange(k) / k, (n, 1)), n)
    tracemalloc.start()
    model = nl.MLCWkNN(n_neighbors=k).fit_graph(graph, Y, X)
    ranked = model.rank_from_graph(graph, X, top=10)
    predicted = model.predict_from_graph(graph, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ranked.labels.shape == (n, 10)
    assert predicted.shape == (n, q)
    assert peak < 100e6
