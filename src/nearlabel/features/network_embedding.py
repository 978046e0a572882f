"""What embeddings of pictures and texts share: a network from the catalog, a file or a function."""

from __future__ import annotations

import os
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from nearlabel.common.arrays import Array, Tree
from nearlabel.common.messages import did_you_mean
from nearlabel.common.validation import ArgumentError, check_integer
from nearlabel.features.networks import catalog
from nearlabel.features.networks.picture_inputs import PictureInput
from nearlabel.features.networks.sessions import Session, session
from nearlabel.features.networks.stored_networks import MODEL, TOKENIZER, NetworkError, checksum


class UsedNetwork(NamedTuple):
    """The network that computes vectors."""

    name: str  # or the path of its file; for a function, the function's name
    sha256: str | None  # of its ONNX file; None for a function
    width: int  # of a vector
    input: PictureInput | None = None  # how pictures become its input
    tokenizer_sha256: str | None = None  # of the tokenizer file of a network for texts

    def settings(self) -> dict[str, object]:
        """What model files and settings of collections store."""
        table = {name: value for name, value in self._asdict().items() if value is not None}
        return table if self.input is None else {**table, "input": self.input.settings()}

    def session(self, n_jobs: int = 1) -> Session:
        """The network, ready to run; its file must be the one used before."""
        if self.name in catalog.NETWORKS:  # it may be open already
            self._check(MODEL, catalog.NETWORKS[self.name].sha256)
        return session(str(self.sha256), self.name, n_jobs, self.content)

    def content(self, part: str = MODEL) -> bytes:
        """The content of one of its files, which must be the one used before."""
        if self.name in catalog.NETWORKS:
            content = catalog.NETWORKS[self.name].read(part)
        else:
            path = Path(self.name)
            content = file_content(path if part == MODEL else path.with_name(part))
        self._check(part, checksum(content))
        return content

    def _check(self, part: str, sha256: str) -> None:
        expected = self.sha256 if part == MODEL else self.tokenizer_sha256
        if sha256 != expected:
            what = "its sha256" if part == MODEL else f"the sha256 of its {part}"
            raise NetworkError(
                f"{self.name} is not the network that the model was built with: {what} is "
                f"{sha256}, not {expected}"
            )


class NetworkEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that computes vectors by a network; nothing is learned."""

    network: object
    network_: UsedNetwork
    _item: ClassVar[str]  # "picture" or "text"

    def fit(self, X: object, y: object = None) -> Self:
        """Choose the network; nothing is read from X, which may be None."""
        self.check_parameters()
        self.network_ = self._chosen()
        return self

    @abstractmethod
    def check_parameters(self) -> None:
        """Refuse invalid parameters other than `network`."""

    @abstractmethod
    def _sample(self) -> object:
        """An item with which a network is tried, as functions take it."""

    @abstractmethod
    def _own(self, path: Path) -> UsedNetwork:
        """The network of a user's ONNX file and of the file next to it, tried once."""

    @property
    def used(self) -> UsedNetwork:
        """The network that `fit` chose; without `fit`, the one it would choose now."""
        return self.network_ if hasattr(self, "network_") else self._chosen()

    def _chosen(self) -> UsedNetwork:
        """The network that the user asks for, tried once."""
        given = self.network
        if callable(given):
            name = getattr(given, "__qualname__", type(given).__qualname__)
            return UsedNetwork(name, None, self._rows(given([self._sample()]), name, 1).shape[1])
        if not isinstance(given, str | os.PathLike):
            wanted = "a name, the path of an ONNX file, or a function"
            raise ArgumentError(f"network must be {wanted}; got {given!r}", "network")
        if Path(given).suffix.lower() == ".onnx":
            return self._own(Path(given))
        kind = f"{self._item}s"
        names = [network.name for network in catalog.NETWORKS.values() if network.of == kind]
        if given not in ("auto", *names):
            raise ArgumentError(
                f"network must be one of {', '.join(map(repr, ['auto', *names]))}, the path of an "
                f"ONNX file, or a function; got {given!r}{did_you_mean(str(given), names)}",
                "network",
            )
        known = catalog.best_there(kind) if given == "auto" else catalog.NETWORKS[str(given)]
        tokenizer = known.files.get(TOKENIZER)
        used = UsedNetwork(known.name, known.sha256, known.width, known.input, tokenizer)
        used.session()  # an error here says what is missing
        return used

    def _rows(self, values: object, name: str, count: int, width: int | None = None) -> Array:
        """The output of a network as float32 rows, or an error that describes the output."""
        rows = np.asarray(values)
        if rows.ndim > 2 and rows.size == np.prod(rows.shape[:2]):  # (n, width, 1, 1)
            rows = rows.reshape(rows.shape[:2])
        if rows.ndim != 2 or len(rows) != count or rows.dtype.kind not in "fiu":
            raise NetworkError(
                f"{name} must return a row of numbers for each of {count} {self._item}s; got an "
                f"array of shape {rows.shape} and type {rows.dtype}"
            )
        if width not in (None, rows.shape[1]):
            raise NetworkError(
                f"{name} returned {rows.shape[1]} values per {self._item}; expected {width}"
            )
        return rows.astype(np.float32, copy=False)

    @property
    def _n_features_out(self) -> int:
        return self.used.width

    def _tree(self) -> dict[str, object]:
        if not isinstance(self.network, str | os.PathLike):
            raise TypeError(
                f"cannot save a {type(self).__name__} with a function as its network; use an ONNX "
                "file or the name of a network"
            )
        parameters = {**self.get_params(), "network": os.fspath(self.network)}
        return {"class": type(self).__name__, **parameters, "used": self.used.settings()}

    @classmethod
    def _from_tree(cls, tree: Tree, _: int) -> Self:
        parameters = {name: value for name, value in tree.items() if name not in ("class", "used")}
        embedding = cls(**parameters)
        embedding.check_parameters()
        table: Tree = tree["used"]
        for text in (parameters["network"], table["name"], table["sha256"]):
            if not isinstance(text, str):
                raise ValueError(f"name and sha256 of a network must be strings; got {text!r}")
        check_integer(table["width"], "width", low=1)
        known = catalog.NETWORKS.get(table["name"])
        if known is not None and known.of != f"{cls._item}s":
            raise ValueError(f"{known.name} is not a network for {cls._item}s")
        how = PictureInput.of(table["input"]) if cls._item == "picture" else None
        tokenizer = table["tokenizer_sha256"] if cls._item == "text" else None
        embedding.network_ = UsedNetwork(
            table["name"], table["sha256"], table["width"], how, tokenizer
        )
        return embedding

    def __sklearn_is_fitted__(self) -> bool:
        return True


def file_content(path: Path) -> bytes:
    """The content of a network file given by a user."""
    if not path.is_file():
        raise FileNotFoundError(f"network {path}: no such file")
    most = 2**31  # the limit of protocol buffers
    if (size := path.stat().st_size) > most:
        raise NetworkError(f"network {path} has {size:,} bytes; at most {most:,} are allowed")
    return path.read_bytes()
