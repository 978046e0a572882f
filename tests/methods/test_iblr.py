import warnings

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit
from strategies import examples, problems

import nearlabel as nl
from nearlabel.formulas.regressions import logistic_regressions
from nearlabel.labels.counts import neighbor_counts

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(150, 4, 6)


@examples(200)
@given(
    problem=problems(),
    ridge=st.sampled_from([0.01, 1.0, 30.0]),
    keep_features=st.booleans(),
    is_sparse=st.booleans(),
)
def test_equals_the_literal_method(problem, ridge, keep_features, is_sparse):
    X, Y, queries, k = problem
    training, _ = oracles.neighbors(X, k)
    found, _ = oracles.neighbors(X, k, queries)
    expected = oracles.iblr(X, Y, training, queries, found, ridge, keep_features)
    form = sparse.csr_array if is_sparse else np.asarray
    model = nl.IBLR(k, keep_features, ridge).fit(form(X), form(Y))
    scores = model.label_scores(form(queries)).toarray()
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-10)
    decided = model.predict(form(queries))
    decided = decided.toarray() if is_sparse else decided
    clear = np.abs(expected - 0.5) > 1e-10
    np.testing.assert_array_equal(decided[clear], (expected > 0.5)[clear])
    probabilities = model.predict_proba(form(queries))
    assert ((probabilities > 0) & (probabilities < 1)).all()


@given(problem=problems(), keep_features=st.booleans())
def test_the_usual_ridge_is_finite_and_quiet(problem, keep_features):
    """Few rows are nearly always separable: the ridge decides, and no solver's warning comes up."""
    X, Y, queries, k = problem
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = nl.IBLR(k, keep_features).fit(X, Y)
    assert np.isfinite(model.label_weights_).all()
    scores = model.label_scores(queries).toarray()
    assert ((scores >= 0) & (scores <= 1)).all()


def test_labels_that_all_rows_carry_or_none(data):
    Y = data.Y.toarray()
    Y[:, 1], Y[:, 4] = 0, 1
    model = nl.IBLR().fit(data.X, Y)
    scores = model.label_scores(data.X).toarray()
    assert not scores[:, 1].any()
    assert (scores[:, 4] == 1).all()
    # Constant inputs are not informative.
    assert not model.label_weights_[:, [1, 4]].any()
    assert not model.label_weights_[[1, 4]].any()
    assert model.predict(data.X)[:, [1, 4]].tolist() == [[0, 1]] * 150
    never, always = model.explain(data.X[0] + 0.1, labels=[1, 4])
    assert never.terms == {"count": 0, "constant": 0}
    assert always.terms == {"count": 10, "constant": 1}
    inside = model.predict_proba(data.X)
    assert ((inside > 0) & (inside < 1)).all()


def test_neighbors_are_evidence_for_their_own_label(data):
    model = nl.IBLR(ridge=1.0).fit(data.X, data.Y)
    assert (np.diag(model.label_weights_) > 0).all()


def test_features_are_needed_although_the_parameter_was_changed(data):
    model = nl.IBLR(keep_features=True).fit(data.X, data.Y).set_params(keep_features=False)
    with pytest.raises(ValueError, match="keep_features=True"):
        model.scores_from_graph(nl.neighbor_graph(data.X, 10, data.X[:9]))


def test_left_out_scores_keep_the_weights(data):
    model = nl.IBLR(6).fit(data.X, data.Y)
    graph = nl.neighbor_graph(data.X, 6)
    rows = np.array([3, 50, 4])
    got = model._left_out_scores(graph.take(rows), data.X[rows], rows)
    expected = model.scores_from_graph(graph).toarray()[rows]
    np.testing.assert_array_equal(got.toarray(), expected)


@pytest.mark.parametrize(
    ("shape", "d", "keep_features", "message"),
    [
        ((2, 1_000_000), 1, False, r"weights.*IBLR.* 1,000,000 x 1,000,000 .*7,450.6 GiB"),
        ((100_000, 100_000), 1, False, r"inputs.*IBLR.* 100,000 x 100,000 .*74.5 GiB"),
        ((1000, 10), 10**9, True, r"inputs.*IBLR.* 1,000 x 1,000,000,010 .*7,450.6 GiB"),
    ],
)
def test_impossible_sizes_are_refused_before_any_search(
    monkeypatch, shape, d, keep_features, message
):
    monkeypatch.setattr("nearlabel.common.validation.physical_memory", lambda: 2**36)
    monkeypatch.setattr("nearlabel.methods.items.build_index", None)  # nothing is searched
    Y, X = sparse.csr_array(shape, dtype=np.int8), sparse.csr_array((shape[0], d))
    model = nl.IBLR(1, keep_features)
    with pytest.raises(MemoryError, match=message + ".*MLkNN"):
        model.fit(X, Y)
    if shape[0] <= 1000:
        one = (np.arange(shape[0])[:, None] + 1) % shape[0]
        graph = nl.NeighborGraph(one, np.zeros(one.shape), shape[0])
        with pytest.raises(MemoryError, match=message):
            model.fit_graph(graph, Y, X if keep_features else None)


@pytest.mark.parametrize("keep_features", [False, True])
def test_left_out_scores_are_near_those_of_models_without_the_row(keep_features):
    data = nl.datasets.make_local_labels(60, 4, 3, random_state=1)
    X, Y = data.X, data.Y.toarray()
    model = nl.IBLR(n_neighbors=5, keep_features=keep_features, ridge=0.1).fit(X, Y)
    graph = nl.neighbor_graph(X, 5)
    rows = np.arange(60)
    found = model._left_out_scores(graph, X, rows).toarray()
    own = model._scores(graph, X).toarray()
    # Regressions fitted again without each row, with unchanged neighbors of all rows.
    inputs = neighbor_counts(graph, data.Y).toarray() / 5
    inputs = np.hstack([inputs, X]) if keep_features else inputs
    inputs = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    expected = np.empty_like(found)
    for row in rows:
        others = rows != row
        weights, intercepts = logistic_regressions(inputs[others], data.Y[others], 0.1)
        expected[row] = expit(weights @ inputs[row] + intercepts)
    assert abs(found - expected).max() < abs(own - expected).max() / 5
    # A part of the rows does not depend on the others.
    some = model._left_out_scores(graph.take(rows[:3]), X[:3], rows[:3]).toarray()
    np.testing.assert_array_equal(some, own[:3])


@pytest.mark.parametrize("keep_features", [False, True])
def test_left_out_scores_in_any_order_and_after_forgetting(keep_features):
    data = nl.datasets.make_local_labels(60, 5, 4)
    model = nl.IBLR(3, keep_features=keep_features).fit(data.X, data.Y)
    scores = model.left_out_scores().toarray()
    rows = np.r_[np.arange(60)[::-1], 0]
    np.testing.assert_array_equal(model.left_out_scores(rows).toarray(), scores[rows])
    model.forget([3, 7]).refresh()
    left = np.delete(np.arange(60), [3, 7])
    again = nl.IBLR(3, keep_features=keep_features).fit(data.X[left], data.Y[left])
    np.testing.assert_array_equal(
        model.left_out_scores().toarray(), again.left_out_scores().toarray()
    )
