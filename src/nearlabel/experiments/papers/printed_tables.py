"""What five papers print, as data: cells of tables to the printed digit, and relations."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.resources import files

from nearlabel.common.arrays import Tree

PAPER_WITH_RELATIONS = "zhang-2007"


@dataclass(frozen=True)
class Paper:
    """A paper and the method it proposes."""

    authors: str
    year: int
    method: str
    reference: str

    @property
    def title(self) -> str:
        """Authors and year, as a text cites it."""
        return f"{self.authors} ({self.year})"


@dataclass(frozen=True)
class PrintedCell:
    """A cell of a published table.

    `printed` and `std` are the digits of the number and of its standard deviation, None where
    there are none; `parameters` those that the paper prints, such as `k` and `s`; `doubt` says why
    the number cannot be right, or hardly; `is_new` that the paper does not have these data.
    """

    paper: str
    table: str
    dataset: str
    algorithm: str
    metric: str
    printed: str | None
    std: str | None = None
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    name_in_paper: str = ""
    doubt: str | None = None
    is_new: bool = False

    @property
    def published(self) -> Decimal | None:
        """The number, exactly as printed."""
        return None if self.printed is None else Decimal(self.printed)

    @property
    def estimator_parameters(self) -> dict[str, int | str]:
        """The printed parameters that our estimators have, by the estimators' names."""
        names = {"k": "n_neighbors", "s": "smoothing", "rounds": "n_rounds"}
        shared = ("degree", "C")  # others are places in a table, such as a cluster
        return {
            names.get(name, name): value
            for name, value in self.parameters.items()
            if name in (*names, *shared)
        }


@cache
def papers() -> Mapping[str, Paper]:
    """The papers by id, which is the first author and the year: "zhang-2007"."""
    return {key: Paper(**fields) for key, fields in published_toml("papers.toml").items()}


@cache
def cells() -> tuple[PrintedCell, ...]:
    """All cells of the tables of results: paper by paper, line by line."""
    return tuple(cell for paper in papers() for cell in _cells_of(paper))


@cache
def cluster_counts() -> tuple[PrintedCell, ...]:
    """Table 1 of Wang et al. (2018): how many neighbors of the rows in a cluster have a label.

    The means over the rows with the label (metric "count_with_label") and over those without it
    ("count_without_label"); `parameters` has the number of the cluster and the label.
    """
    return tuple(
        PrintedCell(
            *("wang-2018", "1", "scene", "LAML-kNN"),
            metric=f"count_{line['rows']}_label",
            printed=printed,
            parameters={"cluster": int(line["cluster"]), "label": label},
            name_in_paper="scene",
        )
        for line in published_lines("label_count_clusters.csv")
        for label, printed in line.items()
        if label not in ("cluster", "rows")
    )


@cache
def all_cells() -> tuple[PrintedCell, ...]:
    """The cells that are compared, paper by paper: means of counts, and results."""
    order = list(papers())
    return tuple(sorted([*cluster_counts(), *cells()], key=lambda cell: order.index(cell.paper)))


def tables_of(paper: str) -> list[str]:
    """The tables of a paper that are compared."""
    return list(dict.fromkeys(cell.table for cell in all_cells() if cell.paper == paper))


def tables_in_words(tables: Sequence[str]) -> str:
    """Table 1; Tables 3, 4."""
    return f"{'Tables' if len(tables) > 1 else 'Table'} {', '.join(tables)}"


def _published(name: str) -> str:
    folder = files("nearlabel.experiments.papers") / "published"
    return (folder / name).read_text(encoding="utf-8")


def published_lines(name: str) -> list[dict[str, str]]:
    """The lines of a CSV file of ``published``."""
    return list(csv.DictReader(_published(name).splitlines()))


@cache
def published_toml(name: str) -> Tree:
    """The contents of a TOML file of ``published``."""
    return tomllib.loads(_published(name))


def _cells_of(paper: str) -> Iterator[PrintedCell]:
    keys = ("paper", "table", "dataset", "algorithm", "metric")
    doubtful = published_lines("doubtful.csv")
    doubts = {tuple(line[key] for key in keys): line["reason"] for line in doubtful}
    for line in published_lines(f"{paper}.csv"):
        tables = line["table"].split("/")
        pairs = (pair.split("=") for pair in line["parameters"].split())
        parameters = {key: int(value) for key, value in pairs}
        for column, metric in enumerate(list(line)[5:]):  # the first say whose it is
            if not line[metric]:  # this table has no such column
                continue
            printed, _, std = line[metric].partition(" ± ")
            table = tables[column % len(tables)]
            place = (paper, table, line["dataset"], line["algorithm"], metric)
            yield PrintedCell(
                *place,
                printed=None if printed in ("n/a", "new") else printed,
                std=std or None,
                parameters=parameters,
                name_in_paper=line["name_in_paper"] or line["dataset"],
                doubt=doubts.get(place),
                is_new=printed == "new",
            )


@dataclass(frozen=True)
class Relations:
    """Which algorithm is better than which: a table of Zhang and Zhou (2007).

    `cells` are the tables whose cells are compared, `relations` pairs of the better algorithm and
    the other one by metric, `score` the relations that an algorithm wins minus those that it loses.
    """

    table: str
    dataset: str
    cells: tuple[str, ...]
    relations: Mapping[str, tuple[tuple[str, str], ...]]
    score: Mapping[str, int]
    order: tuple[str, ...]


@cache
def relations() -> tuple[Relations, ...]:
    """Tables 3, 6, 8 and 15 of Zhang and Zhou (2007)."""
    content = published_toml("relations.toml")
    names = content["algorithms"]

    def pair(text: str) -> tuple[str, str]:
        better, _, other = text.partition(">")
        return names[better], names[other]

    return tuple(
        Relations(
            table=table["table"],
            dataset=table["dataset"],
            cells=tuple(table["cells"]),
            relations={
                metric: tuple(map(pair, pairs)) for metric, pairs in table["relations"].items()
            },
            score={names[key]: score for key, score in table["score"].items()},
            order=tuple(names[key] for key in table["order"]),
        )
        for table in content["tables"]
    )
