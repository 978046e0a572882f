"""Texts as the output of a network trained on the meaning of sentences."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from nearlabel.common.arrays import Array
from nearlabel.common.validation import ArgumentError, check_integer, check_n_jobs
from nearlabel.features.networks.catalog import NETWORKS, network
from nearlabel.features.networks.checked_networks import (
    MOST_BYTES,
    check_same,
    checksum,
    file_content,
    rows_of,
)
from nearlabel.features.networks.packages import NetworkError
from nearlabel.features.networks.sessions import Session, session
from nearlabel.features.networks.stored_networks import MODEL
from nearlabel.features.picture_files import in_parallel
from nearlabel.features.texts import checked_texts
from nearlabel.features.wordpiece import WordPieces

TOKENIZER = "tokenizer.json"
_MOST_TOKENS = 512  # positions of networks of this kind
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_MOST_BYTES = {MODEL: MOST_BYTES, TOKENIZER: 2**26}


class UsedTextNetwork(NamedTuple):
    """The network that computes vectors of texts.

    Attributes
    ----------
    name : str
        Its name, or the path of its file; for a function, the function's name.
    width : int
        The length of a vector.
    sha256 : str or None
        Checksum of its ONNX file.
    tokenizer_sha256 : str or None
        Checksum of its tokenizer file.
    """

    name: str
    width: int
    sha256: str | None = None
    tokenizer_sha256: str | None = None


class TextEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Vectors of texts by a network: the mean over the tokens of a text, normalized to length 1.

    Texts with the same meaning in different words get similar vectors, which helps if texts are
    short; scikit-learn's `TfidfVectorizer` is faster and as good for longer ones. Both combined
    with `FeatureUnion` are better than either. Nothing is learned here.

    Parameters
    ----------
    network : str, path or callable, default="minilm"
        - ``"minilm"`` (384 values, English), after `nearlabel models get minilm`;
        - the path of an ONNX file of a BERT-like network, with its ``tokenizer.json`` next to it;
        - a function that takes a list of texts and returns an array with one row per text. `fit`
          calls it once with a text.
    max_tokens : int, default=128
        Tokens of a text (words or parts of words) passed to the network; the rest is cut off.
    n_jobs : int or None, default=None
        Texts processed at the same time, in threads; -1 means all cores.

    Attributes
    ----------
    network_ : UsedTextNetwork
        The network, with the checksums of its files. A saved model contains the name and checksums,
        but no weights: it can be used wherever the same network is installed, and refuses others.

    Notes
    -----
    Each text goes through the network alone, so that its vector does not depend on the others, and
    nothing is padded.

    Examples
    --------
    >>> from nearlabel.features import TextEmbedding
    >>> def lengths(texts):
    ...     return [[len(text), text.count(" ")] for text in texts]
    >>> TextEmbedding(lengths).fit_transform(["a sea", "trees"])
    array([[5., 1.],
           [5., 0.]], dtype=float32)
    """

    network_: UsedTextNetwork

    def __init__(
        self, network: Any = "minilm", *, max_tokens: int = 128, n_jobs: int | None = None
    ) -> None:
        self.network = network
        self.max_tokens, self.n_jobs = max_tokens, n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Open the network; no text is read, and X may be None."""
        self._check_parameters()
        self.network_ = _used(self.network)
        return self

    def transform(self, X: Any) -> Array:
        """Compute the vectors of texts.

        Parameters
        ----------
        X : iterable of str

        Returns
        -------
        ndarray of shape (n, width), float32
        """
        self._check_parameters()
        texts, used = checked_texts(X), self._used()
        if callable(self.network):
            if not texts:
                return np.empty((0, used.width), np.float32)
            return rows_of(self.network(texts), used.name, len(texts), "text", used.width)
        running, pieces = _opened(used), _pieces(used)
        most = self.max_tokens

        def vector(text: str) -> Array:
            return _vector(running, used.name, pieces.encode(text, most))

        rows = [*in_parallel(texts, vector, self.n_jobs)]
        if not rows:
            return np.empty((0, used.width), np.float32)
        return rows_of(rows, used.name, len(texts), "text", used.width)

    def _check_parameters(self) -> None:
        check_integer(self.max_tokens, "max_tokens", low=3, high=_MOST_TOKENS)
        check_n_jobs(self.n_jobs)

    def _used(self) -> UsedTextNetwork:
        """The network that `fit` opened; without `fit`, the one it would open now."""
        return self.network_ if hasattr(self, "network_") else _used(self.network)

    @property
    def _n_features_out(self) -> int:
        return self._used().width

    def _tree(self) -> dict[str, Any]:
        if callable(self.network):
            raise TypeError(
                "cannot save a TextEmbedding with a function as its network; use an ONNX file or "
                "the name of a network"
            )
        return {
            "class": type(self).__name__,
            "network": os.fspath(self.network),
            "max_tokens": self.max_tokens,
            "n_jobs": self.n_jobs,
            "used": self._used()._asdict(),
        }

    @classmethod
    def _from_tree(cls, tree: Mapping[str, Any], _: int) -> Self:
        made = cls(tree["network"], max_tokens=tree["max_tokens"], n_jobs=tree["n_jobs"])
        made._check_parameters()
        made.network_ = UsedTextNetwork(**tree["used"])
        name, width, *digests = made.network_
        check_integer(width, "width", low=1)
        for text in (made.network, name, *digests):
            if not isinstance(text, str):
                raise ValueError(f"name and checksums of a network must be strings; got {text!r}")
        if name in NETWORKS and NETWORKS[name].of != "texts":
            raise ValueError(f"{name} is not a network for texts")
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _used(given: Any) -> UsedTextNetwork:
    """The network that a user asks for, tried once."""
    if callable(given):
        name = getattr(given, "__qualname__", type(given).__qualname__)
        return UsedTextNetwork(name, rows_of(given(["a text"]), name, 1, "text").shape[1])
    if not isinstance(given, str | os.PathLike):
        wanted = "a name, the path of an ONNX file, or a function"
        raise ArgumentError(f"network must be {wanted}; got {given!r}", "network")
    if Path(given).suffix.lower() == ".onnx":
        digests = [checksum(_content(str(given), part)) for part in _MOST_BYTES]
        used = UsedTextNetwork(str(given), 0, *digests)
    else:
        known = network(str(given))
        if known.of != "texts":
            possible = ", ".join(repr(one.name) for one in NETWORKS.values() if one.of == "texts")
            raise ArgumentError(f"network must be one of {possible}; got {given!r}", "network")
        used = UsedTextNetwork(known.name, 0, known.files[MODEL], known.files[TOKENIZER])
    trial = _vector(_opened(used), used.name, _pieces(used).encode("a text", 8))
    return used._replace(width=len(trial))


def _opened(used: UsedTextNetwork) -> Session:
    return session(str(used.sha256), used.name, 1, lambda: _unaltered(used, MODEL))


@lru_cache(4)
def _pieces(used: UsedTextNetwork) -> WordPieces:
    try:
        return WordPieces.from_json(_unaltered(used, TOKENIZER))
    except ValueError as error:
        raise NetworkError(f"{used.name}: its {TOKENIZER} cannot be used: {error}") from None


def _unaltered(used: UsedTextNetwork, part: str) -> bytes:
    """A file of a network, which must be the one used before."""
    content = _content(used.name, part)
    expected = used.sha256 if part == MODEL else used.tokenizer_sha256
    check_same(used.name, checksum(content), expected, part)
    return content


def _content(name: str, part: str) -> bytes:
    """A file of a network, given its name or the path of its ONNX file."""
    if name in NETWORKS:
        return NETWORKS[name].read(part)
    path = Path(name) if part == MODEL else Path(name).with_name(part)
    return file_content(path, _MOST_BYTES[part])


def _vector(running: Session, name: str, numbers: list[int]) -> Array:
    """The vector of one text from its token ids."""
    asked = running.inputs
    if "input_ids" not in asked or not set(asked) <= set(_INPUTS):
        raise NetworkError(f"{name} must take {', '.join(_INPUTS)}; it takes {', '.join(asked)}")
    ids = np.array([numbers], np.int64)
    values = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
    found = running.run(next(iter(running.outputs)), {key: values[key] for key in asked})
    if found.ndim == 3 and found.shape[:2] == ids.shape:
        found = found.mean(axis=1)
    if found.ndim != 2 or len(found) != 1 or found.dtype.kind != "f":
        raise NetworkError(
            f"{name} must return values for each token of a text, or for a text; got an array "
            f"of shape {found.shape} and type {found.dtype}"
        )
    vector = found[0].astype(np.float32)
    length = np.sqrt(np.square(vector).sum())
    return np.asarray(vector / length if length > 0 else vector)
