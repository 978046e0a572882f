import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from nearlabel.experiments.significance.mean_ranks import friedman, nemenyi

# Ranks in Table 6 of Demšar (JMLR 2006): four forms of C4.5 on 14 data sets.
DEMSAR = (
    (4, 3, 2, 1),
    (1, 2, 3, 4),
    (4, 1, 2, 3),
    (4, 1, 3, 2),
    (4, 2, 3, 1),
    (1, 2.5, 4, 2.5),
    (3, 2, 4, 1),
    (2.5, 2.5, 4, 1),
    (4, 3, 2, 1),
    (2.5, 2.5, 2.5, 2.5),
    (4, 2.5, 1, 2.5),
    (3, 2, 4, 1),
    (4, 1, 2, 3),
    (3, 1, 4, 2),
)
FORMS = ("C4.5", "m", "cf", "m+cf")

columns = st.integers(3, 6).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 4), min_size=k, max_size=k), min_size=2, max_size=12)
)


def test_demsars_example():
    found = friedman(DEMSAR, FORMS, loss=True)
    assert [round(rank, 3) for rank in found.mean_ranks] == [3.143, 2.0, 2.893, 1.964]
    # He prints 9.28 and 3.69, without correction for the ties: three pairs and one row of four.
    plain = found.chi_square * (1 - (3 * (2**3 - 2) + (4**3 - 4)) / (14 * 4 * 15))
    assert round(plain, 2) == 9.28
    assert round(13 * plain / (14 * 3 - plain), 2) == 3.69
    assert found.f == pytest.approx(13 * found.chi_square / (14 * 3 - found.chi_square))

    at_5, at_10 = (nemenyi(DEMSAR, FORMS, loss=True, level=level) for level in (0.05, 0.1))
    assert (round(at_5.critical_difference, 2), round(at_10.critical_difference, 2)) == (1.25, 1.12)
    assert at_5.groups == (("m+cf", "m", "cf", "C4.5"),)  # nothing is found at 5 %
    assert at_10.groups == (("m+cf", "m", "cf"), ("cf", "C4.5"))


@given(columns)
def test_friedman_equals_scipy(rows):
    values = np.array(rows) / 8
    names = [str(place) for place in range(values.shape[1])]
    found = friedman(values, names, loss=True)
    if np.all(values == values[:, :1]):
        assert (found.chi_square, found.p_value, found.f, found.f_p_value) == (0, 1, 0, 1)
        return
    statistic, p_value = stats.friedmanchisquare(*values.T)
    assert found.chi_square == pytest.approx(statistic, abs=1e-9)
    assert found.p_value == pytest.approx(p_value, abs=1e-9)


def test_rows_of_one_order():
    values = [[0.1, 0.2, 0.3], [0.2, 0.4, 0.6]]
    found = friedman(values, "abc", loss=True)
    assert found.chi_square == pytest.approx(4)
    assert (found.f, found.f_p_value) == (np.inf, 0)


@given(columns)
def test_nemenyi_equals_scikit_posthocs(rows):
    posthocs = pytest.importorskip("scikit_posthocs")
    values = np.array(rows) / 8
    names = [str(place) for place in range(values.shape[1])]
    found = nemenyi(values, names, loss=True)
    peer = posthocs.posthoc_nemenyi_friedman(values).to_numpy()
    np.testing.assert_allclose(found.p_values, peer, atol=1e-9)
    # The critical difference agrees with the p-values.
    apart = np.abs(np.subtract.outer(found.mean_ranks, found.mean_ranks))
    assert np.array_equal(apart >= found.critical_difference, np.array(found.p_values) <= 0.05)
    together = {pair for group in found.groups for a in group for b in group for pair in [(a, b)]}
    for a, row in zip(names, apart, strict=True):
        for b, difference in zip(names, row, strict=True):
            if a != b:
                assert ((a, b) in together) == (difference < found.critical_difference)


def test_equal_algorithms_are_one_group():
    found = nemenyi(np.ones((5, 3)), "abc", loss=True)
    assert found.mean_ranks == (2, 2, 2)
    assert found.groups == (("a", "b", "c"),)
    assert np.all(np.array(found.p_values) == 1)


def test_algorithms_that_all_differ_are_in_no_group():
    assert nemenyi(np.tile([0.1, 0.2, 0.3], (50, 1)), "abc", loss=True).groups == ()


@pytest.mark.parametrize("test", [friedman, nemenyi])
def test_impossible_tables(test):
    two = [[0.1, 0.2], [0.2, 0.3]]
    for values, names, message in (
        ([[0.1], [0.2]], "a", "algorithms.*1"),
        (two, "aa", "algorithms.*'a'"),
        (two[:1], "ab", "values.*1"),
        (two, "abc", r"values.*3.*\(2, 2\)"),
        ([[0.1, np.nan], [0.2, np.inf]], "ab", "values.*'b'.* 2 of 2"),
    ):
        with pytest.raises(ValueError, match=message):
            test(values, names, loss=True)
    with pytest.raises(TypeError, match="loss.*'yes'"):
        test(two, "ab", loss="yes")


@pytest.mark.parametrize("level", [0, 1])
def test_impossible_levels(level):
    with pytest.raises(ValueError, match=f"level.*{level}"):
        nemenyi([[0.1, 0.2], [0.2, 0.3]], "ab", loss=True, level=level)
