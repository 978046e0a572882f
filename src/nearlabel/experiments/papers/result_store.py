"""Results on the disk: what was measured once, by this code and on these data, is read again."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import nearlabel
from nearlabel.common import engine
from nearlabel.common.files import replacing
from nearlabel.common.messages import one_line, plain_json
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.user_cache import cache_folder
from nearlabel.common.versions import package_versions
from nearlabel.datasets import Dataset
from nearlabel.datasets.source_files import find
from nearlabel.experiments.papers.experiment_runs import UnusableDataError, loaded, prepared
from nearlabel.experiments.papers.picture_data import picture_vectors_by_name
from nearlabel.experiments.papers.verdicts import Reason

_PACKAGE = Path(nearlabel.__file__).parent
_SURFACE = ("cli/", "experiments/reporting/")  # what only shows results
_STEPS = 1000  # of progress, for each result


class ResultStore:
    """A folder of results, one file for each: written whole or not at all.

    The folder is named by the code: other code has another one, so an old result is never taken
    for a new one. A file that is damaged or was changed counts as not there: then it is measured
    again. It is made in `folder`, by default in the user's cache, when there is something to keep.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        parent = cache_folder() / "results" if folder is None else Path(folder)
        self.path = parent / f"reproduction-{code_key()[:16]}"
        for place in (parent, self.path):
            if place.exists() and not place.is_dir():
                raise ValueError(f"results must be a folder; {place} is a file")

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of that key, if it was measured."""
        try:
            stored = plain_json(self._file(key).read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        result = stored.get("result") if isinstance(stored, dict) else None
        # What its digest fits was written by this code, and has all that it reads of it.
        if not isinstance(result, dict) or stored.get("digest") != _digest(key, result):
            return None
        return result

    def add(self, key: str, result: Mapping[str, Any]) -> None:
        """Keep a result; it is on the disk when this returns."""
        self.path.mkdir(parents=True, exist_ok=True)
        stored = {"versions": package_versions(), "digest": _digest(key, result)}
        with replacing(self._file(key)) as file:
            file.write(json.dumps({**stored, "result": result}, allow_nan=False).encode())

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.json"


def stored_or_measured(
    works: Sequence[Any],
    measure: Callable[..., dict[str, Any]],
    store: ResultStore,
    *,
    again: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[dict[Any, dict[str, Any] | Reason], int]:
    """The result of each work, or why there is none; and how many were measured now.

    A work, such as an `Experiment`, has a `dataset`, a setup of its `data` and `all_settings()`.
    ``measure(work, prepared data, progress)`` gives a result as JSON can hold it, which is stored
    at once; with `again`, also where one is stored. `n_jobs` threads read pictures, whose vectors
    are kept beside the results of all states of the code.
    """
    found: dict[Any, dict[str, Any] | Reason] = {}
    missing: dict[Any, str] = {}
    keys = {name: _key_or_reason(name) for name in dict.fromkeys(one.dataset for one in works)}
    for work in works:
        of_data = keys[work.dataset]
        if isinstance(of_data, Reason):
            found[work] = of_data
            continue
        key = result_key(work.all_settings(), of_data)
        stored = None if again else store.get(key)
        if stored is None:
            missing[work] = key
        else:
            found[work] = stored
    latest: dict[str, Dataset] = {}  # one at a time
    measured = 0
    stages = Stages(progress, _STEPS * len(missing))
    for work in sorted(missing, key=lambda one: one.dataset):  # each data set is loaded once
        tell = stages.next(_STEPS)
        if tell is not None:
            tell(0, 1)
        vectors = picture_vectors_by_name().get(work.dataset)
        try:
            if work.dataset not in latest:
                latest.clear()
                if vectors is None:
                    latest[work.dataset] = loaded(work.dataset)
                else:
                    halves = Stages(tell, _STEPS)
                    reading, tell = halves.next(_STEPS // 2), halves.next(_STEPS // 2)
                    folder = store.path.with_name("vectors")
                    latest[work.dataset] = vectors.load(
                        folder, again=again, n_jobs=n_jobs, progress=reading
                    )
            result = measure(work, prepared(latest[work.dataset], work.data), tell)
        except (UnusableDataError, MemoryError) as error:
            found[work] = Reason(one_line(str(error)))
            continue
        store.add(missing[work], result)
        found[work] = result
        measured += 1
    return found, measured


@cache
def code_key() -> str:
    """A text that changes with the code that computes, and with the packages that it uses."""
    digest = hashlib.sha256(json.dumps(package_versions(), sort_keys=True).encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE).as_posix()
        if not name.startswith(_SURFACE):
            digest.update(f"{name}\n".encode())
            digest.update(path.read_bytes())
    core = engine.core()
    if core is not None:
        digest.update(Path(core.__file__).read_bytes())
    return digest.hexdigest()


def _key_or_reason(name: str) -> str | Reason:
    """The key of a data set, or why there is none."""
    vectors = picture_vectors_by_name().get(name)
    if vectors is None:
        return data_key(name) or Reason.no_data((name,))
    try:
        return vectors.key() or Reason.no_data((vectors.pictures,))
    except UnusableDataError as error:
        return Reason(one_line(str(error)))


def data_key(name: str) -> str | None:
    """A text that changes with the files of a data set; None where it is not there."""
    try:
        found = find(name, None)
    except FileNotFoundError:
        return None
    digest = hashlib.sha256()
    parts = set(found.names)
    if found.format != "npz":  # others may read files beside them: names, splits
        begins = re.compile(rf"{re.escape(name)}[._-]", re.IGNORECASE)
        parts.update(filter(begins.match, found.place))
    for part in sorted(parts):
        with (found.place.path / part).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{part} {content}\n".encode())
    return digest.hexdigest()


def result_key(settings: Mapping[str, Any], data: str) -> str:
    """A text that changes with the settings of a result and with its data."""
    return hashlib.sha256(json.dumps([settings, data], sort_keys=True).encode()).hexdigest()


def _digest(key: str, result: Mapping[str, Any]) -> str:
    told = json.dumps([code_key(), key, result], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()
