"""How the published tables are reproduced: setups read from a file, and how they are described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from nearlabel.experiments.papers.known_differences import section_of_errata
from nearlabel.experiments.papers.printed_tables import papers, published_toml, tables_in_words

LABEL_COUNT_CLUSTERS = "label count clusters"  # means of label counts, without an estimator
SHORT_NAMES = {"n_neighbors": "k", "n_clusters": "m", "smoothing": "s", "rate": "z"}


@dataclass(frozen=True)
class MethodSetup:
    """The estimator that stands for an algorithm of a paper, and its parameters.

    Attributes
    ----------
    estimator : str
        The name of its class, or `LABEL_COUNT_CLUSTERS`.
    parameters, of : mapping
        For all data sets, and for each of them.
    grid : mapping of str to list
        Values to choose from.
    scale : str or None
        Where it is not that of the table.
    scales : mapping of str to str
        The data sets where it is another one.
    """

    estimator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    scale: str | None = None
    scales: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TableSetup:
    """Tables that share data, split, scaling and convention; see ``experiments.toml``."""

    paper: str
    tables: tuple[str, ...]
    datasets: tuple[str, ...]
    methods: Mapping[str, MethodSetup]
    split: str
    scale: str
    convention: str | None = None
    splits: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, str] = field(default_factory=dict)
    nominal: Mapping[str, list[str]] = field(default_factory=dict)
    rows: Literal["all", "several labels"] = "all"
    coverage: Literal["labels", "share"] = "labels"
    average: str | None = None
    select: str | None = None
    note: str = ""
    caution: str = ""

    @property
    def title(self) -> str:
        """The paper and its tables, for readers."""
        return f"{papers()[self.paper].title}, {tables_in_words(self.tables)}"

    def scale_of(self, dataset: str, algorithm: str) -> str:
        """How a data set is scaled for an algorithm."""
        method = self.methods[algorithm]
        own = method.scales.get(dataset) or method.scale
        return own or self.scales.get(dataset) or self.scale

    @property
    def description(self) -> str:
        """How its numbers are made, for readers."""
        scales = {
            **self.scales,
            **{name: one.scale for name, one in self.methods.items() if one.scale},
            **{
                f"{name} on {dataset}": scale
                for name, one in self.methods.items()
                for dataset, scale in one.scales.items()
            },
        }
        parts = [
            f"split {_with_exceptions(self.split, self.splits)}",
            f"scale {_with_exceptions(self.scale, scales)}",
        ]
        for dataset, names in self.nominal.items():
            parts.append(f"{', '.join(names)} of {dataset} at distance 0 or 1")
        if self.convention is not None:
            parts.append(f"convention {self.convention}")
        if self.rows != "all":
            parts.append("the rows with two labels or more")
        if self.coverage == "share":
            parts.append("coverage divided by the number of labels")
        if self.select is not None:
            chosen = f"chosen by leave-one-out {self.select} on the training rows"
            parts.append(f"{chosen}: {self._tried_values()}")
        return "; ".join([*parts, self.note] if self.note else parts)

    def _tried_values(self) -> str:
        """What is chosen from, methods that have the same values together."""
        methods: dict[str, list[str]] = {}
        for name, method in self.methods.items():
            if method.grid:
                tried = (
                    f"{SHORT_NAMES[key]} from {', '.join(map(str, values))}"
                    for key, values in method.grid.items()
                )
                methods.setdefault(" and ".join(tried), []).append(name)
        return "; ".join(f"{', '.join(names)} {tried}" for tried, names in methods.items())


@cache
def table_setups() -> tuple[TableSetup, ...]:
    """The setups of all tables."""
    return tuple(map(_setup, published_toml("experiments.toml")["experiments"]))


def setup_of(paper: str, table: str) -> TableSetup:
    """The setup of a table."""
    [found] = (one for one in table_setups() if one.paper == paper and table in one.tables)
    return found


def _setup(told: Mapping[str, Any]) -> TableSetup:
    typed = {
        "methods": {name: MethodSetup(**one) for name, one in told["methods"].items()},
        "tables": tuple(told["tables"]),
        "datasets": tuple(told["datasets"]),
    }
    if "caution" in told:
        text, anchor = told["caution"]["text"], told["caution"]["anchor"]
        typed["caution"] = f"{text} {section_of_errata(anchor)}"
    return TableSetup(**{**told, **typed})


def _with_exceptions(usual: str, exceptions: Mapping[str, str]) -> str:
    listed = ", ".join(f"{name}: {other}" for name, other in exceptions.items())
    return f"{usual} ({listed})" if listed else usual
