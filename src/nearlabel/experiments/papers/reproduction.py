"""The published tables made anew: what the papers print beside what comes out here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearlabel.common.messages import one_line
from nearlabel.common.validation import check_n_jobs
from nearlabel.datasets import Dataset, load
from nearlabel.experiments.papers import published
from nearlabel.experiments.papers.plans import Experiment, Unit, plan, unit_of
from nearlabel.experiments.papers.preparing import UNFIT, Prepared, prepared
from nearlabel.experiments.papers.progress import part_of
from nearlabel.experiments.papers.published import Cell
from nearlabel.experiments.papers.records import not_run, run_record
from nearlabel.experiments.papers.result_store import (
    ResultStore,
    data_key,
    default_folder,
    result_key,
)
from nearlabel.search import Progress

ABSENT = "not in the data folder: "  # how the reason begins, before the names of the data sets


@dataclass(frozen=True)
class Reproduction:
    """Published numbers and ours.

    Attributes
    ----------
    records : list of dict
        One for each published cell: `paper`, `table`, `dataset`, `algorithm`, `metric`,
        `published`, `std`, `ours`, `verdict`, `reason`; also `printed`, the published digits,
        `parameters` with which ours was made, `ours_std` over the splits, `setting`, and
        `name_in_paper`, the paper's name of the data set.
    experiments : list of Experiment
        Those that the records belong to.
    measured, read : int
        Units that were run now, and that were there before.
    absent : list of str
        Data sets that are not in the data folder.
    path : Path
        The file of results.
    """

    records: list[dict[str, Any]]
    experiments: list[Experiment]
    measured: int
    read: int
    absent: list[str]
    path: Path


def all_cells() -> list[Cell]:
    """The published cells that are compared, paper by paper: results, and means of counts."""
    every = [*published.cluster_counts(), *published.cells()]
    return sorted(every, key=lambda cell: cell.paper)


def tables_of(paper: str) -> list[str]:
    """The tables of a paper that are compared."""
    return list(dict.fromkeys(cell.table for cell in all_cells() if cell.paper == paper))


def reproduce(
    papers: Collection[str] = (),
    tables: Collection[str] = (),
    *,
    results: str | Path | None = None,
    again: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Make the published tables anew, as far as the data folder has their data.

    Results are kept as soon as a data set is done with an algorithm, so that a second call goes on
    where the first was interrupted, and one after that only reads.

    Parameters
    ----------
    papers : collection of str, default=()
        Numbers of papers, "000" to "004"; all by default.
    tables : collection of str, default=()
        Tables of these papers; all by default.
    results : path, optional
        The folder of results; by default in the user's cache.
    again : bool, default=False
        Whether all of these is measured anew.
    n_jobs : int, optional
        Threads of the searches; -1 for all cores.
    progress : callable, optional
        Called with (steps done, steps in all).

    Returns
    -------
    Reproduction
    """
    wanted = _wanted(papers, tables)
    check_n_jobs(n_jobs)
    store = ResultStore(default_folder() if results is None else results, again=again)
    bench = _Bench(store, n_jobs)
    units = list(dict.fromkeys(unit for cell in wanted for unit in _units_of(cell)))
    bench.run(units, progress)
    experiments = dict.fromkeys(filter(None, map(plan().experiment_of, wanted)))
    return Reproduction(
        [_record(cell, bench) for cell in wanted],
        list(experiments),
        bench.measured,
        bench.read,
        bench.absent,
        store.path,
    )


def _wanted(papers: Collection[str], tables: Collection[str]) -> list[Cell]:
    known = published.papers()
    for paper in papers:
        if paper not in known:
            raise ValueError(f"no paper {paper!r}; there are {', '.join(known)}")
    chosen = list(dict.fromkeys(papers)) or list(known)
    have = {paper: tables_of(paper) for paper in chosen}
    for table in tables:
        if not any(table in some for some in have.values()):
            listed = "; ".join(f"{paper}: {', '.join(some)}" for paper, some in have.items())
            raise ValueError(f"no table {table!r}; there are {listed}")
    return [
        cell
        for cell in all_cells()
        if cell.paper in chosen and (not tables or cell.table in tables)
    ]


def _units_of(cell: Cell) -> list[Unit]:
    """The units that a cell needs: one, or one a data set for an average."""
    experiment = plan().experiment_of(cell)
    if experiment is None or cell.printed is None:
        return []
    names = experiment.datasets if cell.dataset == experiment.average else (cell.dataset,)
    return [unit_of(experiment, name, cell.algorithm) for name in names]


class _Bench:
    """Runs units that have no result yet, and knows why one could not be run."""

    def __init__(self, store: ResultStore, n_jobs: int | None) -> None:
        self._store, self._n_jobs = store, n_jobs
        self._found: dict[Unit, dict[str, Any]] = {}
        self._refused: dict[Unit, str] = {}
        self._loaded: tuple[str, Dataset] | None = None
        self.measured = self.read = 0
        self.absent: list[str] = []

    def run(self, units: list[Unit], progress: Progress | None) -> None:
        """Have a result, or a reason why there is none, of each unit."""
        missing = []
        keys = {name: data_key(name) for name in dict.fromkeys(unit.dataset for unit in units)}
        self.absent = [name for name, data in keys.items() if data is None]
        for unit in units:
            data = keys[unit.dataset]
            if data is None:
                continue
            key = result_key(unit.setting, data)
            found = self._store.get(key)
            if found is None:
                missing.append((unit, key))
            else:
                self._found[unit] = found
        self.read = len(self._found)
        for place, (unit, key) in enumerate(missing):
            found = self._measured(unit, part_of(progress, place, place + 1, len(missing)))
            if found is not None:
                self._found[unit] = found
                self._store.add(key, found)
                self.measured += 1

    def _measured(self, unit: Unit, tell: Progress) -> dict[str, Any] | None:
        """What a unit gives; None, and a reason, where the data or the memory do not allow it."""
        from nearlabel.experiments.papers.running import run_unit

        try:
            ready = self._ready(unit)
        except UNFIT as error:
            self._refused[unit] = one_line(str(error))
            return None
        tell(0, 1)
        try:
            ran = run_unit(unit, ready, n_jobs=self._n_jobs, progress=tell)
        except MemoryError as error:
            self._refused[unit] = one_line(str(error))
            return None
        where = {"experiment": unit.experiment.title, "dataset": unit.dataset}
        return {**where, "algorithm": unit.algorithm, **ran}

    def _ready(self, unit: Unit) -> Prepared:
        if self._loaded is None or self._loaded[0] != unit.dataset:
            self._loaded = unit.dataset, load(unit.dataset)
        return prepared(self._loaded[1], unit.setting)

    def reason(self, units: list[Unit]) -> str | None:
        """Why one of the units was not run; None if all were."""
        absent = [unit.dataset for unit in units if unit.dataset in self.absent]
        if absent:
            return ABSENT + ", ".join(absent)
        return next(filter(None, map(self._refused.get, units)), None)

    def run_of(self, unit: Unit, cell: Cell) -> dict[str, Any]:
        """The run of a unit with the parameters of a cell."""
        runs: list[dict[str, Any]] = self._found[unit]["runs"]
        for run in runs:
            if len(runs) == 1 or run["parameters"]["n_neighbors"] == cell.parameters["k"]:
                return run
        raise KeyError(cell)


def _record(cell: Cell, bench: _Bench) -> dict[str, Any]:
    if cell.printed is None:
        return not_run(cell, "the paper has no number here")
    units, known = _units_of(cell), plan()
    if not units:
        why = known.other_methods.get(cell.algorithm) or known.lost_data.get(cell.dataset)
        return not_run(cell, why or "there is no experiment for it")
    why = bench.reason(units)
    if why is not None:
        return not_run(cell, why)
    return run_record(cell, units[0].setting, [bench.run_of(unit, cell) for unit in units])
