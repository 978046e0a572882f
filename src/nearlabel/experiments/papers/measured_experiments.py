"""Experiments, measured; or read, if they were measured by this code on these data."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nearlabel
from nearlabel.common import engine
from nearlabel.common.messages import one_line
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import UnsuitableDataError
from nearlabel.common.versions import package_versions
from nearlabel.datasets import Dataset, load
from nearlabel.datasets.source_files import find
from nearlabel.experiments.papers.picture_data import picture_vectors_by_name
from nearlabel.experiments.papers.prepared_data import prepared
from nearlabel.experiments.papers.table_experiments import Experiment, Measurement
from nearlabel.experiments.papers.verdicts import Reason
from nearlabel.experiments.result_store import ResultStore, digest_of, digest_of_files

_PACKAGE = Path(nearlabel.__file__).parent


class Measurements(NamedTuple):
    """What experiments have measured, or why nothing; `new` were measured now."""

    results: dict[Experiment, list[Measurement]]
    reasons: dict[Experiment, Reason]
    new: int


def measured_experiments(
    experiments: Collection[Experiment],
    folder: str | os.PathLike[str] | None = None,
    *,
    again: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Measurements:
    """Measure experiments, or read what they have measured before.

    A result is stored at once; with `again`, even if there is a stored one. `n_jobs` threads read
    pictures, whose vectors are kept beside the results of all states of the code.
    """
    store = paper_results(folder)
    results: dict[Experiment, list[Measurement]] = {}
    reasons: dict[Experiment, Reason] = {}
    missing: dict[Experiment, str] = {}
    names = dict.fromkeys(experiment.dataset for experiment in experiments)
    keys = {name: _key_or_reason(name) for name in names}
    for experiment in experiments:
        data = keys[experiment.dataset]
        if isinstance(data, Reason):
            reasons[experiment] = data
            continue
        key = digest_of([asdict(experiment), data])
        stored = None if again else store.get(key)
        if stored is not None:
            results[experiment] = [Measurement(**each) for each in stored["measurements"]]
        else:
            missing[experiment] = key
    latest: dict[str, Dataset] = {}  # one at a time
    read, steps = len(results), 1000  # of progress, for each result
    stages = Stages(progress, steps * len(missing))
    # In the order of the data sets, so that each is loaded once.
    for experiment in sorted(missing, key=lambda each: each.dataset):
        tell = stages.next(steps)
        if tell is not None:
            tell(0, 1)
        vectors = picture_vectors_by_name().get(experiment.dataset)
        try:
            if experiment.dataset not in latest:
                latest.clear()
                if vectors is None:
                    latest[experiment.dataset] = load(experiment.dataset)
                else:
                    halves = Stages(tell, steps)
                    reading, tell = halves.next(steps // 2), halves.next(steps // 2)
                    latest[experiment.dataset] = vectors.load(
                        store.path.parent, again=again, n_jobs=n_jobs, progress=reading
                    )
            ready = prepared(latest[experiment.dataset], experiment)
        except (ValueError, OSError, ImportError, MemoryError) as error:
            reasons[experiment] = Reason(one_line(str(error)))
            continue
        try:
            measurements = experiment.measurements(ready, n_jobs=n_jobs, progress=tell)
        except (UnsuitableDataError, MemoryError) as error:
            reasons[experiment] = Reason(one_line(str(error)))
            continue
        results[experiment] = measurements
        store.add(missing[experiment], {"measurements": [asdict(each) for each in measurements]})
    return Measurements(results, reasons, len(results) - read)


def paper_results(folder: str | os.PathLike[str] | None = None) -> ResultStore:
    """The results of this state of the code, so that an old one is never taken for a new one."""
    return ResultStore(f"reproduction-{code_key()[:16]}", folder)


@cache
def code_key() -> str:
    """A text that changes with the code that computes, and with the packages that it uses."""
    shows = ("cli/", "experiments/reporting/")  # what only shows results
    files = [
        path
        for path in sorted(_PACKAGE.rglob("*.py"))
        if not path.relative_to(_PACKAGE).as_posix().startswith(shows)
    ]
    core = engine.core()
    if core is not None:
        files.append(Path(core.__file__))
    return digest_of([package_versions(), digest_of_files(files)])


def _key_or_reason(name: str) -> str | Reason:
    """The key of a data set, or why there is none."""
    vectors = picture_vectors_by_name().get(name)
    try:
        if vectors is None:
            return data_key(name) or Reason.no_data((name,))
        return vectors.key() or Reason.no_data((vectors.pictures,))
    except (ValueError, OSError) as error:
        return Reason(one_line(str(error)))


def data_key(name: str) -> str | None:
    """A text that changes with the files of a data set; None if there are none."""
    try:
        source = find(name, None)
    except FileNotFoundError:
        return None
    paths = set(source.paths)
    if source.format != "npz":  # others may read files beside them: names, splits
        begins = re.compile(rf"{re.escape(name)}[._-]", re.IGNORECASE)
        others = source.paths[0].parent.iterdir()
        paths.update(path for path in others if begins.match(path.name) and path.is_file())
    return digest_of_files(sorted(paths))
