"""Results on the disk: what was measured once, by this code and on these data, is read again."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import nearlabel
from nearlabel.common import engine
from nearlabel.common.files import replacing
from nearlabel.common.messages import plain_json
from nearlabel.common.versions import package_versions
from nearlabel.datasets.source_files import Found, cache_folder, find

_PACKAGE = Path(nearlabel.__file__).parent
_SURFACE = ("cli/", "experiments/reporting/")  # what only shows results


class ResultStore:
    """A folder of results, one file for each: written whole or not at all.

    The folder is named by the code: other code has another one, so an old result is never taken
    for a new one. A file that is damaged or was changed counts as not there: then it is measured
    again.

    Parameters
    ----------
    folder : path
        Where that folder is made when there is something to keep.
    again : bool, default=False
        Whether results from before count as not there; new ones replace them.
    """

    def __init__(self, folder: str | os.PathLike[str], *, again: bool = False) -> None:
        self.path = Path(folder) / f"reproduction-{code_key()[:16]}"
        for place in (Path(folder), self.path):
            if place.exists() and not place.is_dir():
                raise ValueError(f"results must be a folder; {place} is a file")
        self._again = again
        self._new: set[str] = set()

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of that key, if it was measured."""
        if self._again and key not in self._new:
            return None
        try:
            stored = plain_json(self._file(key).read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        result = stored.get("result") if isinstance(stored, dict) else None
        # What its digest fits was written by this code, and has all that it reads of it.
        if not isinstance(result, dict) or stored.get("digest") != _digest_of(key, result):
            return None
        return result

    def add(self, key: str, result: Mapping[str, Any]) -> None:
        """Keep a result; it is on the disk when this returns."""
        self.path.mkdir(parents=True, exist_ok=True)
        stored = {"versions": package_versions(), "digest": _digest_of(key, result)}
        with replacing(self._file(key)) as file:
            file.write(json.dumps({**stored, "result": result}, allow_nan=False).encode())
        self._new.add(key)

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.json"


def default_folder() -> Path:
    """Where results are kept: in the user's cache."""
    return cache_folder() / "results"


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


def data_key(name: str) -> str | None:
    """A text that changes with the files of a data set; None where it is not there."""
    try:
        found = find(name, None)
    except FileNotFoundError:
        return None
    digest = hashlib.sha256()
    for part in _files_read(name, found):
        with (found.place.path / part).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{part} {content}\n".encode())
    return digest.hexdigest()


def _files_read(name: str, found: Found) -> list[str]:
    """The files of a data set, and those beside them that its form may read: names, splits."""
    if found.format == "npz":
        return list(found.names)
    begins = re.compile(rf"{re.escape(name)}[._-]", re.IGNORECASE)
    return sorted({*found.names, *filter(begins.match, found.place)})


def result_key(setting: Mapping[str, Any], data: str) -> str:
    """A text that changes with the setting of a result and with its data."""
    return _digest([setting, data])


def _digest_of(key: str, result: Mapping[str, Any]) -> str:
    return _digest([code_key(), key, result])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
