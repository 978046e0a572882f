"""Why cells have no number of ours, or another one than the paper prints: what is known of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Any

from nearlabel.experiments.papers.printed_tables import (
    PrintedCell,
    published_lines,
    published_toml,
)

ERRATA = "docs/errata.md"
_PLACE = ("paper", "table", "dataset", "algorithm", "metric")


class Cause(Enum):
    """What kind of reason it is."""

    NOT_PRINTED = auto()
    NOT_A_NEIGHBOR_METHOD = auto()
    LOST_DATA = auto()
    ABSENT_DATA = auto()
    UNUSABLE_DATA = auto()
    UNDEFINED_METRIC = auto()
    KNOWN_DIFFERENCE = auto()
    UNEXPLAINED = auto()


@dataclass(frozen=True)
class Reason:
    """Why a cell was not run or is off.

    Attributes
    ----------
    cause : Cause
    text : str
        For readers.
    datasets : tuple of str
        Data sets that are not in the data folder, if that is the cause.
    """

    cause: Cause
    text: str
    datasets: tuple[str, ...] = ()

    @classmethod
    def absent(cls, datasets: tuple[str, ...]) -> Reason:
        """These data sets are not in the data folder."""
        return cls(
            Cause.ABSENT_DATA, f"not in the data folder: {', '.join(datasets)}", tuple(datasets)
        )


@dataclass(frozen=True)
class Fit:
    """A setting that gives a row of Wang et al. (2018), Table 3 or 4, as found by trying.

    Attributes
    ----------
    dataset, algorithm : str
    parameters : mapping
        `n_neighbors`, and `n_clusters` of LAML-kNN.
    ties : bool
        Whether it needs the neighbors that the paper's program takes among rows at equal distance.
    except_for : tuple of str
        Metrics whose cells are off nevertheless.
    """

    dataset: str
    algorithm: str
    parameters: Mapping[str, int]
    ties: bool
    except_for: tuple[str, ...]


@dataclass(frozen=True)
class KnownDifference:
    """Cells that come out differently, and why; empty fields fit every cell.

    Attributes
    ----------
    reason, anchor : str
        What is known, and the section of the errata page that says more.
    papers, tables, datasets, algorithms, metrics : collection of str
    parameters : str
        "fitting" or "others": only where our parameters are known to be those of a `Fit`, or known
        not to be; "any" for all.
    """

    reason: str
    anchor: str
    papers: Collection[str] = ()
    tables: Collection[str] = ()
    datasets: Collection[str] = ()
    algorithms: Collection[str] = ()
    metrics: Collection[str] = ()
    parameters: str = "any"

    def explains(self, cell: PrintedCell, parameters: Mapping[str, Any]) -> bool:
        """Whether it is about a cell and the parameters with which our number was made."""
        of_cell = all(
            not (wanted := getattr(self, f"{key}s")) or getattr(cell, key) in wanted
            for key in _PLACE
        )
        return of_cell and self.parameters in ("any", _against_fit(cell, parameters))


@cache
def fits() -> tuple[Fit, ...]:
    """Settings with which rows of Wang et al. (2018), Tables 3 and 4, come within 0.005.

    Examples
    --------
    >>> first = fits()[0]
    >>> first.dataset, first.algorithm, dict(first.parameters)
    ('emotions', 'ML-kNN', {'n_neighbors': 8})
    """
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


@cache
def known_differences() -> tuple[KnownDifference, ...]:
    """The entries `off` of ``experiments.toml``; the first one that explains a cell counts."""
    return tuple(KnownDifference(**one) for one in published_toml("experiments.toml")["off"])


def reason_off(cell: PrintedCell, parameters: Mapping[str, Any]) -> Reason:
    """Why a cell comes out differently, made with these parameters."""
    for one in known_differences():
        if one.explains(cell, parameters):
            return Reason(Cause.KNOWN_DIFFERENCE, f"{one.reason} {section_of_errata(one.anchor)}")
    return Reason(Cause.UNEXPLAINED, f"not explained yet ({ERRATA})")


def section_of_errata(anchor: str) -> str:
    """Where the errata page says more."""
    return f"({ERRATA}#{anchor})"


def _against_fit(cell: PrintedCell, parameters: Mapping[str, Any]) -> str:
    """Whether parameters are those that are known to fit the row of a cell."""
    for fit in fits():
        if (fit.dataset, fit.algorithm) == (cell.dataset, cell.algorithm):
            return "fitting" if fit.parameters.items() <= parameters.items() else "others"
    return "unknown"
