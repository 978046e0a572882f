import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.baselines.ranking_solver import RankingPairs, balanced_alphas


@st.composite
def points(draw):
    """Pairs of labels and two points within their box."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, q = draw(st.integers(1, 9)), draw(st.integers(2, 6))
    carried = rng.random((n, q)) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    pairs = RankingPairs.of(carried, rng.random(n) * draw(st.sampled_from([1e-6, 1.0, 1e6])))
    share = rng.random((2, len(pairs.row)))
    return pairs, np.clip(share * 1.5 - 0.25, 0, 1) * pairs.bound


@given(points())
def test_the_projection_is_feasible_and_the_nearest_such_point(problem):
    pairs, (alpha, other) = problem
    found, feasible = balanced_alphas(pairs, alpha), balanced_alphas(pairs, other)
    size = max(alpha.sum(), 1e-300)
    assert ((found >= 0) & (found <= pairs.bound)).all()
    assert abs(pairs.beta(found).sum(axis=0)).max(initial=0) <= 1e-10 * size
    # Of a convex set: no feasible point is on the far side of the nearest one.
    bound = pairs.bound.max(initial=0) * size
    assert (alpha - found) @ (feasible - found) <= 1e-9 * bound
    np.testing.assert_allclose(
        balanced_alphas(pairs, found), found, rtol=0, atol=1e-9 * pairs.bound.max(initial=1e-300)
    )


def test_pairs_that_cannot_be_balanced_are_zero():
    """A label that each of three rows carries, and one that none does."""
    pairs = RankingPairs.of(np.array([[True, False]] * 3), np.ones(3))
    np.testing.assert_allclose(balanced_alphas(pairs, np.array([0.2, 1.0, 0.0])), 0, atol=1e-12)


def test_a_worked_projection():
    """0 over 1 in a row, 1 over 0 in two: 0.9 - s = (0.1 + s) + (0.2 + s) for s = 0.2."""
    pairs = RankingPairs.of(np.array([[1, 0], [0, 1], [0, 1]], bool), np.ones(3))
    found = balanced_alphas(pairs, np.array([0.9, 0.1, 0.2]))
    np.testing.assert_allclose(found, [0.7, 0.3, 0.4], atol=1e-12)
