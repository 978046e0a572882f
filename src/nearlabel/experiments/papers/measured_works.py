"""Experiments and figures, measured; or read, if they were measured by this code on these data."""

from __future__ import annotations

import hashlib
import json
import os
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np

import nearlabel
from nearlabel.common import engine
from nearlabel.common.arrays import Array, Tree
from nearlabel.common.messages import one_line
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.validation import UnsuitableDataError
from nearlabel.common.versions import package_versions
from nearlabel.datasets import Dataset, load
from nearlabel.datasets.source_files import find
from nearlabel.experiments.papers.picture_data import picture_vectors_by_name
from nearlabel.experiments.papers.verdicts import Reason
from nearlabel.experiments.protocols import Part, splits
from nearlabel.experiments.result_store import ResultStore
from nearlabel.features.scales import scaler

_PACKAGE = Path(nearlabel.__file__).parent
Settings = Mapping[str, object]


@dataclass(frozen=True)
class DataSetup:
    """What is done to a data set before anything is learned from it; see ``experiments.toml``.

    `split` is None where nothing is split; `labels` are names of labels that must be there.
    """

    scale: str
    split: str | None = None
    seed: int = 0
    rows: Literal["all", "several labels"] = "all"
    nominal: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


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
    parts = [] if setup.split is None else splits(data, setup.split, seed=setup.seed)
    if parts and setup.nominal:
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


@dataclass(frozen=True, eq=False)
class Work:
    """What is measured and stored at once, on one data set."""

    dataset: str
    data: DataSetup

    @abstractmethod
    def all_settings(self) -> Settings:
        """All that decides its numbers beside the data and the code, as JSON can hold it."""

    @abstractmethod
    def measured(
        self, ready: PreparedData, *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> Tree:
        """Its numbers on the prepared data, as JSON can hold them."""


W = TypeVar("W", bound=Work)


def measured_works(
    works: Sequence[W],
    folder: str | os.PathLike[str] | None = None,
    *,
    again: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[dict[W, Tree | Reason], int]:
    """The result of each work, or why there is none; and how many were measured now.

    A result is stored at once; with `again`, even if there is a stored one. `n_jobs` threads read
    pictures, whose vectors are kept beside the results of all states of the code.
    """
    store = paper_results(folder)
    results: dict[W, Tree | Reason] = {}
    missing: dict[W, str] = {}
    keys = {name: _key_or_reason(name) for name in dict.fromkeys(work.dataset for work in works)}
    for work in works:
        data = keys[work.dataset]
        if isinstance(data, Reason):
            results[work] = data
            continue
        key = result_key(work.all_settings(), data)
        stored = None if again else store.get(key)
        if stored is not None:
            results[work] = stored
        else:
            missing[work] = key
    latest: dict[str, Dataset] = {}  # one at a time
    measured, steps = 0, 1000  # of progress, for each result
    stages = Stages(progress, steps * len(missing))
    for work in sorted(missing, key=lambda work: work.dataset):  # each data set is loaded once
        tell = stages.next(steps)
        if tell is not None:
            tell(0, 1)
        vectors = picture_vectors_by_name().get(work.dataset)
        try:
            if work.dataset not in latest:
                latest.clear()
                if vectors is None:
                    latest[work.dataset] = load(work.dataset)
                else:
                    halves = Stages(tell, steps)
                    reading, tell = halves.next(steps // 2), halves.next(steps // 2)
                    latest[work.dataset] = vectors.load(
                        store.path.parent, again=again, n_jobs=n_jobs, progress=reading
                    )
            ready = prepared(latest[work.dataset], work.data)
        except (ValueError, OSError, ImportError, MemoryError) as error:
            results[work] = Reason(one_line(str(error)))
            continue
        try:
            results[work] = result = work.measured(ready, n_jobs=n_jobs, progress=tell)
        except (UnsuitableDataError, MemoryError) as error:
            results[work] = Reason(one_line(str(error)))
            continue
        store.add(missing[work], result)
        measured += 1
    return results, measured


def paper_results(folder: str | os.PathLike[str] | None = None) -> ResultStore:
    """The results of this state of the code, so that an old one is never taken for a new one."""
    return ResultStore(f"reproduction-{code_key()[:16]}", folder)


@cache
def code_key() -> str:
    """A text that changes with the code that computes, and with the packages that it uses."""
    digest = hashlib.sha256(json.dumps(package_versions(), sort_keys=True).encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE).as_posix()
        if not name.startswith(("cli/", "experiments/reporting/")):  # what only shows results
            digest.update(f"{name}\n".encode())
            digest.update(path.read_bytes())
    core = engine.core()
    if core is not None:
        digest.update(Path(core.__file__).read_bytes())
    return digest.hexdigest()


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
    digest = hashlib.sha256()
    parts = set(source.names)
    if source.format != "npz":  # others may read files beside them: names, splits
        begins = re.compile(rf"{re.escape(name)}[._-]", re.IGNORECASE)
        parts.update(filter(begins.match, source.place))
    for part in sorted(parts):
        with (source.place.path / part).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{part} {content}\n".encode())
    return digest.hexdigest()


def result_key(settings: Settings, data: str) -> str:
    """A text that changes with the settings of a result and with its data."""
    return hashlib.sha256(json.dumps([settings, data], sort_keys=True).encode()).hexdigest()
