"""An experiment, run: its data prepared, parameters chosen where none are printed, measured."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from nearlabel.baselines.algorithm_registry import BASELINES, algorithm
from nearlabel.common.arrays import Array
from nearlabel.common.messages import one_line
from nearlabel.common.progress import Stages
from nearlabel.datasets import Dataset, load
from nearlabel.experiments.evaluation import SplitResult, evaluate_splits
from nearlabel.experiments.papers.printed_tables import PrintedCell
from nearlabel.experiments.papers.table_setups import LABEL_COUNT_CLUSTERS, DataSetup, Experiment
from nearlabel.experiments.protocols import Part, splits
from nearlabel.experiments.tuning import GraphSearchCV
from nearlabel.features.scales import scaler
from nearlabel.labels.counts import neighbor_counts
from nearlabel.metrics import scorer
from nearlabel.search import Progress, neighbor_graph

METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")


class UnusableDataError(Exception):
    """A data set of the expected name is not what an experiment needs, or exceeds the memory."""


class PreparedData(NamedTuple):
    """Data, their splits, and the scaling that is still to be done in each of them."""

    data: Dataset
    parts: list[Part]
    scale: str


def loaded(dataset: str) -> Dataset:
    """A data set of the data folder, or an `UnusableDataError` that says why it cannot be read."""
    try:
        return load(dataset)
    except (ValueError, OSError, MemoryError) as error:
        raise UnusableDataError(one_line(str(error))) from error


def prepared(data: Dataset, setup: DataSetup) -> PreparedData:
    """Make data ready, or say by an `UnusableDataError` what they lack."""
    for kind, wanted, names in (
        ("label", setup.labels, data.label_names),
        ("feature", setup.nominal, data.feature_names),
    ):
        for name in wanted:
            if names is None or name not in names.tolist():
                raise UnusableDataError(f"this data set has no {kind} {name!r}")
    if setup.rows == "several labels":
        data = data.rows(np.diff(data.Y.indptr) > 1)
    if setup.split is None:
        return PreparedData(data, [], setup.scale)
    try:
        parts = splits(data, setup.split, seed=setup.seed)
        if setup.nominal:
            data = _with_nominal(data, parts[0].train, setup.nominal, setup.scale)
            return PreparedData(data, parts, "none")
    except (ValueError, MemoryError) as error:
        raise UnusableDataError(one_line(str(error))) from error
    return PreparedData(data, parts, setup.scale)


def _with_nominal(data: Dataset, train: Array, names: Sequence[str], scale: str) -> Dataset:
    """The data scaled, and with nominal features that are at distance 1 where they differ.

    That is what Weka's distance, and so Mulan's, makes of them.
    """
    is_nominal = np.isin(np.asarray(data.feature_names), names)
    rest, transformer = data.X[:, ~is_nominal], scaler(scale, data.X[:, ~is_nominal])
    if transformer is not None:
        rest = transformer.fit(rest[train]).transform(rest)
    columns = [
        (data.X[:, place, None] == np.unique(data.X[:, place])) / np.sqrt(2)
        for place in np.flatnonzero(is_nominal)
    ]
    return replace(data, X=np.hstack([rest, *columns]), feature_names=None)


@dataclass(frozen=True)
class Measurement:
    """What a method reaches with one set of parameters.

    `metrics` has for each metric a value per split, None where it is not defined; for means of
    label counts a value per cluster.
    """

    parameters: Mapping[str, Any]
    metrics: Mapping[str, Sequence[float | None]]

    def has_parameters_of(self, cell: PrintedCell) -> bool:
        """Whether it was made with the parameters that the row of a cell prints."""
        return cell.estimator_parameters.items() <= self.parameters.items()

    def values(self, cell: PrintedCell) -> Sequence[float | None]:
        """What it has for a cell: a value per split, or the mean of a cluster."""
        if "cluster" not in cell.parameters:
            return self.metrics[cell.metric]
        means = self.metrics[f"{cell.metric} {cell.parameters['label']}"]
        return [means[int(cell.parameters["cluster"]) - 1]]


def run_experiment(
    experiment: Experiment,
    ready: PreparedData,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Measurement]:
    """Measure a method on its prepared data, with each set of parameters."""
    (data, parts, scale), sets = ready, list(experiment.parameters)
    if experiment.estimator == LABEL_COUNT_CLUSTERS:
        [parameters] = sets
        means = label_count_clusters(data, **parameters, n_jobs=n_jobs, progress=progress)
        return [Measurement(parameters, means)]
    if experiment.grid:
        stages = Stages(progress, 1000)
        sets = [_chosen(experiment, ready, n_jobs, stages.next(900))]
        progress = stages.next(100)
    ranks = experiment.success_at or (5,)  # a pass measures one success rate
    stages = Stages(progress, 1000)
    found = [
        evaluate_splits(
            data,
            [_model(experiment.estimator, one, n_jobs) for one in sets],
            parts,
            scale=scale,
            convention=str(experiment.convention),
            at=at,
            progress=stages.next(1000 // len(ranks)),
        )
        for at in ranks
    ]
    unit = dict.fromkeys(METRICS, 1)
    if experiment.coverage == "share":
        unit["coverage"] = data.Y.shape[1]

    def values(results: list[SplitResult], metric: str) -> list[float | None]:
        each = (one.metrics[metric] / unit.get(metric, 1) for one in results)
        return [value if math.isfinite(value) else None for value in each]

    measured = []
    for place, parameters in enumerate(sets):
        metrics = {metric: values(found[0][place], metric) for metric in METRICS}
        if experiment.success_at:
            metrics["MIR"] = values(found[0][place], "mean_inverse_rank")
        for at, of_all in zip(experiment.success_at, found, strict=False):
            metrics[f"SR@{at}"] = values(of_all[place], "success_rate")
        measured.append(Measurement(parameters, metrics))
    return measured


def _chosen(
    experiment: Experiment, ready: PreparedData, n_jobs: int | None, progress: Progress | None
) -> dict[str, Any]:
    """The parameters that are best by leave-one-out, on the training rows alone."""
    [fixed], train = experiment.parameters, ready.parts[0].train
    X = ready.data.X[train]
    transformer = scaler(ready.scale, X)
    search = GraphSearchCV(
        _model(experiment.estimator, fixed, n_jobs),
        experiment.grid,
        scoring=scorer(str(experiment.select), convention=str(experiment.convention)),
        cv="loo",
        refit=False,
    )
    X = X if transformer is None else transformer.fit_transform(X)
    search.fit(X, ready.data.Y[train], progress=progress)
    return {**fixed, **search.best_params_}


def _model(name: str, parameters: Mapping[str, Any], n_jobs: int | None) -> Any:
    """An unfitted estimator; baselines use no threads."""
    threads = {} if name in BASELINES else {"n_jobs": n_jobs}
    return algorithm(name)(**parameters, **threads)


def label_count_clusters(
    data: Dataset,
    n_neighbors: int,
    groups: Sequence[Sequence[str]],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, list[float | None]]:
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
    first = np.zeros((len(groups), len(names)))
    for row, group in zip(first, groups, strict=True):
        row[[names.index(name) for name in group]] = n_neighbors / len(group)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # clusters that end without a row
        cluster = KMeans(len(groups), init=first, n_init=1).fit_predict(counts.astype(np.float64))
    found: dict[str, list[float | None]] = {}
    for label, name in enumerate(names):
        for which, rows in (("with", has[:, label]), ("without", ~has[:, label])):
            members = [counts[rows & (cluster == one), label] for one in range(len(groups))]
            found[f"count_{which}_label {name}"] = [
                float(some.mean()) if len(some) else None for some in members
            ]
    return found
