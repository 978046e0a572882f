"""Where public multi-label data sets live, as ``public_sets.toml`` says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearlabel.datasets.http_download import is_secure


@dataclass(frozen=True)
class Files:
    """A home that serves plain files.

    Attributes
    ----------
    addresses : mapping of str to str
        The address of each file, by the name that it gets in the folder of downloads.
    """

    addresses: Mapping[str, str]

    @property
    def files(self) -> tuple[str, ...]:
        """The names under which checksums are kept."""
        return tuple(self.addresses)

    def __str__(self) -> str:
        return next(iter(self.addresses.values())).rpartition("/")[0]

    def at(self, mirror: str | None, name: str) -> Files:
        """The same files at another address, or a ValueError where that is not to be trusted."""
        if mirror is None:
            return self
        is_plain = isinstance(mirror, str) and re.fullmatch("[!-~]+", mirror)
        if not is_plain or re.search("[@?#]", mirror) or not is_secure(mirror):
            raise ValueError(
                "mirror must be an address such as 'https://host/path', or 'http://localhost/path' "
                f"of this machine; got {mirror!r}"
            )
        return Files({file: f"{mirror.rstrip('/')}/{name}/{file}" for file in self.addresses})


@dataclass(frozen=True)
class OpenML:
    """A home at openml.org."""

    data_id: int

    @property
    def files(self) -> tuple[str, ...]:
        """The name under which a checksum is kept: that of the numbers, whatever file they were."""
        return (f"openml-{self.data_id}",)

    @property
    def address(self) -> str:
        """The page that describes the data set."""
        return f"https://www.openml.org/d/{self.data_id}"

    def __str__(self) -> str:
        return f"OpenML's data set {self.data_id}, which has no split into train and test"

    def at(self, _mirror: str | None, _name: str) -> OpenML:
        """Stay: a mirror holds files."""
        return self


@dataclass(frozen=True)
class PublicSet:
    """A public data set.

    Attributes
    ----------
    shape : tuple of int
        Numbers of items, features and labels: what comes with others is another data set.
    homes : tuple of Files and OpenML
        In the order in which they are tried. All that serve files serve the same ones.
    ignore : sequence of str
        Attributes of the source that are no features.
    nominal : {"onehot", "code"}
        How `load` makes features of nominal attributes.
    """

    shape: tuple[int, ...]
    homes: tuple[Files | OpenML, ...]
    ignore: Sequence[str] = ()
    nominal: str = "onehot"


_FILES = {  # the names that the files of a set get, by the keys of the table
    "train": "{}-train.arff",
    "test": "{}-test.arff",
    "whole": "{}.arff",
    "xml": "{}.xml",
}


def _public_set(name: str, row: Mapping[str, Any], servers: Mapping[str, str]) -> PublicSet:
    addresses = {}
    for key, file in _FILES.items():
        if key in row:
            server, _, path = row[key].partition("/")
            addresses[file.format(name)] = f"{servers[server]}/{path}"
    homes: list[Files | OpenML] = [Files(addresses)] if addresses else []
    homes += [OpenML(row["openml"])] if "openml" in row else []
    reading = {key: row[key] for key in ("ignore", "nominal") if key in row}
    return PublicSet(tuple(row["shape"]), tuple(homes), **reading)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
HOMES = {name: _public_set(name, row, _TABLE["servers"]) for name, row in _TABLE["sets"].items()}
ELSEWHERE: dict[str, str] = _TABLE["elsewhere"]
