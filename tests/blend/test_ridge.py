"""Ridge scores compared with literal refits, and their memory and form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import label_matrices, vectors
from threadpoolctl import threadpool_limits

from nearlabel.blend import ridge_scores, spectra
from nearlabel.blend.closed_form import ClosedForm
from nearlabel.blend.kernel_features import LinearFeatures
from nearlabel.blend.penalties import best_penalty, squared_errors
from nearlabel.blend.ridge import ALPHAS, LabelRidge
from nearlabel.blend.streamed_kernel import KernelLeverage
from nearlabel.common.arrays import canonical_csr
from nearlabel.metrics import average_precision

EVERY = slice(None)


def made(n=40, d=6, q=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    W = rng.normal(size=(d, q))
    Y = (X @ W + rng.normal(size=(n, q)) > 0.7).astype(np.int8)
    return X, canonical_csr(Y)


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
            patch.setattr("nearlabel.blend.closed_form._KEPT_CELLS", 0)
            patch.setattr("nearlabel.blend.streamed_kernel._CELLS_OF_A_RUN", 1)
        ridge = LabelRidge(kernel, alpha).fit(form(X), canonical_csr(Y))
    Z = ridge.features_.of(form(X))
    Z = Z.toarray() if sparse.issparse(Z) else Z
    values = ridge.form_.spectrum.values
    penalty = alpha * values.mean() if len(values) else 1.0
    scores = ridge.left_out_scores()
    left_out = scores.dense(EVERY)
    np.testing.assert_allclose(left_out, literal_left_out(Z, Y, penalty), atol=1e-8)
    z, y, W = literal_weights(Z, Y, penalty)
    plain = ridge.scores(form(X))
    np.testing.assert_allclose(plain.dense(EVERY), (Z - z) @ W + y, atol=1e-8)
    row, label = (part.ravel() for part in np.indices(Y.shape)[:, ::-1])
    for some, dense in ((scores, left_out), (plain, plain.dense(EVERY))):
        np.testing.assert_allclose(some.at(row, label), dense[row, label], atol=1e-12)
    exact = np.mean((left_out - Y) ** 2)
    rows = np.arange(len(X))
    kept_without_rows = ridge.weights().left_out_scores(form(X), rows, canonical_csr(Y))
    np.testing.assert_allclose(kept_without_rows.dense(EVERY), left_out, atol=1e-8)
    (error,) = squared_errors(ridge.form_, [alpha], rows, canonical_csr(Y))
    assert error == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("shape", [(60, 9), (30, 50)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_as_many_truncated_axes_as_there_are_give_the_same(shape, form, monkeypatch):
    X, Y = made(*shape)
    whole = LabelRidge("linear", 0.1).fit(form(X), Y).left_out_scores().dense(EVERY)
    monkeypatch.setattr(spectra, "_WIDEST", 5)
    monkeypatch.setattr(spectra, "_CELLS_AT_ONCE", 1)
    again = LabelRidge("linear", 0.1).fit(form(X), Y)
    np.testing.assert_allclose(again.left_out_scores().dense(EVERY), whole, atol=1e-8)
    monkeypatch.setattr(spectra, "_TRUNCATED_RANK", 4)
    few = LabelRidge("linear", 0.1).fit(form(X), Y)
    leading = np.linalg.svd(X - X.mean(axis=0))[1][:4] ** 2
    np.testing.assert_allclose(few.form_.spectrum.values, leading, rtol=1e-6)
    Z = (X - X.mean(axis=0)) @ few.form_.spectrum.vectors
    wanted = literal_left_out(Z, Y.toarray(), 0.1 * leading.mean())
    np.testing.assert_allclose(few.left_out_scores().dense(EVERY), wanted, atol=1e-6)


@pytest.mark.parametrize("rank", [0, 3, 5])
def test_leverages_by_a_triangle_are_those_of_all_axes(rank):
    rng = np.random.default_rng(0)
    axes, mean, shrinkage = rng.normal(size=(5, rank)), rng.normal(size=rank), rng.random(rank)
    kernel = rng.random((7, 5))
    wanted = (kernel @ axes - mean) ** 2 @ shrinkage
    found = KernelLeverage.of(axes, mean, shrinkage).of_rows(kernel.copy())
    np.testing.assert_allclose(found, wanted, atol=1e-13)


def test_the_penalty_has_the_best_left_out_scores():
    X, Y = made(80)
    form = ClosedForm(X, Y, LinearFeatures(X.shape[1]), 0)
    values = [average_precision(Y, form.left_out_scores(a).dense(EVERY)) for a in ALPHAS]
    choice = best_penalty(form, ALPHAS, 0)
    assert choice == (ALPHAS[np.argmax(values)], "average_precision", max(values))
    one = ClosedForm(X, Y[:, :1], LinearFeatures(X.shape[1]), 0)  # nothing to rank
    errors = [np.mean((one.left_out_scores(a).dense(EVERY) - one.Y) ** 2) for a in ALPHAS]
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
    monkeypatch.setattr(spectra, "_CELLS_AT_ONCE", 1)
    monkeypatch.setattr(ridge_scores, "_CELLS_AT_ONCE", 50)
    monkeypatch.setattr("nearlabel.blend.closed_form._KEPT_CELLS", 0)
    row, label = np.array([5, 299, 5, 0]), np.array([11, 0, 3, 3])
    for kernel, ridge in whole.items():
        scores = ridge.left_out_scores().dense(EVERY)
        with threadpool_limits(2):
            other = LabelRidge(kernel).fit(X.astype(np.float64), Y)
        np.testing.assert_allclose(other.left_out_scores().dense(EVERY), scores, atol=1e-10)
        at = other.left_out_scores().at(row, label)
        np.testing.assert_allclose(at, scores[row, label], atol=1e-10)


def test_many_labels_take_little_memory(monkeypatch):
    """A million columns: the penalty is chosen by the squared error, and pairs are scored."""
    X, _ = made(50, 3)
    label = np.arange(0, 1_000_000, 20_000)
    Y = sparse.csr_array((np.ones(50, np.int8), label, np.arange(51)), shape=(50, 1_000_000))
    monkeypatch.setattr("nearlabel.blend.penalties._FEWEST_ROWS", 5)
    ridge = LabelRidge("linear").fit(X, Y)
    assert ridge.choice_.criterion == "squared_error"
    scores = ridge.left_out_scores()
    few = LabelRidge("linear", ridge.choice_.alpha).fit(X, canonical_csr(Y[:, label]))
    rows = np.arange(50)
    wanted = few.left_out_scores().at(rows, rows[::-1])
    np.testing.assert_allclose(scores.at(rows, label[::-1]), wanted, atol=1e-12)
