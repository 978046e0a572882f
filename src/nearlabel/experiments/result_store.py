"""Results in files: what was computed once is read again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from nearlabel.common.arrays import Tree
from nearlabel.common.files import FileError, read_stored, write_tree
from nearlabel.common.user_cache import cache_folder


class ResultStore:
    """A folder with one file per result, written completely or not at all.

    A file that is damaged, or has the name of another one, counts as missing. The folder is made
    when there is something to keep.

    Parameters
    ----------
    name : str
        Of the folder.
    parent : path, optional
        The folder that contains it; by default that of results in the user's cache.
    """

    def __init__(self, name: str, parent: str | os.PathLike[str] | None = None) -> None:
        self.path = (cache_folder() / "results" if parent is None else Path(parent)) / name
        for folder in (self.path.parent, self.path):
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"results must be a folder; {folder} is a file")

    def get(self, key: str) -> Tree | None:
        """The result with this key, or None."""
        try:
            tree = read_stored(self._file(key)).tree
        except (OSError, FileError):
            return None
        return tree if tree.pop("key", key) == key else None

    def add(self, key: str, result: Mapping[str, object]) -> None:
        """Keep a result; it is on disk when this returns."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_tree(self._file(key), {"key": key, **result})

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.run"


def digest_of(settings: object) -> str:
    """A text that changes with settings, as JSON can hold them."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def digest_of_files(paths: Iterable[Path]) -> str:
    """A text that changes with files, their names and their order."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.name} {content}\n".encode())
    return digest.hexdigest()
