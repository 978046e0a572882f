"""The sources of public multi-label data sets, from ``public_sets.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class PublicSet:
    """A public data set; `ignore` and `nominal` are options of `load`."""

    shape: tuple[int, ...]  # items, features, labels: a different shape is a different data set
    files: Mapping[str, str]  # their addresses, by file name in downloads
    ignore: Sequence[str] = ()
    nominal: str = "onehot"


_ENDS = {"train": "-train.arff", "test": "-test.arff", "whole": ".arff", "xml": ".xml"}


def _public_set(name: str, row: Mapping[str, Any], servers: Mapping[str, str]) -> PublicSet:
    files = {}
    for key, end in _ENDS.items():
        if key in row:
            server, _, path = row[key].partition("/")
            files[name + end] = f"{servers[server]}/{path}"
    how = {key: row[key] for key in ("ignore", "nominal") if key in row}
    return PublicSet(tuple(row["shape"]), files, **how)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
HOMES = {name: _public_set(name, row, _TABLE["servers"]) for name, row in _TABLE["sets"].items()}
ELSEWHERE: dict[str, str] = _TABLE["elsewhere"]
