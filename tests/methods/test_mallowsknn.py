import itertools
import math
import tracemalloc

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import problems

import nearlabel as nl
from nearlabel.formulas.mallows import dispersion_of_pairs, reversed_pairs

pytestmark = pytest.mark.engines

NEAR = {"atol": 5e-7, "rtol": 0}


class TestWorkedExample:
    def test_orders_and_decision(self, f6):
        X, Y, t = f6
        model = nl.MallowskNN(n_neighbors=3).fit(X, Y)
        ranking = model.calibrated_ranking(t)
        assert ranking.labels.tolist() == [[3, 1, 0, 2]]  # 3, 1, 0, the neutral label, 2
        assert ranking.neutral.tolist() == [3]
        assert model.predict(t).tolist() == [[1, 1, 0, 1]]
        likely = nl.MallowskNN(n_neighbors=3, estimate="mle").fit(X, Y)
        np.testing.assert_allclose(likely.label_scores(t).toarray(), [[2 / 3, 2 / 3, 0, 1]])
        assert likely.calibrated_ranking(t).labels.tolist() == [[3, 0, 1, 2]]
        assert likely.calibrated_ranking(t, top=2).labels.tolist() == [[3, 0]]
        # The notes' own scores, c + n_l / n / 2 and the whole numbers c (n + 1) + n_l, order alike.
        c = (likely.label_scores(t).toarray()[0] * 3).round().astype(int)
        n_l = nl.MallowskNN(n_neighbors=5).fit(X, Y)._totals
        np.testing.assert_allclose(c + n_l / 6 / 2, [2.25, 2.333333, 0, 3.5], **NEAR)
        keys = c * 7 + n_l
        assert keys.tolist() == [17, 18, 0, 27]
        assert np.argsort(-keys).tolist() == ranking.labels[0].tolist()
        expected = (c + (n_l + 1) / 8) / 4
        np.testing.assert_allclose(model.label_scores(t).toarray()[0], expected, rtol=1e-15)
        np.testing.assert_allclose(model.predict_proba(t)[0], expected, rtol=1e-15)
        np.testing.assert_allclose(likely.predict_proba(t)[0], expected, rtol=1e-15)

    def test_likelihoods_and_theta(self, f6):
        X, Y, t = f6
        model = nl.MallowskNN(n_neighbors=3).fit(X, Y)
        sets = [{0, 1, 3}, {1, 3}, {0, 3}]
        likelihood = {
            order: oracles.mallows_log_likelihood(sets, order, 1.0)
            for order in itertools.permutations(range(5))
        }
        best = sorted(likelihood, key=likelihood.get, reverse=True)
        assert set(best[:2]) == {(3, 0, 1, 4, 2), (3, 1, 0, 4, 2)}
        np.testing.assert_allclose(
            [likelihood[order] for order in best[:3]], [-5.865001, -5.865001, -6.865001], **NEAR
        )
        counts, sizes = sparse.csr_array([[2, 2, 0, 3]]), np.array([[3, 2, 2]])
        assert reversed_pairs(counts, sizes).tolist() == [3]  # X
        theta = model.theta(t)[0]
        assert theta == pytest.approx(1.113112, abs=5e-7)
        least = -oracles.mallows_log_likelihood(sets, best[0], theta)
        assert least == pytest.approx(5.838661, abs=5e-7)
        c = np.array([2, 2, 0, 3])
        np.testing.assert_allclose(
            1 / (1 + np.exp(-theta * (2 * c - 3))), [0.752709, 0.752709, 0.034246, 0.965754], **NEAR
        )


@given(problem=problems(), estimate=st.sampled_from(["map", "mle"]), is_sparse=st.booleans())
def test_equals_the_literal_method(problem, estimate, is_sparse):
    X, Y, queries, k = problem
    found, _ = oracles.neighbors(X, k, queries)
    scores, decided = oracles.mallows(Y, found, estimate)
    form = sparse.csr_array if is_sparse else np.asarray
    model = nl.MallowskNN(n_neighbors=k, estimate=estimate).fit(form(X), form(Y))
    got = model.label_scores(form(queries)).toarray()
    np.testing.assert_allclose(got, np.array(scores, float), rtol=1e-12, atol=1e-12)
    predicted = model.predict(form(queries))
    np.testing.assert_array_equal(predicted.toarray() if is_sparse else predicted, decided)
    best = [sorted(range(len(row)), key=lambda a: (-row[a], a)) for row in scores]
    ranking = model.calibrated_ranking(form(queries))
    np.testing.assert_array_equal(ranking.labels, best)
    np.testing.assert_array_equal(ranking.neutral, np.sum(decided, axis=1))
    probabilities = model.predict_proba(form(queries))
    np.testing.assert_array_equal(probabilities > 0.5, np.array(decided) == 1)


@given(problem=problems(), estimate=st.sampled_from(["map", "mle"]))
def test_a_left_out_row_is_not_in_the_prior(problem, estimate):
    X, Y, _, k = problem
    training, _ = oracles.neighbors(X, k)
    graph = nl.neighbor_graph(X, k)
    model = nl.MallowskNN(n_neighbors=k, estimate=estimate).fit_graph(graph, Y)
    got = model._left_out_scores(graph, None, np.arange(len(X))).toarray()
    scores, _ = oracles.mallows(Y, training, estimate)
    n, n_l = len(X), Y.sum(axis=0)
    if estimate == "map":  # one row less, and its labels less
        prior = (n_l - Y + 1) / (n - 1 + 2) - (n_l + 1) / (n + 2)
        scores = np.array(scores, float) + prior / (k + 1)
    np.testing.assert_allclose(got, np.array(scores, float), rtol=1e-12, atol=1e-12)


def neighborhoods():
    return st.lists(st.sets(st.integers(0, 2)), min_size=1, max_size=4)


@given(
    sets=neighborhoods(),
    theta=st.sampled_from([0.1, 1.0, 3.0]),
    estimate=st.sampled_from(["map", "mle"]),
)
def test_theorem_1_by_all_rankings(sets, theta, estimate):
    """The most likely rankings are just those sorted by count, with the neutral label at k/2."""
    k = len(sets)
    Y = np.array([[label in labels for label in range(3)] for labels in [*sets, {0}]], int)
    X = np.array([*range(k), 1000.0])[:, None]  # the last row is too far to vote
    model = nl.MallowskNN(n_neighbors=k, estimate=estimate).fit(X, Y)
    ranking = model.calibrated_ranking([[0.0]])
    ours = ranking.labels[0].tolist()
    ours.insert(int(ranking.neutral[0]), 3)
    counts = [sum(label in labels for labels in sets) for label in range(3)]
    place = {**dict(enumerate(counts)), 3: k / 2}
    likelihood = {
        order: oracles.mallows_log_likelihood(sets, order, theta)
        for order in itertools.permutations(range(4))
    }
    greatest = max(likelihood.values())
    for order, value in likelihood.items():
        is_sorted = all(place[a] >= place[b] for a, b in itertools.pairwise(order))
        assert is_sorted == math.isclose(value, greatest, abs_tol=1e-9)
    assert math.isclose(likelihood[tuple(ours)], greatest, abs_tol=1e-9)


@given(sets=neighborhoods())
def test_theta_has_the_greatest_likelihood(sets):
    Y = np.array([[label in labels for label in range(3)] for labels in sets], int)
    counts = sparse.csr_array(Y.sum(axis=0, keepdims=True))
    sizes = Y.sum(axis=1)[None]
    pairs = reversed_pairs(counts, sizes)
    theta = dispersion_of_pairs(pairs, sizes, 3)[0]
    place = {**dict(enumerate(Y.sum(axis=0).tolist())), 3: len(sets) / 2}
    order = tuple(sorted(place, key=lambda label: (-place[label], label)))

    def likelihood(theta):
        return oracles.mallows_log_likelihood(sets, order, theta)

    if pairs[0] == 0:
        assert len(set(map(frozenset, sets))) == 1
        assert theta == np.inf
    elif theta == 0:
        assert likelihood(0) >= likelihood(1e-4)
    else:
        assert likelihood(theta) >= max(likelihood(theta * 1.001), likelihood(theta * 0.999))


def test_theta_of_a_row_does_not_depend_on_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    Y = (rng.random((300, 400)) < 0.01).astype(int)
    Y[0] = 1  # one row with all labels affects only its neighbors
    model = nl.MallowskNN(n_neighbors=5).fit(X, Y)
    theta = model.theta(X)
    np.testing.assert_array_equal(theta, [model.theta(x[None])[0] for x in X])
    tracemalloc.start()
    model.theta(np.repeat(X, 20, axis=0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


def test_rows_without_labels(f6):
    X, Y, t = f6
    Y = np.zeros_like(Y)
    model = nl.MallowskNN(n_neighbors=3).fit(X, Y)
    assert model.predict(t).tolist() == [[0, 0, 0, 0]]
    assert model.theta(t).tolist() == [np.inf]


def test_explain(f6):
    X, Y, t = f6
    terms = nl.MallowskNN(n_neighbors=3).fit(X, Y).explain(t[0], labels=1)[0].terms
    expected = {"count": 2, "share": 2 / 3, "prior": 5 / 8, "theta": 1.113112}
    assert terms == pytest.approx(expected, abs=5e-7)
