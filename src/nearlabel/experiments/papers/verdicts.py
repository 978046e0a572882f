"""How near a result comes to a published number."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

Verdict = Literal["digits", "within std", "off", "not run"]
VERDICTS: tuple[Verdict, ...] = ("digits", "within std", "off", "not run")

# What counts as near where a paper prints no standard deviation.
_NEAR = Decimal("0.005")
_NEAR_COVERAGE = Decimal("0.05")
# Sums of floats differ in the 16th digit: without these last ones, equal numbers are equal.
_DIGITS_OF_A_FLOAT = Decimal("1e-12")


def verdict(
    ours: float, printed: str, std: str | None = None, *, counts_labels: bool = False
) -> Verdict:
    """Say whether a result is the published number, near it, or off.

    It is rounded once, from its full digits, a half upwards as the programs of the papers do:
    0.2525 agrees with a printed 0.253 and 0.25249 does not, although it would if it were rounded
    to 0.2525 before.

    Parameters
    ----------
    ours : float
    printed : str
        The published digits; how many there are decides how `ours` is rounded.
    std : str, optional
        The published standard deviation.
    counts_labels : bool, default=False
        Whether the metric is a number of labels, as coverage is, and no share.

    Returns
    -------
    "digits", "within std" or "off"
        Where no standard deviation is printed, 0.005 stands for it, and 0.05 for numbers of labels.

    Examples
    --------
    >>> verdict(0.19449, "0.194"), verdict(0.1989, "0.194"), verdict(0.1995, "0.194")
    ('digits', 'within std', 'off')
    """
    published = Decimal(printed)
    if rounded(ours, printed) == published:
        return "digits"
    near = Decimal(std) if std else _NEAR_COVERAGE if counts_labels else _NEAR
    return "within std" if abs(_exact(ours) - published) <= near else "off"


def rounded(ours: float, printed: str) -> Decimal:
    """A result with as many decimals as a published number, as `verdict` rounds it.

    Examples
    --------
    >>> str(rounded(0.1945, "0.195")), str(rounded(0.2, "0.195"))
    ('0.195', '0.200')
    """
    return _exact(ours).quantize(Decimal(printed), rounding=ROUND_HALF_UP)


def _exact(ours: float) -> Decimal:
    return Decimal(ours).quantize(_DIGITS_OF_A_FLOAT)
