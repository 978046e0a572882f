from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from nearlabel.experiments.significance import paired_t, wilcoxon


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=20))
def test_paired_t_equals_scipy(pairs):
    a, b = np.array(pairs).T / 64
    found = paired_t(a, b, loss=False)
    assert found.gain == pytest.approx(np.mean(a - b), abs=1e-12)
    assert (found.wins, found.ties, found.losses) == (sum(a > b), sum(a == b), sum(a < b))
    if np.ptp(a - b) == 0:
        assert found.statistic is None
        assert found.p_value is None
        return
    t, p_value = stats.ttest_rel(a, b)
    assert found.statistic == pytest.approx(t, rel=1e-9, abs=1e-9)
    assert found.p_value == pytest.approx(p_value, rel=1e-9)
    reverse = paired_t(a, b, loss=True)
    assert (reverse.gain, reverse.wins) == (-found.gain, found.losses)


def test_wilcoxon_exact():
    """A sum of ranks 1 of 1 + ... + 6 is reached or undercut in 2 of 64 ways, on either side."""
    second = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    first = second + np.array([0.06, 0.05, 0.04, 0.03, 0.02, -0.01])
    found = wilcoxon(first, second, loss=False)
    assert (found.statistic, found.p_value) == (1, 4 / 64)
    assert (found.wins, found.ties, found.losses) == (5, 0, 1)
    assert found.gain == pytest.approx(0.035)
    assert wilcoxon(first, second, loss=True).gain == pytest.approx(-0.035)


def test_wilcoxon_shares_zeros_between_the_sides():
    gains = np.array([0, 0, 1, 2, 3, 4, -5, 6, 7, 8])
    found = wilcoxon(gains, np.zeros(10), loss=False)
    # Two zeros have rank 1.5 each, so that each side gets half of 3; rank 7 is lost.
    assert found.statistic == 1.5 + 7
    assert (found.wins, found.ties, found.losses) == (7, 2, 1)
    expected = stats.wilcoxon(gains, zero_method="zsplit", method="approx")
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)


def test_wilcoxon_sees_ties_through_rounding():
    """0.9 - 0.7 and 0.8 - 0.6 are one difference, and tied ranks ask for the normal form."""
    first, second = [0.9, 0.8, 0.5, 0.95], [0.7, 0.6, 0.6, 0.5]
    expected = stats.wilcoxon([2, 2, -1, 4.5], zero_method="zsplit", method="approx")
    assert wilcoxon(first, second, loss=False).p_value == pytest.approx(expected.pvalue, rel=1e-12)


def test_wilcoxon_without_any_difference():
    found = wilcoxon([0.1, 0.2], [0.1, 0.2], loss=True)
    assert (found.statistic, found.p_value, found.gain, found.ties) == (None, 1, 0, 2)


@pytest.mark.parametrize("test", [paired_t, wilcoxon])
def test_columns_that_cannot_be(test):
    for first, second, message in (
        ([0.1], [0.2], "values must have two rows or more; got 1"),
        ([0.1, 0.2], [0.2, 0.3, 0.4], r"columns of one length; got shapes \(2,\) and \(3,\)"),
        ([[0.1], [0.2]], [[0.1], [0.2]], r"columns of one length; got shapes \(2, 1\)"),
        ([0.1, np.nan], [0.2, 0.3], "'first' has no number in 1 of 2 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            test(first, second, loss=True)
    with pytest.raises(TypeError, match="loss must be True or False; got 'yes'"):
        test([0.1, 0.2], [0.2, 0.2], loss="yes")
