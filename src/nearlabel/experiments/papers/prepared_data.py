"""What is done to a data set before anything is learned from it: rows, splits, nominal features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearlabel.common.arrays import Array
from nearlabel.datasets import Dataset
from nearlabel.experiments.protocols import Part, splits
from nearlabel.features.scales import scaler

if TYPE_CHECKING:
    from nearlabel.experiments.papers.table_experiments import Experiment


class PreparedData(NamedTuple):
    """Data, their splits, and the scaling that is still to be done in each of them."""

    data: Dataset
    parts: list[Part]
    scale: str


def prepared(data: Dataset, setup: Experiment) -> PreparedData:
    """Make data ready, or say by a ValueError what they lack."""
    for kind, needed, names in (
        ("label", setup.labels, data.label_names),
        ("feature", setup.nominal, data.feature_names),
    ):
        for name in needed:
            if names is None or name not in names.tolist():
                raise ValueError(f"this data set has no {kind} {name!r}")
    if setup.rows == "several labels":
        data = data.rows(np.diff(data.Y.indptr) > 1)
    parts = [] if setup.split is None else splits(data, setup.split, seed=setup.seed)
    if parts and setup.nominal:
        data = _with_nominal(data, parts[0].train, setup.nominal, setup.scale)
        return PreparedData(data, parts, "none")
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
