"""Results on the disk: what was measured once, by this code and on these data, is read again."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import nearlabel
from nearlabel.common import engine
from nearlabel.common.messages import plain_json
from nearlabel.common.versions import package_versions
from nearlabel.datasets.source_files import Found, cache_folder, find

_PACKAGE = Path(nearlabel.__file__).parent
_SURFACE = ("cli/", "experiments/reporting/")  # what only shows results


class ResultStore:
    """One file of results: a line about the code, then a line a result.

    The file is named by the code: other code has another file, so an old result is never taken for
    a new one. Lines are only ever added. What an interrupt left of a line, and a line that was
    changed, count as not there: then it is measured again.

    Parameters
    ----------
    folder : path
        Made where it is not there.
    again : bool, default=False
        Whether what this code has measured before counts as not there. It stays in the file; of
        two results of one key the later one counts.
    """

    def __init__(self, folder: str | os.PathLike[str], *, again: bool = False) -> None:
        self.path = Path(folder) / f"reproduction-{code_key()[:16]}.jsonl"
        before = self._read() if self.path.exists() else {}
        self._results = {} if again else before

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of that key, if it was measured."""
        return self._results.get(key)

    def add(self, key: str, result: Mapping[str, Any]) -> None:
        """Keep a result; it is on the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            file.seek(0)
            if not file.readline().endswith(b"\n"):  # nothing, or not even the first line
                file.truncate(0)
                file.write(_line({"code": code_key(), **package_versions()}))
            elif _last_byte(file) != b"\n":  # the half line of an interrupt
                file.write(b"\n")
            file.write(_line({"key": key, "digest": _digest([key, result]), "result": result}))
            file.flush()
            os.fsync(file.fileno())
        self._results[key] = dict(result)

    def _read(self) -> dict[str, dict[str, Any]]:
        head, *lines = self.path.read_bytes().split(b"\n")
        if lines and (_value(head) or {}).get("code") != code_key():
            raise ValueError(
                f"{self.path} is not a file of results of this code; remove it, or choose another "
                "folder for results"
            )
        found: dict[str, dict[str, Any]] = {}
        for value in filter(None, map(_value, lines)):
            # What its digest fits was written by this code, and has all that it reads of it.
            key, result = value.get("key"), value.get("result", {})
            if isinstance(key, str) and value.get("digest") == _digest([key, result]):
                found[key] = result
        return found


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
    with found.place:
        for part in _files_read(name, found):
            with (Path(found.place.path) / part).open("rb") as file:
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


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _last_byte(file: BinaryIO) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read()


def _value(line: bytes) -> dict[str, Any] | None:
    try:
        value = plain_json(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
