"""Tables 3, 6, 8 and 15 of Zhang and Zhou (2007): which algorithm is better than which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from nearlabel.experiments.papers.printed_tables import published_toml

PAPER = "zhang-2007"


@dataclass(frozen=True)
class Relations:
    """A table of relations between algorithms.

    Attributes
    ----------
    table, dataset : str
    cells : tuple of str
        The tables whose cells are compared.
    relations : mapping of str to tuple of pairs of str
        For each metric: the better algorithm and the other one.
    score : mapping of str to int
        For each algorithm the relations that it wins minus those that it loses.
    order : tuple of str
        The algorithms by score, the best first.
    """

    table: str
    dataset: str
    cells: tuple[str, ...]
    relations: Mapping[str, tuple[tuple[str, str], ...]]
    score: Mapping[str, int]
    order: tuple[str, ...]


@cache
def relations() -> tuple[Relations, ...]:
    """The tables of relations.

    Examples
    --------
    >>> relations()[0].order
    ('ML-KNN', 'ADTBoost.MH', 'Rank-SVM', 'BoosTexter')
    """
    told = published_toml("relations.toml")
    names = told["algorithms"]

    def pair(text: str) -> tuple[str, str]:
        better, _, other = text.partition(">")
        return names[better], names[other]

    return tuple(
        Relations(
            table=one["table"],
            dataset=one["dataset"],
            cells=tuple(one["cells"]),
            relations={metric: tuple(map(pair, some)) for metric, some in one["relations"].items()},
            score={names[key]: score for key, score in one["score"].items()},
            order=tuple(names[key] for key in one["order"]),
        )
        for one in told["tables"]
    )
