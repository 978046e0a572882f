"""What five papers print: their tables as data, to the printed digit."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

_NO_NUMBER = "n/a"  # what a file has where the paper says that it has none
_COLUMNS_BEFORE_METRICS = 5


@dataclass(frozen=True)
class Paper:
    """A paper: the year, the method that it is about, and its reference."""

    year: int
    method: str
    reference: str


@dataclass(frozen=True)
class Cell:
    """A cell of a published table.

    Attributes
    ----------
    paper, table : str
    dataset : str
        As the data folder calls it.
    algorithm, metric : str
    printed, std : str or None
        The digits of the number and of its standard deviation; None where there are none.
    parameters : mapping
        Those that the paper tells: `k` and `s`, say.
    name_in_paper : str
        The paper's name of the data set.
    doubt : str or None
        Why the number cannot be right, or hardly.
    """

    paper: str
    table: str
    dataset: str
    algorithm: str
    metric: str
    printed: str | None
    std: str | None
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    name_in_paper: str = ""
    doubt: str | None = None

    @property
    def published(self) -> Decimal | None:
        """The number, exactly as printed."""
        return None if self.printed is None else Decimal(self.printed)


@dataclass(frozen=True)
class Fit:
    """A setting that gives the numbers of a row of 003, Table 3 or 4, as found by trying.

    Attributes
    ----------
    dataset, algorithm : str
    parameters : mapping
        `n_neighbors`, and `n_clusters` of LAML-kNN.
    ties : bool
        Whether it needs the paper's program's neighbors among rows that are equally far.
    except_for : tuple of str
        Metrics whose cells are off nevertheless.
    """

    dataset: str
    algorithm: str
    parameters: Mapping[str, int]
    ties: bool
    except_for: tuple[str, ...]


@dataclass(frozen=True)
class Statistics:
    """What a paper prints of a data set.

    Attributes
    ----------
    paper, table : str
        The table is empty where the text tells it.
    dataset : str
    printed : mapping of str to str
        `instances`, `features`, `labels`, `cardinality`, `density`; of both parts of a split their
        sizes `train` and `test`, and, beginning with these words, the cardinality, the percentage
        of rows with several labels (``pct_multi``), and that of labels that fewer than one row
        in a hundred has (``pct_rare``).
    """

    paper: str
    table: str
    dataset: str
    printed: Mapping[str, str]


@dataclass(frozen=True)
class Relations:
    """A table of relations between algorithms, such as Table 3 of the 2007 paper.

    Attributes
    ----------
    table, dataset : str
    cells : tuple of str
        The tables whose cells are compared.
    relations : mapping of str to tuple of pairs of str
        For each metric: the better algorithm and the other one.
    score : mapping of str to int
        For each algorithm the relations that it wins, less those that it loses.
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
def papers() -> Mapping[str, Paper]:
    """The papers by their numbers, "000" to "004"."""
    return MappingProxyType({key: Paper(**told) for key, told in read_toml("papers.toml").items()})


@cache
def cells() -> tuple[Cell, ...]:
    """All cells of the tables of results: paper by paper, line by line.

    Examples
    --------
    >>> first = cells()[0]
    >>> first.paper, first.table, first.dataset, first.metric, first.printed, first.std
    ('000', '1', 'yeast', 'hamming_loss', '0.195', '0.010')
    """
    return tuple(cell for paper in papers() for cell in _cells_of(paper))


@cache
def relations() -> tuple[Relations, ...]:
    """Tables 3, 6, 8 and 15 of the 2007 paper: which algorithm is better than which.

    Examples
    --------
    >>> relations()[0].order
    ('ML-KNN', 'ADTBoost.MH', 'Rank-SVM', 'BoosTexter')
    """
    told = read_toml("relations.toml")
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


@cache
def cluster_counts() -> tuple[Cell, ...]:
    """Table 1 of the 2018 paper: of the neighbors of rows in a cluster, how many have a label.

    The means over the rows with the label (metric "count_with_label") and over those without it
    ("count_without_label"); `parameters` has the number of the cluster and the label.
    """
    found = []
    for line in _lines("clusters.csv"):
        cluster, rows = int(line.pop("cluster")), line.pop("rows")
        for label, printed in line.items():
            found.append(
                Cell(
                    "003",
                    "1",
                    "scene",
                    "LAML-kNN",
                    f"count_{rows}_label",
                    printed,
                    None,
                    {"cluster": cluster, "label": label},
                    "scene",
                )
            )
    return tuple(found)


@cache
def fits() -> tuple[Fit, ...]:
    """Settings with which the rows of 003, Tables 3 and 4, come within 0.005 of what is printed.

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
        for line in _lines("fits.csv")
    )


@cache
def statistics() -> tuple[Statistics, ...]:
    """What the papers print of their data sets.

    Examples
    --------
    >>> first = statistics()[0]
    >>> first.dataset, first.printed["train_cardinality"]
    ('yahoo_arts', '1.627')
    """
    return tuple(
        Statistics(line.pop("paper"), line.pop("table"), line.pop("dataset"), _printed(line))
        for line in _lines("statistics.csv")
    )


@cache
def image_label_sets() -> Mapping[frozenset[str], int]:
    """Table 4 of the 2007 paper: how many images have each set of labels."""
    counts = {frozenset(line["labels"].split("+")): line for line in _lines("image_label_sets.csv")}
    return MappingProxyType({labels: int(line["images"]) for labels, line in counts.items()})


def _printed(line: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in line.items() if text}


def _cells_of(paper: str) -> Iterator[Cell]:
    doubts = _doubts()
    for line in _lines(f"{paper}.csv"):
        metrics = list(line)[_COLUMNS_BEFORE_METRICS:]
        tables = line["table"].split("/")
        for place, metric in enumerate(metrics):
            text = line[metric]
            if not text:  # this table has no such column
                continue
            printed, _, std = text.partition(" ± ")
            place_of = (paper, tables[place % len(tables)], line["dataset"], line["algorithm"])
            yield Cell(
                *place_of,
                metric,
                None if printed == _NO_NUMBER else printed,
                std or None,
                _parameters(line["parameters"]),
                line["name_in_paper"] or line["dataset"],
                doubts.get((*place_of, metric)),
            )


def _parameters(text: str) -> dict[str, int | str]:
    return {key: int(value) for key, _, value in (one.partition("=") for one in text.split())}


@cache
def _doubts() -> dict[tuple[str, ...], str]:
    return {
        tuple(line[key] for key in ("paper", "table", "dataset", "algorithm", "metric")): line[
            "reason"
        ]
        for line in _lines("doubtful.csv")
    }


def _lines(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(_text(name).splitlines()))


def read_toml(name: str) -> dict[str, Any]:
    """A file of ``published``."""
    return tomllib.loads(_text(name))


def _text(name: str) -> str:
    return (files("nearlabel.experiments.papers") / "published" / name).read_text(encoding="utf-8")
