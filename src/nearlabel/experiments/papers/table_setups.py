"""How the published tables are reproduced: the setup of each, and the experiments of a cell."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Literal, cast

from nearlabel.baselines.algorithm_registry import BASELINES
from nearlabel.experiments.papers.printed_tables import (
    PrintedCell,
    all_cells,
    papers,
    published_toml,
    tables_in_words,
)
from nearlabel.experiments.papers.verdicts import Reason

LABEL_COUNT_CLUSTERS = "label count clusters"  # means of label counts, without an estimator
Settings = Mapping[str, object]
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


@dataclass(frozen=True)
class DataSetup:
    """What is done to a data set before anything is learned from it; see ``experiments.toml``.

    `split` is None where nothing is split; `labels` are names of labels that must be there.
    """

    scale: str
    split: str | None = None
    seed: int = 0
    rows: Literal["all", "several labels"] = "all"
    nominal: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Work:
    """What is measured and stored at once, on one data set."""

    dataset: str
    data: DataSetup

    @abstractmethod
    def all_settings(self) -> Settings:
        """All that decides its numbers beside the data and the code, as JSON can hold it."""


@dataclass(frozen=True, eq=False)
class Experiment(Work):
    """A method on a data set.

    Each of `parameters` is a set to be measured. With the grid, from which `select` chooses by
    leave-one-out on the training rows, it has all parameters of the estimator, so that the defaults
    of its class do not matter.
    """

    estimator: str
    parameters: tuple[Settings, ...]
    convention: str | None = None
    coverage: Literal["labels", "share"] = "labels"
    success_at: tuple[int, ...] = ()
    grid: Mapping[str, list[object]] = field(default_factory=dict)
    select: str | None = None

    def all_settings(self) -> Settings:
        """All that decides its numbers beside the data and the code, as JSON can hold it."""
        settings = asdict(self)
        data = settings.pop("data")
        return {**settings, **data}


@cache
def experiment(setup: TableSetup, dataset: str, algorithm: str) -> Experiment:
    """The experiment of an algorithm on a data set: always the same object."""
    method = setup.methods[algorithm]
    fixed = {**method.parameters, **method.of.get(dataset, {})}
    if method.estimator not in (LABEL_COUNT_CLUSTERS, *BASELINES):
        fixed = {**published_toml("experiments.toml")["every_method"], **fixed}
    sets: list[Settings] = []  # one for each that the rows of the tables print
    for cell in all_cells():
        place = (cell.paper, cell.dataset, cell.algorithm)
        if place == (setup.paper, dataset, algorithm) and cell.table in setup.tables:
            parameters = {**cell.estimator_parameters, **fixed}
            sets += [] if parameters in sets else [parameters]
    groups = cast(list[list[str]], fixed.get("groups", []))
    return Experiment(
        dataset,
        DataSetup(
            scale=setup.scale_of(dataset, algorithm),
            split=None if groups else setup.splits.get(dataset, setup.split),
            rows=setup.rows,
            nominal=tuple(setup.nominal.get(dataset, ())),
            labels=tuple(name for group in groups for name in group),
        ),
        method.estimator,
        tuple(sets),
        convention=setup.convention,
        coverage=setup.coverage,
        success_at=tuple(setup.success_at),
        grid=method.grid,
        select=setup.select if method.grid else None,
    )


def experiments_of(cell: PrintedCell) -> tuple[Experiment, ...] | Reason:
    """The experiments that a cell needs, several for an average, or why it has none."""
    if cell.printed is None and not cell.is_new:
        return Reason("the paper has no number here")
    for setup in table_setups():
        names = setup.datasets if cell.dataset == setup.average else (cell.dataset,)
        if (
            setup.paper == cell.paper
            and cell.table in setup.tables
            and set(names) <= set(setup.datasets)
            and cell.algorithm in setup.methods
        ):
            return tuple(experiment(setup, name, cell.algorithm) for name in names)
    return Reason(published_toml("experiments.toml")["lost_data"][cell.dataset])
