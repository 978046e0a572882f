"""Calibration compared with scikit-learn's isotonic regression, and invariants of a map."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.isotonic import IsotonicRegression

from nearlabel.labels.calibration import Calibration, calibration
from nearlabel.labels.scores import LabelScores


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(1, 4), st.booleans())
def test_shares_are_those_of_scikit_learn(seed, n, q, is_sparse):
    random = np.random.default_rng(seed)
    dense = random.integers(-3, 8, (n, q)) / 4
    Y = random.integers(0, 2, (n, q))
    scores = LabelScores.from_dense(dense)
    if is_sparse:  # some labels by their default
        default = dense[0]
        scores = LabelScores(sparse.csr_array(dense * (dense != default)), default)
        dense = scores.toarray()
    found = calibration(scores, sparse.csr_array(Y))
    assert (np.diff(found.scores) > 0).all()
    assert (np.diff(found.chances) >= 0).all()
    assert ((found.chances > 0) & (found.chances < 1)).all()
    peer = IsotonicRegression().fit(dense.ravel(), Y.ravel())
    levels = peer.predict(dense.ravel())
    groups = [np.flatnonzero(np.isclose(levels, level)) for level in np.unique(levels.round(12))]
    assert len(found.scores) == len(groups)
    middle = [dense.ravel()[group].mean() for group in groups]
    share = [(Y.ravel()[group].sum() + 0.5) / (len(group) + 1) for group in groups]
    np.testing.assert_allclose(found.scores, middle, atol=1e-12)
    np.testing.assert_allclose(found.chances, np.maximum.accumulate(share), atol=1e-12)


def test_between_and_beyond_the_knots():
    known = Calibration(np.array([0.0, 1.0]), np.array([0.2, 0.6]))
    np.testing.assert_allclose(
        known.of(np.array([[-5.0, 0.5], [1.0, 9.0]])), [[0.2, 0.4], [0.6, 0.6]]
    )


def test_knots_that_are_close_together():
    """As for labels that no neighbor carries, with scores just below 0."""
    known = Calibration(np.array([-3e-320, -1e-320, 0.0, 2.0]), np.array([0.1, 0.2, 0.3, 0.5]))
    found = known.of(np.array([-1.0, -2e-320, -1e-320, 0.0, 1.0, 3.0]))
    np.testing.assert_allclose(found, [0.1, 0.15, 0.2, 0.3, 0.4, 0.5], atol=1e-3)


def test_many_knots_are_thinned_out():
    n = 200_000
    random = np.random.default_rng(0)
    truth = np.linspace(0, 1, n)
    Y = sparse.csr_array((random.random(n) < truth).astype(np.int8)[:, None])
    found = calibration(LabelScores.from_dense((truth**3)[:, None]), Y)
    assert len(found.scores) <= 256
    assert found.of(truth**3) == pytest.approx(truth, abs=0.03)
