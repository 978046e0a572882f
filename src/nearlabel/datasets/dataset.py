"""A multi-label data set in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nearlabel.arrays import Array, Csr


@dataclass(frozen=True)
class Dataset:
    """Items with vectors and labels.

    Attributes
    ----------
    X : ndarray or csr_array, shape (n, d)
    Y : csr_array of int8, shape (n, q)
    label_names, feature_names : ndarray of str or None
    train : ndarray of bool, shape (n,), or None
        The rows of the training part, where there is a split.
    """

    X: Any
    Y: Csr
    label_names: Array | None = None
    feature_names: Array | None = None
    train: Array | None = None

    def __repr__(self) -> str:
        (n, d), q = self.X.shape, self.Y.shape[1]
        return f"Dataset({n} items, {d} features, {q} labels, {self.Y.nnz / n:.2f} labels an item)"
