from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_answers import assert_posterior
from scipy import sparse
from strategies import examples, problems

import nearlabel as nl

pytestmark = pytest.mark.engines


class TestWorkedExample:
    """The six-row worked example, with every intermediate number."""

    def test_prior_likelihoods_posterior_and_order(self, f6):
        X, Y, t = f6
        model = nl.MLkNN(n_neighbors=3).fit(X, Y)
        labels = sorted(model.explain(t[0], top=4), key=lambda label: label.label)
        terms = {term: [label.terms[term] for label in labels] for term in labels[0].terms}
        near = {"atol": 5e-7}
        assert terms["count"] == [2, 2, 0, 3]
        assert terms["prior"] == model.prior_.tolist()
        assert model.likelihood_.shape == (2, 4, 4)
        at_count = model.likelihood_[:, np.arange(4), terms["count"]]
        np.testing.assert_array_equal(
            at_count, [terms["likelihood_without"], terms["likelihood_with"]]
        )
        np.testing.assert_allclose(model.likelihood_.sum(axis=2), 1)
        np.testing.assert_allclose(terms["prior"], [0.5, 0.625, 0.125, 0.875], **near)
        p1, p0 = terms["likelihood_with"], terms["likelihood_without"]
        np.testing.assert_allclose(p1, [0.571429, 0.125, 0.25, 0.7], **near)
        np.testing.assert_allclose(p0, [0.142857, 0.5, 0.7, 0.25], **near)
        a = np.array(terms["prior"])
        np.testing.assert_allclose(a * p1, [0.285714, 0.078125, 0.03125, 0.6125], **near)
        np.testing.assert_allclose((1 - a) * p0, [0.071429, 0.1875, 0.6125, 0.03125], **near)
        expected = [0.8, 0.294118, 0.048544, 0.951456]
        np.testing.assert_allclose(model.predict_proba(t)[0], expected, **near)
        np.testing.assert_allclose([label.score for label in labels], expected, **near)
        assert model.predict(t).tolist() == [[1, 0, 0, 1]]
        assert [label.predicted for label in labels] == [True, False, False, True]
        assert model.rank(t).labels.tolist() == [[3, 0, 1, 2]]


@examples(400)
@given(
    problem=problems(),
    s=st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2), Fraction(1, 10), Fraction(0)]),
    is_sparse=st.booleans(),
)
def test_equals_the_literal_method(problem, s, is_sparse):
    X, Y, queries, k = problem
    training, _ = oracles.neighbors(X, k)
    found, _ = oracles.neighbors(X, k, queries)
    posterior, decided, _, _ = oracles.mlknn(Y, training, found, s)
    form = sparse.csr_array if is_sparse else np.asarray
    model = nl.MLkNN(n_neighbors=k, smoothing=float(s)).fit(form(X), form(Y))
    is_exact = s != Fraction(1, 10)  # not a binary fraction: exact ties are out of reach
    assert_posterior(model, form(queries), posterior, decided if is_exact else None, within=1e-12)
    if Y.shape[1] == 1 and 0 < Y.sum() < len(Y):
        two = nl.MLkNN(n_neighbors=k, smoothing=float(s)).fit(X, Y.ravel()).predict_proba(queries)
        assert ((two > 0) & (two < 1)).all()


@given(problem=problems(), s=st.sampled_from([Fraction(1), Fraction(0)]))
def test_terms_of_explanations(problem, s):
    X, Y, queries, k = problem
    found, _ = oracles.neighbors(X, k, queries)
    training, _ = oracles.neighbors(X, k)
    _, _, prior, likelihoods = oracles.mlknn(Y, training, found, s)
    model = nl.MLkNN(n_neighbors=k, smoothing=float(s)).fit(X, Y)
    for query, x in enumerate(queries):
        for label in model.explain(x, top=99):
            yes, no = likelihoods[query][label.label]
            expected = {
                "count": Y[found[query], label.label].sum(),
                "prior": float(prior[label.label]),
                "likelihood_with": float(yes),
                "likelihood_without": float(no),
            }
            assert label.terms == pytest.approx(expected, abs=1e-12)


@given(problem=problems(), s=st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(0)]))
def test_a_left_out_row_is_in_no_table(problem, s):
    X, Y, _, k = problem
    training, _ = oracles.neighbors(X, k)
    graph = nl.neighbor_graph(X, k)
    model = nl.MLkNN(n_neighbors=k, smoothing=float(s)).fit_graph(graph, Y)
    rows = np.arange(len(X))[::-1]
    got = model._left_out_scores(graph.take(rows), None, rows).toarray()
    for row, scores in zip(rows, got, strict=True):
        others = [i for i in range(len(X)) if i != row]
        expected = oracles.mlknn(Y, training, [training[row]], s, others)[0][0]
        np.testing.assert_allclose(scores, np.array(expected, float), rtol=1e-12, atol=1e-12)


def test_without_smoothing_unseen_evidence_leaves_the_prior():
    # Three rows carry the label; near them every training row has 2 of 2 neighbors with it. The
    # query between the groups has one of two, a count that no training row has.
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [5.3]])
    y = np.array([[1], [1], [1], [0], [0], [0], [0]])
    model = nl.MLkNN(n_neighbors=2, smoothing=0).fit(X, y)
    assert model.label_scores([[2.6]]).toarray().tolist() == [[3 / 7]]
    assert model.predict([[2.6], [0.0], [5.0]]).tolist() == [[0], [1], [0]]
    assert model.label_scores([[0.0], [5.0]]).toarray().tolist() == [[1.0], [0.0]]
    inside = model.predict_proba([[0.0], [5.0]]).ravel()
    assert 0 < inside[1] < 1e-300
    assert 1 - 1e-15 < inside[0] < 1


@pytest.mark.parametrize("s", [1e-300, 1e-100, 1e-9])
def test_a_tiny_smoothing_tends_to_none(s):
    data = nl.datasets.make_local_labels(200, 4, 8)
    none = nl.MLkNN(n_neighbors=4, smoothing=0).fit(data.X, data.Y)
    tiny = nl.MLkNN(n_neighbors=4, smoothing=s).fit(data.X, data.Y)
    seen = none.label_scores(data.X).toarray()
    got = tiny.label_scores(data.X).toarray()
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, seen, atol=1e-6)


def test_equal_hypotheses_tie_exactly_and_the_label_is_predicted():
    # Four pairs of rows. Half of the rows carry the label; of those, two have a neighbor with it,
    # and so have two of the others.
    X = np.array([[0.0], [0.1], [10.0], [10.1], [20.0], [20.1], [30.0], [30.1]])
    y = np.array([[1], [1], [0], [0], [1], [0], [1], [0]])
    model = nl.MLkNN(n_neighbors=1).fit(X, y)
    assert model.label_scores([[0.0]]).toarray().tolist() == [[0.5]]
    assert model.predict([[0.0]]).tolist() == [[1]]
    assert model.predict_proba([[0.0]]) > 0.5
    one_column = nl.MLkNN(n_neighbors=1).fit(X, y.ravel())
    assert one_column.predict([[0.0]]).tolist() == [1]
    assert one_column.predict_proba([[0.0]]).argmax() == 1


def test_smoothing_of_any_number_type(f6):
    X, Y, t = f6
    expected = nl.MLkNN(n_neighbors=3, smoothing=2.0).fit(X, Y).predict_proba(t)
    for s in (2, np.int8(2), np.float32(2), Fraction(2)):  # int8 would overflow
        got = nl.MLkNN(n_neighbors=3, smoothing=s).fit(X, Y).predict_proba(t)
        np.testing.assert_array_equal(got, expected)


def test_many_labels_do_not_cost_many_cells():
    n, q = 2000, 1_000_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    row = np.repeat(np.arange(n), 3)
    Y = sparse.csr_array(
        (np.ones(3 * n, np.int8), (row, rng.integers(q, size=3 * n))), shape=(n, q)
    )
    Y.data[:] = 1
    model = nl.MLkNN(n_neighbors=10).fit(X, Y)
    assert len(model._by_count.table) <= q + Y.nnz
    ranked = model.rank(X[:50], top=10)
    assert ranked.labels.shape == (50, 10)
    assert model.predict(X[:50]).shape == (50, q)
    with pytest.raises(MemoryError, match="predict_proba.* GiB.*label_scores.*rank"):
        model.predict_proba(np.broadcast_to(X[:1], (1_000_000, 3)))
    dense = nl.MLkNN(n_neighbors=10).fit(X, Y[:, :20_000].toarray())
    with pytest.raises(MemoryError, match="predict.* GiB.*sparse y.*rank"):
        dense.predict(np.broadcast_to(X[:1], (1_000_000, 3)))
