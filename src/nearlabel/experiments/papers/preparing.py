"""Data made ready for an experiment: the rows, how they are divided, the distances they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.datasets import Dataset
from nearlabel.experiments.protocols import Part, splits
from nearlabel.experiments.scaling import scaler

# What it means that data of a known name are others than expected, or more than fits in memory.
UNFIT = (ValueError, OSError, MemoryError)


class Prepared(NamedTuple):
    """Data, their splits, and the scaling that is still to be done in each of them."""

    data: Dataset
    parts: list[Part]
    scale: str


def prepared(data: Dataset, setting: Mapping[str, Any]) -> Prepared:
    """Make data ready; a ValueError says what they lack.

    Parameters
    ----------
    data : Dataset
    setting : mapping
        `scale`, and where they are told `rows`, `split` with its `seed`, and `nominal`: see
        ``experiments.toml``. Of "label clusters" the labels are looked for.
    """
    if setting.get("rows") == "several labels":
        data = data.rows(np.diff(data.Y.indptr) > 1)
    if setting.get("kind") == "label clusters":
        _check_labels(data, setting["parameters"])
        return Prepared(data, [], setting["scale"])
    if "split" not in setting:
        return Prepared(data, [], setting["scale"])
    parts = splits(data, setting["split"], seed=setting.get("seed", 0))
    if "nominal" in setting:
        data = _with_nominal(data, parts[0].train, setting["nominal"], setting["scale"])
        return Prepared(data, parts, "none")
    return Prepared(data, parts, setting["scale"])


def _check_labels(data: Dataset, parameters: list[dict[str, Any]]) -> None:
    names = [] if data.label_names is None else data.label_names.tolist()
    for name in (name for one in parameters for group in one["groups"] for name in group):
        if name not in names:
            raise ValueError(f"this data set has no label {name!r}")


def _with_nominal(data: Dataset, train: Array, names: list[str], scale: str) -> Dataset:
    """The data scaled, and with nominal features that are at distance 1 where they differ.

    That is what Weka's distance, and so Mulan's, makes of them.
    """
    listed = [] if data.feature_names is None else data.feature_names.tolist()
    missing = [name for name in names if name not in listed]
    if missing:
        raise ValueError(f"this data set has no feature {missing[0]!r}")
    is_nominal = np.isin(listed, names)
    rest, transformer = data.X[:, ~is_nominal], scaler(scale, data.X[:, ~is_nominal])
    if transformer is not None:
        rest = transformer.fit(rest[train]).transform(rest)
    columns = [
        (data.X[:, place, None] == np.unique(data.X[:, place])) / np.sqrt(2)
        for place in np.flatnonzero(is_nominal)
    ]
    return replace(data, X=np.hstack([rest, *columns]), feature_names=None)
