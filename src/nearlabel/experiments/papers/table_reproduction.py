"""The published tables, reproduced: what the papers print beside what nearlabel measures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from nearlabel.common.messages import one_line
from nearlabel.common.progress import Stages
from nearlabel.common.validation import check_n_jobs
from nearlabel.experiments.papers import printed_tables
from nearlabel.experiments.papers.compared_cells import ComparedCell, compared
from nearlabel.experiments.papers.experiment_runs import ExperimentResult, run_experiment
from nearlabel.experiments.papers.known_differences import Cause, Reason
from nearlabel.experiments.papers.planned_experiments import (
    Experiment,
    experiments_of,
    setup_of_cell,
)
from nearlabel.experiments.papers.prepared_data import UnusableDataError, loaded, prepared
from nearlabel.experiments.papers.printed_tables import PrintedCell
from nearlabel.experiments.papers.result_store import (
    ResultStore,
    data_key,
    default_folder,
    result_key,
)
from nearlabel.experiments.papers.table_setups import TableSetup
from nearlabel.search import Progress

Outcome = ExperimentResult | Reason
_STEPS = 1000  # of progress, for each experiment


@dataclass(frozen=True)
class Reproduction:
    """Published numbers and ours.

    Attributes
    ----------
    cells : list of ComparedCell
        One for each published cell.
    setups : list of TableSetup
        Those that the cells belong to.
    measured, read : int
        Experiments that were run now, and whose results were stored before.
    absent : list of str
        Data sets that are not in the data folder.
    path : Path
        The folder of results of this code.
    """

    cells: list[ComparedCell]
    setups: list[TableSetup]
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

    Results are stored as soon as an experiment is done, so that a second call goes on where the
    first was interrupted, and one after that only reads.

    Parameters
    ----------
    papers : collection of str, default=()
        Ids of papers, such as "zhang-2007"; all by default.
    tables : collection of str, default=()
        Tables of these papers; all by default.
    results : path, optional
        The folder of results; by default in the user's cache.
    again : bool, default=False
        Whether all of them are measured again.
    n_jobs : int, optional
        Threads of the searches; -1 for all cores.
    progress : callable, optional
        Called with (steps done, steps in all).

    Returns
    -------
    Reproduction
    """
    cells = _wanted(papers, tables)
    check_n_jobs(n_jobs)
    store = ResultStore(default_folder() if results is None else results, again=again)
    plans = [(cell, experiments_of(cell)) for cell in cells]
    needed = dict.fromkeys(one for _, plan in plans if isinstance(plan, tuple) for one in plan)
    known, missing = _known(list(needed), store)
    measured = _measured(missing, store, n_jobs, progress)
    outcomes = {**known, **measured}
    absent = (one.dataset for one, outcome in known.items() if isinstance(outcome, Reason))
    return Reproduction(
        [_compared(cell, plan, outcomes) for cell, plan in plans],
        list(dict.fromkeys(filter(None, map(setup_of_cell, cells)))),
        _count_of_results(measured),
        _count_of_results(known),
        list(dict.fromkeys(absent)),
        store.path,
    )


def _count_of_results(outcomes: Mapping[Experiment, Outcome]) -> int:
    return sum(isinstance(one, ExperimentResult) for one in outcomes.values())


def _wanted(papers: Collection[str], tables: Collection[str]) -> list[PrintedCell]:
    chosen = dict.fromkeys(map(printed_tables.paper_id, papers or printed_tables.papers()))
    known = {paper: printed_tables.tables_of(paper) for paper in chosen}
    for table in tables:
        if not any(table in some for some in known.values()):
            listed = "; ".join(f"{paper}: {', '.join(some)}" for paper, some in known.items())
            raise ValueError(f"table must be one of {listed}; got {table!r}")
    return [
        cell
        for cell in printed_tables.all_cells()
        if cell.paper in chosen and (not tables or cell.table in tables)
    ]


def _known(
    experiments: Sequence[Experiment], store: ResultStore
) -> tuple[dict[Experiment, Outcome], dict[Experiment, str]]:
    """What needs no measuring, stored results and absent data; and the keys of all others."""
    data = {name: data_key(name) for name in dict.fromkeys(one.dataset for one in experiments)}
    known: dict[Experiment, Outcome] = {}
    missing: dict[Experiment, str] = {}
    for experiment in experiments:
        of_data = data[experiment.dataset]
        if of_data is None:
            known[experiment] = Reason.absent((experiment.dataset,))
            continue
        key = result_key(experiment.settings(), of_data)
        stored = store.get(key)
        if stored is None:
            missing[experiment] = key
        else:
            known[experiment] = ExperimentResult.from_json(stored)
    return known, missing


def _measured(
    missing: Mapping[Experiment, str],
    store: ResultStore,
    n_jobs: int | None,
    progress: Progress | None,
) -> dict[Experiment, Outcome]:
    """Run experiments and keep their results; those that cannot be run have a reason."""
    latest = lru_cache(maxsize=1)(loaded)
    stages = Stages(progress, _STEPS * len(missing))
    outcomes: dict[Experiment, Outcome] = {}
    for experiment in sorted(missing, key=lambda one: one.dataset):  # each data set is loaded once
        tell = stages.next(_STEPS)
        if tell is not None:
            tell(0, 1)
        try:
            ready = prepared(latest(experiment.dataset), experiment.data)
            result = run_experiment(experiment, ready, n_jobs=n_jobs, progress=tell)
        except (UnusableDataError, MemoryError) as error:
            outcomes[experiment] = Reason(Cause.UNUSABLE_DATA, one_line(str(error)))
        else:
            store.add(missing[experiment], result.as_json())
            outcomes[experiment] = result
    return outcomes


def _compared(
    cell: PrintedCell, plan: tuple[Experiment, ...] | Reason, outcomes: Mapping[Experiment, Outcome]
) -> ComparedCell:
    if isinstance(plan, Reason):
        return ComparedCell(cell, reason=plan)
    found = [outcomes[experiment] for experiment in plan]
    reasons = [one for one in found if isinstance(one, Reason)]
    absent = tuple(name for reason in reasons for name in reason.datasets)
    if reasons:
        return ComparedCell(cell, reason=Reason.absent(absent) if absent else reasons[0])
    results = [one.measurement(cell) for one in found if isinstance(one, ExperimentResult)]
    return compared(cell, plan[0], results)
