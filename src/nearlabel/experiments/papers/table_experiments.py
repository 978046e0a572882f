"""How tables are reproduced: the setup of each, and the experiments of its cells, run."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, cast

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from threadpoolctl import threadpool_limits

from nearlabel.baselines.algorithm_registry import BASELINES, algorithm
from nearlabel.common.progress import Stages
from nearlabel.datasets import Dataset
from nearlabel.experiments.evaluation import SplitResult, evaluate_splits
from nearlabel.experiments.folds import Model
from nearlabel.experiments.papers.prepared_data import PreparedData
from nearlabel.experiments.papers.printed_tables import (
    PrintedCell,
    all_cells,
    papers,
    published_toml,
    tables_in_words,
)
from nearlabel.experiments.papers.verdicts import Reason
from nearlabel.labels.counts import neighbor_counts
from nearlabel.metrics import scorer
from nearlabel.search import Progress, neighbor_graph

METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
LABEL_COUNT_CLUSTERS = "label count clusters"  # means of label counts, without an estimator
SHORT_NAMES = {"n_neighbors": "k", "n_clusters": "m", "smoothing": "s", "rate": "z"}
Settings = Mapping[str, object]
Values = Sequence[float | None]  # None where a number is not defined


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
class Measurement:
    """What a method reaches with one set of parameters.

    `metrics` has for each metric a value per split, None where it is not defined; for means of
    label counts a value per cluster.
    """

    parameters: Settings
    metrics: Mapping[str, Values]

    def has_parameters_of(self, cell: PrintedCell) -> bool:
        """Whether it was made with the parameters that the row of a cell prints."""
        return cell.estimator_parameters.items() <= self.parameters.items()

    def values(self, cell: PrintedCell) -> Values:
        """What it has for a cell: a value per split, or the mean of a cluster."""
        if "cluster" not in cell.parameters:
            return self.metrics[cell.metric]
        means = self.metrics[f"{cell.metric} {cell.parameters['label']}"]
        return [means[int(cell.parameters["cluster"]) - 1]]


@dataclass(frozen=True, eq=False)
class Experiment:
    """A method on a data set: what is measured and stored at once; see ``experiments.toml``.

    The fields are all that decides its numbers beside the data and the code. Each of `parameters`
    is a set to be measured. With the grid, from which `select` chooses by leave-one-out on the
    training rows, it has all parameters of the estimator, so that the defaults of its class do not
    matter. `split` is None where nothing is split; `labels` are names of labels that must be there.
    """

    dataset: str
    estimator: str
    parameters: tuple[Settings, ...]
    convention: str | None = None
    coverage: Literal["labels", "share"] = "labels"
    success_at: tuple[int, ...] = ()
    grid: Mapping[str, list[object]] = field(default_factory=dict)
    select: str | None = None
    scale: str = "none"
    split: str | None = None
    seed: int = 0
    rows: Literal["all", "several labels"] = "all"
    nominal: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def measurements(
        self, ready: PreparedData, *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> list[Measurement]:
        """Measure a method on its prepared data, with each set of parameters."""
        (data, parts, scale), sets = ready, list(self.parameters)
        if self.estimator == LABEL_COUNT_CLUSTERS:
            [parameters] = sets
            k = cast(int, parameters["n_neighbors"])
            groups = cast(list[list[str]], parameters["groups"])
            means = label_count_clusters(data, k, groups, n_jobs=n_jobs, progress=progress)
            return [Measurement(parameters, means)]
        models = [_model(self.estimator, parameters, n_jobs) for parameters in sets]
        by = None
        if self.grid:
            by = scorer(str(self.select), convention=str(self.convention))
            models = [clone(models[0]).set_params(**point) for point in ParameterGrid(self.grid)]
        ranks = self.success_at or (5,)  # a pass measures one success rate
        stages = Stages(progress, 1000)
        passes = [
            evaluate_splits(
                data,
                [models] if self.grid else models,
                parts,
                scorer=by,
                scale=scale,
                convention=str(self.convention),
                at=at,
                progress=stages.next(1000 // len(ranks)),
            )
            for at in ranks
        ]
        if self.grid:
            [[result]] = passes[0]
            known = {} if result.chosen is None else result.chosen.get_params(deep=False)
            sets = [{**sets[0], **{name: known[name] for name in self.grid}}]
        labels = data.Y.shape[1]

        def values(results: list[SplitResult], metric: str) -> Values:
            is_share = metric == "coverage" and self.coverage == "share"
            each = (result.metrics[metric] / (labels if is_share else 1) for result in results)
            return [value if math.isfinite(value) else None for value in each]

        measurements = []
        for place, parameters in enumerate(sets):
            metrics = {metric: values(passes[0][place], metric) for metric in METRICS}
            if self.success_at:
                metrics["MIR"] = values(passes[0][place], "mean_inverse_rank")
            for at, results in zip(self.success_at, passes, strict=False):
                metrics[f"SR@{at}"] = values(results[place], "success_rate")
            measurements.append(Measurement(parameters, metrics))
        return measurements


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
        method.estimator,
        tuple(sets),
        convention=setup.convention,
        coverage=setup.coverage,
        success_at=tuple(setup.success_at),
        grid=method.grid,
        select=setup.select if method.grid else None,
        scale=setup.scale_of(dataset, algorithm),
        split=None if groups else setup.splits.get(dataset, setup.split),
        rows=setup.rows,
        nominal=tuple(setup.nominal.get(dataset, ())),
        labels=tuple(name for group in groups for name in group),
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


def _model(name: str, parameters: Settings, n_jobs: int | None) -> Model:
    """An unfitted estimator; baselines use no threads."""
    threads = {} if name in BASELINES else {"n_jobs": n_jobs}
    model: Model = algorithm(name)(**parameters, **threads)
    return model


def label_count_clusters(
    data: Dataset,
    n_neighbors: int,
    groups: Sequence[Sequence[str]],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Values]:
    """Mean number of neighbors with a label, over the rows of a cluster with or without that label.

    The clusters in Table 1 of Wang et al. (2018) are not clusters of the features, with which the
    method of that paper works: its numbers come out if rows are clustered by how many of their
    neighbors have each label. K-means begins each cluster around the labels of a group.

    The keys are "count_with_label NAME" and "count_without_label NAME"; each has one mean per
    cluster, None where a cluster has no such row.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    names = [] if data.label_names is None else data.label_names.tolist()
    graph = neighbor_graph(data.X, n_neighbors, n_jobs=n_jobs, progress=progress)
    counts, has = neighbor_counts(graph, data.Y).toarray(), data.Y.toarray() > 0
    starts = np.zeros((len(groups), len(names)))
    for center, group in zip(starts, groups, strict=True):
        center[[names.index(name) for name in group]] = n_neighbors / len(group)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # clusters that end without a row
        k_means = KMeans(len(groups), init=starts, n_init=1)
        cluster = k_means.fit_predict(counts.astype(np.float64))
    means: dict[str, Values] = {}
    for label, name in enumerate(names):
        for side, rows in (("with", has[:, label]), ("without", ~has[:, label])):
            members = [counts[rows & (cluster == g), label] for g in range(len(groups))]
            means[f"count_{side}_label {name}"] = [
                float(member.mean()) if len(member) else None for member in members
            ]
    return means
