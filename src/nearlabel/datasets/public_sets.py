"""The sources of public multi-label data sets, from ``public_sets.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PublicSet:
    """A public data set; `ignore` and `nominal` are options of `load`."""

    shape: tuple[int, ...]  # items, features, labels: a different shape is a different data set
    files: Mapping[str, str]  # their addresses, by file name in downloads
    ignore: Sequence[str] = ()
    nominal: str = "onehot"


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_ENDS = {"train": "-train.arff", "test": "-test.arff", "whole": ".arff", "xml": ".xml"}
HOMES = {
    name: PublicSet(
        tuple(row["shape"]),
        {
            name + end: row[key].format(**_TABLE["servers"])
            for key, end in _ENDS.items()
            if key in row
        },
        row.get("ignore", ()),
        row.get("nominal", "onehot"),
    )
    for name, row in _TABLE["sets"].items()
}
ELSEWHERE: dict[str, str] = _TABLE["elsewhere"]
