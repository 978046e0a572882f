"""The bounds hold in whole fractions; blocks of the core equal NumPy's."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from nearlabel.search.exact import choice_of_bounds
from nearlabel.search.exact.choice_of_bounds import are_vague, products_for
from nearlabel.search.exact.sparse_bounds import SparseFactors

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


def exactly(metric, a, b):
    """The distance of two rows in whole fractions, squared for euclidean."""
    differences = [Fraction(x) - Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    if metric == "manhattan":
        return sum(map(abs, differences))
    return sum(difference * difference for difference in differences)


numbers = st.one_of(
    st.floats(-1e6, 1e6), st.floats(-1e-20, 1e-20), st.integers(-3, 3).map(float)
).filter(lambda value: value == 0 or abs(value) > 1e-130)  # smaller rows are left to NumPy


@given(
    data=st.data(),
    X=hnp.arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 30)), elements=numbers),
    metric=st.sampled_from(["euclidean", "manhattan"]),
    is_dense=st.booleans(),
)
def test_bounds_hold(data, X, metric, is_dense):
    X = X + data.draw(st.sampled_from([0.0, 1e7]))
    queries = X * data.draw(st.sampled_from([1.0, -1e3, 1e9]))
    rows = X if is_dense or metric == "manhattan" else sparse.csr_array(X)
    with mock.patch.object(choice_of_bounds, "_better_dense", return_value=is_dense):
        ours = products_for(rows, metric)
    assert ours is not None
    base = ours.pack(rows)
    asked = ours.pack(queries if rows is X else sparse.csr_array(queries))
    block = np.empty((len(X), len(X)), np.float32)
    ours.fill(block, ours.pack_queries(asked), base)
    for i, a in enumerate(queries):
        for j, b in enumerate(X):
            distance = exactly(metric, a, b) * Fraction(ours.scale)
            lower = Fraction(float(block[i, j]))
            error = Fraction(float(asked.errors[i])) + Fraction(float(base.errors[j]))
            assert lower <= distance <= lower + error


@given(
    data=st.data(),
    X=hnp.arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 30)), elements=numbers),
    metric=st.sampled_from(["euclidean", "manhattan"]),
)
def test_bounds_from_another_center_hold_without_the_errors_of_queries(data, X, metric):
    far = data.draw(st.sampled_from([0.0, 1e4, 1e9]))
    moved = products_for(np.vstack([X, X + far]), metric).centered_at(X.mean(axis=0))
    base, queries = moved.pack(X), np.vstack([X[:2], X[:2] + far])
    block = np.empty((len(queries), len(X)), np.float32)
    moved.fill(block, moved.pack_queries(moved.pack_points(queries)), base)
    for i, a in enumerate(queries):
        for j, b in enumerate(X):
            distance = exactly(metric, a, b) * Fraction(moved.scale)
            lower = Fraction(float(block[i, j]))
            upper = (lower + Fraction(float(base.errors[j]))) * (1 + Fraction(moved.relative))
            assert lower <= distance <= upper


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_only_bounds_of_far_clusters_are_vague(metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 8))
    far = X + 1e6 * rng.normal(size=(4, 8))[np.arange(1200) % 4]
    assert not are_vague(products_for(X, metric), X)
    assert are_vague(products_for(far, metric), far)


@given(
    A=hnp.arrays(
        np.float32,
        (st.integers(1, 9)).flatmap(lambda n: st.tuples(st.just(n), st.just(7))),
        elements=st.integers(-9, 9),
    ),
    B=hnp.arrays(
        np.float32,
        (st.integers(1, 40)).flatmap(lambda n: st.tuples(st.just(n), st.just(7))),
        elements=st.integers(-9, 9),
    ),
)
def test_blocks_of_the_core_equal_numpy(A, B):
    block = np.empty((len(A), len(B)), np.float32)
    query_offsets, base_offsets = np.arange(len(A)), -np.arange(len(B))
    more = [part.astype(np.float32) for part in (query_offsets, base_offsets)]
    CORE.manhattan_block(A, B, *more, block)
    expected = np.abs(A[:, None] - B).sum(axis=2) + query_offsets[:, None] + base_offsets
    np.testing.assert_array_equal(block, expected)
    a, b = (SparseFactors(sparse.csr_array(rows)) for rows in (A, B))
    b.postings.block(*a.parts, -2.0, *more, block)
    expected = -2 * A @ B.T + query_offsets[:, None] + base_offsets
    np.testing.assert_array_equal(block, expected)
