"""How near a result comes to a published number."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum

# What counts as close where a paper prints no standard deviation.
_CLOSE = Decimal("0.005")
_CLOSE_COVERAGE = Decimal("0.05")
# Sums of floats differ in the 16th digit: without these last ones, equal numbers are equal.
_DIGITS_OF_A_FLOAT = Decimal("1e-12")


class Verdict(StrEnum):
    """What is said about a cell; `meaning` explains it to readers, `mark` stands beside a number.

    Examples
    --------
    >>> Verdict.CLOSE.value, Verdict.CLOSE.agrees, Verdict.OFF.agrees
    ('close', True, False)
    """

    mark: str
    meaning: str

    DIGITS = "digits", "=", "equal to the printed digits"
    WITHIN_STD = "within std", "~", "within one printed standard deviation"
    CLOSE = (
        "close",
        "≈",
        "no standard deviation is printed; within 0.005 (coverage: within 0.05 labels)",
    )
    OFF = "off", "!", "further away; the reason is below the table"
    NOT_RUN = "not run", "·", "the reason is below the table"

    def __new__(cls, value: str, mark: str, meaning: str) -> Verdict:
        """A verdict that is its name, with a mark and a meaning."""
        self = str.__new__(cls, value)
        self._value_, self.mark, self.meaning = value, mark, meaning
        return self

    @property
    def agrees(self) -> bool:
        """Whether a cell with this verdict counts as reproduced."""
        return self in (Verdict.DIGITS, Verdict.WITHIN_STD, Verdict.CLOSE)


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
        Whether the metric is a number of labels, as coverage is, and not a share.

    Returns
    -------
    Verdict
        DIGITS, OFF, or between them WITHIN_STD where a standard deviation is printed and CLOSE
        where none is: then 0.005 takes its place, or 0.05 for numbers of labels.

    Examples
    --------
    >>> [verdict(ours, "0.194").value for ours in (0.19449, 0.1989, 0.1995)]
    ['digits', 'close', 'off']
    >>> verdict(0.199, "0.194", "0.010").value
    'within std'
    """
    published = Decimal(printed)
    if rounded(ours, printed) == published:
        return Verdict.DIGITS
    limit = Decimal(std) if std else _CLOSE_COVERAGE if counts_labels else _CLOSE
    if abs(_exact(ours) - published) > limit:
        return Verdict.OFF
    return Verdict.WITHIN_STD if std else Verdict.CLOSE


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
