"""How the published tables are reproduced: the setup of each, as ``experiments.toml`` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from nearlabel.experiments.papers.measured_works import Settings
from nearlabel.experiments.papers.printed_tables import papers, published_toml, tables_in_words

SHORT_NAMES = {"n_neighbors": "k", "n_clusters": "m", "smoothing": "s", "rate": "z"}


@dataclass(frozen=True)
class MethodSetup:
    """What stands for an algorithm of a paper; the fields are those of ``experiments.toml``."""

    estimator: str
    parameters: Settings = field(default_factory=dict)
    of: Mapping[str, Settings] = field(default_factory=dict)
    grid: Mapping[str, list[object]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TableSetup:
    """Tables that share data, split, scaling and convention; see ``experiments.toml``."""

    paper: str
    tables: Sequence[str]
    datasets: Sequence[str]
    methods: Mapping[str, MethodSetup]
    split: str
    scale: str
    convention: str | None = None
    splits: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, str] = field(default_factory=dict)
    nominal: Mapping[str, list[str]] = field(default_factory=dict)
    rows: Literal["all", "several labels"] = "all"
    coverage: Literal["labels", "share"] = "labels"
    success_at: Sequence[int] = ()
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
        others = (f"{algorithm} on {dataset}", algorithm, dataset)
        return next((self.scales[name] for name in others if name in self.scales), self.scale)

    @property
    def description(self) -> str:
        """How its numbers are made, for readers."""
        parts = [
            f"split {_with_exceptions(self.split, self.splits)}",
            f"scale {_with_exceptions(self.scale, self.scales)}",
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


def _with_exceptions(usual: str, exceptions: Mapping[str, str]) -> str:
    listed = ", ".join(f"{name}: {other}" for name, other in exceptions.items())
    return f"{usual} ({listed})" if listed else usual


@cache
def table_setups() -> tuple[TableSetup, ...]:
    """The setups of all tables."""
    return tuple(
        TableSetup(
            **entry | {"methods": {key: MethodSetup(**m) for key, m in entry["methods"].items()}}
        )
        for entry in published_toml("experiments.toml")["experiments"]
    )


def setup_of(paper: str, table: str) -> TableSetup:
    """The setup of a table."""
    return next(setup for setup in table_setups() if setup.paper == paper and table in setup.tables)
