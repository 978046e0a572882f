import warnings
from unittest import mock

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit
from strategies import label_matrices, vectors

from nearlabel.common.arrays import canonical_csr
from nearlabel.common.validation import label_matrix
from nearlabel.formulas import regressions
from nearlabel.formulas.regressions import (
    Standardization,
    left_out_log_odds,
    logistic_regressions,
    varies,
)

pytestmark = pytest.mark.engines


def objective(inputs, carried, weights, intercept, ridge):
    z = inputs @ weights + intercept
    return np.logaddexp(0, np.where(carried == 1, -z, z)).sum() + ridge * weights @ weights


class TestWorkedExample:
    """The six rows of the notes: inputs as they are, ridge 1."""

    omega = np.array([[2, 2, 0, 3], [2, 1, 0, 3], [2, 2, 0, 3]] + 3 * [[1, 3, 0, 3]]) / 3
    of_query = np.array([2, 2, 0, 3]) / 3

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_labels_of_neighbors(self, f6, form):
        _, Y, _ = f6
        weights, intercepts = logistic_regressions(form(self.omega), label_matrix(Y, "Y"), 1.0)
        expected = [[0.236416, -0.312342, 0, 0], [-0.161142, 0.102882, 0, 0]]
        np.testing.assert_allclose(weights[:2], expected, atol=5e-7)
        np.testing.assert_allclose(intercepts[:2], [0.124761, 0.694131], atol=5e-7)
        for label, minimum in enumerate([3.995673, 3.780796]):
            found = objective(self.omega, Y[:, label], weights[label], intercepts[label], 1.0)
            assert found == pytest.approx(minimum, abs=5e-7)
        chance = expit(weights @ self.of_query + intercepts)
        np.testing.assert_allclose(chance, [0.518527, 0.658202, 0, 1], atol=5e-7)


def test_labels_of_one_class_and_constant_columns():
    inputs = np.array([[3.0, 0.1], [3.0, 0.1], [3.0, 0.1]])
    Y = label_matrix(np.array([[0, 1, 1], [0, 1, 0], [0, 1, 0]]), "Y")
    weights, intercepts = logistic_regressions(inputs, Y, 1e-8)
    assert weights.tolist() == [[0, 0]] * 3
    assert intercepts.tolist() == [-np.inf, np.inf, np.log(1) - np.log(2)]


@pytest.mark.parametrize("ridge", [1e-10, 1e-8, 1.0])
def test_a_label_that_is_separated_perfectly_is_held_by_the_ridge(ridge):
    """The optimum itself, where the gradient vanishes, not where a solver gave up."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(200, 5))
    carried = (inputs[:, 0] + 0.1 * inputs[:, 1] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights, intercepts = logistic_regressions(
            inputs, label_matrix(carried[:, None], "Y"), ridge
        )
    slope = expit(inputs @ weights[0] + intercepts[0]) - carried
    from_loss, from_ridge = inputs.T @ slope, 2 * ridge * weights[0]
    np.testing.assert_allclose(from_loss, -from_ridge, rtol=1e-5, atol=1e-14)
    assert abs(slope.sum()) <= 1e-6 * np.abs(slope).sum()


def test_as_scikit_learn_fits_it():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(400, 6))
    Y = (inputs @ rng.normal(size=(6, 3)) + 2 * rng.normal(size=(400, 3)) > 0.5).astype(int)
    weights, intercepts = logistic_regressions(inputs, label_matrix(Y, "Y"), 0.25, n_jobs=2)
    for label in range(3):
        peer = LogisticRegression(C=2.0, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
        peer.fit(inputs, Y[:, label])
        np.testing.assert_allclose(weights[label], peer.coef_[0], atol=1e-10)
        assert intercepts[label] == pytest.approx(peer.intercept_[0], abs=1e-10)


def test_a_label_on_which_scikit_learn_gives_up():
    """Most rows are so far on their side that their second derivatives vanish."""
    rng = np.random.default_rng(1)
    inputs = np.vstack([rng.normal(size=(20, 3)), 300 + rng.normal(size=(400, 3))])
    carried = np.append(rng.integers(0, 2, 20), np.ones(400, int))
    ridge = 1e-8
    weights, intercepts = logistic_regressions(inputs, label_matrix(carried[:, None], "Y"), ridge)
    odds = inputs @ weights[0] + intercepts[0]
    slope = np.where(carried == 1, -expit(-odds), expit(odds))
    assert np.mean(expit(odds) == 1) > 0.25
    np.testing.assert_allclose(inputs.T @ slope, -2 * ridge * weights[0], rtol=0, atol=1e-11)


def test_an_interrupt_takes_effect_between_two_steps(monkeypatch):
    calls = []

    def interrupted(*given):
        calls.append(len(given))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*given)

    original = regressions._solution
    monkeypatch.setattr(regressions, "_solution", interrupted)
    inputs = np.random.default_rng(0).normal(size=(50, 4))
    Y = label_matrix((inputs > 0).astype(int), "Y")
    with pytest.raises(KeyboardInterrupt):
        logistic_regressions(inputs, Y, 1e-8)
    assert len(calls) == 3


@given(data=st.data(), ridge=st.sampled_from([0.01, 1.0, 30.0]), is_sparse=st.booleans())
def test_equals_the_literal_regression(data, ridge, is_sparse):
    inputs = data.draw(vectors())
    Y = data.draw(label_matrices(len(inputs)))
    standard = Standardization.of(canonical_csr(inputs.astype(float)))
    standardized = standard(inputs.astype(float))
    form = sparse.csr_array if is_sparse else np.asarray
    weights, intercepts = logistic_regressions(form(standardized), label_matrix(Y, "Y"), ridge)
    for label in range(Y.shape[1]):
        expected, at_zero = oracles.logistic(standardized, Y[:, label], ridge)
        np.testing.assert_allclose(weights[label], expected.astype(float), rtol=0, atol=1e-10)
        np.testing.assert_allclose(intercepts[label], float(at_zero), rtol=0, atol=1e-10)


@given(X=vectors(), share=st.sampled_from([0.0, 0.05, 0.4, 1.0]), seed=st.integers(0, 99))
def test_standardized_columns(X, share, seed):
    """Dense and sparse inputs give the same; columns have spread one or are zero."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(X.shape) < share, X, 0).astype(float)
    inputs = canonical_csr(X)
    standard = Standardization.of(inputs)
    dense, other = standard(X), standard(inputs)
    other = other.toarray() if sparse.issparse(other) else other
    np.testing.assert_allclose(other, dense, rtol=1e-14, atol=1e-14)
    moving = varies(X)
    assert not dense[:, ~moving].any()
    exact = X.astype(np.longdouble)
    np.testing.assert_allclose(
        standard.scale[moving], exact.std(axis=0)[moving].astype(float), rtol=1e-10
    )
    # Columns that are not centered have a mean of at most their spread.
    assert np.all(np.abs(dense.mean(axis=0)) <= 1 + 1e-12)


def test_sparse_inputs_stay_sparse_beside_a_full_column():
    rng = np.random.default_rng(0)
    few = np.where(rng.random((300, 40)) < 0.02, rng.random((300, 40)), 0)
    inputs = canonical_csr(np.hstack([few, 1e6 + rng.normal(size=(300, 1))]))
    standard = Standardization.of(inputs)
    got = standard(inputs)
    assert sparse.issparse(got)
    assert got.nnz == inputs.nnz
    np.testing.assert_allclose(got.toarray(), standard(inputs.toarray()), rtol=1e-12)
    assert np.abs(got.toarray()[:, -1].mean()) < 1e-9


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_columns_with_squares_that_overflow_count_as_constant(size):
    X = np.array([[0.0, 1.0], [size, 2.0], [-size, 4.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        standard = Standardization.of(canonical_csr(X))
        assert standard.scale[0] == np.inf
        assert not standard(X)[:, 0].any()


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_rows_are_left_out_by_one_step_of_newton(is_sparse, ridge):
    rng = np.random.default_rng(3)
    n, m = 40, 4
    X = rng.standard_normal((n, m)) * (rng.random((n, m)) < (0.3 if is_sparse else 1))
    X[:, 2] = 0.0  # a constant column
    Y = (X[:, [0]] + rng.standard_normal((n, 3)) > 0.3).astype(int)
    Y[:, 2] = 1  # a label that every row carries
    inputs = sparse.csr_array(X) if is_sparse else X
    labels = sparse.csr_array(Y)
    weights, intercepts = logistic_regressions(inputs, labels, ridge)
    found = left_out_log_odds(inputs, labels, weights, intercepts, ridge)
    assert np.isposinf(found[:, 2]).all()
    kept = np.append(X[:, [0, 1, 3]], np.ones((n, 1)), axis=1)
    penalty = np.diag([2 * ridge] * 3 + [0.0])
    for label in range(2):
        w = np.append(weights[label, [0, 1, 3]], intercepts[label])
        for row in range(n):
            others = np.arange(n) != row
            p = 1 / (1 + np.exp(-kept[others] @ w))
            gradient = kept[others].T @ (p - Y[others, label]) + penalty @ w
            hessian = (kept[others].T * (p * (1 - p))) @ kept[others] + penalty
            step = w - np.linalg.solve(hessian, gradient)
            assert found[row, label] == pytest.approx(kept[row] @ step, abs=1e-6)


def test_no_step_is_made_from_the_minimum():
    """Where the gradient is zero to the last digit, it cannot become smaller."""
    inputs = np.array([[2.0, 2.0], *[[-0.4999999999999999] * 2] * 4])
    labels = sparse.csr_array([[0], [0], [1], [1], [0]])
    with mock.patch.object(regressions, "_solution", wraps=regressions._solution) as solved:
        logistic_regressions(inputs, labels, 1.0)
    assert 2 < solved.call_count < 30
