"""Data sets of the tables that are made from pictures: vectors, kept once they are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from nearlabel import features
from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress
from nearlabel.common.versions import package_versions
from nearlabel.datasets import Dataset, load_pictures
from nearlabel.experiments.papers.printed_tables import published_toml
from nearlabel.experiments.result_store import ResultStore, digest_of, digest_of_files
from nearlabel.features.networks.catalog import network


@dataclass(frozen=True)
class EmbeddedPictures:
    """Pictures of the data folder as vectors: an entry `pictures` of ``experiments.toml``.

    `pictures` is the name of a picture set, `transformer` that of a class of `nearlabel.features`.
    """

    pictures: str
    transformer: str
    parameters: Mapping[str, object] = field(default_factory=dict)

    def key(self) -> str | None:
        """A text that changes with pictures, labels, network and code; None without pictures.

        A ValueError or an OSError says why there cannot be any vectors.
        """
        try:
            scenes = load_pictures(self.pictures)
        except FileNotFoundError:
            return None
        return digest_of(
            [
                self.transformer,
                dict(self.parameters),
                self._network(),
                _code(),
                package_versions(("pillow", "numpy", "onnxruntime")),
                [scenes.label_names.tolist(), scenes.Y.toarray().tolist()],
                digest_of_files(map(Path, scenes.pictures)),
            ]
        )

    def load(
        self,
        folder: Path | None = None,
        *,
        again: bool = False,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Dataset:
        """The vectors and labels.

        Vectors are kept in `folder`, by default in the user's cache, and computed if they are not
        there. An error says why they cannot be: which picture is broken, for example.
        """
        scenes, key = load_pictures(self.pictures), str(self.key())
        store = ResultStore("vectors", folder)
        stored = None if again else store.get(key)
        if stored is None:
            transformer = getattr(features, self.transformer)(**self.parameters, n_jobs=n_jobs)
            stored = {"X": transformer.fit(None).transform(_reported(scenes.pictures, progress))}
            store.add(key, stored)
        return Dataset(stored["X"], scenes.Y, label_names=scenes.label_names)

    def _network(self) -> str | None:
        """The checksum of the network; it must be on this machine."""
        if "network" not in self.parameters:
            return None
        known = network(str(self.parameters["network"]))
        if not known.is_there:
            raise ValueError(f"{known.name} is not there; get it by: {known.how_to_get}")
        return known.sha256


@cache
def picture_vectors_by_name() -> Mapping[str, EmbeddedPictures]:
    """The data sets that are made from pictures, by the names that tables have for them."""
    entries = published_toml("experiments.toml")["pictures"]
    return {name: EmbeddedPictures(**entry) for name, entry in entries.items()}


def _reported(paths: Array | Sequence[Path], progress: Progress | None) -> Iterator[Path]:
    """The paths, as they are asked for."""
    for place, path in enumerate(paths):
        if progress is not None:
            progress(place, len(paths))
        yield path


@cache
def _code() -> str:
    return digest_of_files(sorted(Path(str(features.__file__)).parent.rglob("*.py")))
