"""The published tables, reproduced: what the papers print beside what nearlabel measures."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import ArgumentError, check_n_jobs
from nearlabel.experiments.papers import printed_tables
from nearlabel.experiments.papers.measured_experiments import (
    Measurements,
    measured_experiments,
    paper_results,
)
from nearlabel.experiments.papers.picture_data import picture_vectors_by_name
from nearlabel.experiments.papers.printed_tables import PrintedCell
from nearlabel.experiments.papers.table_experiments import Experiment, Settings, experiments_of
from nearlabel.experiments.papers.verdicts import Reason, Verdict, reason_off, verdict
from nearlabel.metrics import METRICS
from nearlabel.search import Progress


@dataclass(frozen=True)
class ComparedCell:
    """A published cell and our number beside it.

    `reason` says why it is off or was not run; `ours_std` is the standard deviation over the
    splits, whose values are in `splits`; `parameters` and `experiment` say how our number was made,
    of an average the first.
    """

    cell: PrintedCell
    verdict: Verdict = Verdict.NOT_RUN
    reason: Reason | None = None
    ours: float | None = None
    ours_std: float | None = None
    parameters: Settings = field(default_factory=dict)
    experiment: Experiment | None = None
    splits: Sequence[float] = ()

    def record(self) -> dict[str, object]:
        """What it holds, as plain values for JSON."""
        cell = self.cell
        where = {
            key: cell.parameters[key] for key in ("cluster", "label") if key in cell.parameters
        }
        place = ("paper", "table", "dataset", "algorithm", "metric")
        return {
            **{key: getattr(cell, key) for key in place},
            "published": None if cell.printed is None else float(cell.printed),
            "std": None if cell.std is None else float(cell.std),
            "ours": self.ours,
            "verdict": self.verdict.value,
            "reason": None if self.reason is None else self.reason.text,
            "printed": cell.printed,
            "ours_std": self.ours_std,
            "parameters": {**(self.parameters or cell.parameters), **where},
            "setting": None if self.experiment is None else asdict(self.experiment),
            "name_in_paper": cell.name_in_paper,
            "doubt": cell.doubt,
        }


@dataclass(frozen=True)
class Reproduction:
    """Published numbers and ours.

    `measured` experiments were run now, the results of `read` ones were stored before in the folder
    `path`; the data sets that are `absent` are not in the data folder.
    """

    cells: list[ComparedCell]
    measured: int
    read: int
    absent: list[str]
    path: Path


def reproduce(
    papers: Collection[str] = (),
    tables: Collection[str] = (),
    *,
    results: str | Path | None = None,
    again: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Reproduce the published tables, as far as the data folder has their data.

    Results are stored as soon as an experiment is done, by default in the user's cache, so that a
    second call goes on where the first was interrupted, and one after that only reads; with
    `again`, all are measured again. Papers are named by ids such as "zhang-2007"; by default all
    of their tables are reproduced. `progress` is called with (steps done, steps in all).
    """
    every_paper = printed_tables.papers()
    for paper in papers:
        if paper not in every_paper:
            hint = did_you_mean(paper, every_paper)
            message = f"paper must be one of {', '.join(every_paper)}; got {paper!r}{hint}"
            raise ArgumentError(message, "paper")
    known = {paper: printed_tables.tables_of(paper) for paper in papers or every_paper}
    for table in tables:
        if not any(table in of_paper for of_paper in known.values()):
            listed = "; ".join(f"{paper}: {', '.join(names)}" for paper, names in known.items())
            raise ArgumentError(f"table must be one of {listed}; got {table!r}", "table")
    check_n_jobs(n_jobs)
    cells = [
        cell
        for cell in printed_tables.all_cells()
        if cell.paper in known and (not tables or cell.table in tables)
    ]
    plans = [experiments_of(cell) for cell in cells]
    needed = dict.fromkeys(
        experiment for plan in plans if not isinstance(plan, Reason) for experiment in plan
    )
    measured = measured_experiments(needed, results, again=again, n_jobs=n_jobs, progress=progress)
    return Reproduction(
        [
            ComparedCell(cell, reason=plan)
            if isinstance(plan, Reason)
            else _compared(cell, plan, measured)
            for cell, plan in zip(cells, plans, strict=True)
        ],
        measured.new,
        len(measured.results) - measured.new,
        list(dict.fromkeys(name for why in measured.reasons.values() for name in why.absent)),
        paper_results(results).path,
    )


def _compared(
    cell: PrintedCell, experiments: Sequence[Experiment], measured: Measurements
) -> ComparedCell:
    """Compare a cell with the result of its experiment, or with the average of several results."""
    reasons = [measured.reasons[each] for each in experiments if each in measured.reasons]
    if reasons:
        absent = tuple(name for reason in reasons for name in reason.absent)
        return ComparedCell(cell, reason=Reason.no_data(absent) if absent else reasons[0])
    experiment = experiments[0]
    measurements = [
        measurement
        for each in experiments
        for measurement in measured.results[each]
        if measurement.has_parameters_of(cell)
    ]
    parameters = measurements[0].parameters
    values = [value for measurement in measurements for value in measurement.values(cell)]
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        undefined = Reason(f"{cell.metric} is not defined on these data")
        return ComparedCell(cell, reason=undefined, parameters=parameters, experiment=experiment)
    ours = statistics.fmean(numbers)
    over_splits = len(experiments) == 1 and len(numbers) > 1
    judged = Verdict.NEW
    if cell.printed is not None:
        counts_labels = cell.metric == "coverage" and experiment.coverage == "labels"
        better: Literal["less", "more"] | None = None
        if cell.dataset in picture_vectors_by_name():  # our features may be better
            better = "less" if METRICS[cell.metric].loss else "more"
        judged = verdict(ours, cell.printed, cell.std, counts_labels=counts_labels, better=better)
    return ComparedCell(
        cell,
        judged,
        reason_off(cell, parameters) if judged is Verdict.OFF else None,
        ours,
        statistics.stdev(numbers) if over_splits else None,
        parameters,
        experiment,
        numbers if over_splits else (),
    )
