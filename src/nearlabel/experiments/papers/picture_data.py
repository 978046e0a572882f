"""Data sets of the tables that are made from pictures: vectors, kept once they are computed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nearlabel import features
from nearlabel.common.arrays import Array
from nearlabel.common.files import FileError, read_stored, write_tree
from nearlabel.common.messages import one_line
from nearlabel.common.progress import Progress
from nearlabel.common.versions import package_versions
from nearlabel.datasets import Dataset, PictureSet, load_pictures
from nearlabel.experiments.papers.experiment_runs import UnusableDataError
from nearlabel.experiments.papers.printed_tables import published_toml
from nearlabel.features.networks.catalog import network
from nearlabel.features.networks.packages import NetworkError
from nearlabel.features.pictures import UnreadablePicture

_CODE = Path(str(features.__file__)).parent
_PACKAGES = ("pillow", "numpy", "onnxruntime")  # with which vectors are computed


@dataclass(frozen=True)
class EmbeddedPictures:
    """Pictures of the data folder as vectors: an entry `pictures` of ``experiments.toml``.

    `pictures` is the name of a picture set, `transformer` that of a class of `nearlabel.features`.
    """

    pictures: str
    transformer: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def key(self) -> str | None:
        """A text that changes with pictures, labels, network and code; None without pictures.

        An `UnusableDataError` says why there cannot be any vectors.
        """
        try:
            found = self._set()
        except FileNotFoundError:
            return None
        told = [
            self.transformer,
            dict(self.parameters),
            self._network(),
            _code(),
            package_versions(_PACKAGES),
        ]
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
        labels = json.dumps([found.label_names.tolist(), found.Y.toarray().tolist()])
        digest.update(labels.encode())
        with _unusable():
            for path in found.pictures:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                digest.update(f"{path.name} {content}\n".encode())
        return digest.hexdigest()

    def load(
        self,
        folder: Path,
        *,
        again: bool = False,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Dataset:
        """The vectors and labels; `folder` keeps vectors, which are computed if they are not there.

        An `UnusableDataError` says why they cannot be: which picture is broken, for example.
        """
        with _unusable():
            found, path = self._set(), folder / f"{self.key()}.vectors"
        X = None if again else _kept(path)
        if X is None:
            with _unusable():
                X = self._computed(_told(found.pictures, progress), n_jobs)
            folder.mkdir(parents=True, exist_ok=True)
            write_tree(path, {"X": X})
        return Dataset(X, found.Y, label_names=found.label_names)

    def _set(self) -> PictureSet:
        """The pictures with their labels; FileNotFoundError where there are none."""
        try:
            return load_pictures(self.pictures)
        except FileNotFoundError:
            raise
        except (ValueError, OSError) as error:
            raise UnusableDataError(one_line(str(error))) from error

    def _computed(self, paths: Iterator[Path], n_jobs: int | None) -> Array:
        transformer = getattr(features, self.transformer)(**self.parameters, n_jobs=n_jobs)
        X: Array = transformer.fit(None).transform(paths)
        return X

    def _network(self) -> str | None:
        """The checksum of the network; it must be on this machine."""
        if "network" not in self.parameters:
            return None
        known = network(self.parameters["network"])
        if not known.is_there:
            raise UnusableDataError(f"{known.name} is not there; get it by: {known.how_to_get}")
        return known.sha256


@cache
def picture_vectors_by_name() -> Mapping[str, EmbeddedPictures]:
    """The data sets that are made from pictures, by the names that tables have for them."""
    told = published_toml("experiments.toml")["pictures"]
    return {name: EmbeddedPictures(**one) for name, one in told.items()}


def _told(paths: Sequence[Path], progress: Progress | None) -> Iterator[Path]:
    """The paths, as they are asked for."""
    for place, path in enumerate(paths):
        if progress is not None:
            progress(place, len(paths))
        yield path


@contextmanager
def _unusable() -> Iterator[None]:
    """Say what is wrong with pictures, networks or packages: a mistake of ours is none of these."""
    try:
        yield
    except (UnreadablePicture, NetworkError, OSError, ImportError) as error:
        raise UnusableDataError(one_line(str(error))) from error


def _kept(path: Path) -> Array | None:
    """Vectors of a file that is whole; a damaged one counts as not there."""
    try:
        X: Array = read_stored(path).tree["X"]
    except (FileNotFoundError, FileError, KeyError):
        return None
    return X


@cache
def _code() -> str:
    digest = hashlib.sha256()
    for path in sorted(_CODE.rglob("*.py")):
        digest.update(path.relative_to(_CODE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()
