"""How near a result comes to a published number, and why it does not where that is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from functools import cache
from typing import Literal

from nearlabel.experiments.papers.printed_tables import (
    PrintedCell,
    published_lines,
    published_toml,
)

ERRATA = "docs/errata.md"


class Verdict(StrEnum):
    """What is said of a cell; `meaning` explains it to readers, `mark` stands beside a number."""

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
    BETTER = "better", "+", "better than printed, with features that are not those of the paper"
    NEW = "new", "*", "the paper does not have these data"

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
    ours: float,
    printed: str,
    std: str | None = None,
    *,
    counts_labels: bool = False,
    better: Literal["less", "more"] | None = None,
) -> Verdict:
    """Say whether a result is the published number, near it, or off.

    It is rounded once, from its full digits, a half upwards as the programs of the papers do:
    0.2525 agrees with a printed 0.253 and 0.25249 does not, although it would if it were rounded
    to 0.2525 before. Between DIGITS and OFF are WITHIN_STD, where a standard deviation is printed,
    and CLOSE, where none is: then 0.005 takes its place, or 0.05 where the metric `counts_labels`,
    as coverage does. With `better`, which says what is better, a result that is better than what is
    printed, rounded as it is, is BETTER, however near.

    Examples
    --------
    >>> [verdict(ours, "0.194").value for ours in (0.19449, 0.1989, 0.1995)]
    ['digits', 'close', 'off']
    >>> verdict(0.199, "0.194", "0.010").value
    'within std'
    >>> verdict(0.199, "0.194", "0.010", better="more").value
    'better'
    """
    published, shown = Decimal(printed), rounded(ours, printed)
    if shown == published:
        return Verdict.DIGITS
    if better is not None and (shown < published) == (better == "less"):
        return Verdict.BETTER
    limit = Decimal(std or ("0.05" if counts_labels else "0.005"))
    if abs(_exact(ours) - published) > limit:
        return Verdict.OFF
    return Verdict.WITHIN_STD if std else Verdict.CLOSE


def rounded(ours: float, printed: str) -> Decimal:
    """A result with as many decimals as a published number, as `verdict` rounds it."""
    return _exact(ours).quantize(Decimal(printed), rounding=ROUND_HALF_UP)


def _exact(ours: float) -> Decimal:
    # Sums of floats differ in the 16th digit: without the last ones, equal numbers are equal.
    return Decimal(ours).quantize(Decimal("1e-12"))


@dataclass(frozen=True)
class Reason:
    """Why a cell was not run or is off; `absent` are data sets that the data folder lacks."""

    text: str
    absent: tuple[str, ...] = ()

    @classmethod
    def no_data(cls, datasets: tuple[str, ...]) -> Reason:
        """These data sets are not in the data folder."""
        return cls(f"not in the data folder: {', '.join(datasets)}", datasets)


@dataclass(frozen=True)
class Fit:
    """A setting that gives a row of Wang et al. (2018), Table 3 or 4, as found by trying.

    `ties` says whether it needs the neighbors that the paper's program takes among rows at equal
    distance, `except_for` names metrics whose cells are off nevertheless.
    """

    dataset: str
    algorithm: str
    parameters: Mapping[str, int]
    ties: bool
    except_for: tuple[str, ...]


@cache
def fits() -> tuple[Fit, ...]:
    """Settings with which rows of Wang et al. (2018), Tables 3 and 4, come within 0.005."""
    return tuple(
        Fit(
            line["dataset"],
            line["algorithm"],
            {key: int(line[key]) for key in ("n_neighbors", "n_clusters") if line[key]},
            line["ties"] == "yes",
            tuple(line["except_for"].split()),
        )
        for line in published_lines("fits.csv")
    )


@dataclass(frozen=True)
class KnownDifference:
    """Cells that come out differently, and why: an entry `off` of ``experiments.toml``.

    Empty fields fit every cell. `parameters` is "fitting" or "others" where it holds only if our
    parameters are known to be those of a `Fit`, or known not to be; "any" otherwise.
    """

    reason: str
    anchor: str
    papers: Collection[str] = ()
    tables: Collection[str] = ()
    datasets: Collection[str] = ()
    algorithms: Collection[str] = ()
    metrics: Collection[str] = ()
    parameters: str = "any"

    def explains(self, cell: PrintedCell, parameters: Mapping[str, object]) -> bool:
        """Whether it is about a cell and the parameters with which our number was made."""
        for key in ("paper", "table", "dataset", "algorithm", "metric"):
            wanted = getattr(self, f"{key}s")
            if wanted and getattr(cell, key) not in wanted:
                return False
        of_row = [
            fit for fit in fits() if (fit.dataset, fit.algorithm) == (cell.dataset, cell.algorithm)
        ]
        fitting = [fit.parameters.items() <= parameters.items() for fit in of_row]
        return self.parameters == "any" or fitting == [self.parameters == "fitting"]


@cache
def known_differences() -> tuple[KnownDifference, ...]:
    """What is known about cells that are off; the first entry that explains a cell counts."""
    return tuple(KnownDifference(**entry) for entry in published_toml("experiments.toml")["off"])


def reason_off(cell: PrintedCell, parameters: Mapping[str, object]) -> Reason:
    """Why a cell comes out differently, made with these parameters."""
    for known in known_differences():
        if known.explains(cell, parameters):
            return Reason(f"{known.reason} ({ERRATA}#{known.anchor})")
    return Reason(f"not explained yet ({ERRATA})")
