"""The compiled search of cuts: equal to its NumPy twin, and safe for any input."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import boosting_problems

from nearlabel.baselines import stumps
from nearlabel.baselines.stumps import SortedColumns, exact_weights
from nearlabel.common import engine

pytestmark = pytest.mark.kernels

CORE = pytest.importorskip("nearlabel._core", reason="the compiled core was not built")


def both(columns, weights, reached):
    """Losses and places of the compiled core, and of NumPy."""
    for core in (CORE, None):
        with mock.patch.object(engine, "core", return_value=core):
            yield stumps.best_cuts(columns, weights, reached)


@given(boosting_problems(), st.booleans(), st.sampled_from([0.0, 0.5, 0.9]), st.integers(0, 999))
def test_the_engines_choose_the_same(problem, is_sparse, zeros, seed):
    X, Y = problem
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(X.shape) < zeros, 0, X)
    columns = SortedColumns.of(sparse.csr_array(X) if is_sparse else X)
    weights = np.hstack([Y, 1 - Y]) * np.tile(rng.random(Y.shape) ** 9, 2)
    reached = rng.random(len(X)) < rng.choice([0.3, 1.0])
    weights[~reached] = 0
    weights = exact_weights(weights, float(Y.size))
    (losses, places), (twin_losses, twin_places) = both(columns, weights, reached)
    assert losses.tobytes() == twin_losses.tobytes()
    np.testing.assert_array_equal(places, twin_places)


@pytest.mark.parametrize("q", [1, 3, 4, 5, 9])
def test_labels_that_fill_blocks_and_do_not(q):
    rng = np.random.default_rng(q)
    X, Y = rng.normal(size=(200, 3)).round(1), rng.random((200, q)) < 0.3
    weights = exact_weights(np.hstack([Y, ~Y]) * rng.random((200, 2 * q)), 400.0 * q)
    (losses, places), (twin_losses, twin_places) = both(SortedColumns.of(X), weights, None)
    assert losses.tobytes() == twin_losses.tobytes()
    np.testing.assert_array_equal(places, twin_places)


def test_no_rows_and_no_labels():
    nothing = np.zeros(1, np.int32)
    losses, cuts = np.ones(1), np.ones(1, np.int64)
    for weights in (np.zeros((0, 4)), np.zeros((2, 0))):
        CORE.best_cuts(
            weights,
            np.ones(len(weights), np.uint8),
            nothing[:0],
            np.zeros(2, np.int64),
            np.zeros(1, np.int64),
            np.array([0, 1], np.int64),
            nothing,
            nothing,
            losses,
            cuts,
        )
        assert (losses[0], cuts[0]) == (0, 0)
