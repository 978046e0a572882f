from unittest import mock

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from strategies import examples, problems

from nearlabel.common import engine
from nearlabel.formulas import reconstruction
from nearlabel.formulas.reconstruction import reconstruct

pytestmark = [pytest.mark.kernels, pytest.mark.engines]


def brute_neighbors(X, queries, k):
    return oracles.neighbors(X, k, queries)[0]


@examples(60)
@given(problem=problems(), is_sparse=st.booleans(), elements=st.sampled_from([1, 300, 2**18]))
def test_equals_the_literal_weights(problem, is_sparse, elements):
    X, Y, queries, k = problem
    near = brute_neighbors(X, queries, k)
    expected, _ = oracles.mlcwknn(X, Y, queries, near)
    form = sparse.csr_array if is_sparse else np.asarray
    with mock.patch.object(reconstruction, "_ELEMENTS_AT_ONCE", elements):
        weights, residuals = reconstruct(form(X), form(queries), near)
    np.testing.assert_allclose(weights, np.array(expected, float), rtol=0, atol=1e-12)
    averages = np.einsum("ij,ijf->if", weights, X[near] - queries[:, None])
    np.testing.assert_allclose(
        residuals, np.linalg.norm(averages, axis=1), rtol=1e-9, atol=1e-15 * np.abs(X).max()
    )


@given(problem=problems())
def test_dense_and_sparse_rows_give_the_same(problem):
    X, _, queries, k = problem
    near = brute_neighbors(X, queries, k)
    dense = reconstruct(X, queries, near)
    ways = [
        (sparse.csr_array(X), sparse.csr_array(queries)),
        (X, sparse.csr_array(queries)),
        (sparse.csr_array(X), queries),
        (np.asfortranarray(X), np.asfortranarray(queries)),
    ]
    for rows, asked in ways:
        np.testing.assert_array_equal(reconstruct(rows, asked, near).weights, dense.weights)


def test_wide_sparse_rows_are_not_made_dense():
    rng = np.random.default_rng(0)
    width = 2**31 - 1
    columns = np.sort(rng.integers(width, size=(200, 10)), axis=1)
    X = sparse.csr_array((rng.random(2000), columns.ravel(), np.arange(0, 2001, 10)), (200, width))
    weights, residuals = reconstruct(X, X[:2], np.array([[9, 8, 7], [3, 1, 0]]))
    used, places = np.unique(columns[:10], return_inverse=True)
    narrow = np.zeros((10, len(used)))
    narrow[np.repeat(np.arange(10), 10), places.ravel()] = X[:10].data
    np.testing.assert_array_equal(
        weights[0], reconstruct(narrow, narrow[:1], np.array([[9, 8, 7]])).weights[0]
    )
    assert weights[1].tolist() == [0, 1, 0]
    assert residuals[1] == 0 < residuals[0]


@examples(60)
@given(
    rows=hnp.arrays(
        np.float64,
        st.tuples(st.integers(0, 3), st.integers(1, 21), st.integers(0, 9)),
        elements=st.floats(-1, 1, width=32) | st.floats(-1, 1),
    )
)
def test_both_engines_compute_the_same_products(core, rows):
    ours = np.empty((len(rows), rows.shape[1], rows.shape[1]))
    core.gram_matrices(rows, ours)
    with mock.patch.object(engine, "core", return_value=None):
        np.testing.assert_array_equal(ours, reconstruction._gram_matrices(rows))


def test_the_kernel_refuses_invalid_input(core):
    for shape in ((1, 4, 4), (2, 4, 3), (2, 3, 4), (2, 5, 5)):
        with pytest.raises(ValueError, match="gram.*set"):
            core.gram_matrices(np.ones((2, 4, 3)), np.empty(shape))


@pytest.mark.parametrize("exponent", [-1074, -1000, -500, 500, 1000, 1021])
def test_any_scale(exponent):
    X = np.array([[1.0, 0, 3], [0, 2, 1], [-3, -1, 0], [4, 4, 4], [2, 0, 0]])
    queries = np.array([[1.0, 1, 1], [0, 0, 0], [-4, -4, -4], [4, 4, 4]])
    near = np.tile(np.arange(5), (4, 1))
    expected = reconstruct(X, queries, near)
    scaled = reconstruct(np.ldexp(X, exponent), np.ldexp(queries, exponent), near)
    np.testing.assert_array_equal(scaled.weights, expected.weights)
    np.testing.assert_array_equal(scaled.residuals, np.ldexp(expected.residuals, exponent))


def test_differences_that_overflow():
    X = np.array([[1.7e308], [-1.7e308], [1e308]])
    weights, residuals = reconstruct(X, np.array([[-1.7e308]]), np.array([[0, 1, 2]]))
    assert weights.tolist() == [[0, 1, 0]]
    assert residuals.tolist() == [0]
    far = reconstruct(X, np.array([[-1.7e308]]), np.array([[0]]))
    assert far.residuals == np.inf


@pytest.mark.parametrize("kind", [np.float32, np.int16, np.uint8, bool])
def test_any_type_of_numbers(kind):
    rng = np.random.default_rng(0)
    X, queries = (rng.integers(0, 2, (n, 4)).astype(kind) for n in (20, 6))
    near = rng.permuted(np.tile(np.arange(20), (6, 1)), axis=1)[:, :7]
    expected = reconstruct(X.astype(float), queries.astype(float), near)
    for form in (np.asarray, sparse.csr_array):
        found = reconstruct(form(X), form(queries), near)
        np.testing.assert_array_equal(found.weights, expected.weights)


def test_no_queries_and_rows_of_zeros():
    X = sparse.csr_array((4, 3))
    weights, residuals = reconstruct(X, X[:2], np.array([[1, 2, 3], [0, 2, 3]]))
    np.testing.assert_allclose(weights, 1 / 3, rtol=1e-14)
    assert residuals.tolist() == [0, 0]
    for rows in (X, X.toarray()):
        none = reconstruct(rows, rows[:0], np.empty((0, 2), int))
        assert none.weights.shape == (0, 2)
