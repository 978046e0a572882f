"""How the published tables are made anew: experiments as data, and the units they consist of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from nearlabel.experiments.papers.published import Cell, cells, fits, read_toml

ERRATA = "docs/errata.md"
SHORT_NAMES = {"n_neighbors": "k", "n_clusters": "m", "smoothing": "s", "rate": "z"}
_SEED = 0
_KEYS = ("paper", "table", "dataset", "algorithm", "metric")


@dataclass(frozen=True)
class Method:
    """The estimator that stands for an algorithm of a paper, and its parameters.

    Attributes
    ----------
    estimator : str
        A name of `nearlabel.methods.algorithms`.
    parameters, of : mapping
        For all data sets, and for each of them.
    grid : mapping of str to list
        Values to choose from.
    scale : str or None
        Where it is not that of the experiment.
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
class Experiment:
    """Tables that share data, split, scaling and convention; see ``experiments.toml``."""

    paper: str
    tables: tuple[str, ...]
    datasets: tuple[str, ...]
    methods: Mapping[str, Method]
    split: str
    scale: str
    kind: Literal["metrics", "label clusters"] = "metrics"
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
        """For people: the paper and its tables."""
        return f"{self.paper} {tables_in_words(self.tables)}"

    def scale_of(self, dataset: str, algorithm: str) -> str:
        """How a data set is scaled for an algorithm."""
        method = self.methods[algorithm]
        own = method.scales.get(dataset) or method.scale
        return own or self.scales.get(dataset) or self.scale

    @property
    def told(self) -> str:
        """For people: how its numbers are made."""
        parts = [f"split {_with_others(self.split, self.splits)}"]
        scales = {
            **self.scales,
            **{name: one.scale for name, one in self.methods.items() if one.scale},
            **{
                f"{name} on {dataset}": scale
                for name, one in self.methods.items()
                for dataset, scale in one.scales.items()
            },
        }
        parts.append(f"scale {_with_others(self.scale, scales)}")
        for dataset, names in self.nominal.items():
            parts.append(f"{', '.join(names)} of {dataset} at distance 0 or 1")
        if self.convention is not None:
            parts.append(f"convention {self.convention}")
        if self.rows != "all":
            parts.append("the rows with two labels or more")
        if self.coverage == "share":
            parts.append("coverage divided by the number of labels")
        if self.select is not None:
            parts.append(
                f"chosen by leave-one-out {self.select} on the training rows: "
                f"{self._tried_values()}"
            )
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


@dataclass(frozen=True)
class Unit:
    """What is run and stored at once: an algorithm on a data set of an experiment.

    Attributes
    ----------
    experiment : Experiment
    dataset, algorithm : str
    setting : dict
        All that decides its numbers beside the data and the code, as JSON can hold it.
    """

    experiment: Experiment
    dataset: str
    algorithm: str
    setting: dict[str, Any] = field(compare=False)


@dataclass(frozen=True)
class Plan:
    """All experiments, and what is not run.

    Attributes
    ----------
    experiments : tuple of Experiment
    other_methods, lost_data : mapping of str to str
        Algorithms and data sets that are not run, with the reason.
    off : tuple of dict
        What is known of cells that come out otherwise: see ``experiments.toml``.
    """

    experiments: tuple[Experiment, ...]
    other_methods: Mapping[str, str]
    lost_data: Mapping[str, str]
    off: tuple[Mapping[str, Any], ...]

    def reason_off(self, cell: Cell, parameters: Mapping[str, Any]) -> str:
        """Why a cell comes out otherwise, with the place on the errata page that tells more.

        Parameters
        ----------
        cell : Cell
        parameters : mapping
            Those with which our number was made.
        """
        for one in self.off:
            if all(
                getattr(cell, key) in one.get(f"{key}s", (getattr(cell, key),)) for key in _KEYS
            ) and one.get("parameters", "any") in ("any", _against_fit(cell, parameters)):
                return f"{one['reason']} {place_in_errata(one['anchor'])}"
        return f"not explained yet ({ERRATA})"

    def experiment_of(self, cell: Cell) -> Experiment | None:
        """The experiment that a cell belongs to, if its numbers can be had."""
        for one in self.experiments:
            if (
                one.paper == cell.paper
                and cell.table in one.tables
                and cell.dataset in (*one.datasets, one.average)
                and cell.algorithm in one.methods
            ):
                return one
        return None


def tables_in_words(tables: Sequence[str]) -> str:
    """Table 1; Tables 3, 4."""
    return f"{'Tables' if len(tables) > 1 else 'Table'} {', '.join(tables)}"


def place_in_errata(anchor: str) -> str:
    """Where the errata page tells more."""
    return f"({ERRATA}#{anchor})"


@cache
def plan() -> Plan:
    """The plan of this package."""
    told = read_toml("experiments.toml")
    others = told["other_methods"]
    return Plan(
        tuple(map(_experiment, told["experiments"])),
        dict.fromkeys(others["names"], others["reason"]),
        told["lost_data"],
        tuple(told["off"]),
    )


def unit_of(experiment: Experiment, dataset: str, algorithm: str) -> Unit:
    """The unit of an algorithm on a data set."""
    method = experiment.methods[algorithm]
    setting: dict[str, Any] = {
        "kind": experiment.kind,
        "estimator": method.estimator,
        "parameters": _parameters(experiment, method, dataset, algorithm),
        "split": experiment.splits.get(dataset, experiment.split),
        "seed": _SEED,
        "scale": experiment.scale_of(dataset, algorithm),
        "convention": experiment.convention,
        "rows": experiment.rows,
        "coverage": experiment.coverage,
    }
    if dataset in experiment.nominal:
        setting["nominal"] = experiment.nominal[dataset]
    if method.grid:
        setting |= {"grid": dict(method.grid), "select": experiment.select}
    return Unit(experiment, dataset, algorithm, setting)


def _with_others(usual: str, others: Mapping[str, str]) -> str:
    listed = ", ".join(f"{name}: {other}" for name, other in others.items())
    return f"{usual} ({listed})" if listed else usual


def _experiment(told: dict[str, Any]) -> Experiment:
    methods = {name: Method(**one) for name, one in told.pop("methods").items()}
    tables, datasets = tuple(told.pop("tables")), tuple(told.pop("datasets"))
    caution = told.pop("caution", None)
    return Experiment(
        tables=tables,
        datasets=datasets,
        methods=methods,
        caution=f"{caution['text']} {place_in_errata(caution['anchor'])}" if caution else "",
        **told,
    )


def _against_fit(cell: Cell, parameters: Mapping[str, Any]) -> str:
    """Whether parameters are those that are known to fit the row of a cell."""
    for fit in fits():
        if (fit.dataset, fit.algorithm) == (cell.dataset, cell.algorithm):
            return "fitting" if fit.parameters.items() <= parameters.items() else "others"
    return "unknown"


def _parameters(
    experiment: Experiment, method: Method, dataset: str, algorithm: str
) -> list[dict[str, Any]]:
    """The sets of parameters to be measured: one for each number of neighbors that is printed."""
    fixed = {**method.parameters, **method.of.get(dataset, {})}
    if "n_neighbors" in fixed or "n_neighbors" in method.grid:
        return [fixed]
    printed = {
        cell.parameters["k"]
        for cell in cells()
        if (cell.paper, cell.dataset, cell.algorithm) == (experiment.paper, dataset, algorithm)
        and cell.table in experiment.tables
    }
    return [{**fixed, "n_neighbors": k} for k in sorted(map(int, printed))]
