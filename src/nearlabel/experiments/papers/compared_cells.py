"""A published cell and our number beside it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearlabel.experiments.papers.experiment_runs import Measurement
from nearlabel.experiments.papers.known_differences import Cause, Reason, reason_off
from nearlabel.experiments.papers.planned_experiments import Experiment
from nearlabel.experiments.papers.printed_tables import PrintedCell
from nearlabel.experiments.papers.verdicts import Verdict, verdict


@dataclass(frozen=True)
class ComparedCell:
    """A published cell compared with our number.

    Attributes
    ----------
    cell : PrintedCell
    verdict : Verdict
    reason : Reason or None
        Why it is off or was not run; None where it agrees.
    ours, ours_std : float or None
        Our number, and its standard deviation over the splits.
    parameters : mapping
        Those with which our number was made; empty where there is none.
    experiment : Experiment or None
        How our number was made; of an average, the first of its experiments.
    """

    cell: PrintedCell
    verdict: Verdict = Verdict.NOT_RUN
    reason: Reason | None = None
    ours: float | None = None
    ours_std: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    experiment: Experiment | None = None

    def record(self) -> dict[str, Any]:
        """What it holds, as plain values for JSON."""
        cell = self.cell
        settings = None if self.experiment is None else self.experiment.settings()
        where = {
            key: cell.parameters[key] for key in ("cluster", "label") if key in cell.parameters
        }
        return {
            "paper": cell.paper,
            "table": cell.table,
            "dataset": cell.dataset,
            "algorithm": cell.algorithm,
            "metric": cell.metric,
            "published": None if cell.printed is None else float(cell.printed),
            "std": None if cell.std is None else float(cell.std),
            "ours": self.ours,
            "verdict": self.verdict.value,
            "reason": None if self.reason is None else self.reason.text,
            "printed": cell.printed,
            "ours_std": self.ours_std,
            "parameters": {**(self.parameters or cell.parameters), **where},
            "setting": settings,
            "name_in_paper": cell.name_in_paper,
            "doubt": cell.doubt,
        }


def compared(
    cell: PrintedCell, experiment: Experiment, measurements: Sequence[Measurement]
) -> ComparedCell:
    """Compare a cell that has a number with one measurement, or with the average of several."""
    parameters = measurements[0].parameters
    values = [value for one in measurements for value in one.values(cell)]
    numbers = [value for value in values if value is not None]
    if cell.printed is None or len(numbers) < len(values):
        undefined = Reason(Cause.UNDEFINED_METRIC, f"{cell.metric} is not defined on these data")
        return ComparedCell(cell, reason=undefined, parameters=parameters, experiment=experiment)
    ours = statistics.fmean(numbers)
    over_splits = len(measurements) == 1 and len(numbers) > 1
    counts_labels = cell.metric == "coverage" and experiment.coverage == "labels"
    said = verdict(ours, cell.printed, cell.std, counts_labels=counts_labels)
    return ComparedCell(
        cell,
        said,
        reason_off(cell, parameters) if said is Verdict.OFF else None,
        ours,
        statistics.stdev(numbers) if over_splits else None,
        parameters,
        experiment,
    )
