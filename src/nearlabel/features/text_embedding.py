"""Texts as the output of a network trained on the meaning of sentences."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from sklearn.utils import Tags

from nearlabel.common.arrays import Array
from nearlabel.common.validation import check_integer, check_n_jobs
from nearlabel.features.network_embedding import NetworkEmbedding, UsedNetwork, file_content
from nearlabel.features.networks.sessions import Session
from nearlabel.features.networks.stored_networks import TOKENIZER, NetworkError, checksum
from nearlabel.features.picture_files import in_parallel
from nearlabel.features.texts import checked_texts, text_tags
from nearlabel.features.wordpiece import WordPieces


class TextEmbedding(NetworkEmbedding):
    """Vectors of texts by a network: the mean over the tokens of a text, normalized to length 1.

    Texts with the same meaning in different words get similar vectors, which helps if texts are
    short; scikit-learn's `TfidfVectorizer` is faster and as good for longer ones. Both combined
    with `FeatureUnion` are better than either. Nothing is learned here.

    Parameters
    ----------
    network : str, path or callable, default="minilm"
        - ``"minilm"`` (384 values, English), after `nearlabel models get minilm`;
        - ``"auto"``: the best installed one;
        - the path of an ONNX file of a BERT-like network, with its ``tokenizer.json`` next to it;
        - a function that takes a list of texts and returns an array with one row per text. `fit`
          calls it once with a text.
    max_tokens : int, default=128
        Tokens of a text (words or parts of words) passed to the network; the rest is cut off.
    n_jobs : int or None, default=None
        Texts processed at the same time, in threads; -1 means all cores.

    Attributes
    ----------
    network_ : UsedNetwork
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

    _item = "text"

    def __init__(
        self, network: object = "minilm", *, max_tokens: int = 128, n_jobs: int | None = None
    ) -> None:
        self.network = network
        self.max_tokens, self.n_jobs = max_tokens, n_jobs

    def transform(self, X: Iterable[str]) -> Array:
        """Compute the vectors of texts.

        Parameters
        ----------
        X : iterable of str

        Returns
        -------
        ndarray of shape (n, width), float32
        """
        self.check_parameters()
        texts, used = checked_texts(X), self.used
        if not texts:
            return np.empty((0, used.width), np.float32)
        if callable(self.network):
            values = self.network(texts)
        else:
            vector = partial(_vector, used.name, used.session(), _pieces(used), self.max_tokens)
            values = [*in_parallel(texts, vector, self.n_jobs)]
        return self._rows(values, used.name, len(texts), used.width)

    def check_parameters(self) -> None:
        """Refuse invalid parameters other than `network`."""
        check_integer(self.max_tokens, "max_tokens", low=3, high=512)
        check_n_jobs(self.n_jobs)

    def _sample(self) -> object:
        return "a text"

    def _own(self, path: Path) -> UsedNetwork:
        digests = [checksum(file_content(file)) for file in (path, path.with_name(TOKENIZER))]
        used = UsedNetwork(str(path), digests[0], 0, tokenizer_sha256=digests[1])
        vector = _vector(used.name, used.session(), _pieces(used), 8, "a text")
        return UsedNetwork(used.name, used.sha256, len(vector), None, used.tokenizer_sha256)

    def __sklearn_tags__(self) -> Tags:
        return text_tags(super().__sklearn_tags__())


@lru_cache(4)
def _pieces(used: UsedNetwork) -> WordPieces:
    try:
        return WordPieces.from_json(used.content(TOKENIZER))
    except ValueError as error:
        raise NetworkError(f"{used.name}: its {TOKENIZER} cannot be used: {error}") from None


def _vector(name: str, session: Session, pieces: WordPieces, most: int, text: str) -> Array:
    """The vector of one text, of which at most this many tokens are used."""
    inputs = session.inputs
    ids = np.array([pieces.encode(text, most)], np.int64)
    values = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
    if "input_ids" not in inputs or not set(inputs) <= set(values):
        raise NetworkError(f"{name} must take {', '.join(values)}; it takes {', '.join(inputs)}")
    output = session.run(next(iter(session.outputs)), {name: values[name] for name in inputs})
    if output.ndim == 3 and output.shape[:2] == ids.shape:
        output = output.mean(axis=1)
    if output.ndim != 2 or len(output) != 1 or output.dtype.kind != "f":
        raise NetworkError(
            f"{name} must return values for each token of a text, or for a text; got an array "
            f"of shape {output.shape} and type {output.dtype}"
        )
    vector = output[0].astype(np.float32)
    length = np.sqrt(np.square(vector).sum())
    return np.asarray(vector / length if length > 0 else vector)
