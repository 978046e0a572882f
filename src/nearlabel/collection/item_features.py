"""Vectors of the items of a collection, as its settings specify.

Nothing is learned from items: a vector depends on its own item only, so that vectors of old and new
items are comparable, and a forgotten item leaves no trace in others. So moments are scaled by
constants, and words are hashed instead of listed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from nearlabel import features as transformers  # loads scikit-learn on first use
from nearlabel.collection.choices import KINDS
from nearlabel.common.arrays import Array, Csr, Matrix, Tree, canonical_csr
from nearlabel.common.files import FORMAT
from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import ArgumentError, check_choice, check_integer
from nearlabel.features.networks.catalog import NETWORKS
from nearlabel.features.picture_files import Skipping, in_parallel
from nearlabel.features.pictures import PICTURES, FileKind, UnreadablePicture
from nearlabel.features.texts import TEXTS, text_of

_AUTO, _MOMENTS, _WORDS, _GIVEN = "auto", "moments", "words", "given"


Compute = Callable[[Iterable[Any]], Array | Csr]
"""Returns float32 rows, an array or a CSR matrix, for an iterable of items: bytes of files, paths,
and whatever the transformers accept. Items that a `Skipping` cannot read are left out."""


def rows_of(
    compute: Compute, contents: Sequence[bytes], n_jobs: int | None = None
) -> tuple[dict[int, Matrix], dict[int, UnreadablePicture]]:
    """The rows of contents by their places, and of the others why they have none."""
    if not contents:
        return {}, {}
    reading = Skipping(contents, n_jobs)
    X: Matrix = np.empty((0, 0))
    try:
        X = compute(reading)
    except ValueError:  # of a transformer that refuses no rows
        if len(reading.skipped) < len(contents):
            raise
    errors = dict(reading.skipped)
    readable = [at for at in range(len(contents)) if at not in errors]
    rows: dict[int, Matrix] = {}
    for row, at in enumerate(readable):
        vector = X[row : row + 1]
        if np.isfinite(vector if isinstance(vector, np.ndarray) else vector.data).all():
            rows[at] = vector
        else:
            errors[at] = UnreadablePicture("", "has a vector that is not finite")
    return rows, errors


def files_of(kind: str) -> FileKind:
    """The files that are items of a kind; ValueError for vectors, which have none."""
    if check_choice(kind, "kind", KINDS) == "vectors":
        raise ValueError("a collection of vectors has no files: its vectors are given")
    return PICTURES if kind == "pictures" else TEXTS


def chosen_features(
    kind: str, features: str | os.PathLike[str] | Mapping[str, object] | None = None
) -> Tree:
    """The features of a new collection, in the form stored in its settings, with checksums.

    Parameters
    ----------
    kind : {"pictures", "texts", "vectors"}
    features : str or mapping, optional
        For pictures ``"moments"``, the name of a network, or the path of an ONNX file; by default
        the best one available, with a warning if that is moments. For texts ``"words"``, the
        default, ``"minilm"``, or an ONNX file. Vectors are used as given. A mapping is a previous
        result of this function.
    """
    if isinstance(features, Mapping):
        if kind != "vectors":
            item_features(kind, features)
        return dict(features)
    name = _AUTO if features is None else os.fspath(features)
    if Path(name).suffix.lower() == ".onnx":
        name = str(Path(name).absolute())
    elif name not in (known := _names(kind)):
        raise ArgumentError(
            f"features of {kind} must be one of {', '.join(map(repr, known))}"
            f"{'' if kind == 'vectors' else ', or an ONNX file'}; got {name!r}"
            f"{did_you_mean(name, known)}",
            "features",
        )
    if kind == "vectors":
        return {"name": _GIVEN}
    if kind == "texts":
        if name in (_AUTO, _WORDS):
            return {"name": _WORDS, "columns": 2**20}
        return transformers.TextEmbedding(name).fit(None).network_.settings()
    if name == _AUTO:
        transformer = transformers.best_picture_features()
        name = _MOMENTS if isinstance(transformer, transformers.GridMoments) else name
    elif name != _MOMENTS:
        transformer = transformers.PictureEmbedding(name).fit(None)
    return {"name": _MOMENTS} if name == _MOMENTS else transformer.network_.settings()


def item_features(kind: str, features: Mapping[str, Any], *, n_jobs: int | None = None) -> Compute:
    """What computes the vectors of items; ValueError if the settings are not valid.

    Parameters
    ----------
    kind : {"pictures", "texts", "vectors"}
    features : mapping
        As returned by `chosen_features`.
    n_jobs : int or None, default=None
        Threads; -1 means all cores.
    """
    files_of(kind)  # vectors have none
    name = features.get("name")
    network = {"network": name, "n_jobs": n_jobs, "used": features}
    try:
        if kind == "pictures" and name == _MOMENTS:
            return partial(_moments, n_jobs=n_jobs)
        if kind == "pictures":
            network["batch_size"] = 16
            return transformers.PictureEmbedding._from_tree(network, FORMAT).transform
        if name == _WORDS:
            columns = check_integer(features["columns"], "columns", low=1, high=2**31 - 1)
            return partial(_words, columns=columns, n_jobs=n_jobs)
        network["max_tokens"] = 128
        embedding = transformers.TextEmbedding._from_tree(network, FORMAT)
        return partial(_meaning, embedding=embedding, n_jobs=n_jobs)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"features of {kind} are not valid: {dict(features)!r}") from error


def _names(kind: str) -> list[str]:
    """Features that can be chosen by name."""
    networks = [network.name for network in NETWORKS.values() if network.of == kind]
    own = {"pictures": [_AUTO, _MOMENTS], "texts": [_AUTO, _WORDS], "vectors": [_AUTO, _GIVEN]}
    return [*own[check_choice(kind, "kind", tuple(own))], *networks]


def _moments(sources: Iterable[Any], *, n_jobs: int | None) -> Array:
    """Moments of pictures, scaled by constants.

    Equal distances in L*u*v* look about equally different: means are kept, with grey as the zero of
    lightness, and deviations count twice.
    """
    transformer = transformers.GridMoments(spread="deviation", n_jobs=n_jobs)
    bands = transformer.transform(sources).reshape(-1, 3, 2, transformer.grid**2)
    bands[:, 0, 0] -= 50  # the middle of lightness; grey has no other color
    bands[:, :, 1] *= 2  # deviations are about half as large as means
    return (bands / 100).reshape(len(bands), -1).astype(np.float32)


def _words(sources: Iterable[Any], *, columns: int, n_jobs: int | None) -> Csr:
    """Words of texts, hashed: 1 + log of how often each occurs, as rows of length 1.

    How rare a word is would have to be learned. Instead, the most frequent English words are left
    out.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    texts = [*in_parallel(sources, text_of, n_jobs)]
    if not texts:  # scikit-learn refuses an empty list
        return csr_array((0, columns), dtype=np.float32)
    hashed = HashingVectorizer(
        n_features=columns, alternate_sign=False, norm=None, stop_words="english"
    )
    counts = canonical_csr(hashed.transform(texts))
    counts.data = 1 + np.log(counts.data)
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    counts.data /= np.repeat(lengths, np.diff(counts.indptr))
    return counts.astype(np.float32)


def _meaning(
    sources: Iterable[Any], *, embedding: transformers.TextEmbedding, n_jobs: int | None
) -> Array:
    """Vectors of texts by a network."""
    return np.asarray(embedding.transform([*in_parallel(sources, text_of, n_jobs)]))
