import warnings

import numpy as np
import pytest
from estimator_checks import parametrize_with_quick_checks
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from strategies import examples, label_matrices

import nearlabel as nl

F6 = np.array([[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]])
F6_LABELS = np.array([[1, 0], [1, 1], [1, 0], [0, 1], [0, 1], [0, 1]])
QUERY = [[2.2, 0.4]]


@pytest.fixture(scope="module")
def data():
    return nl.datasets.make_local_labels(60, 4, 5, random_state=0)


# Some checks have features far from the origin, where a polynomial of degree 8 has no digits left.
@pytest.mark.filterwarnings("ignore:RankSVM stopped:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_quick_checks([nl.RankSVM(max_iter=300), nl.RankSVM(kernel="rbf", C=10.0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_worked_example():
    """Six rows and two labels; row 2 carries both and is not ranked."""
    model = nl.RankSVM(kernel="linear", tol=1e-10).fit(F6, F6_LABELS)
    weights = model.support_vectors_.T @ model.dual_coef_
    np.testing.assert_allclose(weights, [[-0.25, 0.25], [0, 0]], atol=1e-6)
    assert model.intercept_[0] - model.intercept_[1] == pytest.approx(1, abs=1e-6)
    assert (weights**2).sum() / 2 == pytest.approx(0.0625, abs=1e-6)  # no loss: the objective
    scores = model.label_scores(QUERY).toarray()[0]
    assert scores[0] - scores[1] == pytest.approx(-0.1, abs=1e-6)
    assert model.dual_gap_ <= 1e-10
    assert [1, 0] not in model.support_vectors_.tolist()


def test_labels_always_or_never_present_by_the_worked_example():
    """With labels 2, never present, and 3, always: every row weighs less, which loses nothing."""
    Y = np.column_stack([F6_LABELS, np.zeros(6, int), np.ones(6, int)])
    model = nl.RankSVM(kernel="linear", tol=1e-10).fit(F6, Y)
    # Rows 1 to 6 carry 2 or 3 of 4 labels: each pair of labels 0 and 1 has the weight 1/4.
    alone = nl.RankSVM(kernel="linear", C=0.25, tol=1e-10).fit(F6, F6_LABELS)
    scores, expected = (one.label_scores(F6).toarray() for one in (model, alone))
    np.testing.assert_allclose(
        scores[:, 0] - scores[:, 1], expected[:, 0] - expected[:, 1], atol=1e-5
    )
    assert not model.dual_coef_[:, 2:].any()
    low, high = min(model.intercept_[:2]), max(model.intercept_[:2])
    np.testing.assert_allclose(model.intercept_[2:], [low - 1, high + 1])


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("C", [0.1, 5.0])
def test_two_labels_that_exclude_each_other_and_a_single_one_are_a_binary_machine(data, kernel, C):
    """Of two labels w_0 = -w_1, and their difference is that of SVC with twice the C."""
    y = data.Y.toarray()[:, 0]
    svc = SVC(kernel=kernel, degree=3, coef0=1.0, C=2 * C, tol=1e-8).fit(data.X, y)
    expected = svc.decision_function(data.X)
    model = nl.RankSVM(kernel=kernel, degree=3, C=C, tol=1e-9)
    two = model.fit(data.X, np.column_stack([y, 1 - y])).label_scores(data.X).toarray()
    np.testing.assert_allclose(two[:, 0] - two[:, 1], expected, atol=1e-3)
    one = model.fit(data.X, y[:, None]).label_scores(data.X).toarray()
    np.testing.assert_allclose(2 * one[:, 0], expected, atol=1e-3)


@examples(60)
@given(
    X=st.sampled_from(["random", "constant", "zero", "equal", "far"]),
    Y=label_matrices(7),
    kernel=st.sampled_from(["linear", "poly", "rbf"]),
    seed=st.integers(0, 99),
)
def test_any_labels_are_learned_quietly_and_decided_by_the_threshold(X, Y, kernel, seed):
    vectors = np.random.default_rng(seed).normal(size=(7, 3))
    vectors = {
        "random": vectors,
        "constant": np.full((7, 3), 2.5),
        "zero": np.zeros((7, 3)),
        "equal": vectors[[0, 0, 1, 1, 0, 2, 1]],
        "far": vectors + 1e5,
    }[X]
    model = nl.RankSVM(kernel=kernel, degree=4, max_iter=100 if X == "far" else 5000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Far from the origin, a polynomial has no digits left to learn from.
        warnings.simplefilter("ignore" if X == "far" else "error", ConvergenceWarning)
        model.fit(vectors, Y)
        scores = model.label_scores(vectors).toarray()
        decided, probabilities = model.predict(vectors), model.predict_proba(vectors)
    assert np.isfinite(scores).all()
    threshold = scores @ model.threshold_coef_ + model.threshold_intercept_
    away = scores - threshold[:, None]
    clear = abs(away) > 1e-9
    np.testing.assert_array_equal(decided[clear], (away > 0)[clear])
    np.testing.assert_allclose(probabilities, expit(away), rtol=0, atol=1e-6)
    if X != "far":
        assert model.dual_gap_ <= 1e-3
        np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0, atol=1e-8)
    count = Y.sum(axis=1)
    ranked = (count > 0) & (count < Y.shape[1])
    if Y.shape[1] > 1 and ranked.any():
        constant = (Y[ranked] == Y[ranked][0]).all(axis=0)
        assert not model.dual_coef_[:, constant].any()


@pytest.mark.parametrize("Y", [[[1], [0]], [[1, 0], [0, 1]], [[0, 0], [0, 0]], [[1, 1], [1, 1]]])
def test_two_rows(Y):
    X = np.array([[0.0, 1.0], [2.0, 0.0]])
    model = nl.RankSVM().fit(X, np.array(Y))
    np.testing.assert_array_equal(model.predict(X), Y)


def test_rows_without_a_ranking_count_for_the_threshold_only(data):
    Y = data.Y.toarray()
    extra = np.vstack([data.X, data.X[:3] + 1]), np.vstack([Y, np.zeros_like(Y[:3])])
    model = nl.RankSVM(gamma=0.2, tol=1e-8)
    before = model.fit(data.X, Y).label_scores(data.X).toarray()
    cut = model.threshold_intercept_
    after = model.fit(*extra).label_scores(data.X).toarray()
    np.testing.assert_allclose(after, before, atol=1e-5 * abs(before).max())
    assert model.threshold_intercept_ != pytest.approx(cut, abs=1e-3)


def test_a_remaining_gap_is_reported(data):
    with pytest.warns(ConvergenceWarning, match="max_iter=3.*gap of .*tol=1e-06"):
        model = nl.RankSVM(max_iter=3, tol=1e-6).fit(data.X, data.Y)
    assert model.n_iter_ == 3
    assert model.dual_gap_ > 1e-6


def test_progress_is_reported(data):
    told = []
    model = nl.RankSVM().fit(data.X, data.Y, progress=lambda *steps: told.append(steps))
    assert told[-1] == (model.n_iter_, 5000)


def test_kernels_that_overflow_and_sizes_that_cannot_be_are_refused(data, monkeypatch):
    with pytest.raises(ValueError, match="X .*kernel='poly'.*scale.*gamma"):
        nl.RankSVM(gamma=1.0).fit(data.X * 1e30, data.Y)
    monkeypatch.setattr("nearlabel.common.validation.physical_memory", lambda: 2**36)
    rows = sparse.csr_array((10**6, 2))
    with pytest.raises(MemoryError, match="kernel matrix of RankSVM.*1,000,000 x 1,000,000"):
        nl.RankSVM().fit(rows, sparse.csr_array((10**6, 3), dtype=np.int8))


def test_a_model_without_support_vectors_can_be_saved(tmp_path):
    X = np.array([[0.0, 1.0], [1.0, 0.0]])
    model = nl.RankSVM().fit(X, np.zeros((2, 3), int))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(nl.load(tmp_path / "model").predict(X), np.zeros((2, 3)))


@pytest.mark.data
@pytest.mark.slow
def test_yeast_is_solved_to_the_gap(load):
    """The official split, degree 8; few iterations, while wrong steps would need thousands."""
    data = load("yeast")
    model = nl.RankSVM().fit(data.X[:1500], data.Y[:1500])
    assert model.dual_gap_ <= 1e-3
    assert model.n_iter_ < 300
    scores = model.label_scores(data.X[1500:]).toarray()
    assert nl.metrics.average_precision(data.Y[1500:], scores) > 0.76
