"""Ridge scores compared with literal refits, and their memory and form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import label_matrices, vectors
from threadpoolctl import threadpool_limits

from nearlabel.blend import axes, rows
from nearlabel.blend.projections import Landmarks
from nearlabel.blend.ridge import (
    ALPHAS,
    LabelRidge,
    best_kernel,
    label_ridges,
    squared_errors,
)
from nearlabel.common.arrays import canonical_csr
from nearlabel.metrics import average_precision


def made(n=40, d=6, q=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    W = rng.normal(size=(d, q))
    Y = (X @ W + rng.normal(size=(n, q)) > 0.7).astype(np.int8)
    return X, canonical_csr(Y)


def fitted(X, Y, kernel="linear", alpha="auto"):
    return label_ridges(X, Y, (kernel,), alpha)[kernel]


def left_out_scores(ridge):
    return ridge.weights().left_out_scores(ridge.X, np.arange(ridge.X.shape[0]), ridge.Y)


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
            patch.setattr("nearlabel.blend.ridge._STORED_CELLS", 0)
        ridge = fitted(form(X), canonical_csr(Y), kernel, alpha)
    Z = X if kernel == "linear" else nystroem(ridge.projection.landmarks, form(X))
    values = ridge.values
    penalty = alpha * values.mean() if len(values) else 1.0
    scores = left_out_scores(ridge)
    left_out = scores.toarray()
    np.testing.assert_allclose(left_out, literal_left_out(Z, Y, penalty), atol=1e-8)
    z, y, W = literal_weights(Z, Y, penalty)
    plain = ridge.weights().scores(form(X))
    np.testing.assert_allclose(plain.toarray(), (Z - z) @ W + y, atol=1e-8)
    row, label = (part.ravel() for part in np.indices(Y.shape)[:, ::-1])
    for some, dense in ((scores, left_out), (plain, plain.toarray())):
        np.testing.assert_allclose(some.at(row, label), dense[row, label], atol=1e-12)
    exact = np.mean((left_out - Y) ** 2)
    (error,) = squared_errors(ridge, [alpha], np.arange(len(X)))
    assert error == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("shape", [(60, 9), (30, 50)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_as_many_truncated_axes_as_there_are_give_the_same(shape, form, monkeypatch):
    X, Y = made(*shape)
    whole = left_out(form(X), Y, 0.1)
    monkeypatch.setattr(axes, "_WIDEST", 5)
    monkeypatch.setattr(rows, "CELLS_AT_ONCE", 1)
    monkeypatch.setattr(axes, "_ROWS_AT_ONCE", 7)
    np.testing.assert_allclose(left_out(form(X), Y, 0.1), whole, atol=1e-8)
    monkeypatch.setattr(axes, "_TRUNCATED_RANK", 4)
    few = fitted(form(X), Y, alpha=0.1)
    leading = np.linalg.svd(X - X.mean(axis=0))[1][:4] ** 2
    np.testing.assert_allclose(few.values, leading, rtol=1e-6)
    Z = (X - X.mean(axis=0)) @ few.projection.weights
    wanted = literal_left_out(Z, Y.toarray(), 0.1 * leading.mean())
    np.testing.assert_allclose(left_out_scores(few).toarray(), wanted, atol=1e-6)


def left_out(X, Y, alpha):
    return left_out_scores(fitted(X, Y, alpha=alpha)).toarray()


def test_the_penalty_has_the_best_left_out_scores():
    X, Y = made(80)
    values = [average_precision(Y, left_out(X, Y, alpha)) for alpha in ALPHAS]
    ridge = LabelRidge(X, Y, None, ALPHAS, 0)
    assert (ridge.alpha, ridge.value) == (ALPHAS[np.argmax(values)], max(values))
    alone = LabelRidge(X, Y[:, :1], None, ALPHAS, 0)  # nothing to rank
    errors = [np.mean((left_out(X, alone.Y, alpha) - alone.Y) ** 2) for alpha in ALPHAS]
    assert alone.alpha == ALPHAS[np.argmin(errors)]
    assert alone.value == pytest.approx(-min(errors))


def test_the_kernel_has_the_better_left_out_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    ring = (X**2).sum(axis=1) < 1.2
    for Y, kernel in ((np.c_[ring, ~ring], "rbf"), (np.c_[X[:, 0] > 0, X[:, 0] <= 0], "linear")):
        Y = canonical_csr(Y.astype(np.int8))
        ridges = label_ridges(X, Y)
        best, alone = ridges[best_kernel(ridges)], fitted(X, Y, kernel)
        assert best_kernel(ridges) == kernel
        assert best.value == max(ridge.value for ridge in ridges.values()) > 0.95
        assert (alone.alpha, alone.value) == (best.alpha, best.value)


def test_blocks_types_and_threads_change_nothing(monkeypatch):
    X, Y = made(300, 8, 12)
    X = X.astype(np.float32)
    whole = label_ridges(X, Y)
    monkeypatch.setattr(rows, "CELLS_AT_ONCE", 1)
    monkeypatch.setattr(axes, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr("nearlabel.blend.ridge._STORED_CELLS", 0)
    row, label = np.array([5, 299, 5, 0]), np.array([11, 0, 3, 3])
    for kernel, ridge in whole.items():
        scores = left_out_scores(ridge).toarray()
        with threadpool_limits(2):
            other = left_out_scores(fitted(X.astype(np.float64), Y, kernel))
        np.testing.assert_allclose(other.toarray(), scores, atol=1e-10)
        at = other.at(row, label)
        np.testing.assert_allclose(at, scores[row, label], atol=1e-10)


def test_many_labels_take_little_memory(monkeypatch):
    """A million columns: the penalty is chosen by the squared error, and pairs are scored."""
    X, _ = made(50, 3)
    label = np.arange(0, 1_000_000, 20_000)
    Y = sparse.csr_array((np.ones(50, np.int8), label, np.arange(51)), shape=(50, 1_000_000))
    monkeypatch.setattr("nearlabel.blend.ridge._FEWEST_RANKED", 5)
    ridge = fitted(X, Y)
    assert ridge.value < 0  # a negative error
    scores = left_out_scores(ridge)
    few = fitted(X, canonical_csr(Y[:, label]), alpha=ridge.alpha)
    rows = np.arange(50)
    wanted = left_out_scores(few).at(rows, rows[::-1])
    np.testing.assert_allclose(scores.at(rows, label[::-1]), wanted, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_few_rows_have_one_axis_less_than_there_are_rows(seed):
    """Their centered features have none for the last one, which rounding must not decide."""
    random = np.random.default_rng(seed)
    X = random.gamma(1, size=(60, 20)) * 10.0 ** random.integers(-2, 3, 20)
    Y = canonical_csr(sparse.csr_array((random.random((60, 2)) < 0.4).astype(np.int64)))
    for width in 3, 1, 0.3:
        landmarks = Landmarks(X, width / X.var() / 20)
        values = np.linalg.eigvalsh(landmarks.kernel(X))
        assert values[0] > 1e-8 * values[-1]  # no direction is dropped
        assert len(axes.kernel_axes(X, Y, landmarks).values) == len(X) - 1
