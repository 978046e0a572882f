import itertools
from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import problems

import nearlabel as nl

pytestmark = pytest.mark.engines

NEAR = {"atol": 5e-7, "rtol": 0}


def test_worked_example(f6):
    X, Y, t = f6
    model = nl.BRkNN(n_neighbors=3).fit(X, Y)
    np.testing.assert_allclose(
        model.label_scores(t).toarray(), [[0.666667, 0.666667, 0, 1]], **NEAR
    )
    assert model.predict(t).tolist() == [[1, 1, 0, 1]]
    # b = round(7/3) = 2: label 3, and of 0 and 1 the more frequent one.
    assert nl.BRkNN(n_neighbors=3, fill="cardinality").fit(X, Y).predict(t).tolist() == [
        [0, 1, 0, 1]
    ]
    n, q, k, c = 6, 4, 3, np.array([2, 2, 0, 3])
    mulan = (1 / n + c) / (k + q / n)  # Mulan's confidence divides by k + q/n instead of k + 2/n
    np.testing.assert_allclose(mulan, [0.590909, 0.590909, 0.045455, 0.863636], **NEAR)
    np.testing.assert_allclose(model.predict_proba(t)[0], (1 / n + c) / (k + 2 / n), rtol=1e-14)


def test_worked_example_with_weights(f6):
    X, Y, t = f6
    model = nl.BRkNN(n_neighbors=3, weights="distance").fit(X, Y)
    distances, _ = model.kneighbors(t)
    weights = 1 / distances[0]
    np.testing.assert_allclose(weights, [0.790569, 0.507673, 0.447214], **NEAR)
    share = model.label_scores(t).toarray()
    np.testing.assert_allclose(share, [[0.709146, 0.743784, 0, 1]], **NEAR)
    votes = share * weights.sum()
    np.testing.assert_allclose(votes, [[1.237783, 1.298242, 0, 1.745456]], **NEAR)


@given(
    problem=problems(),
    weights=st.sampled_from(["uniform", "distance"]),
    fill=st.sampled_from([None, "top", "cardinality"]),
    is_sparse=st.booleans(),
)
def test_equals_the_literal_method(problem, weights, fill, is_sparse):
    X, Y, queries, k = problem
    found, distances = oracles.neighbors(X, k, queries)
    shares, sets = oracles.brknn(Y, found, distances, weights, fill)
    form = sparse.csr_array if is_sparse else np.asarray
    model = nl.BRkNN(n_neighbors=k, weights=weights, fill=fill).fit(form(X), form(Y))
    got = model.label_scores(form(queries)).toarray()
    np.testing.assert_allclose(got, np.array(shares, float), rtol=1e-12, atol=1e-12)
    # Shares of weights are rounded to 40 binary digits: closer ones may tie.
    if weights == "uniform" or apart(shares):
        predicted = model.predict(form(queries))
        np.testing.assert_array_equal(predicted.toarray() if is_sparse else predicted, sets)


def apart(shares):
    """Whether shares of a row, and 1/2, are equal or clearly not."""
    for row in shares:
        values = sorted({*row, Fraction(1, 2)})
        if any(b - a < Fraction(1, 2**38) for a, b in itertools.pairwise(values)):
            return False
    return True


def test_weights_of_exactly_half_are_not_enough():
    # 1/3 = 1/4 + 1/12 and the like: the nearest neighbor has as much weight as the others together.
    for nearest, others in ((3.0, (4.0, 12.0)), (0.3, (0.4, 1.2)), (6.0, (10.0, 15.0))):
        X = np.array([[nearest], *([-d] for d in others), [1e9]])
        y = np.array([[1, 0], [0, 1], [0, 1], [0, 0]])
        model = nl.BRkNN(n_neighbors=3, weights="distance").fit(X, y)
        assert model.label_scores([[0.0]]).toarray().tolist() == [[0.5, 0.5]]
        assert model.predict([[0.0]]).tolist() == [[0, 0]]


def test_neighbors_at_distance_zero_vote_alone():
    X = np.array([[0.0], [0.0], [1e-320], [1.0]])
    y = np.array([[1, 0], [0, 0], [0, 1], [0, 1]])
    model = nl.BRkNN(n_neighbors=3, weights="distance", metric="manhattan").fit(X, y)
    assert model.label_scores([[0.0]]).toarray().tolist() == [[0.5, 0.0]]
    # The reciprocals of such distances would not be finite: they are 2, 2 and 1 times 1e-320.
    assert model.label_scores([[2e-320]]).toarray()[0, 1] == pytest.approx(0.5, abs=1e-3)


def test_fill_has_no_effect_with_a_single_label():
    X, y = np.arange(6.0)[:, None], np.array(["b", "a", "a", "b", "b", "a"])
    plain = nl.BRkNN(n_neighbors=3).fit(X, y).predict(X)
    for fill in ("top", "cardinality"):
        filled = nl.BRkNN(n_neighbors=3, fill=fill).fit(X, y).predict(X)
        np.testing.assert_array_equal(filled, plain)


def test_explain(f6):
    X, Y, t = f6
    model = nl.BRkNN(n_neighbors=3, weights="distance").fit(X, Y)
    first = model.explain(t[0], labels=0)[0]
    assert first.terms == {"count": 2, "share": pytest.approx(0.709146, abs=5e-7)}
    assert [voter.id for voter in first.neighbors] == [1, 0]
    assert nl.BRkNN(n_neighbors=3).fit(X, Y).explain(t[0], labels=0)[0].terms == {
        "count": 2,
        "share": 2 / 3,
    }


@pytest.mark.parametrize("method", [nl.BRkNN, nl.MallowskNN, nl.MLCWkNN])
def test_nothing_is_searched_in_fit(f6, method):
    X, Y, t = f6

    class Refusing:
        def build(self, vectors, metric):
            return self

        def graph(self, k, queries=None, **_):
            assert queries is not None, "a lazy method has nothing to learn from neighbors"
            return nl.neighbor_graph(X, k, queries)

    model = method(n_neighbors=3, search=Refusing()).fit(X, Y)
    assert model.predict(t).tolist() == [[1, 1, 0, 1]]
