"""Reliability and the calibration error against a literal version, and scikit-learn's curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from sklearn.calibration import calibration_curve

import nearlabel as nl


def literal(Y, probabilities, bins):
    """The pairs of each bin, one by one: (probability, whether it is right)."""
    members = [[] for _ in range(bins)]
    for told, is_right in zip(probabilities.ravel(), Y.ravel(), strict=True):
        place = max(b for b in range(bins) if b / bins <= told)
        members[place].append((told, is_right))
    return members


@st.composite
def told_labels(draw):
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 4)))
    tenths = st.integers(0, 20).map(lambda t: t / 20)  # with the borders of bins
    numbers = st.one_of(tenths, st.floats(0, 1))
    told = draw(arrays.arrays(float, shape, elements=numbers))
    Y = draw(arrays.arrays(np.int8, shape, elements=st.integers(0, 1)))
    return Y, told, draw(st.integers(1, 12))


@given(told_labels(), st.booleans())
def test_both_equal_the_literal_version(problem, is_sparse):
    Y, told, bins = problem
    truth = sparse.csr_array(Y) if is_sparse else Y
    found, members = nl.metrics.reliability(truth, told, bins=bins), literal(Y, told, bins)
    assert found.pairs.tolist() == [len(some) for some in members]
    means = [np.mean(some, axis=0) if some else (np.nan, np.nan) for some in members]
    np.testing.assert_allclose(np.c_[found.probability, found.share], means, atol=1e-12)
    error = sum(len(some) * abs(np.subtract(*np.mean(some, axis=0))) for some in members if some)
    got = nl.metrics.calibration_error(truth, told, bins=bins)
    assert got == pytest.approx(error / Y.size, abs=1e-12)


def test_the_curve_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    told = random.random((50, 4))
    Y = (random.random(told.shape) < told**2).astype(int)
    share, mean = calibration_curve(Y.ravel(), told.ravel(), n_bins=7)
    found = nl.metrics.reliability(Y, told, bins=7)
    np.testing.assert_allclose(found.share, share)
    np.testing.assert_allclose(found.probability, mean)


def test_a_worked_example():
    """Two pairs at .8, one of them correct, and two at .1, none correct."""
    Y, told = [[1, 0], [0, 0]], [[0.8, 0.1], [0.8, 0.1]]
    assert nl.metrics.calibration_error(Y, told) == pytest.approx((0.3 + 0.1) / 2)
    assert nl.metrics.calibration_error(Y, told, bins=1) == pytest.approx(0.45 - 0.25)
    assert nl.metrics.calibration_error(Y, np.full((2, 2), 0.25)) == 0  # what is frequent is right


@pytest.mark.parametrize(
    ("Y", "probabilities", "more", "message"),
    [
        ([[1, 0]], [[0.5]], {}, r"Y and probabilities .*shape.*\(1, 2\) and \(1, 1\)"),
        ([[1, 0]], [[0.5, 1.5]], {}, "probabilities .*from 0 to 1; got 1.5"),
        ([[1, 0]], [[-0.5, 0.5]], {}, "probabilities .*from 0 to 1; got -0.5"),
        ([[1, 0]], [[0.5, np.nan]], {}, "probabilities .*from 0 to 1; got nan"),
        ([[2, 0]], [[0.5, 0.5]], {}, "Y .*2"),
        ([[1, 0]], [[0.5, 0.5]], {"bins": 0}, "bins.*1.*0"),
    ],
)
def test_bad_input(Y, probabilities, more, message):
    for metric in (nl.metrics.reliability, nl.metrics.calibration_error):
        with pytest.raises(ValueError, match=message):
            metric(Y, probabilities, **more)
