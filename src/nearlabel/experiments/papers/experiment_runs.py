"""An experiment, run: its data prepared, parameters chosen where none are printed, measured."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from threadpoolctl import threadpool_limits

from nearlabel.baselines.algorithm_registry import BASELINES, algorithm
from nearlabel.common.arrays import Array
from nearlabel.common.progress import Stages
from nearlabel.datasets import Dataset
from nearlabel.experiments.evaluation import SplitResult, evaluate_splits
from nearlabel.experiments.folds import Model
from nearlabel.experiments.papers.printed_tables import PrintedCell
from nearlabel.experiments.papers.table_setups import (
    LABEL_COUNT_CLUSTERS,
    DataSetup,
    Experiment,
    Settings,
)
from nearlabel.experiments.protocols import Part, splits
from nearlabel.experiments.tuning import GraphSearchCV
from nearlabel.features.scales import scaler
from nearlabel.labels.counts import neighbor_counts
from nearlabel.metrics import scorer
from nearlabel.search import Progress, neighbor_graph

METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
Values = Sequence[float | None]  # None where a number is not defined


class PreparedData(NamedTuple):
    """Data, their splits, and the scaling that is still to be done in each of them."""

    data: Dataset
    parts: list[Part]
    scale: str


def prepared(data: Dataset, setup: DataSetup) -> PreparedData:
    """Make data ready, or say by a ValueError what they lack."""
    for kind, needed, names in (
        ("label", setup.labels, data.label_names),
        ("feature", setup.nominal, data.feature_names),
    ):
        for name in needed:
            if names is None or name not in names.tolist():
                raise ValueError(f"this data set has no {kind} {name!r}")
    if setup.rows == "several labels":
        data = data.rows(np.diff(data.Y.indptr) > 1)
    if setup.split is None:
        return PreparedData(data, [], setup.scale)
    parts = splits(data, setup.split, seed=setup.seed)
    if setup.nominal:
        data = _with_nominal(data, parts[0].train, setup.nominal, setup.scale)
        return PreparedData(data, parts, "none")
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
        k, groups = (
            cast(int, parameters["n_neighbors"]),
            cast(list[list[str]], parameters["groups"]),
        )
        means = label_count_clusters(data, k, groups, n_jobs=n_jobs, progress=progress)
        return [Measurement(parameters, means)]
    if experiment.grid:
        stages = Stages(progress, 1000)
        sets = [_chosen(experiment, ready, n_jobs, stages.next(900))]
        progress = stages.next(100)
    ranks = experiment.success_at or (5,)  # a pass measures one success rate
    stages = Stages(progress, 1000)
    passes = [
        evaluate_splits(
            data,
            [_model(experiment.estimator, parameters, n_jobs) for parameters in sets],
            parts,
            scale=scale,
            convention=str(experiment.convention),
            at=at,
            progress=stages.next(1000 // len(ranks)),
        )
        for at in ranks
    ]
    labels = data.Y.shape[1]

    def values(results: list[SplitResult], metric: str) -> Values:
        is_share = metric == "coverage" and experiment.coverage == "share"
        each = (result.metrics[metric] / (labels if is_share else 1) for result in results)
        return [value if math.isfinite(value) else None for value in each]

    measurements = []
    for place, parameters in enumerate(sets):
        metrics = {metric: values(passes[0][place], metric) for metric in METRICS}
        if experiment.success_at:
            metrics["MIR"] = values(passes[0][place], "mean_inverse_rank")
        for at, results in zip(experiment.success_at, passes, strict=False):
            metrics[f"SR@{at}"] = values(results[place], "success_rate")
        measurements.append(Measurement(parameters, metrics))
    return measurements


def _chosen(
    experiment: Experiment, ready: PreparedData, n_jobs: int | None, progress: Progress | None
) -> Settings:
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
