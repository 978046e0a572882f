"""What counts as equal, near and off."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearlabel.experiments.papers.verdicts import verdict


@pytest.mark.parametrize(
    ("ours", "printed", "std", "said"),
    [
        (0.195, "0.195", None, "digits"),
        (0.1945, "0.195", None, "digits"),  # a half goes up
        (0.19449999, "0.195", None, "close"),
        (0.1955, "0.195", None, "close"),
        (51 / 202, "0.253", None, "close"),  # 0.25248: the paper rounded twice
        (0.205, "0.195", "0.010", "within std"),  # exactly one standard deviation
        (0.2050001, "0.195", "0.010", "off"),
        (0.200, "0.195", None, "close"),
        (0.2000001, "0.195", None, "off"),
        (0.190, "0.195", None, "close"),
        (0.1899999, "0.195", None, "off"),
        (0.0612, "0.0612", None, "digits"),
        (0.06125, "0.0612", None, "close"),
        (0.0, "0.000", None, "digits"),
        (0.0006, "0.000", "0.000", "off"),  # a standard deviation of zero counts, too
    ],
)
def test_edges(ours, printed, std, said):
    assert verdict(ours, printed, std) == said


@pytest.mark.parametrize(
    ("ours", "counts_labels", "said"),
    [(6.352, True, "close"), (6.3521, True, "off"), (6.310, False, "off")],
)
def test_coverage_that_counts_labels_has_another_measure(ours, counts_labels, said):
    assert verdict(ours, "6.302", counts_labels=counts_labels) == said


def test_noise_of_floats_does_not_decide():
    """A mean of folds that is 0.1945 except for rounding errors is still rounded up."""
    assert verdict(0.1945 - 2e-17 * 3, "0.195") == "digits"
    assert verdict(sum([0.1] * 3) - 0.1055, "0.195") == "digits"
    assert verdict(0.195 + 0.005 + 1e-16, "0.195") == "close"


@given(st.integers(0, 99_999), st.sampled_from([3, 4]), st.integers(-20_000, 20_000))
def test_against_exact_fractions(number, decimals, shift):
    """For any printed number and any result near it, by fractions."""
    published = Fraction(number, 10**decimals)
    ours = published + Fraction(shift, 10**6)
    printed = f"{float(published):.{decimals}f}"
    half = Fraction(1, 2 * 10**decimals)
    if -half <= ours - published < half:
        said = "digits"
    else:
        said = "close" if abs(ours - published) <= Fraction(5, 1000) else "off"
    if ours >= 0:
        assert verdict(float(ours), printed) == said
