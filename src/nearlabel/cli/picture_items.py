"""Pictures as items: their vectors, and the names of those that cannot be read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import nearlabel as nl
from nearlabel.cli.output import steps
from nearlabel.common.messages import did_you_mean, encodable
from nearlabel.datasets.dataset import Dataset, unlabeled
from nearlabel.datasets.picture_sets import is_picture_set

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True, eq=False)
class PictureItems(Dataset):
    """Pictures by their vectors, which `transformer` has made.

    Attributes
    ----------
    transformer : GridMoments or PictureEmbedding
    skipped : tuple of (name, reason)
        The pictures that are no rows, since they could not be read.
    """

    transformer: Any = None
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def made_by(self) -> str:
        """What made the vectors, as --features calls it."""
        used = getattr(self.transformer, "network_", None)
        return "moments" if used is None else str(used.name)


def picture_features(name: str, n_jobs: int | None) -> BaseEstimator:
    """The transformer that --features names."""
    if name == "auto":
        return nl.features.best_picture_features(n_jobs=n_jobs)
    if name == "moments":
        return nl.features.GridMoments(n_jobs=n_jobs)
    from nearlabel.features.networks.catalog import NETWORKS

    networks = [network.name for network in NETWORKS.values() if network.of == "pictures"]
    if name not in networks and Path(name).suffix.lower() != ".onnx":
        known = ["auto", "moments", *networks]
        raise ValueError(
            f"--features must be one of {', '.join(known)}, or an ONNX file, such as own.onnx; "
            f"got {name!r}{did_you_mean(name, known)}"
        )
    return nl.features.PictureEmbedding(name, n_jobs=n_jobs).fit(None)


def labeled_pictures(source: str, transformer: BaseEstimator) -> PictureItems:
    """The vectors of a picture set, with its labels."""
    given = nl.datasets.load_pictures(source)
    items = _vectors(source, given.pictures, transformer)
    skipped = {name for name, _ in items.skipped}
    rows = [at for at, path in enumerate(given.pictures) if encodable(str(path)) not in skipped]
    names = np.array([given.names[at] for at in rows], dtype=np.str_)
    return replace(items, Y=given.Y[rows], label_names=given.label_names, row_names=names)


def new_pictures(sources: Sequence[str], transformer: BaseEstimator) -> PictureItems:
    """The vectors of the pictures of a folder or a picture set, or of files.

    Of several sources, the names are paths; of one, those within it.
    """
    source, *others = sources
    if others:
        pictures = [picture for each in sources for picture in nl.features.find_pictures(each)]
        return _vectors(", ".join(sources[:2]), pictures, transformer)
    if not Path(source).exists() and is_picture_set(source):
        return labeled_pictures(source, transformer)
    return _vectors(source, source, transformer)


def _vectors(source: str, pictures: Any, transformer: BaseEstimator) -> PictureItems:
    """The vectors of pictures, with a note about each that cannot be read."""
    with steps("reading pictures") as progress:
        read = nl.features.picture_vectors(pictures, transformer, progress=progress)
    if not read.names and len(read.skipped) == 1:
        raise ValueError(" ".join(read.skipped[0]))
    for name, reason in read.skipped:
        warnings.warn(f"{name} {reason}; left out", stacklevel=2)
    if not read.names:
        raise ValueError(f"{source}: there is no picture that can be read")
    names = np.array([*map(encodable, read.names)], dtype=np.str_)
    return PictureItems(
        read.X,
        unlabeled(len(names)),
        row_names=names,
        transformer=transformer,
        skipped=tuple((encodable(name), reason) for name, reason in read.skipped),
    )


def picture_step(steps: Sequence[BaseEstimator]) -> BaseEstimator:
    """The first of the transformers of a model, if it takes pictures; else None."""
    first = steps[0] if steps else None
    return first if type(first).__name__ in ("GridMoments", "PictureEmbedding") else None
