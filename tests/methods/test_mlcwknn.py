import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import examples, problems

import nearlabel as nl
from nearlabel.common import engine
from nearlabel.formulas.reconstruction import reconstruct

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
def test_terms_of_explanations(problem):
    X, Y, queries, k = problem
    x = queries[0]
    found, _ = oracles.neighbors(X, k, queries[:1])
    weights, expected = oracles.mlcwknn(X, Y, queries[:1], found)
    average = np.array(weights[0], float) @ (X[found[0]] - x)
    within = 1e-9 * (1 + np.abs(X - x).max())
    for label in nl.MLCWkNN(n_neighbors=k).fit(X, Y).explain(x, top=99):
        assert label.terms["count"] == Y[found[0], label.label].sum()
        weight = float(expected[0][label.label])
        assert label.terms["weight"] == pytest.approx(weight, abs=1e-10)
        assert label.terms["residual"] == pytest.approx(np.linalg.norm(average), abs=within)


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

    def test_a_far_neighbor_on_the_other_side_outweighs_a_near_one(self):
        # A later paper states that the weights follow the distance; they do not.
        X = np.array([[1.0, 0], [1.0, 0], [1.0, 0], [1.0, 0], [-3, 0]])
        weights, residuals = reconstruct(X, np.zeros((1, 2)), np.arange(5)[None])
        np.testing.assert_allclose(weights, [[3 / 16] * 4 + [1 / 4]], atol=1e-8)
        np.testing.assert_allclose(residuals, 0, atol=1e-7)

    def test_many_neighbors_in_few_dimensions(self):
        data = nl.datasets.make_local_labels(120, 1, 5)
        model = nl.MLCWkNN(n_neighbors=100).fit(data.X, data.Y)
        queries = data.X if engine.core() else data.X[::4]  # NumPy is slow at large programs
        scores = model.label_scores(queries + np.float32(1e-3)).toarray()
        assert (scores >= 0).all()
        assert (scores <= 1).all()
