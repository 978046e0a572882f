"""Coordinates of rows on learned axes, from their features or their kernel with landmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from nearlabel.blend.rows import row_blocks
from nearlabel.common.arrays import Floats, Matrix, Tree
from nearlabel.common.files import csr_from, csr_tree
from nearlabel.common.validation import all_finite, check_real
from nearlabel.methods.fields import stored_array


class Landmarks(NamedTuple):
    """Rows whose RBF kernel exp(-gamma ||x - y||²) with others stands for these."""

    rows: Matrix  # (m, d), of float64
    gamma: float

    def kernel(self, X: Matrix) -> Floats:
        """The kernel of other rows, dense or sparse, shape (n, m)."""
        X = X.astype(np.float64, copy=False)
        if sparse.issparse(self.rows):
            return np.asarray(rbf_kernel(X, self.rows, self.gamma))
        # Far from the origin, differences would be lost to rounding.
        center = self.rows.mean(axis=0)
        X = X if isinstance(X, np.ndarray) else X.toarray()
        return np.asarray(rbf_kernel(X - center, self.rows - center, self.gamma))


@dataclass(frozen=True)
class Projection:
    """Coordinates (x - center) weights + offset, where x is a row or its kernel."""

    center: Floats  # (d,); empty for a kernel
    weights: Floats  # (d, k), or (m, k) for m landmarks
    offset: Floats  # (k,)
    landmarks: Landmarks | None = None

    def coordinates(self, X: Matrix) -> Floats:
        """Coordinates of some rows, shape (n, k)."""
        coordinates = np.empty((X.shape[0], len(self.offset)))
        for block in row_blocks(len(coordinates), max(len(self.weights), X.shape[1])):
            rows = X[block]
            if self.landmarks is not None:
                coordinates[block] = self.landmarks.kernel(rows) @ self.weights
            elif sparse.issparse(rows):
                coordinates[block] = rows.astype(np.float64) @ self.weights
                coordinates[block] -= self.center @ self.weights
            else:
                coordinates[block] = (rows.astype(np.float64) - self.center) @ self.weights
        coordinates += self.offset
        return coordinates

    def times(self, weights: Floats, offset: Floats | float = 0.0) -> Projection:
        """The projection to these coordinates times a matrix, plus an offset."""
        product = self.weights @ weights, self.offset @ weights + offset
        return Projection(self.center, *product, self.landmarks)

    def tree(self) -> Tree:
        """The stored form."""
        rows, gamma = (None, None) if self.landmarks is None else self.landmarks
        rows = csr_tree(rows) if sparse.issparse(rows) else rows
        return {**vars(self), "landmarks": rows, "gamma": gamma}

    @classmethod
    def from_tree(cls, tree: Tree, d: int) -> Projection:
        """From the stored form; a ValueError or the like if it is not valid."""
        sizes, rows = {"d": d}, tree["landmarks"]
        if tree["gamma"] is None:
            shapes = {"center": "d", "weights": "dk", "offset": "k"}
            center, weights, offset = finite_arrays(tree, shapes, sizes)
            return cls(center, weights, offset)
        if isinstance(rows, Mapping):
            rows = csr_from(rows, "landmarks")
            finite_arrays({"landmarks": rows.data}, {"landmarks": "c"}, {})
        else:
            (rows,) = finite_arrays(tree, {"landmarks": "md"}, sizes)
        weights, offset = finite_arrays(tree, {"weights": "mk", "offset": "k"}, sizes)
        if rows.shape != (len(weights), d):
            raise ValueError("its landmarks do not match its weights and features")
        landmarks = Landmarks(rows, check_real(tree["gamma"], "gamma", low=0))
        return cls(np.empty(0), weights, offset, landmarks)


def finite_arrays(
    tree: Mapping[str, object], shapes: Mapping[str, str], sizes: dict[str, int]
) -> list[Floats]:
    """Arrays of a stored form, of finite float64.

    A shape is in letters: those in `sizes`, and others that get the size at their first use.
    """
    arrays = []
    for key, letters in shapes.items():
        array = stored_array(tree[key], key, "f", len(letters))
        if array.dtype != np.float64 or not all_finite(array):
            raise ValueError(f"its {key} must be finite")
        sides = zip(letters, array.shape, strict=True)
        if any(sizes.setdefault(letter, size) != size for letter, size in sides):
            raise ValueError(f"the shape of its {key} does not match the rest")
        arrays.append(array)
    return arrays
