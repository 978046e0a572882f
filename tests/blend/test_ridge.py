"""Ridge scores compared with literal refits, and their memory and form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import label_matrices, vectors
from threadpoolctl import threadpool_limits

from nearlabel.blend import axes, rows
from nearlabel.blend.closed_form import ClosedForm, best_penalty, squared_errors
from nearlabel.blend.ridge import ALPHAS, LabelRidge
from nearlabel.common.arrays import canonical_csr
from nearlabel.metrics import average_precision


def made(n=40, d=6, q=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    W = rng.normal(size=(d, q))
    Y = (X @ W + rng.normal(size=(n, q)) > 0.7).astype(np.int8)
    return X, canonical_csr(Y)


def nystroem(landmarks, X):
    """Features whose products are those of kernels projected on the landmarks."""
    values, vectors = np.linalg.eigh(landmarks.kernel(landmarks.rows))
    known = values > 1e-9 * values[-1]
    return landmarks.kernel(X) @ (vectors[:, known] / np.sqrt(values[known]))


def literal_weights(Z, Y, penalty):
    """Means and weights of a ridge regression, by the normal equations."""
    z, y = Z.mean(axis=0), Y.mean(axis=0)
    A = Z - z
    return z, y, np.linalg.solve(A.T @ A + penalty * np.eye(Z.shape[1]), A.T @ (Y - y))


def literal_left_out(Z, Y, penalty):
    """Scores of each row by a fit to all others."""
    found = []
    for i in range(len(Z)):
        others = np.arange(len(Z)) != i
        z, y, W = literal_weights(Z[others], Y[others], penalty)
        found.append((Z[i] - z) @ W + y)
    return np.array(found)


@given(
    data=st.data(),
    X=vectors(),
    kernel=st.sampled_from(["linear", "rbf"]),
    alpha=st.sampled_from([0.01, 1.0, 100.0]),
    form=st.sampled_from([np.asarray, sparse.csr_array]),
    kept=st.booleans(),
)
def test_scores_are_those_of_literal_refits(data, X, kernel, alpha, form, kept):
    X = X.astype(np.float64)
    X = (X - X.mean(axis=0)) / (np.abs(X - X.mean(axis=0)).max() or 1)
    X[:, 0] += data.draw(st.sampled_from([0, 1]))
    Y = data.draw(label_matrices(len(X)))
    with pytest.MonkeyPatch.context() as patch:
        if not kept:  # as with very many rows
            patch.setattr("nearlabel.blend.closed_form._STORED_CELLS", 0)
        ridge = LabelRidge(kernel, alpha).fit(form(X), canonical_csr(Y))
    Z = X if kernel == "linear" else nystroem(ridge.form_.projection.landmarks, form(X))
    values = ridge.form_.values
    penalty = alpha * values.mean() if len(values) else 1.0
    scores = ridge.left_out_scores()
    left_out = scores.toarray()
    np.testing.assert_allclose(left_out, literal_left_out(Z, Y, penalty), atol=1e-8)
    z, y, W = literal_weights(Z, Y, penalty)
    plain = ridge.scores(form(X))
    np.testing.assert_allclose(plain.toarray(), (Z - z) @ W + y, atol=1e-8)
    row, label = (part.ravel() for part in np.indices(Y.shape)[:, ::-1])
    for some, dense in ((scores, left_out), (plain, plain.toarray())):
        np.testing.assert_allclose(some.at(row, label), dense[row, label], atol=1e-12)
    exact = np.mean((left_out - Y) ** 2)
    rows = np.arange(len(X))
    (error,) = squared_errors(ridge.form_, [alpha], rows, canonical_csr(Y))
    assert error == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("shape", [(60, 9), (30, 50)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_as_many_truncated_axes_as_there_are_give_the_same(shape, form, monkeypatch):
    X, Y = made(*shape)
    whole = LabelRidge("linear", 0.1).fit(form(X), Y).left_out_scores().toarray()
    monkeypatch.setattr(axes, "_WIDEST", 5)
    monkeypatch.setattr(rows, "CELLS_AT_ONCE", 1)
    monkeypatch.setattr(axes, "_ROWS_AT_ONCE", 7)
    again = LabelRidge("linear", 0.1).fit(form(X), Y)
    np.testing.assert_allclose(again.left_out_scores().toarray(), whole, atol=1e-8)
    monkeypatch.setattr(axes, "_TRUNCATED_RANK", 4)
    few = LabelRidge("linear", 0.1).fit(form(X), Y)
    leading = np.linalg.svd(X - X.mean(axis=0))[1][:4] ** 2
    np.testing.assert_allclose(few.form_.values, leading, rtol=1e-6)
    Z = (X - X.mean(axis=0)) @ few.form_.projection.weights
    wanted = literal_left_out(Z, Y.toarray(), 0.1 * leading.mean())
    np.testing.assert_allclose(few.left_out_scores().toarray(), wanted, atol=1e-6)


def left_out(X, Y, alpha):
    return LabelRidge("linear", alpha).fit(X, Y).left_out_scores().toarray()


def test_the_penalty_has_the_best_left_out_scores():
    X, Y = made(80)
    form = ClosedForm(X, Y, None, 0)
    values = [average_precision(Y, left_out(X, Y, alpha)) for alpha in ALPHAS]
    choice = best_penalty(form, ALPHAS, 0)
    assert choice == (ALPHAS[np.argmax(values)], "average_precision", max(values))
    one = ClosedForm(X, Y[:, :1], None, 0)  # nothing to rank
    errors = [np.mean((left_out(X, one.Y, alpha) - one.Y) ** 2) for alpha in ALPHAS]
    choice = best_penalty(one, ALPHAS, 0)
    assert choice.criterion == "squared_error"
    assert choice.alpha == ALPHAS[np.argmin(errors)]


def test_the_kernel_has_the_better_left_out_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    ring = (X**2).sum(axis=1) < 1.2
    for Y, kernel in ((np.c_[ring, ~ring], "rbf"), (np.c_[X[:, 0] > 0, X[:, 0] <= 0], "linear")):
        ridge = LabelRidge().fit(X, canonical_csr(Y.astype(np.int8)))
        assert ridge.kernel_ == kernel
        assert ridge.choice_.value == max(ridge.values_.values()) > 0.95
        alone = LabelRidge(kernel).fit(X, canonical_csr(Y.astype(np.int8)))
        assert alone.choice_ == ridge.choice_


def test_blocks_types_and_threads_change_nothing(monkeypatch):
    X, Y = made(300, 8, 12)
    X = X.astype(np.float32)
    whole = {kernel: LabelRidge(kernel).fit(X, Y) for kernel in ("linear", "rbf")}
    monkeypatch.setattr(rows, "CELLS_AT_ONCE", 1)
    monkeypatch.setattr(axes, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr("nearlabel.blend.closed_form._STORED_CELLS", 0)
    row, label = np.array([5, 299, 5, 0]), np.array([11, 0, 3, 3])
    for kernel, ridge in whole.items():
        scores = ridge.left_out_scores().toarray()
        with threadpool_limits(2):
            other = LabelRidge(kernel).fit(X.astype(np.float64), Y)
        np.testing.assert_allclose(other.left_out_scores().toarray(), scores, atol=1e-10)
        at = other.left_out_scores().at(row, label)
        np.testing.assert_allclose(at, scores[row, label], atol=1e-10)


def test_many_labels_take_little_memory(monkeypatch):
    """A million columns: the penalty is chosen by the squared error, and pairs are scored."""
    X, _ = made(50, 3)
    label = np.arange(0, 1_000_000, 20_000)
    Y = sparse.csr_array((np.ones(50, np.int8), label, np.arange(51)), shape=(50, 1_000_000))
    monkeypatch.setattr("nearlabel.blend.closed_form._FEWEST_RANKED", 5)
    ridge = LabelRidge("linear").fit(X, Y)
    assert ridge.choice_.criterion == "squared_error"
    scores = ridge.left_out_scores()
    few = LabelRidge("linear", ridge.choice_.alpha).fit(X, canonical_csr(Y[:, label]))
    rows = np.arange(50)
    wanted = few.left_out_scores().at(rows, rows[::-1])
    np.testing.assert_allclose(scores.at(rows, label[::-1]), wanted, atol=1e-12)
