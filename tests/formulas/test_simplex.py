from contextlib import suppress
from unittest import mock

import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import examples, vectors

from nearlabel.common import engine
from nearlabel.formulas.simplex import RIDGE, simplex_weights

pytestmark = [pytest.mark.kernels, pytest.mark.engines]

WORKED = np.array([[1.6, -1.84, 2.8], [-1.84, 3.88, -3.64], [2.8, -3.64, 5]])


@st.composite
def gram_matrices(draw, most=7):
    """Gram matrices of few rows: often singular, with equal rows and rows of zeros."""
    rows = draw(vectors(rows=st.integers(1, most), features=st.integers(1, 4)))
    rows = rows - draw(st.sampled_from([0.0, 0.3])) - rows[draw(st.integers(0, len(rows) - 1))]
    scale = draw(st.sampled_from([1e-150, 1e-3, 1.0, 1e140]))
    rows = rows * scale
    return rows @ rows.T


def ridged(gram):
    return gram + RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))


def test_the_ridge_does_not_reach_the_printed_digits():
    # Without it, on the support of rows 2 and 4: w_1 = (G_22 - G_12) / (G_11 + G_22 - 2 G_12).
    exact = (3.88 + 1.84) / (1.6 + 3.88 + 2 * 1.84)
    (w,) = simplex_weights(WORKED[None])
    assert abs(w[0] - exact) < 1e-8


@examples(200)
@given(gram_matrices())
def test_equals_exact_fractions(gram):
    (w,) = simplex_weights(gram[None])
    expected = oracles.simplex_weights(gram.tolist())
    np.testing.assert_allclose(w, np.array(expected, float), rtol=0, atol=1e-12)


@given(
    rows=vectors(rows=st.integers(1, 40), features=st.integers(1, 30)),
    shift=st.sampled_from([0.0, 0.1, 1.0]),
)
def test_conditions_of_the_minimum(rows, shift):
    rows = rows - rows.mean(axis=0) - shift
    gram = rows @ rows.T
    (w,) = simplex_weights(gram[None])
    assert (w >= 0).all()
    assert abs(w.sum() - 1) <= 1e-14
    Hw = (ridged(gram) if gram.diagonal().min() > 0 else gram) @ w
    least = w @ Hw
    noise = 1e-14 * np.trace(gram)
    assert (Hw >= least - noise).all()
    assert (np.abs(Hw - least)[w > 0] <= noise).all()


@given(st.lists(gram_matrices(), min_size=1, max_size=3))
def test_both_engines_and_any_batch_agree(grams):
    k = min(len(gram) for gram in grams)
    batch = np.array([gram[:k, :k] for gram in grams])
    ours = simplex_weights(batch)
    with mock.patch.object(engine, "core", return_value=None):
        twin = simplex_weights(batch)
    np.testing.assert_allclose(ours, twin, rtol=1e-12, atol=1e-13)
    for gram, w in zip(batch, ours, strict=True):
        np.testing.assert_array_equal(simplex_weights(gram[None])[0], w)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 100])
def test_no_difference_between_corners(k):
    # All corners at the origin; all at another point.
    for gram in (np.zeros((1, k, k)), np.full((1, k, k), 2.5)):
        np.testing.assert_allclose(simplex_weights(gram)[0], 1 / k, rtol=1e-14)


def test_a_corner_at_the_origin_gets_all_and_equal_ones_share():
    rows = np.array([[3.0, 1], [0, 0], [1, 2], [0, 0], [-1, -1]])
    # Departs from the ridge, which would spread the weight over the others, too: the origin is
    # within their triangle.
    assert simplex_weights((rows @ rows.T)[None]).tolist() == [[0, 0.5, 0, 0.5, 0]]


def test_equal_corners_share_evenly():
    twice = np.repeat(np.array([[1.0, 1], [1, -2], [5, 5]]), 2, axis=0)
    (w,) = simplex_weights((twice @ twice.T)[None])
    np.testing.assert_allclose(w[::2], w[1::2], rtol=1e-13)
    np.testing.assert_allclose(w, np.array([2, 2, 1, 1, 0, 0]) / 6, atol=1e-7)


@given(gram=gram_matrices(), data=st.data())
def test_the_order_of_corners_does_not_matter(gram, data):
    order = data.draw(st.permutations(range(len(gram))))
    moved = simplex_weights(gram[np.ix_(order, order)][None])[0]
    np.testing.assert_allclose(moved, simplex_weights(gram[None])[0][order], rtol=0, atol=1e-13)


@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**-500, 2.0, 2.0**1000])
def test_any_scale(factor):
    rows = np.random.default_rng(0).normal(size=(8, 3))
    gram = (rows @ rows.T)[None]
    np.testing.assert_array_equal(simplex_weights(gram * factor), simplex_weights(gram))


@given(rows=vectors(rows=st.integers(2, 30), features=st.integers(1, 10)))
def test_few_steps_still_give_weights(rows):
    rows = rows - rows.mean(axis=0)
    gram = rows @ rows.T
    H = ridged(gram)
    nearest = H.diagonal().min()
    assume(gram.diagonal().min() > 0)
    for steps in (1, 2, 3, 5, 8):
        for core in {engine.core(), None}:
            with mock.patch.object(engine, "core", return_value=core):
                (w,) = simplex_weights(gram[None], steps=steps)
            assert (w >= 0).all()
            assert abs(w.sum() - 1) <= 1e-14
            assert w @ H @ w <= nearest * (1 + 1e-12) + 1e-14 * np.trace(gram)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_numbers_are_refused(bad):
    gram = WORKED[None].copy()
    gram[0, 1, 1] = bad
    with pytest.raises(ValueError, match="gram.*finite"):
        simplex_weights(gram)


class TestKernel:
    """The kernel checks its input."""

    @staticmethod
    def arguments(**changed):
        usual = {
            "gram": WORKED[None],
            "scale": np.ones(1),
            "ridge": np.full(1, 1e-8),
            "steps": 40,
            "weights": np.empty((1, 3)),
        }
        return {**usual, **changed}

    @pytest.mark.parametrize(
        "changed",
        [
            {"gram": np.ones((1, 3, 2))},
            {"gram": np.ones((2, 3, 3))},
            {"scale": np.ones(2)},
            {"ridge": np.ones(0)},
            {"weights": np.empty((1, 2))},
            {"weights": np.empty((2, 3))},
        ],
    )
    def test_sizes(self, core, changed):
        with pytest.raises(ValueError, match="problems.*corners"):
            core.simplex_weights(**self.arguments(**changed))

    def test_nothing_to_do(self, core):
        core.simplex_weights(np.empty((0, 3, 3)), np.ones(0), np.ones(0), 1, np.empty((0, 3)))
        with pytest.raises(ValueError, match="corner.*step"):
            core.simplex_weights(np.empty((1, 0, 0)), np.ones(1), np.ones(1), 1, np.empty((1, 0)))
        with pytest.raises(ValueError, match="corner.*step"):
            core.simplex_weights(**self.arguments(steps=0))

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1e300, 1e300])
    @pytest.mark.parametrize("place", [(0, 0, 0), (0, 0, 1), (0, 2, 1)])
    def test_invalid_matrices_do_not_loop_forever(self, core, bad, place):
        gram = WORKED[None].copy()
        gram[place] = bad
        weights = np.zeros((1, 3))
        with suppress(ValueError):  # or it still finds weights
            core.simplex_weights(**self.arguments(gram=gram, weights=weights))
        assert np.isfinite(weights).all()

    def test_types(self, core):
        with pytest.raises(TypeError):
            core.simplex_weights(**self.arguments(gram=WORKED[None].astype(np.float32)))
