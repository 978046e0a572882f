"""Checksums of what was fetched: the first time they are recorded, later they must agree."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearlabel.common.files import replacing


class ChecksumError(ValueError):
    """What came is not what came the first time, or the record of that is damaged."""


class Records:
    """The sha256 of what was fetched, by its name; new ones are kept until `write`."""

    def __init__(self, path: Path, name: str, given: Mapping[str, str]) -> None:
        self._path = path
        self._given = {f"{name}/{file}": one.lower() for file, one in given.items()}
        self._known: dict[str, dict[str, Any]] = {}
        self._new: dict[str, dict[str, Any]] = {}
        try:
            if path.is_file():
                self._known = dict(json.loads(path.read_text("utf-8")))
            if not all(re.fullmatch("[0-9a-f]{64}", one["sha256"]) for one in self._known.values()):
                raise ValueError("a sha256 has 64 digits")
        except (ValueError, KeyError, TypeError) as error:
            raise ChecksumError(
                f"{path} is damaged ({type(error).__name__}: {error}); mend it, or remove it to "
                "have the checksums recorded again"
            ) from None

    def agree(self, name: str, sha256: str) -> bool:
        """Whether a file is the one that is expected, or none is."""
        expected = self._given.get(name) or self._known.get(name, {}).get("sha256")
        return expected in (None, sha256)

    def check(self, name: str, address: str, sha256: str, size: int) -> None:
        """Refuse another file than the expected one; take up a new one."""
        if self._given.get(name, sha256) != sha256:
            raise ChecksumError(
                f"{address}: the sha256 of {name} is {sha256}, not {self._given[name]} as given"
            )
        if not self.agree(name, sha256):
            raise ChecksumError(
                f"{address} has changed: the sha256 of {name} is {sha256} and was "
                f"{self._known[name]['sha256']} the first time; to accept the new one, remove the "
                f"entry {name!r} from {self._path}"
            )
        self._new[name] = {"address": address, "sha256": sha256, "size": size}

    def write(self) -> None:
        """Keep what was taken up."""
        with replacing(self._path) as file:
            file.write(json.dumps(self._known | self._new, indent=1, sort_keys=True).encode())


def sha256_of(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
