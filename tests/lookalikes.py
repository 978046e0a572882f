"""Small made-up data sets under the names of real ones, so that experiments run without these."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from nearlabel.datasets import make_local_labels, save

ROWS = 260  # the greatest number of neighbors that an experiment asks for is 150


def write_lookalikes(folder: Path, *names: str) -> None:
    """Write data sets with what the experiments look at: a split, parts, a nominal feature."""
    for seed, name in enumerate(names):
        data = make_local_labels(ROWS, 6, 5, random_state=seed)
        train = np.arange(ROWS) < 180
        features = np.array([*(f"f{place}" for place in range(5)), "location"])
        X = np.column_stack([data.X[:, :5], np.arange(ROWS) % 3])
        parts = np.where(train, 3, 1)
        if name == "corel16k001":  # its training rows are not known
            data = replace(data, X=X, train=None, extra={"part": parts})
        else:
            data = replace(data, X=X, feature_names=features, train=train)
        save(data, folder / f"{name}.npz")
