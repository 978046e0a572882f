"""The bounds hold in exact fractions; blocks of the core equal NumPy's."""

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from exact_bounds import block_of, climb, closest, exactly, packed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from strategies import examples

from nearlabel.search.exact import packed_bounds
from nearlabel.search.exact.packed_bounds import bounds_for
from nearlabel.search.exact.row_arithmetic import METRICS, core_rows

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("compiled_core")]

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


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
    with mock.patch.object(packed_bounds, "_better_dense", return_value=is_dense):
        ours = bounds_for(rows, metric)
    assert ours is not None
    base, base_errors = packed(ours, rows, metric)
    asked = queries if rows is X else sparse.csr_array(queries)
    asked, asked_errors = packed(ours, asked, metric)
    block = block_of(ours, asked, base)
    for i, a in enumerate(queries):
        for j, b in enumerate(X):
            distance = exactly(metric, a, b) * Fraction(ours.scale)
            lower = Fraction(float(block[i, j]))
            error = Fraction(float(asked_errors[i])) + Fraction(float(base_errors[j]))
            assert lower <= distance <= lower + error


@examples(30)
@given(
    seed=st.integers(0, 2**32),
    metric=st.sampled_from(["euclidean", "cosine", "manhattan"]),
    width=st.sampled_from([1, 2, 7, 33, 130]),
    scale=st.sampled_from([1.0, 1e-137, 1e-30, 1e100]),
    offset=st.sampled_from([0.0, 1.0, 1e7]),
)
def test_hill_climbing_finds_no_bound_that_fails(seed, metric, width, scale, offset):
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(4, width)) + offset) * scale
    steps = 400 // width + 10
    share, queries, base = climb(
        lambda base: bounds_for(base, metric), rows[:2], rows[2:], metric, rng, steps
    )
    assert 0 <= share < 1
    assert share == closest(bounds_for(base, metric), queries, base, metric)


@given(
    data=st.data(),
    X=hnp.arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 30)), elements=numbers),
    metric=st.sampled_from(["euclidean", "manhattan"]),
)
def test_bounds_from_another_center_hold_without_the_errors_of_queries(data, X, metric):
    far = data.draw(st.sampled_from([0.0, 1e4, 1e9]))
    bounds = bounds_for(np.vstack([X, X + far]), metric)
    moved = bounds.centered_at(np.array([X[0] + 1, X.mean(axis=0)]))
    queries = np.vstack([X[:2], X[:2] + far])
    base, errors = packed(moved, X, metric, 1)
    block = block_of(moved, packed(moved, queries, metric, 1)[0], base)
    for i, a in enumerate(queries):
        for j, b in enumerate(X):
            distance = exactly(metric, a, b) * Fraction(moved.scale)
            lower = Fraction(float(block[i, j]))
            upper = (lower + Fraction(float(errors[j]))) * (1 + Fraction(moved.relative))
            assert lower <= distance <= upper


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_only_bounds_of_far_clusters_are_loose(metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 8))
    far = X + 1e6 * rng.normal(size=(4, 8))[np.arange(1200) % 4]
    assert not bounds_for(X, metric).are_vague(core_rows(X, metric))
    assert bounds_for(far, metric).are_vague(core_rows(far, metric))


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
    mine, theirs = np.arange(len(A), dtype=np.float32), -np.arange(len(B), dtype=np.float32)
    queries = np.column_stack([A, np.ones_like(mine), mine])
    base = np.column_stack([B, theirs, np.ones_like(theirs)])
    CORE.manhattan_block(queries, base, block)
    expected = np.abs(A[:, None] - B).sum(axis=2) + mine[:, None] + theirs
    np.testing.assert_array_equal(block, expected)

    def parts(rows):
        csr = sparse.csr_array(rows)
        return csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data

    CORE.Postings(*parts(B), theirs, 7, -2.0).block(*parts(A), mine, block)
    expected = -2 * A @ B.T + mine[:, None] + theirs
    np.testing.assert_array_equal(block, expected)
    CORE.Postings(*parts(B), theirs, 7, -2.0, 99.0).block(*parts(A), mine, block)
    shared = (A != 0).astype(int) @ (B != 0).T > 0
    np.testing.assert_array_equal(block, np.where(shared, expected, 99))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_packed_rows_equal_numpy(form, metric):
    """The kernel centers, scales and measures as the formulas at the head of the file say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 11)) * (rng.random((40, 11)) < 0.7)
    X[3] = 0
    chosen = np.array([7, 3, 39, 7], np.int32)
    center, unit, slack, tiny, margins = rng.normal(size=11), 0.25, 1e-3, 1e-9, 2.0
    factors, errors = np.empty((4, 13), np.float32), np.empty(4, np.float32)
    rows = core_rows(form(X), metric)
    rows.pack(chosen, center, unit, slack, tiny, margins, factors, errors)
    points = X[chosen]
    if metric == "cosine":
        lengths = np.sqrt((points**2).sum(axis=1, keepdims=True))
        points = np.divide(points, lengths, where=lengths > 0, out=np.zeros_like(points))
    scaled = (points - center) * unit
    sizes = np.abs(scaled).sum(axis=1) if metric == "manhattan" else (scaled**2).sum(axis=1)
    if metric == "cosine":
        sizes = (sizes + np.array([0, 1, 0, 0])) / 2
    margin = slack * sizes + tiny
    np.testing.assert_allclose(factors[:, :11], scaled, rtol=1e-6, atol=1e-12)
    offsets = (0 if metric == "manhattan" else sizes) - margin
    np.testing.assert_allclose(factors[:, 11], offsets, rtol=1e-6)
    assert (factors[:, 12] == 1).all()
    np.testing.assert_allclose(errors, margins * margin, rtol=1e-6)


def test_rows_whose_products_might_overflow_are_packed_as_zeros():
    X = np.array([[1.0, 2.0], [1e40, 0.0], [1e300, 1e300]])
    for form in (X, sparse.csr_array(X)):
        with mock.patch.object(packed_bounds, "_better_dense", return_value=False):
            bounds = bounds_for(form[:1], "euclidean")
        factors, errors = packed(bounds, form, "euclidean")
        np.testing.assert_array_equal(np.isinf(errors), [False, True, True])
        if form is X:
            np.testing.assert_array_equal(factors[1:], [[0, 0, 0, 1]] * 2)


def test_invalid_input_is_not_packed():
    rows = core_rows(np.ones((3, 2)), "euclidean")
    options = {
        "chosen": np.zeros(1, np.int32),
        "center": np.zeros(2),
        "factors": np.empty((1, 4), np.float32),
        "errors": np.empty(1, np.float32),
    }
    numbers = {"unit": 1.0, "slack": 0.1, "tiny": 0.0, "margins": 2.0}
    for changes, message in (
        ({"chosen": np.array([3], np.int32)}, "chosen"),
        ({"chosen": np.array([-1], np.int32)}, "chosen"),
        ({"center": np.zeros(3)}, "center"),
        ({"factors": np.empty((1, 3), np.float32)}, "factors.*errors"),
        ({"factors": np.empty((2, 4), np.float32)}, "factors.*errors"),
        ({"errors": np.empty(2, np.float32)}, "factors.*errors"),
    ):
        with pytest.raises(ValueError, match=message):
            rows.pack(**{**options, **changes}, **numbers)
