"""Where public multi-label data sets live, as ``public_sets.toml`` says."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class PublicSet:
    """A public data set.

    Attributes
    ----------
    shape : tuple of int
        Numbers of items, features and labels: what comes with others is another data set.
    files : mapping of str to str
        The address of each file, by the name that it gets in the folder of downloads.
    openml : int or None
        Its number at openml.org, which is asked where no server gives the files.
    ignore : sequence of str
        Attributes of the source that are no features.
    nominal : {"onehot", "code"}
        How `load` makes features of nominal attributes.
    """

    shape: tuple[int, ...]
    files: Mapping[str, str]
    openml: int | None = None
    ignore: Sequence[str] = ()
    nominal: str = "onehot"


_ENDS = {"train": "-train.arff", "test": "-test.arff", "whole": ".arff", "xml": ".xml"}


def _public_set(name: str, row: Mapping[str, Any], servers: Mapping[str, str]) -> PublicSet:
    files = {}
    for key, end in _ENDS.items():
        if key in row:
            server, _, path = row[key].partition("/")
            files[name + end] = f"{servers[server]}/{path}"
    others = {key: value for key, value in row.items() if key not in _ENDS}
    return PublicSet(files=files, **others | {"shape": tuple(row["shape"])})


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
HOMES = {name: _public_set(name, row, _TABLE["servers"]) for name, row in _TABLE["sets"].items()}
ELSEWHERE: dict[str, str] = _TABLE["elsewhere"]
