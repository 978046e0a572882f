"""The conventions of multi-label metrics, by name.

Implementations agree on what the metrics mean, but differ in how ties are ranked and in what a row
without labels, or with all of them, contributes. This changes the first decimal on data with many
such rows, so every number has a convention:

``paper``
    The text of the ML-kNN papers: equal scores all take the worst rank, except that a one-error is
    forgiven if any label at the top is right; rows for which a metric is undefined are left out.
``lamda``
    The MATLAB code that the authors of ML-kNN distribute.
``mulan``
    The Java library Mulan.
``sklearn``
    scikit-learn: coverage counts from 1; it has no one-error.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearlabel.common.validation import ArgumentError, check_choice
from nearlabel.labels.ranks import Ties


@dataclass(frozen=True)
class Rule:
    """How one ranking metric treats ties and the rows for which it is undefined."""

    ties: Ties  # how labels with equal scores are ranked; see `LabelScores.ranks_of`
    empty: float | None = None  # what a row without labels contributes; None: it is left out
    full: bool = True  # whether rows with all labels count


@dataclass(frozen=True)
class Convention:
    """One way to compute the metrics."""

    rules: dict[str, Rule]  # the ranking metrics that the convention has
    lowest_coverage: int = 0  # coverage of a row with one label, ranked first: 0 or 1
    agreeing_on_nothing: float = 1.0  # F1 and Jaccard if truth and prediction are both empty


CONVENTIONS = {
    "paper": Convention(
        {
            "one_error": Rule("min", full=False),
            "coverage": Rule("max"),
            "ranking_loss": Rule("max", full=False),
            "average_precision": Rule("max", full=False),
        }
    ),
    "lamda": Convention(
        {
            "one_error": Rule("min", full=False),
            "coverage": Rule("higher", empty=-1.0),
            "ranking_loss": Rule("max", full=False),
            "average_precision": Rule("higher", full=False),
        }
    ),
    "mulan": Convention(
        {
            "one_error": Rule("higher", empty=1.0),
            "coverage": Rule("higher", empty=0.0),
            "ranking_loss": Rule("higher", empty=0.0),
            "average_precision": Rule("higher"),
        }
    ),
    "sklearn": Convention(
        {
            "coverage": Rule("max", empty=0.0),
            "ranking_loss": Rule("max", empty=0.0),
            "average_precision": Rule("max", empty=1.0),
        },
        lowest_coverage=1,
        agreeing_on_nothing=0.0,
    ),
}


def convention_named(name: str) -> Convention:
    """The convention of that name."""
    return CONVENTIONS[check_choice(name, "convention", CONVENTIONS)]


def has_metric(convention: str, metric: str) -> bool:
    """Whether a convention defines a metric: it may lack one that others have a rule for."""
    rules = convention_named(convention).rules
    return metric in rules or not any(metric in other.rules for other in CONVENTIONS.values())


def rule_of(metric: str, convention: str) -> Rule:
    """How `convention` computes a ranking metric."""
    rules = convention_named(convention).rules
    if metric not in rules:
        having = ", ".join(repr(name) for name, c in CONVENTIONS.items() if metric in c.rules)
        message = f"convention {convention!r} does not define {metric}; {having} do"
        raise ArgumentError(message, "convention")
    return rules[metric]
