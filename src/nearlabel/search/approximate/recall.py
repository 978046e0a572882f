"""The share of the true neighbors that a search has found, measured on some rows by distance."""

from __future__ import annotations

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.graph import NeighborGraph, Recall

ROWS_MEASURED = 512  # cheap compared with a search; estimates recall to about 0.001


def recall_of(found: Floats, exact: NeighborGraph, sample: str = "graph") -> Recall:
    """The recall of neighbors at canonical distances `found`, (n, k), given the exact ones."""
    farthest = exact.distances[:, -1:].astype(found.dtype)
    return recall_of_shares(np.mean(found <= farthest, axis=1), exact.k, sample)


def recall_of_shares(shares: Floats, k: int, sample: str = "graph") -> Recall:
    """The mean recall of rows, given the share of its k neighbors that each has found."""
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    return Recall(float(shares.mean()), float(error), len(shares), k, sample)


def sample_rows(n: int, seed: int, rows: int = ROWS_MEASURED) -> Array:
    """Some of n rows, drawn at random, in their order."""
    return np.sort(np.random.default_rng(seed).choice(n, min(rows, n), replace=False))
