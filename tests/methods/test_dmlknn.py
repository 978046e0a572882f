import tracemalloc
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

SMOOTHINGS = [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(1, 10), Fraction(0)]


class TestWorkedExample:
    """The six-row worked example."""

    @pytest.mark.parametrize(
        ("tolerance", "admissible", "V", "U", "posterior"),
        [
            (0, 2, [2, 0, 0, 2], [0, 2, 2, 0], [0.75, 0.294118, 0.106383, 0.893617]),
            (1, 6, [3, 0, 0, 6], [0, 2, 6, 0], [0.8, 0.294118, 0.048544, 0.951456]),
        ],
    )
    def test_terms_and_posterior(self, f6, tolerance, admissible, V, U, posterior):
        X, Y, t = f6
        model = nl.DMLkNN(n_neighbors=3, tolerance=tolerance).fit(X, Y)
        labels = sorted(model.explain(t[0], top=4), key=lambda label: label.label)
        terms = {term: [label.terms[term] for label in labels] for term in labels[0].terms}
        assert terms == {
            "count": [2, 2, 0, 3],
            "prior": [0.5, 0.625, 0.125, 0.875],
            "admissible": [admissible] * 4,
            "with": V,
            "without": U,
        }
        np.testing.assert_allclose(model.predict_proba(t)[0], posterior, atol=5e-7)
        assert model.predict(t).tolist() == [[1, 0, 0, 1]]
        assert [label.predicted for label in labels] == [True, False, False, True]
        assert model.rank(t).labels.tolist() == [[3, 0, 1, 2]]


@st.composite
def settings_of_the_method(draw, k, q):
    """Tolerance, smoothing and denominator, and the cells that the denominator counts."""
    delta, s = draw(st.integers(0, k + 1)), draw(st.sampled_from(SMOOTHINGS))
    denominator, cells = draw(st.sampled_from([("labels", q), ("counts", k + 1)]))
    return delta, s, denominator, cells


@examples(400)
@given(problem=problems(), data=st.data(), is_sparse=st.booleans())
def test_equals_the_literal_method(problem, data, is_sparse):
    X, Y, queries, k = problem
    delta, s, denominator, cells = data.draw(settings_of_the_method(k, Y.shape[1]))
    training, _ = oracles.neighbors(X, k)
    found, _ = oracles.neighbors(X, k, queries)
    posterior, decided, _, _ = oracles.dmlknn(Y, training, found, s, delta, cells)
    form = sparse.csr_array if is_sparse else np.asarray
    model = nl.DMLkNN(k, delta, float(s), denominator).fit(form(X), form(Y))
    is_exact = s != Fraction(1, 10)  # not a binary fraction: exact ties are out of reach
    assert_posterior(model, form(queries), posterior, decided if is_exact else None, within=1e-10)


@given(problem=problems(), data=st.data())
def test_a_left_out_row_is_fully_ignored(problem, data):
    X, Y, _, k = problem
    delta, s, denominator, cells = data.draw(settings_of_the_method(k, Y.shape[1]))
    training, _ = oracles.neighbors(X, k)
    rows = np.array(data.draw(st.permutations(range(len(X)))))[:5]
    expected = oracles.dmlknn(Y, training, training[rows], s, delta, cells, left_out=rows)[0]
    model = nl.DMLkNN(k, delta, float(s), denominator).fit(X, Y)
    graph = nl.neighbor_graph(X, k)
    scores = model._left_out_scores(graph.take(rows), X[rows], rows).toarray()
    np.testing.assert_allclose(scores, np.array(expected, float), rtol=1e-10, atol=1e-10)


@given(problem=problems(), data=st.data())
def test_terms_of_explanations(problem, data):
    X, Y, queries, k = problem
    delta, s, denominator, cells = data.draw(settings_of_the_method(k, Y.shape[1]))
    training, _ = oracles.neighbors(X, k)
    found, _ = oracles.neighbors(X, k, queries[:1])
    _, _, prior, [(admissible, V, U)] = oracles.dmlknn(Y, training, found, s, delta, cells)
    model = nl.DMLkNN(k, delta, float(s), denominator).fit(X, Y)
    for label in model.explain(queries[0], top=99):
        assert label.terms == {
            "count": Y[found[0], label.label].sum(),
            "prior": pytest.approx(float(prior[0][label.label]), abs=1e-12),
            "admissible": admissible,
            "with": V[label.label],
            "without": U[label.label],
        }


@given(problem=problems(), s=st.sampled_from([1.0, 0.3, 0.0]), more=st.sampled_from([0, 1, 10**30]))
def test_a_tolerance_of_k_is_ml_knn_to_the_last_bit(problem, s, more):
    X, Y, queries, k = problem
    dependent = nl.DMLkNN(k, k + more, s, denominator="counts").fit(X, Y)
    plain = nl.MLkNN(k, s).fit(X, Y)
    ours, theirs = dependent.label_scores(queries).toarray(), plain.label_scores(queries).toarray()
    np.testing.assert_array_equal(ours, theirs)
    rows, graph = np.arange(len(X)), nl.neighbor_graph(X, k)
    ours, theirs = (m._left_out_scores(graph, X, rows).toarray() for m in (dependent, plain))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("s", [1e-300, 1e-9, 1e99])
def test_extreme_smoothing_stays_finite(s):
    data = nl.datasets.make_local_labels(200, 4, 8)
    got = nl.DMLkNN(4, 1, s).fit(data.X, data.Y).label_scores(data.X).toarray()
    assert np.isfinite(got).all()
    if s == 1e99:  # it outweighs all counts
        np.testing.assert_allclose(got, 0.5)
        return
    none = nl.DMLkNN(4, 1, 0).fit(data.X, data.Y).label_scores(data.X).toarray()
    # The limit is no smoothing, except for unseen evidence: 1/2 instead of the prior.
    same = np.isclose(got, none, atol=1e-6)
    assert 0.99 < same.mean() < 1
    np.testing.assert_allclose(got[~same], 0.5, atol=1e-6)


def test_memory_of_ranking_does_not_grow_with_rows_times_labels():
    """Scores of 4,000 rows and 40,000 labels would be 1,280 MB."""
    n, q, k = 4000, 40_000, 10
    rng = np.random.default_rng(0)
    label = np.hstack([rng.integers(q, size=(n, 5)), rng.integers(3, size=(n, 1))])
    Y = sparse.csr_array(
        (np.ones(label.size, np.int8), (np.repeat(np.arange(n), 6), label.ravel())), shape=(n, q)
    )
    Y.data[:] = 1
    indices = (np.arange(n)[:, None] + np.arange(1, k + 1)) % n
    graph = nl.NeighborGraph(indices, np.tile(np.arange(k) / k, (n, 1)), n)
    tracemalloc.start()
    model = nl.DMLkNN(n_neighbors=k, tolerance=2).fit_graph(graph, Y)
    ranked = model.rank_from_graph(graph.rows(0, 400), top=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ranked.labels.shape == (400, 10)
    assert peak < 150e6
