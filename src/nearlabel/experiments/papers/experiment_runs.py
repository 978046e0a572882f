"""An experiment, run: parameters chosen where the paper does not print them, then measured."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nearlabel.common.arrays import Array, Csr
from nearlabel.common.progress import Stages
from nearlabel.datasets.scaling import scaler
from nearlabel.experiments.evaluation import evaluate_splits
from nearlabel.experiments.papers.label_count_clusters import label_count_clusters
from nearlabel.experiments.papers.planned_experiments import Experiment
from nearlabel.experiments.papers.prepared_data import PreparedData
from nearlabel.experiments.papers.printed_tables import PrintedCell
from nearlabel.experiments.papers.table_setups import LABEL_COUNT_CLUSTERS
from nearlabel.experiments.tuning import GraphSearchCV
from nearlabel.methods.registry import method
from nearlabel.metrics import scorer
from nearlabel.search import Progress

METRICS = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")


@dataclass(frozen=True)
class Measurement:
    """What a method reaches with one set of parameters.

    Attributes
    ----------
    parameters : mapping
    metrics : mapping of str to sequence
        For each metric a value per split, None where it is not defined; for means of label counts
        a value per cluster.
    """

    parameters: Mapping[str, Any]
    metrics: Mapping[str, Sequence[float | None]]

    def values(self, cell: PrintedCell) -> Sequence[float | None]:
        """What it has for a cell: a value per split, or the mean of a cluster."""
        if "cluster" not in cell.parameters:
            return self.metrics[cell.metric]
        means = self.metrics[f"{cell.metric} {cell.parameters['label']}"]
        return [means[int(cell.parameters["cluster"]) - 1]]


@dataclass(frozen=True)
class ExperimentResult:
    """What is kept of an experiment: a measurement per set of parameters, and processor time."""

    measurements: tuple[Measurement, ...]
    seconds: float

    def measurement(self, cell: PrintedCell) -> Measurement:
        """The measurement with the parameters that the row of a cell prints."""
        wanted = cell.estimator_parameters.items()
        [found] = (one for one in self.measurements if wanted <= one.parameters.items())
        return found

    def as_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ExperimentResult:
        """A result that was stored."""
        measurements = tuple(Measurement(**one) for one in stored["measurements"])
        return cls(measurements, stored["seconds"])


def run_experiment(
    experiment: Experiment,
    ready: PreparedData,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> ExperimentResult:
    """Run an experiment on its data.

    Parameters
    ----------
    experiment : Experiment
    ready : PreparedData
        By `experiment.data`.
    n_jobs : int, optional
        Threads of the search.
    progress : callable, optional
        See `evaluate_splits`.
    """
    start = time.process_time()
    if experiment.estimator == LABEL_COUNT_CLUSTERS:
        [parameters] = experiment.parameters
        means = label_count_clusters(ready.data, **parameters, n_jobs=n_jobs, progress=progress)
        measurements = [Measurement(parameters, means)]
    else:
        measurements = _measurements(experiment, ready, n_jobs, progress)
    return ExperimentResult(tuple(measurements), round(time.process_time() - start, 2))


def _measurements(
    experiment: Experiment, ready: PreparedData, n_jobs: int | None, progress: Progress | None
) -> list[Measurement]:
    """Metrics of a method on all splits, for each set of parameters."""
    (data, parts, scale), sets = ready, experiment.parameters
    if experiment.grid:
        train, stages = parts[0].train, Stages(progress, 1000)
        X = _scaled(data.X, train, scale)
        sets = (_chosen(X, data.Y[train], experiment, n_jobs, stages.next(900)),)
        progress = stages.next(100)
    found = evaluate_splits(
        data,
        [estimator(experiment.estimator, **one, n_jobs=n_jobs) for one in sets],
        parts,
        scale=scale,
        convention=str(experiment.convention),
        progress=progress,
    )
    units = {"coverage": data.Y.shape[1] if experiment.coverage == "share" else 1}
    return [
        Measurement(
            parameters,
            {
                metric: [_value(one.metrics[metric], units.get(metric, 1)) for one in of_model]
                for metric in METRICS
            },
        )
        for parameters, of_model in zip(sets, found, strict=True)
    ]


def estimator(name: str, **parameters: Any) -> Any:
    """An unfitted estimator, given the name of its class."""
    return method(name)(**parameters)


def _scaled(X: Any, train: Array, scale: str) -> Any:
    """The training rows, scaled by themselves."""
    transformer = scaler(scale, X[train])
    return X[train] if transformer is None else transformer.fit_transform(X[train])


def _chosen(
    X: Any, Y: Csr, experiment: Experiment, n_jobs: int | None, progress: Progress | None
) -> dict[str, Any]:
    """The parameters that are best by leave-one-out, on the training rows alone."""
    [fixed] = experiment.parameters
    search = GraphSearchCV(
        estimator(experiment.estimator, **fixed, n_jobs=n_jobs),
        experiment.grid,
        scoring=scorer(str(experiment.select), convention=str(experiment.convention)),
        cv="loo",
        refit=False,
    )
    search.fit(X, Y, progress=progress)
    return {**fixed, **search.best_params_}


def _value(value: float, unit: int) -> float | None:
    return value / unit if math.isfinite(value) else None
