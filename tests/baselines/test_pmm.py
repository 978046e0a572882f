import math

import numpy as np
import pandas as pd
import pytest
from estimator_checks import parametrize_with_quick_checks
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from strategies import examples, label_matrices

import nearlabel as nl
from nearlabel.baselines.greedy_sets import set_scores
from nearlabel.baselines.word_mixtures import word_mixtures

X = np.array([[4, 1, 0], [3, 2, 0], [0, 1, 4], [1, 1, 3], [2, 2, 2], [3, 1, 2]], float)
Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1]])


@parametrize_with_quick_checks([nl.PMM(), nl.PMM(order=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The formulas, literally.


def literal_phi(theta, alpha, labels):
    """The word distribution of a row: sum over l, m of h_l h_m theta_lm; alpha of PMM1 is 1/2."""
    h = 1 / len(labels)
    phi = np.zeros(theta.shape[1])
    for a in labels:
        for b in labels:
            phi += h * h * (alpha[a, b] * theta[a] + (1 - alpha[a, b]) * theta[b])
    return phi


def literal_log_posterior(X, Y, theta, alpha, xi, zeta):
    total = (xi - 1) * np.log(theta).sum()
    for a in range(Y.shape[1]):
        for b in range(a):
            total += (zeta - 1) * (math.log(alpha[a, b]) + math.log(1 - alpha[a, b]))
    for x, y in zip(X, Y, strict=True):
        if y.any():
            total += x @ np.log(literal_phi(theta, alpha, np.flatnonzero(y)))
    return total


def literal_update(X, Y, theta, alpha, xi, zeta, order):
    """Responsibilities of (l, m, component) for each word of each row, and the resulting sums."""
    words = np.full(theta.shape, xi - 1.0)
    shares = np.full(alpha.shape, zeta - 1.0)
    for x, y in zip(X, Y, strict=True):
        labels = np.flatnonzero(y)
        if not len(labels):
            continue
        h, phi = 1 / len(labels), literal_phi(theta, alpha, labels)
        for a in labels:
            for b in labels:
                first = x * h * h * alpha[a, b] * theta[a] / phi
                second = x * h * h * (1 - alpha[a, b]) * theta[b] / phi
                words[a] += first
                words[b] += second
                shares[a, b] += first.sum()
                shares[b, a] += second.sum()
    theta = words / words.sum(axis=1, keepdims=True)
    return theta, shares / (shares + shares.T) if order == 2 else alpha


def literal_search(x, theta, alpha, known):
    """Labels in the order of addition, and the smallest difference that decided anything."""
    added, reached, least = [], -math.inf, math.inf
    while len(added) < len(known):
        found = {
            c: x @ np.log(literal_phi(theta, alpha, [*added, c])) / x.sum()
            for c in known
            if c not in added
        }
        best = max(found, key=found.get)
        others = [found[best] - value for c, value in found.items() if c != best]
        least = min([least, abs(found[best] - reached), *others])
        if found[best] <= reached:
            break
        added, reached = [*added, best], found[best]
    return added, least


def halves(q):
    return np.full((q, q), 0.5)


@st.composite
def texts(draw):
    """Word counts and labels, with rows without words or labels."""
    n, d = draw(st.integers(2, 7)), draw(st.integers(1, 4))
    counts = draw(hnp.arrays(np.float64, (n, d), elements=st.sampled_from([0.0, 1.0, 2.0, 0.5])))
    return counts, draw(label_matrices(n, st.integers(1, 4)))


ORDERS = st.sampled_from([1, 2])


# Worked numbers.


@pytest.mark.parametrize(
    ("steps", "theta", "log_posterior"),
    [
        (0, [[0.52, 0.28, 0.20], [0.28, 0.24, 0.48]], -37.569659),
        (1, [[0.590804, 0.294897, 0.114299], [0.197804, 0.231279, 0.570917]], -36.324703),
        (5000, [[0.626724, 0.298120, 0.075156], [0.159743, 0.227743, 0.612514]], -36.140394),
    ],
)
def test_the_worked_example(steps, theta, log_posterior):
    found = word_mixtures(sparse.csr_array(X), sparse.csr_array(Y), 1, 2.0, 2.0, 0.0, steps)
    np.testing.assert_allclose(found.theta, theta, rtol=0, atol=5e-7)
    assert found.log_posterior == pytest.approx(log_posterior, abs=5e-7)
    assert found.converged == (steps == 5000)


def test_the_worked_query():
    model = nl.PMM(tol=0).fit(X, Y)
    x, theta = np.array([2, 1, 1]), model.word_probabilities_
    likelihoods = [x @ np.log(mixed) for mixed in (*theta, theta.mean(axis=0))]
    np.testing.assert_allclose(likelihoods, [-4.732943, -5.638100, -4.270159], rtol=0, atol=5e-7)
    assert model.predict([x]).tolist() == [[1, 1]]
    # Both scores are the gain per word: of the label over the other one, and over {0}.
    one, both = math.exp((-5.638100 + 4.270159) / 4), math.exp((-4.732943 + 4.270159) / 4)
    np.testing.assert_allclose(
        model.label_scores([x]).toarray(), [[1 - one / 2, 1 - both / 2]], rtol=0, atol=1e-6
    )


# Learning.


@examples(60)
@given(
    problem=texts(), order=ORDERS, xi=st.sampled_from([1.1, 2.0]), zeta=st.sampled_from([1.5, 3])
)
def test_updates_equal_the_literal_ones_and_never_fall(problem, order, xi, zeta):
    counts, labels = problem
    has_words = counts.sum(axis=1) > 0
    theta = (labels[has_words].T @ counts[has_words]) + xi - 1
    theta, alpha = theta / theta.sum(axis=1, keepdims=True), halves(labels.shape[1])
    before = -math.inf
    for steps in range(5):
        found = word_mixtures(
            sparse.csr_array(counts), sparse.csr_array(labels), order, xi, zeta, -1.0, steps
        )
        np.testing.assert_allclose(found.theta, theta, rtol=1e-9)
        if order == 2:
            np.testing.assert_allclose(found.alpha, alpha, rtol=1e-9)
        expected = literal_log_posterior(counts, labels, theta, alpha, xi, zeta)
        if order == 1:  # without the prior of shares, which does not change
            expected -= literal_log_posterior(counts, 0 * labels, theta, alpha, 1, zeta)
        assert found.log_posterior == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert expected >= before - 1e-9
        before = expected
        theta, alpha = literal_update(counts, labels, theta, alpha, xi, zeta, order)


@pytest.mark.parametrize("order", [1, 2])
def test_updates_that_are_not_enough(order):
    with pytest.warns(ConvergenceWarning, match="max_iter=2 updates"):
        model = nl.PMM(order, max_iter=2).fit(X, Y)
    assert model.n_iter_ == 2
    steps = []
    again = nl.PMM(order).fit(X, Y, progress=lambda *step: steps.append(step))
    assert 2 < again.n_iter_ < 1000
    assert again.log_posterior_ > model.log_posterior_
    assert len(steps) == again.n_iter_
    assert steps[-1] == (1000, 1000)


def test_rows_without_labels_or_words_teach_no_words():
    more, labels = np.vstack([X, [[0, 9, 9], [0, 0, 0]]]), np.vstack([Y, [[0, 0], [0, 1]]])
    for order in (1, 2):
        with_them, without = nl.PMM(order).fit(more, labels), nl.PMM(order).fit(X, Y)
        np.testing.assert_array_equal(with_them.word_probabilities_, without.word_probabilities_)
        assert with_them.log_posterior_ == without.log_posterior_


# The search, and scores.


@examples(60)
@given(problem=texts(), order=ORDERS)
def test_sets_and_ranks_equal_the_literal_search(problem, order):
    counts, labels = problem
    model = nl.PMM(order).fit(counts, labels)
    theta, known = model.word_probabilities_, np.flatnonzero(labels.any(axis=0))
    alpha = halves(labels.shape[1]) if order == 1 else model.pair_shares_
    ranked = model.rank(counts, top=99).labels
    scores, decided = model.label_scores(counts).toarray(), model.predict(counts)
    np.testing.assert_array_equal(scores > 0.5, decided)
    assert (scores[:, labels.any(axis=0)] > 0).all()
    assert not scores[:, ~labels.any(axis=0)].any()
    for row, x in enumerate(counts):
        if not len(known) or not x.any():
            continue
        added, least = literal_search(x, theta, alpha, known)
        if least < 1e-9:
            continue
        assert ranked[row, : len(added)].tolist() == added
        assert decided[row].sum() == len(added)
        single = x @ np.log(theta).T
        rest = [label for label in ranked[row, len(added) :] if label in known]
        assert (np.diff(single[rest]) <= 1e-9).all()


@given(problem=texts(), order=ORDERS, factor=st.sampled_from([1e-300, 3.0, 8e307]))
def test_sets_do_not_depend_on_the_lengths_of_rows(problem, order, factor):
    counts, labels = problem
    model = nl.PMM(order).fit(counts, labels)
    expected = model.label_scores(counts).toarray()
    found = model.label_scores(counts * factor).toarray()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_many_labels_are_added_in_the_order_of_what_they_gain():
    theta = np.full((4, 4), 0.01) + np.diag([0.96] * 4)
    found = set_scores(sparse.csr_array([[3.0, 8, 4, 6]]), theta, None, np.ones(4))
    assert np.argsort(-found[0]).tolist() == [1, 3, 2, 0]
    assert (found > 0.5).all()
    # One occurrence of a word does not outweigh the share that its label takes from the others.
    found = set_scores(sparse.csr_array([[1.0, 8, 4, 6]]), theta, None, np.ones(4))
    assert (found > 0.5).tolist() == [[False, True, True, True]]


def test_rows_without_words_rank_by_the_frequency_of_labels():
    labels = np.column_stack([Y, np.zeros(6, int), np.ones(6, int)])
    labels[0, 1] = 1  # 4, 5, 0 and 6 rows
    for order in (1, 2):
        model = nl.PMM(order).fit(X, labels)
        assert model.rank(np.zeros((1, 3)), top=4).labels.tolist() == [[3, 1, 0, 2]]
        assert model.predict(np.zeros((1, 3))).tolist() == [[0, 0, 0, 1]]
        found = model.label_scores(np.zeros((1, 3))).toarray()[0]
        np.testing.assert_allclose(found, [4 / 12, 5 / 12, 0, 1 - 5 / 12])
    equally = nl.PMM().fit(X, Y).label_scores(np.zeros((1, 3))).toarray()
    assert equally[0, 0] > 0.5 >= equally[0, 1]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("counts", "labels"),
    [
        ([[1, 0], [0, 2]], [[0, 0], [0, 0]]),  # no label at all
        ([[1, 0], [0, 2]], [[0, 1], [0, 1]]),  # never, and always
        ([[1, 0], [0, 2]], [[1], [0]]),  # a single label
        ([[0, 0], [0, 0]], [[1, 1], [0, 1]]),  # no word at all
        ([[3], [3], [3]], [[1, 0], [0, 1], [1, 1]]),  # a single word
        ([[2, 2], [2, 2]], [[1, 0], [0, 1]]),  # constant features
        ([[1, 0], [0, 2], [5, 5]], [[1, 0], [0, 1], [0, 0]]),  # an empty set
        ([[1e300, 0], [0, 1e-300]], [[1, 0], [1, 1]]),
    ],
)
def test_edges_are_quiet_and_finite(order, counts, labels):
    counts, labels = np.array(counts, float), np.array(labels)
    model = nl.PMM(order).fit(counts, labels)
    queries = np.vstack([counts, counts[:1] * 0])
    scores, chances = model.label_scores(queries).toarray(), model.predict_proba(queries)
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    assert ((chances > 0) & (chances < 1)).all()
    assert np.isfinite(model.log_posterior_)
    # At least one label that occurs is predicted.
    assert (model.predict(queries).any(axis=1) == labels.any()).all()
    assert not model.predict(queries)[:, ~labels.any(axis=0)].any()


def test_without_a_prior_shares_may_end_at_zero():
    counts = np.array([[9, 0], [0, 9], [9, 0], [9, 1]])
    labels = np.array([[1, 0], [0, 1], [1, 1], [1, 1]])
    model = nl.PMM(2, zeta=1.0, xi=1.1, max_iter=5000).fit(counts, labels)
    assert model.pair_shares_[1, 0] < 0.05
    assert np.isfinite(model.label_scores(counts).toarray()).all()


# Refusals, and files.


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_negative_numbers_are_refused(form):
    wrong = X.copy()
    wrong[4, 1] = -0.5
    message = r"Negative values .*X: PMM.* from 0 up; got -0.5 in column 1"
    with pytest.raises(ValueError, match=message):
        nl.PMM().fit(form(wrong), Y)
    with pytest.raises(ValueError, match=message):
        nl.PMM().fit(X, Y).predict(form(wrong))


def test_a_refusal_names_the_column_of_a_frame():
    frame = pd.DataFrame(X, columns=["sea", "sky", "sun"]).assign(sun=-1)
    with pytest.raises(ValueError, match="got -1 in column 'sun'"):
        nl.PMM().fit(frame, Y)


@pytest.mark.parametrize(
    ("order", "shape", "d", "message"),
    [
        (1, (2, 100_000), 10**6, "word probabilities of PMM .*100,000 x 1,000,000.*fewer labels"),
        (2, (2, 1_000_000), 1, "pairs of labels of PMM2 .*1,000,000 x 1,000,000.*order=1"),
    ],
)
def test_impossible_sizes_are_refused(monkeypatch, order, shape, d, message):
    monkeypatch.setattr("nearlabel.common.validation.physical_memory", lambda: 2**36)
    with pytest.raises(MemoryError, match=message):
        nl.PMM(order).fit(sparse.csr_array((2, d)), sparse.csr_array(shape, dtype=np.int8))
