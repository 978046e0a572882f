"""The data folder, the hypothesis profiles, and one place where BLAS threads are set."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from scipy import sparse

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", parent=settings.get_profile("repeatable"), derandomize=False)
settings.load_profile(os.environ.get("NEARLABEL_HYPOTHESIS", "repeatable"))


def _find(name: str) -> Path | None:
    for folder in filter(None, os.environ.get("NEARLABEL_DATA", "").split(os.pathsep)):
        path = Path(folder) / f"{name}.npz"
        if path.exists():
            return path
    return None


@pytest.fixture(scope="session")
def load():
    """Read a data set of the data folder: X, Y, train mask. Skips the test where it is absent."""

    def read(name: str):
        path = _find(name)
        if path is None:
            pytest.skip(f"{name}.npz is not in the data folder (NEARLABEL_DATA)")
        with np.load(path, allow_pickle=False) as z:
            if "X" in z.files:
                X = z["X"]
            else:
                parts = (z["X_data"], z["X_indices"], z["X_indptr"])
                X = sparse.csr_array(parts, shape=tuple(z["X_shape"]))
            ones = np.ones(len(z["Y_indices"]), np.int8)
            Y = sparse.csr_array((ones, z["Y_indices"], z["Y_indptr"]), shape=tuple(z["Y_shape"]))
            return X, Y, z["train"]

    return read


@pytest.fixture
def f6():
    """The six-row worked example of the ML-kNN literature notes: X, Y, the query, k = 3."""
    X = np.array([[0, 0], [1, 0], [0, 2], [4, -0.4], [5, 1], [4, 2.5]])
    Y = np.array(
        [[1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]]
    )
    return X, Y, np.array([[2.2, 0.4]])
