from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from nearlabel.experiments.significance.pairs import paired_t, wilcoxon


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
    assert found.side == -reverse.side == np.sign(t)


@given(st.sets(st.integers(1, 60), min_size=2, max_size=30), st.randoms())
def test_wilcoxon_equals_scipy_without_ties(sizes, random):
    gains = np.array([random.choice((-1, 1)) * size for size in sorted(sizes)]) / 64
    found = wilcoxon(gains, np.zeros(len(gains)), loss=False)
    expected = stats.wilcoxon(gains, method="exact")
    assert found.statistic == expected.statistic
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=8))
def test_wilcoxon_with_ties_and_zeros_counts_all_signs(numbers):
    gains = np.array(numbers)
    if not gains.any():
        return
    found = wilcoxon(gains / 8, np.zeros(len(gains)), loss=False)
    ranks = stats.rankdata(np.abs(gains))
    zeros = ranks[gains == 0].sum() / 2
    signs = np.array(list(product((0, 1), repeat=np.count_nonzero(gains))))
    sums = signs @ ranks[gains != 0]
    smaller = min(ranks[gains > 0].sum(), ranks[gains < 0].sum())
    assert found.statistic == smaller + zeros
    assert found.p_value == pytest.approx(min(1, 2 * np.mean(sums <= smaller)))


def test_wilcoxon_of_many_rows_is_normal():
    gains = np.random.default_rng(0).choice([-3, -2, -1, 1, 2, 3, 4], 300)
    found = wilcoxon(gains, np.zeros(300), loss=False)
    expected = stats.wilcoxon(gains, method="approx")
    assert found.statistic == expected.statistic
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    # At the boundary between the two forms, they agree.
    exact, normal = (
        wilcoxon(gains[:200], np.zeros(200), loss=False).p_value,
        stats.wilcoxon(gains[:200], method="approx").pvalue,
    )
    assert exact != normal
    assert exact == pytest.approx(normal, abs=1e-3)


def test_wilcoxon_detects_ties_despite_rounding():
    """0.3 - 0.1 and 0.4 - 0.2 are one difference, and share a rank."""
    first, second = [0.1, 0.4, 0.5, 0.9], [0.3, 0.2, 0.1, 0.4]
    assert second[0] - first[0] != first[1] - second[1]
    found = wilcoxon(first, second, loss=False)
    # The ranks 1.5, 1.5, 3 and 4 have three sums up to 1.5: of none, and of either tie.
    assert (found.statistic, found.p_value) == (1.5, 2 * 3 / 16)


def test_the_side_is_that_of_the_ranks_and_not_of_the_most_rows():
    """Three small wins weigh less than two great losses, ranks 1 + 2 + 3 against 4 + 5."""
    found = wilcoxon([1, 2, 3, -8, -9], np.zeros(5), loss=False)
    assert (found.wins, found.losses, found.side) == (3, 2, -1)
    assert not found.is_better()


def test_better():
    small = wilcoxon([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1, 1.2, 1.4, 1.6, 1.8, 2], loss=True)
    assert small.p_value == 2 / 64
    assert small.is_better()
    assert not small.is_better(0.03)
    assert not wilcoxon([1, 1.2, 1.4, 1.6, 1.8, 2], [0.1] * 6, loss=True).is_better()


def test_wilcoxon_without_any_difference():
    found = wilcoxon([0.1, 0.2], [0.1, 0.2], loss=True)
    assert (found.statistic, found.p_value, found.gain, found.ties) == (None, 1, 0, 2)


@pytest.mark.parametrize("test", [paired_t, wilcoxon])
def test_impossible_columns(test):
    for first, second, message in (
        ([0.1], [0.2], "values.*1"),
        ([0.1, 0.2], [0.2, 0.3, 0.4], r"first.*second.*\(2,\).*\(3,\)"),
        ([[0.1], [0.2]], [[0.1], [0.2]], r"first.*second.*\(2, 1\)"),
        ([0.1, np.nan], [0.2, 0.3], "'first'.* 1 of 2"),
    ):
        with pytest.raises(ValueError, match=message):
            test(first, second, loss=True)
    with pytest.raises(TypeError, match="loss.*'yes'"):
        test([0.1, 0.2], [0.2, 0.2], loss="yes")
