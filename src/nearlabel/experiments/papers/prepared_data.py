"""Data made ready for an experiment: which rows, how they are split, the distances between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.common.messages import one_line
from nearlabel.datasets import Dataset, load
from nearlabel.datasets.scaling import scaler
from nearlabel.experiments.protocols import Part, splits


class UnusableDataError(Exception):
    """A data set of the expected name is not what an experiment needs, or exceeds the memory."""


@dataclass(frozen=True)
class DataSetup:
    """What is done to a data set before anything is learned from it; see ``experiments.toml``.

    `split` is None where nothing is split; `labels` are names of labels that must be there.
    """

    scale: str
    split: str | None = None
    seed: int = 0
    rows: Literal["all", "several labels"] = "all"
    nominal: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


class PreparedData(NamedTuple):
    """Data, their splits, and the scaling that is still to be done in each of them."""

    data: Dataset
    parts: list[Part]
    scale: str


def loaded(dataset: str) -> Dataset:
    """A data set of the data folder, or an `UnusableDataError` that says why it cannot be read."""
    try:
        return load(dataset)
    except (ValueError, OSError, MemoryError) as error:
        raise UnusableDataError(one_line(str(error))) from error


def prepared(data: Dataset, setup: DataSetup) -> PreparedData:
    """Make data ready, or say by an `UnusableDataError` what they lack."""
    for kind, wanted, names in (
        ("label", setup.labels, data.label_names),
        ("feature", setup.nominal, data.feature_names),
    ):
        for name in wanted:
            if names is None or name not in names.tolist():
                raise UnusableDataError(f"this data set has no {kind} {name!r}")
    if setup.rows == "several labels":
        data = data.rows(np.diff(data.Y.indptr) > 1)
    if setup.split is None:
        return PreparedData(data, [], setup.scale)
    try:
        parts = splits(data, setup.split, seed=setup.seed)
        if setup.nominal:
            data = _with_nominal(data, parts[0].train, setup.nominal, setup.scale)
            return PreparedData(data, parts, "none")
    except (ValueError, MemoryError) as error:
        raise UnusableDataError(one_line(str(error))) from error
    return PreparedData(data, parts, setup.scale)


def _with_nominal(data: Dataset, train: Array, names: Sequence[str], scale: str) -> Dataset:
    """The data scaled, and with nominal features that are at distance 1 where they differ.

    That is what Weka's distance, and so Mulan's, makes of them.
    """
    is_nominal = np.isin(np.asarray(data.feature_names), names)
    rest, transformer = data.X[:, ~is_nominal], scaler(scale, data.X[:, ~is_nominal])
    if transformer is not None:
        rest = transformer.fit(rest[train]).transform(rest)
    columns = [
        (data.X[:, place, None] == np.unique(data.X[:, place])) / np.sqrt(2)
        for place in np.flatnonzero(is_nominal)
    ]
    return replace(data, X=np.hstack([rest, *columns]), feature_names=None)
